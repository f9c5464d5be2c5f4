//! The user that a lab of root's runs a scenario's programs as.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use knee_collect::KernelError;
use serde::Deserialize;

use super::Namespace;

/// Of the environment, what another user's program gets too; and what begins so.
const KEPT: [&str; 5] = ["PATH", "LANG", "LANGUAGE", "TZ", "TERM"];
const KEPT_PREFIXES: [&str; 2] = ["LC_", "KNEE_"];
/// More capabilities than a kernel can have: they are 64 bits.
const MOST_CAPABILITIES: libc::c_ulong = 64;

/// Another user than the lab's, who has no capability and gets none.
#[derive(Clone, Debug, Deserialize)]
pub struct RunAs {
    pub user: String,
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Their home; `None`: `private`.
    pub home: Option<PathBuf>,
    /// The working directory where they may enter it; `None`, or where they may not: `private`.
    pub folder: Option<PathBuf>,
    /// An empty folder that is theirs alone.
    pub private: PathBuf,
}

impl RunAs {
    /// What stands in the environment of their programs.
    pub fn environment(&self) -> Vec<(String, String)> {
        let kept = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let keep = KEPT.contains(&name.as_str())
                || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            keep.then_some((name, value.into_string().ok()?))
        });
        let private = self.private.display().to_string();
        let home = self.home.as_ref().unwrap_or(&self.private);
        kept.chain([
            ("HOME".into(), home.display().to_string()),
            ("USER".into(), self.user.clone()),
            ("LOGNAME".into(), self.user.clone()),
            ("TMPDIR".into(), private),
        ])
        .collect()
    }

    /// For an error: who it was that could not.
    pub fn hint(&self) -> String {
        format!(
            "; it runs as {}, who must be able to read and run it, or as root with --programs-as-root",
            self.user
        )
    }

    /// What [`Become::now`] needs, which may not allocate.
    pub(super) fn prepare(&self) -> Result<Become, KernelError> {
        let text = |path: &Path| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|error| KernelError::system("name a folder")(io::Error::from(error)))
        };
        Ok(Become {
            uid: self.uid,
            gid: self.gid,
            groups: self.groups.clone(),
            folder: self.folder.as_deref().map(text).transpose()?,
            private: text(&self.private)?,
        })
    }

    /// Lets every user of a lab's host do what root of a lab may: bind ports below 1024, and ping.
    pub fn welcome(&self, host: &Namespace) -> Result<(), KernelError> {
        host.enter()?;
        for (name, value) in [
            ("ip_unprivileged_port_start", "0"),
            ("ping_group_range", "0 2147483647"),
        ] {
            fs::write(format!("/proc/sys/net/ipv4/{name}"), value)
                .map_err(KernelError::system(format!("set {name} in the lab")))?;
        }
        Ok(())
    }
}

/// A change of user, ready to be made between fork and exec.
pub(super) struct Become {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    folder: Option<CString>,
    private: CString,
}

impl Become {
    /// Makes the calling process that user's, for good: without a capability, in
    /// a folder that it may enter, and so that no program it runs gains anything.
    pub(super) fn now(&self) -> io::Result<()> {
        // SAFETY: system calls on our own values.
        unsafe {
            for capability in 0..MOST_CAPABILITIES {
                match prctl(libc::PR_CAPBSET_DROP, capability) {
                    // The last that this kernel has was the one before.
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                    dropped => dropped?,
                }
            }
            prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong,
            )?;
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()))?;
            check(libc::setresgid(self.gid, self.gid, self.gid))?;
            check(libc::setresuid(self.uid, self.uid, self.uid))?;
            // What is inheritable outlives the change of user, and what a container's securebits keep.
            check(no_capabilities())?;
            prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
            let entered = self.folder.as_ref().is_some_and(|folder| {
                libc::access(folder.as_ptr(), libc::R_OK | libc::X_OK) == 0
                    && libc::chdir(folder.as_ptr()) == 0
            });
            if !entered {
                check(libc::chdir(self.private.as_ptr()))?;
            }
        }
        Ok(())
    }
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<()> {
    const NONE: libc::c_ulong = 0;
    // SAFETY: a system call on numbers.
    check(unsafe { libc::prctl(option, value, NONE, NONE, NONE) })
}

fn check(returned: libc::c_int) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// capset(2) with empty sets, for which libc has no function.
fn no_capabilities() -> libc::c_int {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // _LINUX_CAPABILITY_VERSION_3, for which a set is two words of each kind.
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let sets = [[0u32; 3]; 2];
    // SAFETY: both live until the call returns and have the shape that the version names.
    unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) as libc::c_int }
}
