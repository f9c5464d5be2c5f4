//! `--default-in`: an algorithm as the default of a network namespace, and back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use knee_collect::KernelError;
use knee_store::folder::Folder;

use super::namespace::within;

/// Where it is noted what was there before, to be restored.
const NOTES: &str = "/run/tcpknee";
const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Makes `called` the default of new sockets in `place`: a name below
/// /run/netns, or the number of a process in it.
pub fn set(name: &str, called: &str, place: &str) -> Result<(), KernelError> {
    let refused = |why: String, hint: &str| KernelError::Load {
        name: name.into(),
        why,
        hint: hint.into(),
    };
    let namespace = path_of(place);
    let before = within(&namespace, || fs::read_to_string(SYSCTL)).map_err(|error| {
        refused(
            format!("there is no network namespace {place} ({error})"),
            "Give a name that `ip netns` prints, or the number of a process.",
        )
    })?;
    let before = before.trim().to_owned();
    let note = note_of(name);
    write(&note, &namespace, &before).map_err(|error| {
        refused(
            format!("{} cannot be written ({error})", note.display()),
            "What is changed is noted there, so that it can be undone.",
        )
    })?;
    let value = called.to_owned();
    within(&namespace, move || fs::write(SYSCTL, value)).map_err(|error| {
        forget(&note);
        refused(
            format!("{place} does not take it as its default ({error})"),
            "It needs CAP_NET_ADMIN there too; a route's `congctl` is another way.",
        )
    })
}

/// Is `called` the default of new sockets in `place`, because `set` made it so?
pub fn holds(name: &str, called: &str, place: &str) -> bool {
    let wanted = path_of(place);
    read(&note_of(name)).is_some_and(|(noted, _)| noted == wanted)
        && within(&wanted, || fs::read_to_string(SYSCTL)).is_ok_and(|now| now.trim() == called)
}

/// Puts back what was the default before the algorithm was.
///
/// What somebody else made the default since stays; if it was one of ours, it
/// is now to be followed by what was there before the two.
pub fn restore(name: &str, called: &str) -> Result<(), KernelError> {
    let note = note_of(name);
    let Some((namespace, before)) = read(&note) else {
        return Ok(());
    };
    // A namespace that is gone needs no restoring.
    if let Ok(now) = within(&namespace, || fs::read_to_string(SYSCTL))
        && now.trim() == called
    {
        let before = before.clone();
        within(&namespace, move || fs::write(SYSCTL, before)).map_err(|error| {
            KernelError::Unload {
                name: name.into(),
                why: format!(
                    "the default of {} cannot be put back ({error})",
                    namespace.display()
                ),
                hint: format!("Put it back by hand, then remove {}.", note.display()),
            }
        })?;
    }
    for later in fs::read_dir(NOTES).into_iter().flatten().flatten() {
        if read(&later.path()) == Some((namespace.clone(), called.to_owned())) {
            // Without it, that default would stay after its algorithm, no more.
            let _ = write(&later.path(), &namespace, &before);
        }
    }
    forget(&note);
    Ok(())
}

fn read(note: &Path) -> Option<(PathBuf, String)> {
    let text = fs::read_to_string(note).ok()?;
    let (namespace, before) = text.trim().split_once('\n')?;
    Some((namespace.into(), before.to_owned()))
}

fn write(note: &Path, namespace: &Path, before: &str) -> io::Result<()> {
    let text = format!("{}\n{before}\n", namespace.display());
    let name = note.file_name().and_then(|name| name.to_str());
    let name = name.expect("a note is called after an algorithm");
    Ok(Folder::make(Path::new(NOTES))?.write(name, text.as_bytes())?)
}

/// The folder goes with the last.
fn forget(note: &Path) {
    let _ = fs::remove_file(note);
    let _ = fs::remove_dir(NOTES);
}

fn note_of(name: &str) -> PathBuf {
    Path::new(NOTES).join(format!("{name}.default"))
}

fn path_of(place: &str) -> PathBuf {
    if place.bytes().all(|byte| byte.is_ascii_digit()) {
        Path::new("/proc").join(place).join("ns/net")
    } else {
        Path::new("/run/netns").join(place)
    }
}
