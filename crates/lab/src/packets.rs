//! Packets of both hosts, captured, as rows.

use knee_capture::{Captured, Ring, Wanted, refusal};
use knee_collect::KernelError;
use knee_scenario::Cell;
use knee_tables::{Packet, Packets};

use crate::{DEVICE, Lab};

const HOSTS: [&str; 2] = ["sender", "receiver"];
/// From here on packets may stand in the wrong place.
const MOVED_NS: u64 = 1_000_000;

/// Copies what passes the devices of a lab's hosts.
pub struct Captures([Ring; 2]);

impl Captures {
    /// The caller may be in any namespace; it is in the receiver's afterwards.
    pub fn start(lab: &Lab, room_bytes: u64) -> Result<Captures, KernelError> {
        let start = |place: &crate::Namespace| {
            place.enter()?;
            Ring::start(DEVICE, room_bytes, Wanted::All).map_err(|error| KernelError::Unsupported {
                what: "capture".into(),
                lacks: refusal(&error),
                hint: "Leave --capture out, or give it less memory.".into(),
            })
        };
        Ok(Captures([start(&lab.sender)?, start(&lab.receiver)?]))
    }

    /// The sender's, and the receiver's.
    pub fn finish(self, start_ns: u64) -> Result<[Captured; 2], KernelError> {
        let [sender, receiver] = self.0;
        let finish = |ring: Ring| {
            let captured = ring.finish(start_ns);
            captured.map_err(KernelError::system("count the captured packets"))
        };
        Ok([finish(sender)?, finish(receiver)?])
    }
}

/// Appends what each host captured to the rows, and what makes it doubtful to the warnings. `ended_ns`: since the start.
pub fn add(
    cell: &Cell,
    rep: u32,
    captured: [Captured; 2],
    ended_ns: u64,
    (rows, warnings): (&mut Packets, &mut Vec<String>),
) {
    for (host, captured) in HOSTS.into_iter().zip(captured) {
        if captured.left_out > 0 {
            let last_ns = captured.packets.last().map_or(0, |packet| packet.t_ns);
            warnings.push(format!(
                "{host}: the memory for captured packets was full after {:.1} s of {:.1} s, and {} packets came later: give --capture more, or run for a shorter time",
                last_ns as f64 / 1e9,
                ended_ns as f64 / 1e9,
                captured.left_out,
            ));
        }
        if captured.calendar_moved_ns > MOVED_NS {
            warnings.push(format!(
                "{host}: its time of day was set by {:.3} s while packets were captured, so that the times of some are off by that",
                captured.calendar_moved_ns as f64 / 1e9,
            ));
        }
        for packet in captured.packets {
            rows.push(Packet {
                cell: cell.index as i32,
                rep: rep as i32,
                t_ns: packet.t_ns as i64,
                host,
                is_outbound: packet.is_outbound,
                length_bytes: packet.length_bytes.into(),
                header: packet.header,
            });
        }
    }
}
