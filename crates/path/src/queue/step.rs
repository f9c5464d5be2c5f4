//! First in, first out, with a mark on every packet that meets more than so
//! much queue: the switch that DCTCP was made for.

use std::collections::VecDeque;

use knee_units::params::{Param, Params, Unit};
use knee_units::{Nanos, Rate};

use super::{Queue, QueueKind, Setup, Tail};
use crate::packet::Packet;

const fn off(
    name: &'static str,
    unit: Unit,
    max: f64,
    doc: &'static str,
    source: &'static str,
) -> Param {
    Param {
        name,
        unit,
        default: 0.0,
        min: 0.0,
        max,
        doc,
        source,
    }
}

pub(super) const KIND: QueueKind = QueueKind {
    name: "step",
    summary: "first in, first out; marks CE on every packet that meets more than a threshold, drops when full",
    source: "Alizadeh et al., \"Data Center TCP (DCTCP)\", SIGCOMM 2010, section 3.1",
    params: &[
        off(
            "ce_packets",
            Unit::Count,
            1e6,
            "marks a packet with which more than so many wait; 0: no such mark, unless no threshold at all is set: then 20 up to 1 Gbit/s, 65 above",
            "SIGCOMM 2010, section 4: K = 20 at 1 Gbit/s, 65 at 10 Gbit/s",
        ),
        off(
            "ce_bytes",
            Unit::Bytes,
            1e12,
            "marks a packet with which more than so many bytes wait; 0: no such mark",
            "RFC 8257, section 3.1",
        ),
        off(
            "ce_threshold",
            Unit::Time,
            1e10,
            "marks a packet that waited longer; 0: no such mark",
            "tc-fq(8), tc-fq_codel(8), ce_threshold",
        ),
    ],
    conflict: None,
    caution: Some(threshold_below_a_packet),
    build: |setup| Box::new(Step::new(&setup)),
};

fn threshold_below_a_packet(params: &Params, rate: Rate, packet_bytes: u32) -> Option<String> {
    let threshold = Nanos(params.int("ce_threshold"));
    let packet = rate.transmit_time(packet_bytes.into());
    (threshold > Nanos::ZERO && packet > threshold).then(|| {
        format!(
            "a packet of {packet_bytes} bytes takes {packet} at {rate}, longer than step.ce_threshold = {threshold}: packets \
             are marked whenever one is in front of them; step.ce_packets counts packets instead"
        )
    })
}

/// Thresholds of a link of that speed, from the paper's testbed.
const GIGABIT_PER_SEC: u64 = 1_000_000_000;
const K_TO_GIGABIT_PKTS: u32 = 20;
const K_ABOVE_PKTS: u32 = 65;

struct Step {
    packets: VecDeque<Packet>,
    bytes: u64,
    tail: Tail,
}

impl Step {
    fn new(setup: &Setup) -> Step {
        let unless_off = |value: u64| if value == 0 { u64::MAX } else { value };
        let [pkts, bytes, time] = ["ce_packets", "ce_bytes", "ce_threshold"]
            .map(|name| unless_off(setup.params.int(name)));
        let ce_pkts = match (pkts, bytes, time) {
            (u64::MAX, u64::MAX, u64::MAX) if setup.rate.bits_per_sec() <= GIGABIT_PER_SEC => {
                K_TO_GIGABIT_PKTS
            }
            (u64::MAX, u64::MAX, u64::MAX) => K_ABOVE_PKTS,
            _ => u32::try_from(pkts).unwrap_or(u32::MAX),
        };
        Step {
            packets: VecDeque::new(),
            bytes: 0,
            tail: Tail {
                limit: setup.limit,
                ce_pkts,
                ce_bytes: bytes,
                ce_threshold: Nanos(time),
            },
        }
    }
}

impl Queue for Step {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        packet.enqueued = now;
        let bytes = self.bytes + u64::from(packet.bytes);
        let pkts = self.len_pkts() + 1;
        if !self.tail.limit.holds(pkts, bytes) {
            dropped.push(packet);
            return;
        }
        if self.tail.marks_length(pkts, bytes) {
            packet.mark_ce();
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        let mut packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        if now - packet.enqueued > self.tail.ce_threshold {
            packet.mark_ce();
        }
        Some(packet)
    }

    fn tail(&self) -> Option<Tail> {
        Some(self.tail)
    }

