//! Registers a struct_ops object with the kernel.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, ReferencesType, TypeId};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{Link, MapCore, MapHandle, MapType, ObjectBuilder, PrintLevel};

use super::objects::{NOT_BUILT, OBJECTS, Object};
use super::requirements;
use crate::KernelError;

/// The map belongs to a link, and goes with it (Linux 6.4).
const BPF_F_LINK: u32 = 1 << 13;
/// Lines of the verifier's log that stand in an error.
const LOG_LINES: usize = 6;

/// What libbpf says while an object is loaded; its printer is one for the process.
static LOG: Mutex<String> = Mutex::new(String::new());

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

/// Registers our build of an algorithm. `linked`: it is there as long as the
/// link, or its pin; else until it is unregistered.
pub fn register(name: &str, linked: bool) -> Result<Link, KernelError> {
    let cannot = |why: String, hint: String| KernelError::Load {
        name: name.into(),
        why,
        hint,
    };
    let object = OBJECTS.iter().find(|object| object.name == name);
    let Some(object) = object else {
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
    requirements::check().map_err(|(why, hint)| cannot(why, hint))?;
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
    attach(name, bytes, linked)
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
    let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
    let proto_id: TypeId = pointer.referenced_type().type_id();
    let proto = btf.type_by_id::<FuncProto<'_>>(proto_id)?;
    Some(proto.iter().count())
}

/// Loads the object and registers its struct_ops map.
pub(super) fn attach(name: &str, bytes: &[u8], linked: bool) -> Result<Link, KernelError> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        LOG.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(&text);
    })));
    let attached = try_attach(name, bytes, linked);
    libbpf_rs::set_print(before);
    attached.map_err(|error| explain(name, &error))
}

fn try_attach(name: &str, bytes: &[u8], linked: bool) -> libbpf_rs::Result<Link> {
    let mut open = ObjectBuilder::default().name(name)?.open_memory(bytes)?;
    if linked {
        for mut map in open
            .maps_mut()
            .filter(|map| map.map_type() == MapType::StructOps)
        {
            let flags = map.map_flags();
            map.set_map_flags(flags | BPF_F_LINK)?;
        }
    }
    let mut object = open.load()?;
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
    map.attach_struct_ops()
}

fn explain(name: &str, error: &libbpf_rs::Error) -> KernelError {
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (why, hint) = match error.kind() {
        libbpf_rs::ErrorKind::AlreadyExists => (
            format!(
                "the kernel has a congestion control of the name {}",
                super::kernel_name(name)
            ),
            "Somebody loaded it meanwhile; `knee list algorithms` shows it.".into(),
        ),
        _ if log.contains("BEGIN PROG LOAD LOG") => {
            let file = keep_log(name, &log);
            let lines: Vec<&str> = log
                .lines()
                .filter(|line| !line.starts_with("libbpf:") && !line.starts_with("processed"))
                .collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join(" / ");
            (
                format!("the verifier refuses it ({error}): {last}"),
                format!("The whole log is in {}.", file.display()),
            )
        }
        _ => {
            let last = log.lines().last().unwrap_or_default().trim().to_owned();
            let said = if last.is_empty() {
                String::new()
            } else {
                format!("; libbpf says: {last}")
            };
            (
                format!("{error}{said}"),
                "See `dmesg` for what the kernel says.".into(),
            )
        }
    };
    KernelError::Load {
        name: name.into(),
        why,
        hint,
    }
}

/// Keeps the verifier's log, where the user may write.
fn keep_log(name: &str, log: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!(
        "kneepoint-{name}-{}.verifier.log",
        std::process::id()
    ));
    // The error matters more than its log.
    let _ = std::fs::write(&file, log);
    file
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
