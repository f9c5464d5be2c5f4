//! The ends of the path: endpoints, their timers and applications, and what their hosts keep for them.

use std::mem::ManuallyDrop;

use knee_kit::odds::{likely, unlikely};
use knee_kit::places::Placed;
use knee_path::sink::Passing;
use knee_units::{NEVER, Nanos};

use super::World;
use crate::event::{EndpointId, HostId, Side, Target, Work};
use crate::flow::Flow;
use crate::gro::{self, Batch};
use crate::host::Late;
use knee_tcp::segment::Segment;
use knee_tcp::{ASKS, Cx, Endpoint};

/// An end has its turn, in which its flow is with it and not in the list. What is called and not inlined gets the two parts, so
/// that they need not lie in memory.
pub(super) struct Turn {
    pub id: EndpointId,
    pub flow: ManuallyDrop<Placed<Flow>>,
}

/// What an application has written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wrote {
    pub calls: u64,
    pub bytes: u64,
}

impl Turn {
    #[inline]
    fn tcp(&mut self) -> &mut Endpoint {
        &mut self.flow.ends[self.id.side() as usize].tcp
    }
}

impl World {
    pub(super) fn connect(&mut self, flow: u32) {
        let side = match self.conns.flows[flow as usize].apps.receiver_opens {
            true => Side::Receiver,
            false => Side::Sender,
        };
        let spec = &self.cell.flows[self.conns.flows[flow as usize].group as usize];
        if self.now_ns >= self.boot_ns + self.cell.warmup_of(spec).0 {
            self.conns.flows[flow as usize].open_measuring(self.now_ns);
        } else {
            for end in &mut self.conns.flows[flow as usize].ends {
                end.tcp.start_means(self.now_ns);
            }
        }
        self.with_endpoint(EndpointId::new(flow, side), |tcp, cx| tcp.open(cx));
    }

    /// The stack takes what a host's NIC has handed over, if it has.
    #[inline(always)]
    pub(super) fn deliver(&mut self, side: Side) {
        if let Some(only) = self.conns.only.take() {
            if likely(!self.options.capture & !self.has_machine(side))
                && gro::is_one(&self.conns.slab, &only, self.types[side as usize].gro)
            {
                let mut turn = self.begin(EndpointId::new(only.flow, side));
                turn.flow.under_way -= only.pkts;
                let segment = self.conns.slab.take(only.handle, only.pkts);
                let read = self.receive(&mut turn, &segment);
                self.wake_app(&mut turn, read);
                return self.end(turn);
            }
            self.conns.arrived.push(only);
        }
        if !self.conns.arrived.is_empty() {
            self.deliver_all(side);
        }
    }

    #[inline(never)]
    fn deliver_all(&mut self, side: Side) {
        let mut packets = std::mem::take(&mut self.conns.arrived);
        if unlikely(self.options.capture && side == Side::Sender) {
            self.capture_arrived(&packets);
        }
        match self.has_machine(side) {
            true => self.reach_machine(side, &packets),
            false => self.deliver_batch(side, &packets),
        }
        packets.clear();
        self.conns.arrived = packets;
    }

    /// Packets that the stack sees as several segments.
    fn deliver_batch(&mut self, side: Side, packets: &[Passing<()>]) {
        let gro = self.types[side as usize].gro;
        let flow = packets[0].flow;
        let is_mixed = || packets.iter().any(|passing| passing.flow != flow);
        if self.types[side as usize].hosts.is_some() && is_mixed() {
            return self.deliver_mixed(side, packets);
        }
        let mut turn = self.begin(EndpointId::new(flow, side));
        turn.flow.under_way -= packets.iter().map(|passing| passing.pkts).sum::<u32>();
        let mut read = false;
        let mut batch = Batch::new(packets);
        while let Some(segment) = batch.next_merged(&mut self.conns.slab, gro) {
            read |= self.receive(&mut turn, &segment);
        }
        // Applications run when the softirq has done with all of it.
        self.wake_app(&mut turn, read);
        self.end(turn);
    }

