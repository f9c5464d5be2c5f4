//! The socket, and the memory that the kernel writes packets into.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};
use nix::time::{ClockId, clock_gettime};

use super::filter;
use super::headers::{self, headers_bytes};
use super::{Captured, Packet, Wanted};

/// What a packet takes in memory: 32 bytes of the kernel's head, 20 of an address, aligned, and 112 of the packet, which
/// hold the longest headers of IPv6 and TCP (40 + 60).
const FRAME_BYTES: usize = 192;
/// Of the kernel's memory for one host.
const MOST_ROOM_BYTES: u64 = 256 << 20;

/// The kernel gets memory in pieces of this size, each of which holds whole frames.
const BLOCK_BYTES: usize = 1 << 16;
const FRAMES_OF_BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

/// include/uapi/linux/if_packet.h.
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V2: i32 = 1;
const TP_STATUS_USER: u32 = 1;
const PACKET_OUTGOING: u8 = 4;
/// Of the address behind the kernel's head: TPACKET_ALIGN(sizeof(struct tpacket2_hdr)).
const ADDRESS_AT: usize = 32;

/// `struct tpacket_req`.
#[repr(C)]
struct Room {
    block_bytes: u32,
    blocks: u32,
    frame_bytes: u32,
    frames: u32,
}

/// `struct tpacket_stats`.
#[repr(C)]
#[derive(Default)]
struct Counted {
    /// With those below.
    packets: u32,
    drops: u32,
}

/// `struct tpacket2_hdr`, up to what is read of it.
#[repr(C)]
struct Head {
    status: AtomicU32,
    length: u32,
    kept: u32,
    mac: u16,
    net: u16,
    seconds: u32,
    nanoseconds: u32,
}

/// Packets of a device, copied from its making to its end.
pub struct Ring {
    socket: OwnedFd,
    memory: NonNull<libc::c_void>,
    blocks: usize,
    wanted: Wanted,
    calendar_ns: i128,
}

