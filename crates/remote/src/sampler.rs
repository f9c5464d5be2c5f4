//! Samples of a side's sockets, as the front decodes them.
//!
//! A sample is a record: when, since the start (8 bytes); the flow's number (4), [`WARM`] or [`PROCESSORS`]; the length
//! of what follows (4); what the receiving application has read (8); then attributes as sock_diag(7) has them. All of it
//! as this processor orders bytes.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use knee_traffic::{Shared, read_option, read_tcp_info};
use knee_uapi::netlink;

/// In the place of a flow's number: the samples of the warm-up end here.
const WARM: u32 = u32::MAX;
/// In the same place: the processors' lines of `/proc/stat` follow.
const PROCESSORS: u32 = u32::MAX - 1;
/// Memory for samples; from there on they are left out.
const MOST_BYTES: usize = 512 << 20;

/// Attributes of include/uapi/linux/inet_diag.h.
const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const SKMEMINFO: u16 = 7;
const DCTCPINFO: u16 = 9;
const BBRINFO: u16 = 16;

/// Options that the crates have no names for: include/uapi/linux/tcp.h and asm-generic/socket.h.
const TCP_CC_INFO: i32 = 26;
const SO_MEMINFO: i32 = 55;

/// States of a socket that tells nothing any more: TIME_WAIT and CLOSE.
const GONE: [u8; 2] = [6, 7];

/// The connections that are there, by their flow's number.
#[derive(Default)]
pub struct Open(Mutex<BTreeMap<u32, OwnedFd>>);

impl Open {
    pub fn add(&self, number: u32, fd: BorrowedFd<'_>) {
        if let Ok(own) = fd.try_clone_to_owned() {
            self.0
                .lock()
                .expect("nobody panics with it")
                .insert(number, own);
        }
    }
}

/// Longest name of a congestion control, with the byte that ends it.
const NAME_BYTES: usize = 16;

impl Open {
    /// What each connection runs, by its flow's number: a route may have a say in it.
    pub fn congestion(&self) -> BTreeMap<u32, String> {
        let open = self.0.lock().expect("nobody panics with it");
        let name = |fd: &OwnedFd| {
            let name = read_option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, NAME_BYTES);
            let end = name.iter().position(|&byte| byte == 0);
            String::from_utf8_lossy(&name[..end.unwrap_or(name.len())]).into_owned()
        };
        open.iter()
            .map(|(&number, fd)| (number, name(fd)))
            .collect()
    }
}

/// Which attribute a congestion control's own words come in.
pub fn attribute_of(called: &str) -> u16 {
    match called {
        _ if called.starts_with("bbr") => BBRINFO,
        _ if called.starts_with("dctcp") => DCTCPINFO,
        _ => VEGASINFO,
    }
}

/// What was taken so far.
#[derive(Default)]
pub struct Records {
    pub bytes: Vec<u8>,
    pub count: u64,
    pub missed: u64,
}

impl Records {
    /// One of every connection. `of_algorithm`: the attribute of each flow's algorithm.
    pub fn take(
        &mut self,
        t_ns: impl Fn() -> u64,
        open: &Open,
        shared: Shared,
        of_algorithm: impl Fn(u32) -> u16,
    ) {
        if self.bytes.len() > MOST_BYTES {
            self.missed += 1;
            return;
        }
        self.count += 1;
        for (&number, fd) in open.0.lock().expect("nobody panics with it").iter() {
            let info = read_tcp_info(fd);
            if info.first().is_none_or(|state| GONE.contains(state)) {
                continue;
            }
            let t_ns = t_ns();
            let memory = read_option(fd, libc::SOL_SOCKET, SO_MEMINFO, 64);
            let own = read_option(fd, libc::IPPROTO_TCP, TCP_CC_INFO, 64);
            let read = shared.get(number).bytes_read.load(Ordering::Relaxed);
            let of_algorithm = of_algorithm(number);
            self.add(t_ns, number, read, |bytes| {
                for (kind, value) in [(INFO, &info), (SKMEMINFO, &memory), (of_algorithm, &own)] {
                    if !value.is_empty() {
                        netlink::put(bytes, kind, value);
                    }
                }
            });
        }
    }

    /// One of a connection that a program opened, with all that sock_diag told of it.
    pub fn add_told(&mut self, t_ns: u64, number: u32, attributes: &[u8]) {
        if self.bytes.len() <= MOST_BYTES {
            self.add(t_ns, number, 0, |bytes| {
                netlink::each(attributes, |kind, value| {
                    if [INFO, VEGASINFO, SKMEMINFO, DCTCPINFO, BBRINFO].contains(&kind) {
                        netlink::put(bytes, kind, value);
                    }
                });
            });
        }
    }

    /// What the processors have done so far.
    pub fn processors(&mut self, t_ns: u64) {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let is_one = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        };
        if self.bytes.len() <= MOST_BYTES {
            self.add(t_ns, PROCESSORS, 0, |bytes| {
                for line in stat.lines().filter(is_one) {
                    bytes.extend_from_slice(line.as_bytes());
                    bytes.push(b'\n');
                }
                // Attributes of the records behind it begin at a multiple of 4.
                bytes.resize(bytes.len().next_multiple_of(4), b'\n');
            });
        }
    }

    /// The steady part begins.
    pub fn warm(&mut self, t_ns: u64) {
        self.add(t_ns, WARM, 0, |_| {});
    }

    /// `put`: what puts the attributes there.
    fn add(&mut self, t_ns: u64, number: u32, read: u64, put: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend_from_slice(&t_ns.to_ne_bytes());
        self.bytes.extend_from_slice(&number.to_ne_bytes());
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(&read.to_ne_bytes());
        put(&mut self.bytes);
        let length = (self.bytes.len() - length_at - 4) as u32;
        self.bytes[length_at..length_at + 4].copy_from_slice(&length.to_ne_bytes());
    }
}
