//! TUN devices and the header that stands before each packet.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

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
