//! Two hosts, each in a network namespace that lives as long as its descriptor.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use knee_link::{Offloads, open_tun};
use nix::sched::{CloneFlags, setns, unshare};

pub const SENDER: &str = "10.77.0.1";
pub const RECEIVER: &str = "10.78.0.1";
const DEVICE: &str = "knee0";
const MTU_BYTES: &str = "1500";
/// As a lab has it: the device's own queue is never the bottleneck.
const DEVICE_QUEUE_PKTS: &str = "10000";

/// A network namespace.
pub struct Host(File);

pub struct Hosts {
    pub sender: Host,
    pub receiver: Host,
}

impl Host {
    fn new() -> Host {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)
                .expect("a network namespace needs root, or `unshare --map-root-user`");
            let itself = File::open("/proc/thread-self/ns/net").expect("a thread has a namespace");
            run("ip", &["link", "set", "lo", "up"]);
            // Room for 10 Gbit/s at 10 ms, several times.
            for name in ["tcp_wmem", "tcp_rmem"] {
                let path = format!("/proc/sys/net/ipv4/{name}");
                fs::write(path, "4096 131072 134217728").expect("a namespace has buffer limits");
            }
            Host(itself)
        };
        std::thread::scope(|scope| scope.spawn(make).join().expect("a namespace is made"))
    }

    /// Enters the calling thread.
    pub fn enter(&self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace is ours");
    }

    /// Does something in it.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let entered = || {
            self.enter();
            work()
        };
        std::thread::scope(|scope| scope.spawn(entered).join().expect("it is done"))
    }
}

impl Hosts {
    /// Joined by a device pair of the kernel: nothing in between.
    pub fn with_veth(offloads: bool) -> Hosts {
        let hosts = Hosts::apart();
        let far = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            hosts.receiver.0.as_raw_fd()
        );
        hosts.sender.within(|| {
            let pair = ["type", "veth", "peer", "name", DEVICE, "netns", &far];
            run("ip", &[&["link", "add", DEVICE][..], &pair].concat());
        });
        if !offloads {
            for host in [&hosts.sender, &hosts.receiver] {
                host.within(|| {
                    let off = ["tso", "off", "gso", "off", "gro", "off"];
                    run("ethtool", &[&["-K", DEVICE][..], &off].concat());
                });
            }
        }
        hosts.configure();
        hosts
    }

    /// Each with a TUN device, whose other ends are returned: the sender's, the receiver's.
    pub fn with_tuns(tso: bool) -> (Hosts, OwnedFd, OwnedFd) {
        let hosts = Hosts::apart();
        let open = || open_tun(DEVICE, Offloads { tso }).expect("/dev/net/tun is there");
        let (sender, receiver) = (hosts.sender.within(open), hosts.receiver.within(open));
        hosts.configure();
        (hosts, sender, receiver)
    }

    fn apart() -> Hosts {
        Hosts {
            sender: Host::new(),
            receiver: Host::new(),
        }
    }

    fn configure(&self) {
        for (host, own, other) in [
            (&self.sender, SENDER, RECEIVER),
            (&self.receiver, RECEIVER, SENDER),
        ] {
            host.within(|| {
                run("ip", &["addr", "add", own, "peer", other, "dev", DEVICE]);
                let queue = ["txqueuelen", DEVICE_QUEUE_PKTS];
                let up = ["link", "set", DEVICE, "mtu", MTU_BYTES, "up"];
                run("ip", &[&up[..], &queue].concat());
            });
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