    /// Packets of several flows: GRO holds one of each, which goes up when its flow's next does not follow seamlessly, or
    /// with the batch's end (Linux, dev_gro_receive(), napi_gro_flush()). What has no payload is never held.
    #[cold]
    fn deliver_mixed(&mut self, side: Side, packets: &[Passing<()>]) {
        let gro = self.types[side as usize].gro;
        let mut held = std::mem::take(&mut self.held);
        for passing in packets {
            self.conns.flows[passing.flow as usize].under_way -= passing.pkts;
        }
        let mut batch = Batch::new(packets);
        while let Some(next) = batch.peek() {
            let to = EndpointId::new(next.flow, side);
            let place = held.iter().position(|&(of, _)| of == to);
            if let Some(place) = place {
                if batch.merge(&mut held[place].1, &mut self.conns.slab) {
                    continue;
                }
                let (_, whole) = held.remove(place);
                self.go_up(to, &whole);
            }
            let Some(segment) = batch.first(&mut self.conns.slab, gro) else {
                break;
            };
            match gro && segment.payload_bytes > 0 {
                true => held.push((to, segment)),
                false => self.go_up(to, &segment),
            }
        }
        for (to, segment) in held.drain(..) {
            self.go_up(to, &segment);
        }
        self.held = held;
        let mut woken = std::mem::take(&mut self.woken);
        for (to, read) in woken.drain(..) {
            let mut turn = self.begin(to);
            self.wake_app(&mut turn, read);
            self.end(turn);
        }
        self.woken = woken;
    }

    /// A segment of a mixed batch reaches the stack; its application is woken with the others.
    fn go_up(&mut self, to: EndpointId, segment: &Segment) {
        let mut turn = self.begin(to);
        let read = self.receive(&mut turn, segment);
        self.end(turn);
        match self.woken.iter_mut().find(|(woken, _)| *woken == to) {
            Some((_, has_read)) => *has_read |= read,
            None => self.woken.push((to, read)),
        }
    }

    /// A segment reaches the stack; returns whether it made something readable,
    /// which is read at once.
    #[inline(always)]
    fn receive(&mut self, turn: &mut Turn, segment: &Segment) -> bool {
        let side = turn.id.side();
        let readable = turn.tcp().on_segment(&mut self.cx(side), segment);
        self.called(turn.id, &mut turn.flow);
        let only_reads = turn.flow.receiver_only_reads & (side == Side::Receiver);
        if unlikely((readable > 0) & !only_reads) {
            self.read(turn.id, &mut turn.flow, readable);
        }
        readable > 0
    }

    /// The application at an end runs: what it read may be acked, and it writes.
    #[inline(always)]
    pub(super) fn wake_app(&mut self, turn: &mut Turn, has_read: bool) {
        let writes = match turn.id.side() {
            Side::Sender => !turn.flow.sender_only_writes || !turn.tcp().is_blocked(),
            Side::Receiver => !turn.flow.receiver_only_reads || turn.tcp().rx.fin_received(),
        };
        if unlikely(has_read & turn.tcp().acks_when_read()) {
            self.call(turn, |tcp, cx| tcp.send_ack(cx));
        }
        if unlikely(writes) && !turn.tcp().waits_for_agent() {
            self.pump(turn);
        }
    }

    #[inline(never)]
    pub(super) fn read(&mut self, id: EndpointId, flow: &mut Flow, bytes: u64) {
        let now = Nanos(self.now_ns);
        if id.side() == Side::Sender {
            return flow.apps.sender.read(now, bytes);
        }
        flow.apps.receiver.read(now, bytes);
        if let Some(reads) = &mut flow.reads {
            reads.add(now.0, bytes);
        }
        if flow.apps.receiver_opens {
            flow.apps.receiver.take_latencies(&mut self.latencies);
            for latency in self.latencies.drain(..) {
                flow.latency_us.get_or_insert_default().add(latency.as_us());
            }
        }
        if flow.final_times.is_none() && flow.apps.receiver.completed().is_some() {
            flow.complete(self.now_ns);
            let recorder = &mut self.recorder;
            recorder.log_event(self.now_ns, id.flow(), flow, "complete");
        }
    }

