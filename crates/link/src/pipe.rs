//! One direction of the path, without a clock: bottleneck, delay and the far
//! host's interrupt moderation, on the times they are told.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use knee_path::bottleneck::{Bottleneck, Entry};
use knee_path::packet::Packet;
use knee_path::transit::Transit;
use knee_units::Nanos;

/// What happens to packets on their way.
pub trait Sink {
    /// The path's own loss took it, before the bottleneck or behind it.
    fn lost(&mut self, packet: Packet);
    /// The policer or the queue dropped it.
    fn dropped(&mut self, packet: Packet);
    /// Its last bit has left the bottleneck, after `waited` in the queue.
    fn left(&mut self, packet: &Packet, at_ns: u64, waited: Nanos);
    /// The path made a copy of it: another handle for the same content.
    fn copy(&mut self, handle: u32) -> u32;
    /// The far host's NIC hands these to its stack, packets of one flow in order;
    /// or one reaches the end of a pipe that is not the flow's last.
    fn arrived(&mut self, flow: u32, at_ns: u64, packets: &[Passing]);
}

/// A packet between the bottleneck and the far host.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    pub handle: u32,
    pub bytes: u32,
    /// Busy period of the bottleneck and when it left there; `None`: no rate.
    pub left: Option<(u32, u64)>,
}

/// Packets in order of arrival: all take the same time, or none overtakes another.
struct Line {
    delay_ns: u64,
    /// When the last one arrives.
    latest_ns: u64,
    packets: VecDeque<(u64, u32, Passing)>,
}

struct Nic {
    /// Does the flow end behind this pipe? Else its packets go on at once.
    is_end: bool,
    next_interrupt_ns: u64,
    pending: Vec<Passing>,
}

/// One direction.
pub struct Pipe {
    pub bottleneck: Bottleneck,
    /// Counts the times it began to work after a rest.
    period: u32,
    /// Where packets do more than take their delay.
    transit: Option<Box<Transit>>,
    lines: Vec<Line>,
    /// By flow.
    line_of: Vec<u32>,
    /// Packets that keep no order, by their arrival and the order they set off in.
    loose: BTreeMap<(u64, u64), (u32, Passing)>,
    set_off: u64,
    nics: Vec<Nic>,
    interrupts: BinaryHeap<Reverse<(u64, u32)>>,
    coalesce_ns: u64,
}

impl Pipe {
    pub fn new(bottleneck: Bottleneck, transit: Option<Box<Transit>>, coalesce: Nanos) -> Pipe {
        Pipe {
            bottleneck,
            period: 0,
            transit,
            lines: Vec::new(),
            line_of: Vec::new(),
            loose: BTreeMap::new(),
            set_off: 0,
            nics: Vec::new(),
            interrupts: BinaryHeap::new(),
            coalesce_ns: coalesce.0,
        }
    }

    /// A flow's delay, before its first packet, and whether the far host is
    /// behind this pipe. Flows come in order of their index.
    pub fn add_flow(&mut self, delay: Nanos, is_end: bool) {
        let line = self.line(delay);
        self.line_of.push(line);
        self.nics.push(Nic {
            is_end,
            next_interrupt_ns: 0,
            pending: Vec::new(),
        });
    }

    /// From now on the flow's packets take this delay.
    pub fn set_delay(&mut self, flow: usize, delay: Nanos) {
        self.line_of[flow] = self.line(delay);
    }

    fn line(&mut self, delay: Nanos) -> u32 {
        let line = self.lines.iter().position(|line| line.delay_ns == delay.0);
        let line = line.unwrap_or_else(|| {
            self.lines.push(Line {
                delay_ns: delay.0,
                latest_ns: 0,
                packets: VecDeque::new(),
            });
            self.lines.len() - 1
        });
        line as u32
    }

    /// A packet enters. Whatever was due before `now_ns` has been done by [`Self::advance`].
    #[inline]
    pub fn enter(&mut self, now_ns: u64, packet: Packet, sink: &mut impl Sink) {
        let period = &mut self.period;
        let begins = |_| *period = period.wrapping_add(1);
        match self.bottleneck.enter(now_ns, packet, begins) {
            Entry::Lost => sink.lost(packet),
            Entry::Through(ecn) => {
                let packet = Packet { ecn, ..packet };
                sink.left(&packet, now_ns, Nanos::ZERO);
                self.delay(now_ns, &packet, None, sink);
            }
            Entry::Taken => self.tell_drops(sink),
        }
    }

