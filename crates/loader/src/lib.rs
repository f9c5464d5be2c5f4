//! Puts algorithms into the running kernel, and takes them out again.
//!
//! An algorithm that stays is pinned below [`PINS`]; one for a run is held by a
//! descriptor, so that it goes with the process however that ends. Without the
//! BPF file system, and on kernels before 6.4, which know no such links, a
//! registration stays until it is taken back.

mod default_in;
pub mod log;
mod lost;
pub mod namespace;
mod objects;
mod registration;
pub mod requirements;
mod users;

pub use lost::lost;
pub use objects::{add, is_built};
pub use users::User;

/// The programs of bpf/ as BPF objects; empty when they were built without clang.
pub mod programs {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use knee_scenario::{Cell, FlowSpec};
use libbpf_rs::Link;
use nix::unistd::Uid;
pub use objects::NOT_BUILT;
pub use registration::arguments;
use registration::{Build, Choosers, Registered};

/// Where links of loaded algorithms are pinned.
pub const PINS: &str = "/sys/fs/bpf/tcpknee";

/// The work queue that takes a registration back is waited for so long.
const LATEST: Duration = Duration::from_secs(2);

/// What the kernel calls our build of an algorithm.
pub fn kernel_name(name: &str) -> String {
    if let Some(added) = objects::of_file(name) {
        return added.kernel_name.to_owned();
    }
    knee_cc::find(name).map_or_else(
        || format!("knee_{name}"),
        |algorithm| algorithm.kernel_name().to_owned(),
    )
}

/// What the kernel calls its own build of an algorithm, if it can have one.
pub fn builtin_name(name: &str) -> &str {
    if objects::of_file(name).is_some() {
        // None: an algorithm of that name is another one.
        return "";
    }
    knee_cc::find(name).map_or(name, |algorithm| algorithm.linux_name())
}

/// What there is of an algorithm in this kernel.
#[derive(Clone, Debug)]
pub struct Status {
    pub name: String,
    /// The kernel's own build, by its name.
    pub builtin: Option<String>,
    /// Our build, by its name, when it is loaded.
    pub loaded: Option<String>,
    /// The pin that holds it; `None` also for one without: it goes with a run, or is unregistered.
    pub pin: Option<PathBuf>,
    /// Why our build cannot be loaded here; `None`: it can.
    pub not_loadable: Option<String>,
}

/// Every algorithm of the registry.
pub fn list() -> Vec<Status> {
    let available = available();
    let has = |name: &str| {
        available
            .iter()
            .any(|known| known == name)
            .then(|| name.to_owned())
    };
    let refusal = requirements::check(requirements::STRUCT_OPS).err();
    knee_cc::algorithms()
        .iter()
        .map(|algorithm| {
            let name = algorithm.name();
            Status {
                name: name.to_owned(),
                builtin: has(builtin_name(name)),
                loaded: has(&kernel_name(name)),
                pin: Some(pin_of(name)).filter(|pin| pin.exists()),
                not_loadable: match &refusal {
                    Some((why, _)) => Some(why.clone()),
                    None => (!is_built()).then(|| objects::NOT_BUILT.to_owned()),
                },
            }
        })
        .collect()
}

/// Congestion controls that sockets may choose now.
pub fn available() -> Vec<String> {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// An algorithm that is loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the kernel calls it.
    pub called: String,
    /// Was it so before?
    pub was_there: bool,
}

/// Loads our build of an algorithm, to stay.
///
/// `default_in`: a network namespace (a name below /run/netns, or a process) for
/// whose new sockets it becomes the default. Such an algorithm may be chosen by
/// everybody, as a default must be: one that was loaded without is loaded anew.
///
/// # Errors
/// No such algorithm, the name is taken, or the kernel refuses: each says why.
pub fn load(name: &str, default_in: Option<&str>) -> Result<Loaded, KernelError> {
    let called = kernel_name(name);
    let is_of_file = objects::of_file(name).is_some();
    if is_of_file && stays(name, &called) {
        // The file may have changed.
        unload(name)?;
    }
    if stays(name, &called) {
        let is_as_asked = default_in.is_none_or(|place| default_in::holds(name, &called, place));
        if is_as_asked {
            return Ok(Loaded {
                called,
                was_there: true,
            });
        }
        if !is_for_everybody(&called) {
            unload(name)?;
        }
    }
    refuse_taken(name, &called)?;
    let who = match default_in {
        Some(_) => Choosers::Everybody,
        None => Choosers::Administrators,
    };
    if registration::has_links() && has_bpffs() {
        pin(name, who)?;
    } else {
        // Without a link the kernel keeps it until it is taken back.
        registration::register(&Build {
            name,
            called: &called,
            params: &[],
            linked: false,
            who,
        })?
        .disconnect();
    }
    if let Some(place) = default_in
        && let Err(error) = default_in::set(name, &called, place)
    {
        // Nothing stays of what was only half done; the first error is the one to know.
        let _ = unload(name);
        return Err(error);
    }
    Ok(Loaded {
        called,
        was_there: false,
    })
}

/// Has an earlier `load` put it there, to stay?
fn stays(name: &str, called: &str) -> bool {
    available().iter().any(|known| known == called)
        && (pin_of(name).exists()
            || registration::registered(called).is_some_and(|found| !found.linked))
}

/// May every socket choose it?
fn is_for_everybody(called: &str) -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
        .is_ok_and(|allowed| allowed.split_whitespace().any(|one| one == called))
}