    /// Lets the application write while the socket takes it.
    #[inline]
    fn pump(&mut self, turn: &mut Turn) {
        self.pump_some(turn.id, &mut turn.flow, u64::MAX);
    }

    /// Lets the application write while the socket takes it, with up to so many calls.
    #[inline]
    pub(super) fn pump_some(&mut self, id: EndpointId, flow: &mut Flow, most_calls: u64) -> Wrote {
        let now = Nanos(self.now_ns);
        let app = match id.side() {
            Side::Sender => &mut flow.apps.sender,
            Side::Receiver => &mut flow.apps.receiver,
        };
        let tcp = &mut flow.ends[id.side() as usize].tcp;
        let mut wrote = Wrote::default();
        // Is a call under way of which the socket has not taken all?
        let mut is_partial = false;
        let pauses = loop {
            let bytes = app.next_write_bytes(now);
            if bytes == 0 || wrote.calls == most_calls || !tcp.is_writable() {
                break bytes == 0;
            }
            let mut cx = self.cx(id.side());
            let taken = tcp.write(&mut cx, bytes);
            app.wrote(now, taken);
            wrote.bytes += taken;
            is_partial = taken < bytes;
            if !is_partial {
                wrote.calls += 1;
                tcp.push(&mut cx);
            }
        };
        wrote.calls += u64::from(is_partial);
        let has_written = wrote.calls > 0;
        if id.side() == Side::Sender {
            flow.writes += wrote.calls;
        }
        let wakes_at = if pauses { app.wakes_at(now) } else { None };
        let over = app.closes() || tcp.rx.fin_received() && app.next_write_bytes(now) == 0;
        if over && tcp.close() || has_written && tcp.is_blocked() {
            tcp.push(&mut self.cx(id.side()));
            self.called(id, flow);
        } else if has_written {
            self.called(id, flow);
        }
        if let Some(at) = wakes_at {
            self.wake_app_at(id, flow, at.0);
        }
        wrote
    }

    /// Asks a pausing application again at that time.
    #[inline(never)]
    fn wake_app_at(&mut self, id: EndpointId, flow: &mut Flow, at_ns: u64) {
        let wakes_ns = &mut flow.end(id.side()).app_wakes_ns;
        if *wakes_ns != at_ns {
            *wakes_ns = at_ns;
            self.events.push(at_ns, Target::Work(id, Work::App));
        }
    }

    /// A pausing application runs again.
    pub(super) fn on_app(&mut self, id: EndpointId) {
        if !self.conns.flows.has(id.flow()) {
            return;
        }
        if self.has_machine(id.side()) {
            return self.ask_app(id);
        }
        let mut turn = self.begin(id);
        turn.flow.end(id.side()).app_wakes_ns = NEVER;
        self.pump(&mut turn);
        self.end(turn);
    }

    pub(super) fn on_timer(&mut self, id: EndpointId) {
        if !self.conns.flows.has(id.flow()) {
            // Superseded, and its connection is over since.
            return;
        }
        let end = self.conns.flows[id.flow() as usize].end(id.side());
        if end.armed_ns != self.now_ns {
            // Superseded by an earlier one that has run since.
            return;
        }
        end.armed_ns = NEVER;
        if end.tcp.next_timer_ns() > self.now_ns {
            // Put off meanwhile, as a timeout is by every ACK.
            let mut flow = self.conns.flows.remove(id.flow());
            self.arm(id, &mut flow);
            return self.conns.flows.insert(id.flow(), flow);
        }
        if self.has_machine(id.side()) {
            return self.fire_timer(id);
        }
        let mut turn = self.begin(id);
        self.call(&mut turn, |tcp, cx| tcp.on_timer(cx));
        self.pump(&mut turn);
        self.end(turn);
    }

    pub(super) fn late(&mut self, id: HostId) -> &mut Late {
        let late = &mut self.late[id.side() as usize][id.host() as usize];
        late.as_mut().expect("the host is late")
    }

    /// An end has its turn, with one thing to do.
    #[inline]
    pub(super) fn with_endpoint(
        &mut self,
        id: EndpointId,
        call: impl FnOnce(&mut Endpoint, &mut Cx),
    ) {
        let mut turn = self.begin(id);
        self.call(&mut turn, call);
        self.end(turn);
    }