    fn len_pkts(&self) -> u32 {
        self.packets.len() as u32
    }

    fn len_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use knee_units::rng::Stream;

    use super::*;
    use crate::packet::Ecn;
    use crate::queue::BufferLimit;

    fn queue(rate_bits_per_sec: u64, params: &[(&str, f64)]) -> Box<dyn Queue> {
        let mut values = Params::defaults(KIND.params);
        for &(name, value) in params {
            values.set(name, value);
        }
        (KIND.build)(Setup {
            limit: BufferLimit::Packets(100),
            rate: Rate::from_bits_per_sec(rate_bits_per_sec).unwrap(),
            max_packet_bytes: 1_500,
            rng: Stream::new(1, "path.queue"),
            params: values,
        })
    }

    fn packet(ecn: Ecn) -> Packet {
        Packet {
            handle: 0,
            bytes: 1_500,
            flow: 0,
            hosts: [0; 2],
            ecn,
            dscp: 0,
            pure_ack: None,
            enqueued: Nanos::ZERO,
        }
    }

    /// Which of `n` packets put in at once come out marked, `wait` later.
    fn marked(mut queue: Box<dyn Queue>, ecn: Ecn, n: usize, wait: Nanos) -> Vec<usize> {
        let mut dropped = Vec::new();
        for _ in 0..n {
            queue.enqueue(Nanos::ZERO, packet(ecn), &mut dropped);
        }
        (0..n)
            .filter(|_| {
                let packet = queue.dequeue(wait, &mut dropped);
                packet.is_some_and(|packet| packet.ecn == Ecn::Ce)
            })
            .collect()
    }

    #[test]
    fn step_marks_the_packets_that_more_than_k_wait_with() {
        let k = |n: f64| queue(1_000_000_000, &[("ce_packets", n)]);
        assert_eq!(marked(k(3.0), Ecn::Ect0, 6, Nanos::ZERO), [3, 4, 5]);
        assert_eq!(marked(k(3.0), Ecn::Ect1, 4, Nanos::ZERO), [3]);
        let bytes = queue(1_000_000_000, &[("ce_bytes", 3_000.0)]);
        assert_eq!(marked(bytes, Ecn::Ect0, 4, Nanos::ZERO), [2, 3]);
    }

    #[test]
    fn step_marks_the_packets_that_waited_longer_than_the_threshold() {
        let wait = |us| {
            let queue = queue(1_000_000_000, &[("ce_threshold", 50_000.0)]);
            marked(queue, Ecn::Ect0, 2, Nanos::from_us(us)).len()
        };
        assert_eq!((wait(50), wait(51)), (0, 2));
    }

    #[test]
    fn step_cautions_where_one_packet_takes_longer_than_the_threshold() {
        let caution = |rate_bits_per_sec, threshold| {
            let mut params = Params::defaults(KIND.params);
            params.set("ce_threshold", threshold);
            let rate = Rate::from_bits_per_sec(rate_bits_per_sec).unwrap();
            KIND.caution.unwrap()(&params, rate, 1_500)
        };
        assert_eq!(caution(12_000_000, 1e6), None);
        assert_eq!(caution(1_000_000, 0.0), None, "it has no such threshold");
        let text = caution(10_000_000, 1e6).unwrap();
        assert!(
            text.contains("1200us") && text.contains("ce_threshold = 1ms"),
            "{text}"
        );
    }

    #[test]
    fn step_without_a_threshold_takes_that_of_the_paper() {
        let gigabits = |n: u64| marked(queue(n * 1_000_000_000, &[]), Ecn::Ect0, 100, Nanos::ZERO);
        assert_eq!(gigabits(1)[0], 20);
        assert_eq!(gigabits(10)[0], 65);
    }

    #[test]
    fn step_leaves_alone_what_cannot_be_marked_and_drops_when_full() {
        let all = queue(1_000_000_000, &[("ce_packets", 1.0)]);
        assert!(marked(all, Ecn::NotEct, 50, Nanos::from_us(1)).is_empty());
        let mut full = queue(1_000_000_000, &[]);
        let mut dropped = Vec::new();
        for _ in 0..103 {
            full.enqueue(Nanos::ZERO, packet(Ecn::Ect0), &mut dropped);
        }
        assert_eq!((dropped.len(), full.len_pkts()), (3, 100));
    }
}