/// Takes our build of an algorithm out of the kernel: no socket can choose it
/// any more. Sockets that have it keep it until they close; they are returned.
///
/// # Errors
/// It is not loaded, or the kernel refuses.
pub fn unload(name: &str) -> Result<Vec<User>, KernelError> {
    let called = kernel_name(name);
    let pin = pin_of(name);
    let refused = |why: String, hint: &str| KernelError::Unload {
        name: name.into(),
        why,
        hint: hint.into(),
    };
    if !available().contains(&called) && !pin.exists() {
        return Err(refused(
            format!("this kernel has no {called}"),
            "`knee list algorithms` says what is loaded.",
        ));
    }
    requirements::check(requirements::STRUCT_OPS).map_err(|(why, hint)| refused(why, &hint))?;
    default_in::restore(name, &called)?;
    let users = users::of(&called);
    if pin.exists() {
        fs::remove_file(&pin).map_err(|error| {
            refused(
                format!("{} cannot be removed ({error})", pin.display()),
                "Run as root.",
            )
        })?;
        // The folder goes with the last.
        let _ = fs::remove_dir(PINS);
        // The kernel takes it back from a work queue.
        let asked = Instant::now();
        while available().contains(&called) && asked.elapsed() < LATEST {
            std::thread::sleep(Duration::from_millis(5));
        }
    } else {
        registration::unregister(&called).map_err(|why| {
            refused(
                why,
                "A run of tcpknee may hold it, or another program loaded it.",
            )
        })?;
    }
    Ok(users)
}

/// Names of algorithms that stay loaded, those of files too.
pub fn pinned() -> Vec<String> {
    let found = fs::read_dir(PINS).into_iter().flatten().flatten();
    let mut names: Vec<String> = found
        .filter_map(|pin| pin.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

/// Names of our builds that are loaded now.
pub fn loaded() -> Vec<String> {
    let all = list().into_iter();
    all.filter(|status| status.loaded.is_some())
        .map(|status| status.name)
        .collect()
}

/// An algorithm with its parameters, as a flow of a scenario asks for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    pub algorithm: String,
    /// Those that are set, by name.
    pub params: Vec<(String, u32)>,
}

impl Variant {
    /// What the flow runs.
    pub fn of_flow(flow: &FlowSpec) -> Variant {
        Variant {
            algorithm: flow.algorithm.clone(),
            params: flow.params.clone(),
        }
    }

    /// Every variant of a cell: its flows', and the far ends' algorithm.
    pub fn of_cell(cell: &Cell) -> impl Iterator<Item = Variant> {
        let far_end = Variant {
            algorithm: cell.receiver.algorithm.clone(),
            params: Vec::new(),
        };
        cell.flows
            .iter()
            .map(Variant::of_flow)
            .chain(std::iter::once(far_end))
    }
}

/// `cubic`, `bbr1(cwnd_gain = 600)`.
impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.algorithm)?;
        if self.params.is_empty() {
            return Ok(());
        }
        let set = self
            .params
            .iter()
            .map(|(name, value)| format!("{name} = {value}"));
        write!(f, "({})", set.collect::<Vec<_>>().join(", "))
    }
}

/// Algorithms that a run needs, in the kernel while this lives.
pub struct ForRun {
    /// What the kernel calls each [`Variant`], by its text.
    pub names: BTreeMap<String, String>,
    _links: Vec<Link>,
}

/// Sees to it that the kernel has the algorithms: its own builds where it has
/// them, `ours` is false and no parameter is set; else ours, which somebody
/// loaded to stay, or which are loaded under a name of this run's own for as
/// long as the result lives.
///
/// # Errors
/// As [`load`].
pub fn for_run(variants: &BTreeSet<Variant>, ours: bool) -> Result<ForRun, KernelError> {
    let available = available();
    let has = |name: &str| available.iter().any(|known| known == name);
    let (mut names, mut links) = (BTreeMap::new(), Vec::new());
    for variant in variants {
        let name = variant.algorithm.as_str();
        // What is loaded of a file may be another version.
        let plain = variant.params.is_empty() && objects::of_file(name).is_none();
        let called = match (builtin_name(name), kernel_name(name)) {
            (own, _) if plain && !ours && has(own) => own.to_owned(),
            (_, loaded) if plain && has(&loaded) && is_shared(name) => loaded,
            (_, shared) => {
                // Without links a killed run leaves its build, which must then be found.
                let called = match registration::has_links() || !plain {
                    true => free_name(name),
                    false => shared,
                };
                links.push(registration::register(&Build {
                    name,
                    called: &called,
                    params: &variant.params,
                    linked: registration::has_links(),
                    who: Choosers::Administrators,
                })?);
                called
            }
        };
        names.insert(variant.to_string(), called);
    }
    Ok(ForRun {
        names,
        _links: links,
    })
}