    /// An end has its turn, in which it is called as often as need be.
    #[inline(always)]
    pub(super) fn begin(&mut self, id: EndpointId) -> Turn {
        self.outbox.turn_to(id);
        let flow = self.conns.flows.remove(id.flow());
        self.begin_with(id, flow)
    }

    /// An end of a flow that was taken out has its turn. What it sends is not among what others have sent.
    #[inline(always)]
    pub(super) fn begin_with(&mut self, id: EndpointId, flow: Placed<Flow>) -> Turn {
        let side = id.side() as usize;
        self.clocks[side].set(self.now_ns, &self.types[side].tcp);
        let flow = ManuallyDrop::new(flow);
        Turn { id, flow }
    }

    /// Calls into the endpoint that has its turn.
    #[inline(always)]
    pub(super) fn call<R>(
        &mut self,
        turn: &mut Turn,
        call: impl FnOnce(&mut Endpoint, &mut Cx) -> R,
    ) -> R {
        let side = turn.id.side();
        let result = call(turn.tcp(), &mut self.cx(side));
        self.called(turn.id, &mut turn.flow);
        result
    }

    /// What an endpoint of that side may use now.
    #[inline(always)]
    pub(super) fn cx(&mut self, side: Side) -> Cx<'_> {
        Cx {
            now: &self.clocks[side as usize],
            host: &self.types[side as usize].tcp,
            slab: &mut self.conns.slab,
            out: &mut self.outbox.handles,
            events: &mut self.log,
        }
    }

    /// The endpoint that has its turn was called.
    #[inline(always)]
    pub(super) fn called(&mut self, id: EndpointId, flow: &mut Flow) {
        if !self.log.is_empty() {
            self.take_log(id, flow);
        }
        self.arm(id, flow);
    }

    /// Carries out what the endpoint asked for in its turn.
    #[inline(always)]
    pub(super) fn end(&mut self, mut turn: Turn) {
        let id = turn.id;
        if id.side() == Side::Sender {
            self.recorder.changed.insert(id.flow());
        }
        if unlikely(turn.tcp().is_done()) {
            self.on_end_done(id, &mut turn.flow);
        }
        let flow = ManuallyDrop::into_inner(turn.flow);
        self.conns.flows.insert(id.flow(), flow);
    }

    #[cold]
    fn take_log(&mut self, id: EndpointId, flow: &Flow) {
        let mut log = std::mem::take(&mut self.log);
        for event in log.drain(..) {
            if event == ASKS {
                self.until_ns = 0;
            } else if id.side() == Side::Sender {
                let recorder = &mut self.recorder;
                recorder.log_event(self.now_ns, id.flow(), flow, event);
            }
        }
        self.log = log;
    }

    #[cold]
    fn on_end_done(&mut self, id: EndpointId, flow: &mut Flow) {
        let end = flow.end(id.side());
        if std::mem::replace(&mut end.is_done, true) {
            return;
        }
        if flow.ends.iter().all(|end| end.tcp.is_done()) {
            self.unfinished -= 1;
            if self
                .seat
                .as_ref()
                .is_some_and(|seat| seat.number == id.flow())
            {
                // Nothing is left to decide.
                self.until_ns = 0;
            }
            if !self.options.keep_connections {
                self.closing.push(id.flow());
            }
            let recorder = &mut self.recorder;
            recorder.log_event(self.now_ns, id.flow(), flow, "closed");
        }
    }

    #[inline(always)]
    fn arm(&mut self, id: EndpointId, flow: &mut Flow) {
        let end = flow.end(id.side());
        let due_ns = end.tcp.next_timer_ns();
        if unlikely(due_ns < end.armed_ns) {
            end.armed_ns = due_ns;
            self.push_timer(id, due_ns.max(self.now_ns));
        }
    }

    #[inline(never)]
    fn push_timer(&mut self, id: EndpointId, due_ns: u64) {
        match due_ns % self.types[id.side() as usize].tcp.tick_ns {
            0 => self.events.push_tick(due_ns, id),
            _ => self.events.push(due_ns, Target::Work(id, Work::Timer)),
        }
    }
}
