//! Registers a struct_ops object with the kernel.

use std::time::Duration;

use knee_collect::KernelError;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType, TypeId};
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{Error, Link, MapCore, MapHandle, MapType, ObjectBuilder, ProgramType};
use nix::time::{ClockId, clock_gettime};

use super::objects::{self, NOT_BUILT, OBJECTS, Object};
use super::{log, requirements};

/// The map belongs to a link, and goes with it (Linux 6.4).
const BPF_F_LINK: u32 = 1 << 13;
/// The name of an algorithm in our build's `struct tcp_congestion_ops`, and the
/// flags that follow (cc/cc_bpf.h, which asserts it).
const NAME_AT: usize = 80;
const FLAGS_AT: usize = 96;
/// The section of its parameters.
const PARAMS: &str = ".rodata.params";
/// TCP_CONG_NON_RESTRICTED.
const NON_RESTRICTED: u32 = 1;
/// Does this kernel hold struct_ops by links?
pub fn has_links() -> bool {
    kernel_version().is_none_or(|version| version >= (6, 4))
}

fn kernel_version() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut parts = release.split(['.', '-']);
    Some((
        parts.next()?.parse().ok()?,
        parts.next()?.trim().parse().ok()?,
    ))
}

/// Who may choose an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choosers {
    /// Sockets with CAP_NET_ADMIN over their network namespace.
    Administrators,
    /// Every socket. Only such an algorithm can be a namespace's default.
    Everybody,
}

/// How an algorithm is registered.
pub struct Build<'a> {
    /// Of the registry.
    pub name: &'a str,
    /// What the kernel is to call it.
    pub called: &'a str,
    /// By name; the rest keep their defaults.
    pub params: &'a [(String, u32)],
    /// Is it there as long as the link, or its pin? Else until it is unregistered.
    pub linked: bool,
    pub who: Choosers,
}

/// Registers our build of an algorithm.
pub fn register(build: &Build<'_>) -> Result<Link, KernelError> {
    let name = build.name;
    let cannot = |why: String, hint: String| KernelError::Load {
        name: name.into(),
        why,
        hint,
    };
    let Some(object) = objects::find(name) else {
        return Err(if OBJECTS.is_empty() {
            cannot(
                NOT_BUILT.into(),
                "The simulator has it all the same.".into(),
            )
        } else {
            cannot(
                "there is no such algorithm".into(),
                "`knee list algorithms` prints them.".into(),
            )
        });
    };
    requirements::check(requirements::STRUCT_OPS).map_err(|(why, hint)| cannot(why, hint))?;
    if kernel_version().is_some_and(|version| version < (6, 1)) {
        return Err(cannot(
            "its kernel is older than 6.1, where an interrupted algorithm can return garbage"
                .into(),
            "Boot a newer kernel.".into(),
        ));
    }
    let bytes = pick(object).map_err(|why| {
        cannot(
            why,
            "Its BTF is not that of a TCP we know; please report it.".into(),
        )
    })?;
    attach(build, bytes)
}

/// The build for the running kernel's signature of cong_control.
fn pick(object: &Object) -> Result<&'static [u8], String> {
    let btf = Btf::from_vmlinux()
        .map_err(|error| format!("the kernel's BTF cannot be read ({error})"))?;
    match cong_control_arguments(&btf) {
        // sk, ack, flag, rs
        Some(4) => Ok(object.with_flag),
        // sk, rs
        Some(2) => Ok(object.without_flag),
        Some(count) => Err(format!("its cong_control takes {count} arguments")),
        None => Err("its tcp_congestion_ops has no cong_control".into()),
    }
}

fn cong_control_arguments(btf: &Btf<'_>) -> Option<usize> {
    let ops = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = ops
        .iter()
        .find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    arguments(btf, member.ty)
}

/// How many arguments a function takes to which a type of the kernel's points.
pub fn arguments(btf: &Btf<'_>, pointer: TypeId) -> Option<usize> {
    let pointer = btf.type_by_id::<Ptr<'_>>(pointer)?;
    let proto: TypeId = pointer.referenced_type().type_id();
    Some(btf.type_by_id::<FuncProto<'_>>(proto)?.iter().count())
}

/// Loads the object and registers its struct_ops map.
fn attach(build: &Build<'_>, bytes: &[u8]) -> Result<Link, KernelError> {
    let (attached, log) = log::of(|| try_attach(build, bytes));
    attached.map_err(|error| explain(build, &error, &log))
}

fn try_attach(build: &Build<'_>, bytes: &[u8]) -> libbpf_rs::Result<Link> {
    let unknown = || Error::from_raw_os_error(libc::EINVAL);
    let mut open = ObjectBuilder::default()
        .name(build.name)?
        .open_memory(bytes)?;
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            if build.linked {
                let flags = map.map_flags();
                map.set_map_flags(flags | BPF_F_LINK)?;
            }
            let ops = map.initial_value_mut().unwrap_or_default();
            name_and_flags(build, ops).ok_or_else(unknown)?;
        } else if map.name() == PARAMS && !build.params.is_empty() {
            let values = map.initial_value_mut().unwrap_or_default();
            set_params(build, values).ok_or_else(unknown)?;
        }
    }
    let mut object = open.load()?;
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .ok_or_else(|| Error::from_raw_os_error(libc::ENOENT))?;
    map.attach_struct_ops()
}