impl Ring {
    /// Copies from now on what passes the device of that name, in the network namespace that the caller is in.
    /// `room_bytes`: of memory, in whole pieces of 64 KiB.
    ///
    /// # Errors
    /// There is no such device, no permission, or no memory.
    pub fn start(device: &str, room_bytes: u64, wanted: Wanted) -> io::Result<Ring> {
        let index = nix::net::if_::if_nametoindex(device)?;
        // Without a protocol nothing is copied until it is bound.
        // SAFETY: no memory is involved; the descriptor is new.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        set(&socket, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V2)?;
        let blocks = (room_bytes.min(MOST_ROOM_BYTES) as usize / BLOCK_BYTES).max(1);
        let room = Room {
            block_bytes: BLOCK_BYTES as u32,
            blocks: blocks as u32,
            frame_bytes: FRAME_BYTES as u32,
            frames: (blocks * FRAMES_OF_BLOCK) as u32,
        };
        set(&socket, libc::SOL_PACKET, PACKET_RX_RING, &room)?;
        if let Wanted::Ports(ports) = &wanted {
            let mut program = filter::of_ports(ports);
            let program = libc::sock_fprog {
                len: program.len() as u16,
                filter: program.as_mut_ptr(),
            };
            set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        }
        let length = NonZeroUsize::new(blocks * BLOCK_BYTES).expect("one block at least");
        // SAFETY: a new mapping of the socket's own memory, which `Drop` takes away again.
        let memory = unsafe {
            let access = ProtFlags::PROT_READ;
            mmap(None, length, access, MapFlags::MAP_SHARED, &socket, 0)?
        };
        // SAFETY: as above. What this process forks needs no part of it.
        unsafe { madvise(memory, length.get(), MmapAdvise::MADV_DONTFORK)? };
        let ring = Ring {
            socket,
            memory,
            blocks,
            wanted,
            calendar_ns: calendar_ns(),
        };
        // SAFETY: all zeros is an address without anything.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: the address outlives the call, and the size is its own.
        let bound = unsafe {
            libc::bind(
                ring.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as u32,
            )
        };
        if bound < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ring)
    }

    /// Ends it. Times are since `start_ns` of the monotonic clock; what was before it is left out.
    ///
    /// # Errors
    /// The kernel does not say how many packets it had.
    pub fn finish(self, start_ns: u64) -> io::Result<Captured> {
        let counted = self.counted()?;
        let calendar_ns = calendar_ns();
        let mut packets: Vec<Packet> = Vec::new();
        let kept = (counted.packets - counted.drops) as usize;
        for frame in (0..self.blocks * FRAMES_OF_BLOCK).take(kept) {
            packets.extend(self.packet(frame, self.calendar_ns + i128::from(start_ns)));
        }
        packets.sort_by_key(|packet| packet.t_ns);
        Ok(Captured {
            packets,
            left_out: counted.drops.into(),
            calendar_moved_ns: (calendar_ns - self.calendar_ns)
                .unsigned_abs()
                .try_into()
                .unwrap_or(u64::MAX),
        })
    }

    /// Since the last time that it was asked, which is the beginning.
    fn counted(&self) -> io::Result<Counted> {
        let mut found = Counted::default();
        let mut length = size_of_val(&found) as u32;
        // SAFETY: both outlive the call, and the size is theirs.
        let got = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                (&raw mut found).cast(),
                &raw mut length,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(found)
    }

    /// The packet of a frame, if there is one and it is wanted. `began_ns`: the time of day at which times begin.
    fn packet(&self, frame: usize, began_ns: i128) -> Option<Packet> {
        let at = frame / FRAMES_OF_BLOCK * BLOCK_BYTES + frame % FRAMES_OF_BLOCK * FRAME_BYTES;
        // SAFETY: the frame lies within the mapping, and the kernel writes a frame once, before it sets the status; none
        // is given back to it.
        let (head, bytes) = unsafe {
            let begin = self.memory.as_ptr().cast::<u8>().add(at);
            let head = &*begin.cast::<Head>();
            if head.status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
                return None;
            }
            (head, std::slice::from_raw_parts(begin, FRAME_BYTES))
        };
        let data = bytes.get(usize::from(head.net)..)?;
        let data = &data[..data.len().min(head.kept as usize)];
        let address = &bytes[ADDRESS_AT..];
        let hardware = u16::from_ne_bytes([address[8], address[9]]);
        let is_outbound = address[10] == PACKET_OUTGOING;
        // On the loopback device what is sent is received as well.
        if hardware == libc::ARPHRD_LOOPBACK && is_outbound {
            return None;
        }
        let header = &data[..headers_bytes(data)];
        if header.is_empty() || !self.is_wanted(header) {
            return None;
        }
        let t_ns = i128::from(head.seconds) * 1_000_000_000 + i128::from(head.nanoseconds);
        Some(Packet {
            t_ns: u64::try_from(t_ns - began_ns).ok()?,
            is_outbound,
            length_bytes: head.length,
            header: header.to_vec(),
        })
    }

    fn is_wanted(&self, header: &[u8]) -> bool {
        match &self.wanted {
            Wanted::All => true,
            Wanted::Ports(ports) => headers::ports(header)
                .is_some_and(|ends| ends.iter().any(|port| ports.contains(port))),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has a part of it.
        let _ = unsafe { munmap(self.memory, self.blocks * BLOCK_BYTES) };
    }
}

/// What to add to the monotonic clock for the time of day.
fn calendar_ns() -> i128 {
    let now = |clock| {
        let now = clock_gettime(clock).expect("the clock is always there");
        i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec())
    };
    now(ClockId::CLOCK_REALTIME) - now(ClockId::CLOCK_MONOTONIC)
}

fn set<T>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: the value outlives the call, and the size is its own.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
