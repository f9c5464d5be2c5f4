//! Which host this is, and which of its boots.

use std::fs;

/// What tells hosts and their boots apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// A number that the kernel draws when it boots. Cookies of sockets are unique
    /// within one.
    pub boot_id: Option<String>,
    /// The machine id, machine-id(5): drawn when the system was installed.
    pub host_id: Option<String>,
}

impl Identity {
    /// Of this host; `None`: it does not tell.
    pub fn here() -> Identity {
        Identity {
            boot_id: read("/proc/sys/kernel/random/boot_id"),
            // The second is where systems without systemd have it.
            host_id: ["/etc/machine-id", "/var/lib/dbus/machine-id"]
                .into_iter()
                .find_map(read),
        }
    }
}

/// The hexadecimal digits of a file's one word. Anything else is no id: an image
/// that was never booted has "uninitialized".
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let id = text.trim();
    let is_id = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_an_id_that_stays() {
        let id = Identity::here().boot_id.unwrap();
        assert_eq!(id.len(), 36, "{id}");
        assert_eq!(Identity::here().boot_id, Some(id));
    }

    #[test]
    fn what_is_no_id_is_none() {
        assert_eq!(read("/proc/sys/kernel/ostype"), None);
        assert_eq!(read("/proc/no/such/file"), None);
    }
}
