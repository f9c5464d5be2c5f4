//! Counters of qdiscs, summed by device and kind.

use std::collections::HashMap;

use knee_collect::nic;
use knee_collect::qdisc::{self, Qdisc};
use knee_collect::routing::Routing;
use serde::Serialize;

use super::counter::{WORD, moved_on};
use super::labels::OTHER;

/// Devices with a label of their own: the first ones seen. A host of containers
/// has thousands.
pub const MOST_DEVICES: usize = 32;

/// What is known of one qdisc: its device, handle, parent and kind.
type Identity = (u32, (u16, u16), (u16, u16), String);

/// Bytes, packets, drops, overlimits, requeues.
type Values = [u64; 5];
#[derive(Default)]
struct Sum {
    counters: Values,
    /// Of the last sample.
    backlog_bytes: u64,
    qlen_pkts: u64,
}

/// Sums so far.
#[derive(Default)]
pub struct Queues {
    devices: Vec<String>,
    sums: Vec<((String, String), Sum)>,
    last: HashMap<Identity, Values>,
}

/// A sum as it is told.
#[derive(Serialize)]
pub struct QueueView<'a> {
    device: &'a str,
    kind: &'a str,
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    requeues: u64,
    backlog_bytes: u64,
    qlen_pkts: u64,
}

impl Queues {
    /// Takes the qdiscs as they are now; where they cannot be read everything stays.
    pub fn read(&mut self, routing: &mut Routing) {
        let Ok(devices) = nic::devices(routing) else {
            return;
        };
        let Ok(qdiscs) = qdisc::qdiscs(routing) else {
            return;
        };
        let named = |qdisc: &Qdisc| {
            let device = devices
                .iter()
                .find(|device| device.index == qdisc.interface);
            device.map_or(String::new(), |device| device.name.clone())
        };
        self.take(qdiscs.iter().map(|qdisc| (named(qdisc), qdisc)));
    }

    /// Takes qdiscs with the names of their devices.
    pub fn take<'q>(&mut self, qdiscs: impl Iterator<Item = (String, &'q Qdisc)>) {
        for (_, sum) in &mut self.sums {
            (sum.backlog_bytes, sum.qlen_pkts) = (0, 0);
        }
        let mut last = HashMap::new();
        for (device, qdisc) in qdiscs {
            // It holds nothing back and counts nothing.
            if qdisc.kind == "noqueue" {
                continue;
            }
            let (Some(basic), Some(queue)) = (qdisc.basic, qdisc.queue) else {
                continue;
            };
            let now = [
                basic.bytes,
                qdisc.packets.unwrap_or(basic.packets.into()),
                queue.drops.into(),
                queue.overlimits.into(),
                queue.requeues.into(),
            ];
            let identity = (
                qdisc.interface,
                (qdisc.handle.major, qdisc.handle.minor),
                (qdisc.parent.major, qdisc.parent.minor),
                qdisc.kind.clone(),
            );
            // One that was not there before counts from 0, also one put in its place.
            let earlier = match self.last.get(&identity) {
                Some(earlier) if earlier[0] <= now[0] => *earlier,
                _ => Values::default(),
            };
            // Linux before 5.5 counts packets in a word too.
            let packets = qdisc.packets.map_or(WORD, |_| u64::MAX);
            let masks = [u64::MAX, packets, WORD, WORD, WORD];
            let sum = self.sum(device, &qdisc.kind);
            for (at, total) in sum.counters.iter_mut().enumerate() {
                *total += moved_on(now[at], earlier[at], masks[at]);
            }
            sum.backlog_bytes += u64::from(queue.backlog);
            sum.qlen_pkts += u64::from(queue.qlen);
            last.insert(identity, now);
        }
        self.last = last;
    }

    fn sum(&mut self, device: String, kind: &str) -> &mut Sum {
        let device = if self.devices.contains(&device) {
            device
        } else if self.devices.len() < MOST_DEVICES {
            self.devices.push(device.clone());
            device
        } else {
            OTHER.to_owned()
        };
        let found = self
            .sums
            .iter()
            .position(|((known, of), _)| *known == device && of == kind);
        let at = found.unwrap_or_else(|| {
            self.sums.push(((device, kind.to_owned()), Sum::default()));
            self.sums.len() - 1
        });
        &mut self.sums[at].1
    }

    pub fn views(&self) -> Vec<QueueView<'_>> {
        self.sums
            .iter()
            .map(|((device, kind), sum)| {
                let [bytes, packets, drops, overlimits, requeues] = sum.counters;
                QueueView {
                    device,
                    kind,
                    bytes,
                    packets,
                    drops,
                    overlimits,
                    requeues,
                    backlog_bytes: sum.backlog_bytes,
                    qlen_pkts: sum.qlen_pkts,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::tc::{TcHandle, TcStatsBasic, TcStatsQueue};

    use super::*;

    fn of(interface: u32, bytes: u64, drops: u32) -> Qdisc {
        let mut basic = TcStatsBasic::default();
        basic.bytes = bytes;
        let mut queue = TcStatsQueue::default();
        (queue.drops, queue.backlog) = (drops, 100);
        Qdisc {
            interface,
            kind: "fq".to_owned(),
            handle: TcHandle::from(0x8001_0000),
            parent: TcHandle::from(u32::MAX),
            basic: Some(basic),
            packets: Some(1),
            queue: Some(queue),
            fq_codel: None,
            fq: None,
            options: Vec::new(),
        }
    }

    #[test]
    fn drops_go_on_when_their_word_wraps_and_when_the_qdisc_is_another() {
        let mut queues = Queues::default();
        let mut seen = Vec::new();
        for (bytes, drops) in [(10, u32::MAX - 1), (20, 2), (5, 1), (6, 1)] {
            let qdisc = of(3, bytes, drops);
            queues.take([("eth0".to_owned(), &qdisc)].into_iter());
            let [view] = &queues.views()[..] else {
                panic!("one device, one kind");
            };
            assert_eq!(view.backlog_bytes, 100);
            seen.push(view.drops - u64::from(u32::MAX - 1));
        }
        assert_eq!(seen, [0, 4, 5, 5]);
    }

    #[test]
    fn device_that_is_gone_keeps_its_counters_and_has_no_backlog() {
        let mut queues = Queues::default();
        queues.take([("veth1".to_owned(), &of(3, 10, 1))].into_iter());
        queues.take(std::iter::empty());
        let view = &queues.views()[0];
        assert_eq!((view.bytes, view.drops, view.backlog_bytes), (10, 1, 0));
    }

    #[test]
    fn hosts_of_many_devices_have_labels_for_so_many_and_the_rest_together() {
        let mut queues = Queues::default();
        let many: Vec<Qdisc> = (0..1_000).map(|interface| of(interface, 1, 0)).collect();
        let named = |qdisc| (format!("veth{}", Qdisc::clone(qdisc).interface), qdisc);
        queues.take(many.iter().map(named));
        let views = queues.views();
        assert_eq!(views.len(), MOST_DEVICES + 1);
        let rest = views.last().unwrap();
        assert_eq!((rest.device, rest.bytes), (OTHER, 1_000 - 32));
    }
}
