//! The far end of a direction: the device that packets go to, and what is noted of them.

use std::io;
use std::os::fd::BorrowedFd;

use knee_path::packet::Packet;
use knee_path::sink::{Departure, Passing, Sink};
use knee_units::Nanos;

use crate::buffers::Buffers;
use crate::flows::Flows;
use crate::meter::{Handed, Meter};
use crate::wire::{self, HEAD_BYTES, Piece};
use knee_clock::monotonic_ns;

/// The largest number of packets merged into one: GRO's 64 kB of small packets.
const MOST_PIECES: usize = 64;

/// Where packets go, and what is noted about them.
pub struct Outlet<'a> {
    pub to: BorrowedFd<'a>,
    pub buffers: Buffers,
    pub flows: Flows,
    pub meter: Meter,
    pub gro: bool,
    /// From when on waits count, by the number of the `[[flow]]` table.
    pub measure_from_ns: Vec<u64>,
}

/// What travels with a packet behind its bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    bytes: u32,
    /// Busy period of the bottleneck and when it left there; `None`: not to be measured.
    left: Option<(u32, u64)>,
}

impl Sink for Outlet<'_> {
    type Note = Note;

    fn lost(&mut self, packet: &Packet) {
        self.flows.reports[packet.flow as usize].path_lost_pkts += 1;
        self.buffers.release(packet.handle);
    }

    fn dropped(&mut self, packet: &Packet) {
        self.flows.reports[packet.flow as usize].queue_dropped_pkts += 1;
        self.buffers.release(packet.handle);
    }

    fn cut(&mut self, _handle: u32, _pkts: u32) -> u32 {
        unreachable!("a device gives packets one by one")
    }

    #[inline]
    fn left(&mut self, packet: &Packet, departure: &Departure) -> Note {
        self.buffers.set_ecn(packet.handle, packet.ecn);
        Note {
            bytes: packet.bytes,
            left: departure.period.map(|period| (period, departure.at_ns)),
        }
    }

    #[inline]
    fn waited(&mut self, flow: u32, waits: impl Iterator<Item = (u64, Nanos)>) {
        let report = &mut self.flows.reports[flow as usize];
        let from_ns = self.measure_from_ns[report.group as usize];
        for (_, waited) in waits.filter(|(at_ns, _)| *at_ns >= from_ns) {
            report.queue_delay_us.add(waited.as_us());
        }
    }

    fn copy(&mut self, packet: &Packet, note: Note) -> (u32, Note) {
        let copy = self.buffers.copy(packet.handle);
        (copy, Note { left: None, ..note })
    }

    fn arrived(&mut self, at_ns: u64, packets: &[Passing<Note>]) {
        let mut rest = packets;
        while !rest.is_empty() {
            let count = self.hand_over(rest);
            let actual_ns = monotonic_ns();
            for Passing { handle, note, .. } in &rest[..count] {
                let handed = Handed {
                    ideal_ns: at_ns,
                    left: note.left,
                    bytes: note.bytes,
                };
                self.meter.handed_over(handed, actual_ns);
                self.buffers.release(*handle);
            }
            rest = &rest[count..];
        }
    }
}

impl Outlet<'_> {
    /// Writes the first packet, or the first few as one; returns how many.
    fn hand_over(&mut self, packets: &[Passing<Note>]) -> usize {
        let mut count = 1;
        if self.gro && packets.len() > 1 {
            let pieces = self.pieces(packets);
            count = wire::merged(&pieces);
        }
        self.meter.report.syscalls += 1;
        if count == 1
            && let Some(bytes) = self.buffers.as_read(packets[0].handle)
        {
            let written = nix::unistd::write(self.to, bytes);
            self.note(written);
            return 1;
        }
        let pieces = self.pieces(&packets[..count]);
        let mut head = [0; HEAD_BYTES];
        let (head_bytes, vnet) = wire::build(&pieces, &mut head);
        let vnet = vnet.bytes();
        let mut slices = Vec::with_capacity(count + 2);
        slices.push(io::IoSlice::new(&vnet));
        slices.push(io::IoSlice::new(&head[..head_bytes]));
        slices.extend(
            pieces
                .iter()
                .map(|piece| io::IoSlice::new(&piece.packet[piece.start..piece.end])),
        );
        let written = nix::sys::uio::writev(self.to, &slices);
        self.note(written);
        count
    }

    fn pieces(&self, packets: &[Passing<Note>]) -> Vec<Piece<'_>> {
        packets
            .iter()
            .take(MOST_PIECES)
            .map(|passing| self.buffers.piece(passing.handle))
            .collect()
    }

    /// A device that does not take a packet has lost it, as a full ring would.
    fn note(&mut self, written: nix::Result<usize>) {
        self.meter.report.refused_pkts += u64::from(written.is_err());
    }
}