    /// When something happens next.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        let bottleneck = self.bottleneck.next_ns();
        let lines = self
            .lines
            .iter()
            .filter_map(|line| line.packets.front().map(|(at_ns, ..)| *at_ns));
        let interrupt = self.interrupts.peek().map(|Reverse((at_ns, _))| *at_ns);
        let loose = self.loose.keys().next().map(|&(at_ns, _)| at_ns);
        let others = bottleneck.into_iter().chain(interrupt).chain(loose);
        lines.chain(others).min()
    }

    /// Does everything that is due at `now_ns` or before, in order of time.
    pub fn advance(&mut self, now_ns: u64, sink: &mut impl Sink) {
        while let Some(at_ns) = self.next_ns().filter(|&at_ns| at_ns <= now_ns) {
            self.step(at_ns, sink);
        }
    }

    /// The one thing that is due at `at_ns`, which [`Self::next_ns`] told.
    pub fn step(&mut self, at_ns: u64, sink: &mut impl Sink) {
        if self.bottleneck.next_ns() == Some(at_ns) {
            match self.bottleneck.step(at_ns, |_| ()) {
                None => self.period = self.period.wrapping_add(1),
                Some(packet) => {
                    sink.left(&packet, at_ns, packet.enqueued);
                    self.delay(at_ns, &packet, Some((self.period, at_ns)), sink);
                }
            }
            self.tell_drops(sink);
            return;
        }
        let due = |line: &Line| line.packets.front().is_some_and(|&(due, ..)| due == at_ns);
        if let Some(line) = self.lines.iter_mut().find(|line| due(line)) {
            let (_, flow, passing) = line.packets.pop_front().expect("its head is due");
            self.reach_nic(flow, at_ns, passing, sink);
            return;
        }
        if let Some(entry) = self.loose.first_entry()
            && entry.key().0 == at_ns
        {
            let (flow, passing) = entry.remove();
            self.reach_nic(flow, at_ns, passing, sink);
            return;
        }
        if let Some(Reverse((_, flow))) = self.interrupts.pop() {
            let nic = &mut self.nics[flow as usize];
            nic.next_interrupt_ns = at_ns + self.coalesce_ns;
            let mut pending = std::mem::take(&mut nic.pending);
            sink.arrived(flow, at_ns, &pending);
            pending.clear();
            self.nics[flow as usize].pending = pending;
        }
    }

    /// A NIC that has not interrupted for the moderation interval does so at
    /// once; else packets wait for the interval's end, as in the simulator.
    #[inline]
    fn reach_nic(&mut self, flow: u32, at_ns: u64, passing: Passing, sink: &mut impl Sink) {
        let nic = &mut self.nics[flow as usize];
        if !nic.is_end {
            sink.arrived(flow, at_ns, &[passing]);
        } else if !nic.pending.is_empty() {
            nic.pending.push(passing);
        } else if at_ns >= nic.next_interrupt_ns {
            nic.next_interrupt_ns = at_ns + self.coalesce_ns;
            sink.arrived(flow, at_ns, &[passing]);
        } else {
            nic.pending.push(passing);
            self.interrupts.push(Reverse((nic.next_interrupt_ns, flow)));
        }
    }

    #[inline]
    fn delay(
        &mut self,
        at_ns: u64,
        packet: &Packet,
        left: Option<(u32, u64)>,
        sink: &mut impl Sink,
    ) {
        let line = &mut self.lines[self.line_of[packet.flow as usize] as usize];
        let passing = Passing {
            handle: packet.handle,
            bytes: packet.bytes,
            left,
        };
        let Some(transit) = &mut self.transit else {
            line.packets
                .push_back((at_ns + line.delay_ns, packet.flow, passing));
            return;
        };
        let passage = transit.pass(at_ns, line.delay_ns);
        let arrives_ns = passage.arrives_ns();
        if passage.copies == 0 {
            return sink.lost(*packet);
        }
        for copy in 0..passage.copies {
            let passing = match copy {
                0 => passing,
                _ => Passing {
                    handle: sink.copy(packet.handle),
                    // It takes no time of the bottleneck.
                    left: None,
                    ..passing
                },
            };
            if transit.keeps_order() {
                line.latest_ns = line.latest_ns.max(arrives_ns);
                line.packets
                    .push_back((line.latest_ns, packet.flow, passing));
            } else {
                self.set_off += 1;
                self.loose
                    .insert((arrives_ns, self.set_off), (packet.flow, passing));
            }
        }
    }

    fn tell_drops(&mut self, sink: &mut impl Sink) {
        while let Some(packet) = self.bottleneck.take_dropped() {
            sink.dropped(packet);
        }
    }
}

#[cfg(test)]
mod tests;
