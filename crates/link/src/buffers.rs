//! The packets that the link holds: buffers as read, and the wire packets in them.

use knee_path::packet::Ecn;

use crate::tun::{HEADER_BYTES, VnetHeader};
use crate::wire::{Head, Piece};

/// Holds any packet that TUN hands over: 64 kB and the header before it.
const LARGE_BYTES: usize = (1 << 16) + HEADER_BYTES;
/// Holds what is no super-packet of Ethernet's size.
const SMALL_BYTES: usize = 2048;

/// A packet as read: virtio header, then IP.
struct Buffer {
    data: Vec<u8>,
    len: usize,
    vnet: VnetHeader,
    head: Head,
    /// Wire packets in it that are still under way.
    users: u32,
}

/// One wire packet under way.
#[derive(Clone, Copy, Debug, Default)]
struct Wire {
    buffer: u32,
    start: u32,
    end: u32,
    ecn: u8,
    /// Is it the buffer's whole packet?
    whole: bool,
}

/// Every packet under way, by handle.
#[derive(Default)]
pub struct Buffers {
    buffers: Vec<Buffer>,
    free_buffers: Vec<u32>,
    spare_small: Vec<Vec<u8>>,
    spare_large: Vec<Vec<u8>>,
    wires: Vec<Wire>,
    free_wires: Vec<u32>,
    /// Memory of the packets under way.
    pub held_bytes: usize,
}

impl Buffers {
    /// Room to read a packet into.
    pub fn room(&mut self, large: bool) -> Vec<u8> {
        let (spare, bytes) = if large {
            (&mut self.spare_large, LARGE_BYTES)
        } else {
            (&mut self.spare_small, SMALL_BYTES)
        };
        spare.pop().unwrap_or_else(|| vec![0; bytes])
    }

    /// Keeps what was read into `data`; its wire packets are told by [`Self::cut`].
    pub fn keep(&mut self, mut data: Vec<u8>, len: usize, head: Head) -> u32 {
        if data.len() > SMALL_BYTES && len <= SMALL_BYTES {
            let mut small = self.room(false);
            small[..len].copy_from_slice(&data[..len]);
            self.spare_large.push(std::mem::replace(&mut data, small));
        }
        self.held_bytes += data.len();
        let buffer = Buffer {
            vnet: VnetHeader::read(&data),
            data,
            len,
            head,
            users: 0,
        };
        match self.free_buffers.pop() {
            Some(free) => {
                self.buffers[free as usize] = buffer;
                free
            }
            None => {
                self.buffers.push(buffer);
                (self.buffers.len() - 1) as u32
            }
        }
    }

    /// Gives room back that was not needed.
    pub fn give_back(&mut self, data: Vec<u8>) {
        if data.len() > SMALL_BYTES {
            self.spare_large.push(data);
        } else {
            self.spare_small.push(data);
        }
    }

    /// Names a wire packet: bytes `start .. end` of the buffer's IP packet are its payload.
    pub fn cut(&mut self, buffer: u32, start: usize, end: usize) -> u32 {
        let held = &mut self.buffers[buffer as usize];
        held.users += 1;
        let packet_bytes = held.len - HEADER_BYTES;
        let wire = Wire {
            buffer,
            start: start as u32,
            end: end as u32,
            ecn: held.head.ecn as u8,
            whole: start == usize::from(held.head.bytes) && end == packet_bytes,
        };
        self.name(wire)
    }

    fn name(&mut self, wire: Wire) -> u32 {
        match self.free_wires.pop() {
            Some(free) => {
                self.wires[free as usize] = wire;
                free
            }
            None => {
                self.wires.push(wire);
                (self.wires.len() - 1) as u32
            }
        }
    }

    /// Another name for the same wire packet.
    pub fn copy(&mut self, handle: u32) -> u32 {
        let wire = self.wires[handle as usize];
        self.buffers[wire.buffer as usize].users += 1;
        self.name(wire)
    }

    /// What the queue made of the ECN bits.
    pub fn set_ecn(&mut self, handle: u32, ecn: Ecn) {
        self.wires[handle as usize].ecn = ecn as u8;
    }

    /// The wire packet, for merging.
    pub fn piece(&self, handle: u32) -> Piece<'_> {
        let wire = &self.wires[handle as usize];
        let buffer = &self.buffers[wire.buffer as usize];
        Piece {
            packet: &buffer.data[HEADER_BYTES..buffer.len],
            head: buffer.head,
            start: wire.start as usize,
            end: wire.end as usize,
            index: match buffer.vnet.gso_size {
                0 => 0,
                size => ((wire.start - u32::from(buffer.head.bytes)) / u32::from(size)) as u16,
            },
            ecn: ecn_of(wire.ecn),
        }
    }

    /// The packet just as it was read, when this is the whole of it: its bytes
    /// with the virtio header, ECN bits as the queue left them.
    pub fn as_read(&mut self, handle: u32) -> Option<&[u8]> {
        let wire = self.wires[handle as usize];
        let buffer = &mut self.buffers[wire.buffer as usize];
        if !wire.whole {
            return None;
        }
        if wire.ecn != buffer.head.ecn as u8 {
            crate::wire::mark(&mut buffer.data[HEADER_BYTES..buffer.len], ecn_of(wire.ecn));
            buffer.head.ecn = ecn_of(wire.ecn);
        }
        Some(&buffer.data[..buffer.len])
    }

    /// The super-packet's segment size; 0: it is one wire packet.
    pub fn gso_size(&self, buffer: u32) -> usize {
        let buffer = &self.buffers[buffer as usize];
        if buffer.head.tcp && buffer.vnet.gso_type != 0 {
            usize::from(buffer.vnet.gso_size)
        } else {
            0
        }
    }

    /// The packet has left, or was dropped.
    pub fn release(&mut self, handle: u32) {
        let at = self.wires[handle as usize].buffer;
        self.free_wires.push(handle);
        let buffer = &mut self.buffers[at as usize];
        buffer.users -= 1;
        if buffer.users == 0 {
            let data = std::mem::take(&mut buffer.data);
            self.held_bytes -= data.len();
            self.free_buffers.push(at);
            self.give_back(data);
        }
    }
}

fn ecn_of(bits: u8) -> Ecn {
    match bits {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}
