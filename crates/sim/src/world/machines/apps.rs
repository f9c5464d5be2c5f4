//! Applications and their threads: what is ready for them, what they read, compute and write.

use knee_host::{Bundle, Cost, hash};
use knee_units::{NEVER, Nanos};

use super::super::World;
use super::super::ends::Turn;
use super::READY;
use crate::event::{EndpointId, Side};
use crate::flow::Flow;
use crate::job::{Effect, Last};
use crate::machine::{AppTurn, MOST_CALLS};
use crate::processor::Processor;

impl World {
    /// Has the application something to write, or to close?
    #[inline(always)]
    pub(super) fn has_work(&self, id: EndpointId, flow: &mut Flow) -> bool {
        let only_writes = id.side() == Side::Sender && flow.sender_only_writes;
        !(only_writes && flow.ends[0].tcp.is_blocked()) && self.may_have_work(id, flow)
    }

    #[inline(never)]
    fn may_have_work(&self, id: EndpointId, flow: &mut Flow) -> bool {
        let now = Nanos(self.now_ns);
        let side = id.side();
        let app = match side {
            Side::Sender => &mut flow.apps.sender,
            Side::Receiver => &mut flow.apps.receiver,
        };
        let tcp = &mut flow.ends[side as usize].tcp;
        let writes = app.next_write_bytes(now) > 0 && tcp.is_writable();
        if writes || tcp.is_closing() {
            return writes;
        }
        app.closes() || tcp.rx.fin_received() && app.next_write_bytes(now) == 0
    }

    /// An end's application is to run; its thread is woken, if it sleeps.
    #[inline(always)]
    pub(super) fn make_ready(&mut self, by: &mut Processor, id: EndpointId, flow: &mut Flow) {
        let end = flow.end(id.side());
        if std::mem::replace(&mut end.app_wakes_ns, READY) == READY {
            return;
        }
        let thread = end.thread;
        let app = &mut self.machines.apps[thread as usize];
        app.ready.push(id);
        if app.awake || std::mem::replace(&mut app.waking, true) {
            return;
        }
        by.outcome.push(Effect::Wake(thread));
        by.core.charge_bundle(Bundle::Woken, 1);
    }

    /// An application is to run, by no processor's doing: it opens, or a pause is over.
    pub(in crate::world) fn ask_app(&mut self, id: EndpointId) {
        let end = self.conns.flows[id.flow() as usize].end(id.side());
        if std::mem::replace(&mut end.app_wakes_ns, READY) == READY {
            return;
        }
        let thread = end.thread;
        self.touch(self.machines.apps[thread as usize].cpu);
        let app = &mut self.machines.apps[thread as usize];
        app.ready.push(id);
        if !app.waking {
            self.wake_thread(thread);
        }
    }

    /// A thread serves the next of its connections: it reads, computes and writes. Returns whether its processor only idles then.
    #[inline(always)]
    pub(super) fn run_app(&mut self, by: &mut Processor, thread: u32, turn: AppTurn) -> bool {
        let AppTurn {
            id,
            calls_before,
            waits,
        } = turn;
        let Some(id) = id else {
            return self.sleeps_then(by, thread);
        };
        if waits {
            by.core.charge(Cost::WaitCall, 1);
        }
        let Some(flow) = self.conns.flows.try_remove(id.flow()) else {
            return self.sleeps_then(by, thread);
        };
        // Its thread is awake, so that nobody else has to do with that.
        let first = self.outbox.handles.len();
        let mut turn = self.begin_with(id, flow);
        turn.flow.end(id.side()).app_wakes_ns = NEVER;
        // Without a branch, after which there would be two places of an end to tell apart.
        let only_reads = (id.side() == Side::Receiver) & turn.flow.receiver_only_reads;
        if calls_before == 0 {
            let bytes = self.read_all(by, first, &mut turn);
            if bytes > 0 && !only_reads {
                self.read(id, &mut turn.flow, bytes);
            }
        }
        if !only_reads
            || turn.flow.ends[Side::Receiver as usize]
                .tcp
                .rx
                .fin_received()
        {
            self.compute_and_write(by, (thread, calls_before), id, &mut turn.flow);
        }
        self.take_sent_on(by, first, &mut turn);
        by.outcome.last = Last::Unlock(id);
        let is_plain = self.sleeps_then(by, thread);
        turn.flow.end(id.side()).is_owned = !is_plain;
        self.end(turn);
        is_plain
    }

    fn compute_and_write(
        &mut self,
        by: &mut Processor,
        (thread, calls_before): (u32, u32),
        id: EndpointId,
        flow: &mut Flow,
    ) {
        self.compute(by, id, flow);
        let wrote = self.pump_some(id, flow, 1);
        if wrote.calls > 0 {
            let of = &mut by.core;
            of.charge(Cost::SendCall, wrote.calls);
            of.charge(Cost::SocketLock, wrote.calls);
            of.charge(Cost::CopyIn, wrote.bytes);
            of.charge(Cost::Page, wrote.bytes);
        }
        if self.has_work(id, flow) {
            self.go_on(by, (thread, calls_before + 1), id, flow);
        }
    }

    /// An application has more to do: at once, unless it was at it for long.
    fn go_on(
        &mut self,
        by: &mut Processor,
        (thread, calls): (u32, u32),
        id: EndpointId,
        flow: &mut Flow,
    ) {
        if calls >= MOST_CALLS {
            return self.make_ready(by, id, flow);
        }
        flow.end(id.side()).app_wakes_ns = READY;
        let app = &mut self.machines.apps[thread as usize];
        app.ready.push_first(id);
        app.serves = calls;
    }

    /// An application computes, and writes when that is done.
    fn compute(&mut self, by: &mut Processor, id: EndpointId, flow: &mut Flow) {
        let now = Nanos(self.now_ns);
        let app = match id.side() {
            Side::Sender => &mut flow.apps.sender,
            Side::Receiver => &mut flow.apps.receiver,
        };
        if let Some(until) = app.computes_until(now) {
            let ns = until.0.saturating_sub(now.0);
            by.core.charge_ns(Cost::Service, ns);
        }
    }

    /// An application reads all there is; the last call finds nothing. Returns how much it was. What it sends begins at `first`.
    #[inline(always)]
    fn read_all(&mut self, by: &mut Processor, first: usize, turn: &mut Turn) -> u64 {
        let id = turn.id;
        let read_bytes = by.read_bytes;
        if by.has_rfs
            && let Some(rfs) = &mut self.machines.list[by.machine as usize].rfs
        {
            rfs.reads_on(hash(id.flow()), by.number);
        }
        let end = &mut turn.flow.ends[id.side() as usize];
        let skbs = u64::from(std::mem::take(&mut end.unread_skbs));
        let is_far = end.cpu != by.number;
        let bytes = end.tcp.read(&mut self.cx(id.side()));
        if self.outbox.handles.len() > first {
            self.called(id, &mut turn.flow);
        }
        let calls = 1 + match bytes <= read_bytes {
            true => u64::from(bytes > 0),
            false => bytes.div_ceil(read_bytes),
        };
        let Processor { core, counts, .. } = by;
        core.charge_bundle(Bundle::ReadCall, calls);
        core.charge(Cost::CopyOut, bytes);
        core.charge(Cost::SkbFree, skbs);
        if is_far {
            core.charge(Cost::CacheMiss, skbs);
            counts.cross_cpu_reads += skbs;
        }
        bytes
    }
}
