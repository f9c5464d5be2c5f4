//! `--default-in`: an algorithm as the default of a network namespace, and back.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};

use crate::KernelError;

/// Where it is noted what was there before, to be restored.
const NOTES: &str = "/run/kneepoint";
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Makes `called` the default of new sockets in `place`: a name below
/// /run/netns, or the number of a process in it.
pub fn set(name: &str, called: &str, place: &str) -> Result<(), KernelError> {
    let refused = |why: String, hint: &str| KernelError::Load {
        name: name.into(),
        why,
        hint: hint.into(),
    };
    let namespace = namespace(place);
    let before = within(&namespace, || fs::read_to_string(SYSCTL)).map_err(|error| {
        refused(
            format!("there is no network namespace {place} ({error})"),
            "Give a name that `ip netns` prints, or the number of a process.",
        )
    })?;
    let before = before.trim().to_owned();
    let note = note_of(name);
    fs::create_dir_all(NOTES)
        .and_then(|()| fs::write(&note, format!("{}\n{before}\n", namespace.display())))
        .map_err(|error| {
            refused(
                format!("{} cannot be written ({error})", note.display()),
                "What is changed is noted there, so that it can be undone.",
            )
        })?;
    let value = called.to_owned();
    within(&namespace, move || fs::write(SYSCTL, value)).map_err(|error| {
        let _ = fs::remove_file(&note);
        refused(
            format!("{place} does not take it as its default ({error})"),
            "Namespaces other than the host's take only congestion controls that everybody may use \
             (net.ipv4.tcp_allowed_congestion_control of the host); a route's `congctl` needs no such leave.",
        )
    })
}

/// Puts back what was the default before the algorithm was.
pub fn restore(name: &str) -> Result<(), KernelError> {
    let note = note_of(name);
    let Ok(text) = fs::read_to_string(&note) else {
        return Ok(());
    };
    if let Some((namespace, before)) = text.trim().split_once('\n') {
        let before = before.to_owned();
        // A namespace that is gone needs no restoring.
        if Path::new(namespace).exists() {
            within(Path::new(namespace), move || fs::write(SYSCTL, before)).map_err(|error| {
                KernelError::Unload {
                    name: name.into(),
                    why: format!("the default of {namespace} cannot be put back ({error})"),
                    hint: format!("Put it back by hand, then remove {}.", note.display()),
                }
            })?;
        }
    }
    let _ = fs::remove_file(&note);
    let _ = fs::remove_dir(NOTES);
    Ok(())
}

fn note_of(name: &str) -> PathBuf {
    Path::new(NOTES).join(format!("{name}.default"))
}

fn namespace(place: &str) -> PathBuf {
    if place.bytes().all(|byte| byte.is_ascii_digit()) {
        Path::new("/proc").join(place).join("ns/net")
    } else {
        Path::new("/run/netns").join(place)
    }
}

/// Does something in a network namespace, in a thread of its own.
fn within<T: Send + 'static>(
    namespace: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let file = File::open(namespace)?;
    std::thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET)?;
        work()
    })
    .join()
    .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace failed")))
}