/// Sees to it that the kernel has the algorithms, as [`for_run`] does, but under
/// the names that `knee load` gives them: hosts of one experiment call an
/// algorithm the same. Only where another process holds that name, it is one of our own.
///
/// # Errors
/// As [`load`].
pub fn hold(names: &BTreeSet<String>, ours: bool) -> Result<ForRun, KernelError> {
    let mut held = ForRun {
        names: BTreeMap::new(),
        _links: Vec::new(),
    };
    for name in names {
        let available = available();
        let has = |name: &str| available.iter().any(|known| known == name);
        let (own, shared) = (builtin_name(name), kernel_name(name));
        // What is loaded of a file may be another version.
        let is_of_file = objects::of_file(name).is_some();
        let stays = is_shared(name) && !is_of_file;
        let called = if !ours && has(own) {
            own.to_owned()
        } else if has(&shared) && stays {
            shared
        } else {
            let called = if has(&shared) {
                free_name(name)
            } else {
                shared
            };
            held._links.push(registration::register(&Build {
                name,
                called: &called,
                params: &[],
                linked: registration::has_links(),
                who: Choosers::Administrators,
            })?);
            called
        };
        held.names.insert(name.clone(), called);
    }
    Ok(held)
}

/// May a run use the build of ours that is loaded? One that another run loaded goes when that run ends; who may load
/// none uses it all the same.
fn is_shared(name: &str) -> bool {
    pin_of(name).exists()
        || !registration::has_links()
        || requirements::check(requirements::STRUCT_OPS).is_err()
}

/// A name for a run's own build that the kernel does not have: `k1a2b_bbr1`.
/// It has room for 15 characters, of which the algorithm has 9; what is longer is cut.
fn free_name(name: &str) -> String {
    let shared = kernel_name(name);
    let name = shared.strip_prefix("knee_").unwrap_or(name);
    let mut number = std::process::id();
    loop {
        let mut called = format!("k{:04x}_{name}", number & 0xffff);
        called.truncate(15);
        if !available().contains(&called) {
            return called;
        }
        number = number.wrapping_mul(31).wrapping_add(1);
    }
}

/// Registers it by a link, which a pin holds.
fn pin(name: &str, who: Choosers) -> Result<(), KernelError> {
    let pin = pin_of(name);
    let refused = |error: &dyn std::fmt::Display| KernelError::Load {
        name: name.into(),
        why: format!("its link cannot be pinned to {} ({error})", pin.display()),
        hint: "Nothing was loaded; see that the BPF file system can be written.".into(),
    };
    fs::create_dir_all(PINS).map_err(|error| refused(&error))?;
    let mut link = registration::register(&Build {
        name,
        called: &kernel_name(name),
        params: &[],
        linked: true,
        who,
    })?;
    link.pin(&pin).map_err(|error| refused(&error))?;
    link.disconnect();
    Ok(())
}

/// Is the BPF file system mounted where it belongs?
fn has_bpffs() -> bool {
    nix::sys::statfs::statfs("/sys/fs/bpf")
        .is_ok_and(|found| found.filesystem_type() == nix::sys::statfs::BPF_FS_MAGIC)
}

fn pin_of(name: &str) -> PathBuf {
    Path::new(PINS).join(name)
}

/// Refuses a name that the kernel has already.
fn refuse_taken(name: &str, called: &str) -> Result<(), KernelError> {
    if !available().iter().any(|known| known == called) {
        return Ok(());
    }
    let out = format!("`knee unload {name}` takes it out.");
    let (why, hint) = match registration::registered(called) {
        _ if pin_of(name).exists() => (format!("{called} is loaded already"), out),
        Some(found) if !found.linked => (
            format!(
                "{called} is loaded already{}, to stay until it is taken out",
                by_whom(&found)
            ),
            out,
        ),
        Some(found) => (
            format!(
                "{called} is loaded already{}, and held by a link that is not pinned to {}",
                by_whom(&found),
                pin_of(name).display()
            ),
            "It goes with the program that has the link, or with the link's pin elsewhere; `bpftool link` shows it."
                .into(),
        ),
        None => (
            format!("{called} is loaded already, and the kernel does not tell us by whom"),
            "It may be a module's, or only root may ask: `lsmod` and `sudo bpftool struct_ops list` show it."
                .into(),
        ),
    };
    Err(KernelError::Load {
        name: name.into(),
        why,
        hint,
    })
}

/// " by root 5 min ago", as far as it is known.
fn by_whom(found: &Registered) -> String {
    let Some((uid, ago)) = found.loaded else {
        return String::new();
    };
    let user = nix::unistd::User::from_uid(Uid::from_raw(uid))
        .ok()
        .flatten();
    let user = user.map_or_else(|| format!("user {uid}"), |user| user.name);
    let ago = match ago.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    };
    format!(" by {user} {ago} ago")
}