/// Sets what it is called and who may choose it; `None` when this is not the struct that we know.
fn name_and_flags(build: &Build<'_>, ops: &mut [u8]) -> Option<()> {
    let own = super::kernel_name(build.name);
    let named = ops.get_mut(NAME_AT..FLAGS_AT)?;
    if named.split(|byte| *byte == 0).next() != Some(own.as_bytes()) {
        return None;
    }
    named.fill(0);
    named
        .get_mut(..build.called.len())?
        .copy_from_slice(build.called.as_bytes());
    if build.who == Choosers::Everybody {
        let flags: &mut [u8; 4] = ops.get_mut(FLAGS_AT..FLAGS_AT + 4)?.try_into().ok()?;
        *flags = (u32::from_ne_bytes(*flags) | NON_RESTRICTED).to_ne_bytes();
    }
    Some(())
}

/// Sets parameters, which lie there as the algorithm lists them.
fn set_params(build: &Build<'_>, values: &mut [u8]) -> Option<()> {
    let listed: Vec<&str> = match objects::of_file(build.name) {
        Some(added) => added.params.iter().map(|name| &**name).collect(),
        None => {
            let params = knee_cc::find(build.name)?.params();
            params.iter().map(|param| param.name).collect()
        }
    };
    for (name, value) in build.params {
        let at = 4 * listed.iter().position(|param| param == name)?;
        values
            .get_mut(at..at + 4)?
            .copy_from_slice(&value.to_ne_bytes());
    }
    Some(())
}

fn explain(build: &Build<'_>, error: &Error, log: &str) -> KernelError {
    let (why, hint) = match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => (
            format!(
                "the kernel has a congestion control of the name {}",
                build.called
            ),
            "Somebody loaded it meanwhile; `knee list algorithms` shows it.".into(),
        ),
        _ => log::explained(build.name, error, log),
    };
    KernelError::Load {
        name: build.name.into(),
        why,
        hint,
    }
}

/// What the kernel tells of a build that is registered.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Does it go with a link? Else it stays until it is unregistered.
    pub linked: bool,
    /// Who loaded its programs, and how long ago.
    pub loaded: Option<(u32, Duration)>,
}

/// The newest that is `called` so; `None` also where we may not ask.
pub fn registered(called: &str) -> Option<Registered> {
    let map = MapInfoIter::default()
        .filter(|info| info.ty == MapType::StructOps && info.name.to_string_lossy() == called)
        .max_by_key(|info| info.id)?;
    // An object's maps and programs have the BTF of the object.
    let program = ProgInfoIter::default()
        .find(|info| info.ty == ProgramType::StructOps && info.btf_id == map.btf_id);
    let since_boot = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    Some(Registered {
        linked: map.map_flags & BPF_F_LINK != 0,
        loaded: program.map(|program| {
            let ago = since_boot.saturating_sub(program.load_time);
            (program.created_by_uid, ago)
        }),
    })
}

/// Takes back a registration that no link holds.
pub fn unregister(called: &str) -> Result<(), String> {
    for info in MapInfoIter::default() {
        if info.ty != MapType::StructOps || info.name.to_string_lossy() != called {
            continue;
        }
        let map = MapHandle::from_map_id(info.id).map_err(|error| error.to_string())?;
        use libbpf_rs::ErrorKind::{InvalidInput, NotFound, Other, Unsupported};
        match map.delete(&0u32.to_ne_bytes()) {
            Ok(()) => return Ok(()),
            // An earlier one of the name, on its way out (EINPROGRESS) or never
            // registered (ENOENT).
            Err(error) if matches!(error.kind(), Other | NotFound) => {}
            Err(error) if matches!(error.kind(), Unsupported | InvalidInput) => {
                return Err(format!(
                    "a running program holds {called}, and it goes with that program"
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!(
        "no struct_ops map of the kernel is called {called}"
    ))
}

#[cfg(test)]
mod tests;
