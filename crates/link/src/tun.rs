//! TUN devices and the header that stands before each packet.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sched::{CloneFlags, setns};

/// Bytes of `struct virtio_net_hdr` before each packet.
pub const HEADER_BYTES: usize = 10;

const IFF_TUN: i16 = 0x0001;
const IFF_NO_PI: i16 = 0x1000;
const IFF_VNET_HDR: i16 = 0x4000;

const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO4: libc::c_ulong = 0x02;
const TUN_F_TSO6: libc::c_ulong = 0x04;
const TUN_F_TSO_ECN: libc::c_ulong = 0x08;

nix::ioctl_write_int!(set_offload, b'T', 208);
nix::ioctl_write_ptr_bad!(set_iff, TUNSETIFF, libc::ifreq);
nix::ioctl_read_bad!(get_iff, TUNGETIFF, libc::ifreq);
nix::ioctl_none!(get_device_namespace, b'T', 227);
const TUNGETIFF: libc::c_ulong = nix::request_code_read!(b'T', 210, size_of::<libc::c_uint>());
const TUNSETIFF: libc::c_ulong = nix::request_code_write!(b'T', 202, size_of::<libc::c_int>());

/// What the device takes off the stack's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Segmentation: packets of up to 64 kB come out of the device.
    pub tso: bool,
}

/// Makes the device `name` in the calling thread's network namespace; it lives
/// as long as the descriptor.
///
/// # Errors
/// `/dev/net/tun` cannot be opened, or the kernel refuses the device.
pub fn open_tun(name: &str, offloads: Offloads) -> io::Result<OwnedFd> {
    let file: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is valid, its fields are integers and bytes.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    assert!(
        name.len() < request.ifr_name.len(),
        "a device's name is short"
    );
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    let tso = if offloads.tso {
        TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN
    } else {
        0
    };
    // SAFETY: the descriptor is open and the request outlives the calls.
    unsafe {
        set_iff(file.as_raw_fd(), &request)?;
        set_offload(file.as_raw_fd(), TUN_F_CSUM | tso)?;
    }
    Ok(file.into())
}

/// Packets of the stack that the device dropped because nobody read them in
/// time. `None`: the kernel does not tell, for want of rights over the device's namespace.
pub fn dropped_pkts(device: BorrowedFd<'_>) -> Option<u64> {
    // SAFETY: an all-zero ifreq is valid, the descriptor is open, and a
    // namespace's descriptor that the kernel returns is nobody else's.
    let (request, namespace) = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        get_iff(device.as_raw_fd(), &mut request).ok()?;
        let namespace = get_device_namespace(device.as_raw_fd()).ok()?;
        (request, OwnedFd::from_raw_fd(namespace))
    };
    let name: String = request
        .ifr_name
        .iter()
        .take_while(|&&byte| byte != 0)
        .map(|&byte| char::from(byte as u8))
        .collect();
    // A thread of its own enters, so that the caller stays where it is.
    let look = move || {
        setns(&namespace, CloneFlags::CLONE_NEWNET).ok()?;
        sent_drops(
            &fs::read_to_string("/proc/thread-self/net/dev").ok()?,
            &name,
        )
    };
    std::thread::spawn(look).join().ok()?
}

/// The `drop` column of what a device sent, from /proc/net/dev.
fn sent_drops(table: &str, device: &str) -> Option<u64> {
    let (_, columns) = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == device)?;
    columns.split_whitespace().nth(11)?.parse().ok()
}

/// `struct virtio_net_hdr`: what the stack left undone about a packet.
/// Source: Virtio 1.2, 5.1.6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Is the checksum of bytes `csum_start ..` still to be put at `csum_offset` behind it?
    pub needs_csum: bool,
    /// 0: one packet; else how it is to be cut.
    pub gso_type: u8,
    pub hdr_len: u16,
    pub gso_size: u16,
    pub csum_start: u16,
    pub csum_offset: u16,
}

pub const GSO_NONE: u8 = 0;
pub const GSO_TCPV4: u8 = 1;
/// Bit besides the type: the packet has CWR set.
pub const GSO_ECN: u8 = 0x80;
const NEEDS_CSUM: u8 = 1;

impl VnetHeader {
    pub fn read(bytes: &[u8]) -> VnetHeader {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            needs_csum: bytes[0] & NEEDS_CSUM != 0,
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = u8::from(self.needs_csum) * NEEDS_CSUM;
        bytes[1] = self.gso_type;
        for (at, word) in [
            (2, self.hdr_len),
            (4, self.gso_size),
            (6, self.csum_start),
            (8, self.csum_offset),
        ] {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_device_are_found_in_the_kernels_table() {
        let table = "Inter-|   Receive   |  Transmit\n\
             face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n\
             \x20   lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14      15         16\n\
             \x20knee0:       0       0    0    1    0     0          0         0        0       0    0  345    0     0       0          0\n";
        assert_eq!(sent_drops(table, "knee0"), Some(345));
        assert_eq!(sent_drops(table, "knee"), None);
    }
}
