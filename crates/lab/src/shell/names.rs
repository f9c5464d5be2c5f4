//! Names in the lab: what its programs read in /etc instead of the host's files.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// The host's name in the lab.
pub const HOST_NAME: &str = "knee-host";

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
const NSSWITCH: &str = "/etc/nsswitch.conf";
/// A folder that every system has, covered while the files are written.
const SCRATCH: &str = "/tmp";
const DNS: u16 = 53;

/// The lab's files, and the name server behind the far end's address.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    resolv_conf: String,
    hosts: String,
    /// `None`: the host has none, and libc's default is `files dns`.
    nsswitch: Option<String>,
    /// Where queries to the far end's own address go.
    pub resolver: SocketAddr,
}

impl Names {
    /// From the host's files; `far_end` is the address at which the lab sees
    /// the host. A file that cannot be read counts as empty.
    pub fn of_host(far_end: Ipv4Addr) -> Self {
        let read = |path| fs::read_to_string(path).ok();
        let (resolv_conf, resolver) = resolv_conf(&read(RESOLV_CONF).unwrap_or_default(), far_end);
        Self {
            resolv_conf,
            hosts: hosts(&read(HOSTS).unwrap_or_default(), far_end),
            nsswitch: read(NSSWITCH).map(|text| nsswitch(&text)),
            resolver,
        }
    }

    /// Puts the files into the mount namespace of this process, which must be
    /// its own. Errors name the mount that was refused.
    pub fn put(&self) -> Result<(), (String, io::Error)> {
        let said = |what: String| move |error: nix::Error| (what, io::Error::from(error));
        mount(
            Some("tmpfs"),
            SCRATCH,
            Some("tmpfs"),
            MsFlags::empty(),
            Some("mode=0755"),
        )
        .map_err(said(format!("mount a tmpfs on {SCRATCH} for a moment")))?;
        let files = [
            (RESOLV_CONF, Some(&self.resolv_conf)),
            (HOSTS, Some(&self.hosts)),
            (NSSWITCH, self.nsswitch.as_ref()),
        ];
        let mut result = Ok(());
        for (path, text) in files {
            if let Some(text) = text
                && result.is_ok()
            {
                result = cover(path, text);
            }
        }
        // What was bound stays alive without its first mount.
        umount2(SCRATCH, MntFlags::MNT_DETACH)
            .map_err(said(format!("unmount the tmpfs on {SCRATCH}")))?;
        result
    }
}

/// Covers a file by another of that text. A file that is not there stays so.
fn cover(path: &str, text: &str) -> Result<(), (String, io::Error)> {
    if !Path::new(path).exists() {
        return Ok(());
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let source = Path::new(SCRATCH).join(name);
    let what = format!("put the lab's {path} in its place");
    fs::write(&source, text).map_err(|error| (what.clone(), error))?;
    let none: Option<&str> = None;
    mount(Some(&source), path, none, MsFlags::MS_BIND, none).map_err(|error| (what, error.into()))
}

/// The lab's resolv.conf: name servers that an IPv4 path reaches stay; one that
/// only the host reaches (on its loopback, or by IPv6) is reached through the
/// far end's address. And the server which that stands for.
fn resolv_conf(host: &str, far_end: Ipv4Addr) -> (String, SocketAddr) {
    let mut lines = Vec::new();
    let mut behind = None;
    for line in host.lines() {
        let server = line
            .strip_prefix("nameserver")
            .map(|rest| rest.trim().split('%').next().unwrap_or_default());
        match server.map(str::parse::<IpAddr>) {
            Some(Ok(IpAddr::V4(address))) if !address.is_loopback() => lines.push(line.to_owned()),
            Some(Ok(address)) => {
                if behind.is_none() {
                    lines.push(format!("nameserver {far_end}"));
                    behind = Some(address);
                }
            }
            Some(Err(_)) => {}
            None => lines.push(line.to_owned()),
        }
    }
    if !lines.iter().any(|line| line.starts_with("nameserver")) {
        // resolv.conf(5): without a server it is the one on the local machine.
        lines.push(format!("nameserver {far_end}"));
    }
    let behind = behind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    (lines.join("\n") + "\n", SocketAddr::new(behind, DNS))
}

fn hosts(host: &str, far_end: Ipv4Addr) -> String {
    let end = if host.is_empty() || host.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{host}{end}{far_end} {HOST_NAME}\n")
}

/// Without modules that ask a daemon of the host's past the path.
fn nsswitch(host: &str) -> String {
    let line = |line: &str| {
        if line.trim_start().starts_with("hosts:") {
            "hosts: files dns\n".to_owned()
        } else {
            format!("{line}\n")
        }
    };
    host.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR_END: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    #[test]
    fn a_name_server_on_the_network_stays_and_the_path_leads_to_it() {
        let (text, behind) = resolv_conf("search example.org\nnameserver 192.0.2.53\n", FAR_END);
        assert_eq!(text, "search example.org\nnameserver 192.0.2.53\n");
        assert_eq!(behind.to_string(), "127.0.0.1:53");
    }

    #[test]
    fn a_name_server_on_the_hosts_loopback_is_behind_the_far_end() {
        let (text, behind) = resolv_conf("nameserver 127.0.0.53\noptions edns0\n", FAR_END);
        assert_eq!(text, "nameserver 10.77.0.1\noptions edns0\n");
        assert_eq!(behind.to_string(), "127.0.0.53:53");
    }

    #[test]
    fn name_servers_of_ipv6_are_behind_the_far_end_once() {
        let host = "nameserver 2001:db8::53\nnameserver fe80::1%eth0\nnameserver 192.0.2.53\n";
        let (text, behind) = resolv_conf(host, FAR_END);
        assert_eq!(text, "nameserver 10.77.0.1\nnameserver 192.0.2.53\n");
        assert_eq!(behind.to_string(), "[2001:db8::53]:53");
    }

    #[test]
    fn a_host_without_name_server_is_asked_itself() {
        let (text, behind) = resolv_conf("", FAR_END);
        assert_eq!(text, "nameserver 10.77.0.1\n");
        assert_eq!(behind.to_string(), "127.0.0.1:53");
    }

    #[test]
    fn names_are_not_asked_of_the_hosts_daemons() {
        let host = "passwd: files systemd\nhosts: mymachines resolve [!UNAVAIL=return] files dns\n";
        assert_eq!(nsswitch(host), "passwd: files systemd\nhosts: files dns\n");
    }

    #[test]
    fn the_host_has_a_name_though_the_hosts_file_lacks_its_last_newline() {
        assert_eq!(
            hosts("127.0.0.1 localhost", FAR_END),
            "127.0.0.1 localhost\n10.77.0.1 knee-host\n"
        );
    }
}
