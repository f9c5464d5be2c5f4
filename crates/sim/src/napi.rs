//! When a receive queue is polled: by an interrupt, which adaptive coalescing may put off, or by NAPI's timer (Linux,
//! Documentation/networking/napi.rst; net/core/dev.c: napi_complete_done(), napi_watchdog()).

use knee_host::{Dim, Traffic};
use knee_units::NEVER;

/// Why a queue is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Interrupt,
    /// Its last poll left something, or a veth's peer has sent.
    Again,
    Timer,
}

/// The NAPI of a receive queue.
pub struct Napi {
    is_plain: bool,
    /// gro_flush_timeout; 0: there is none.
    flush_ns: u64,
    /// napi_defer_hard_irqs, and how many polls without an interrupt are left of these.
    defers: u32,
    defers_left: u32,
    /// Is the timer to be set when the current poll is over, and do interrupts stay off until it fires?
    pub sets_timer: bool,
    pub keeps_silent: bool,
    /// Are interrupts off while the timer runs?
    pub is_silent: bool,
    /// When the timer fires, when the NIC interrupts, and the event for the earlier of them; NEVER: not at all.
    pub timer_ns: u64,
    pub interrupt_ns: u64,
    event_ns: u64,
    /// Of a driver that adapts coalescing.
    pub coalescing: Option<Box<Coalescing>>,
}

/// Adaptive coalescing of a queue.
#[derive(Default)]
pub struct Coalescing {
    pub dim: Dim,
    pub traffic: Traffic,
    interrupted_ns: u64,
}

impl Napi {
    /// `adaptive_rx`: the driver chooses how long the queue gathers packets.
    pub fn new(gro_flush_timeout_ns: u64, napi_defer_hard_irqs: u32, adaptive_rx: bool) -> Napi {
        Napi {
            is_plain: gro_flush_timeout_ns == 0 && !adaptive_rx,
            flush_ns: gro_flush_timeout_ns,
            defers: napi_defer_hard_irqs,
            defers_left: 0,
            sets_timer: false,
            keeps_silent: false,
            is_silent: false,
            timer_ns: NEVER,
            interrupt_ns: NEVER,
            event_ns: NEVER,
            coalescing: adaptive_rx.then(Box::default),
        }
    }

    /// Has it neither a timer nor adaptive coalescing? Then a poll that is not full turns interrupts on, and does no more.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// A poll has emptied the queue, in which it found `pkts` packets; GRO holds some if `holds`. Returns whether it may keep
    /// them.
    pub fn complete(&mut self, pkts: u32, holds: bool) -> bool {
        if pkts > 0 {
            self.defers_left = self.defers;
        }
        let defers = self.defers_left > 0;
        self.defers_left -= u32::from(defers);
        self.sets_timer = self.flush_ns > 0 && (defers || pkts > 0 && holds);
        self.keeps_silent = self.sets_timer && defers;
        self.sets_timer
    }

    /// The poll is over, and its timer begins.
    pub fn set_timer(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.sets_timer) {
            self.timer_ns = now_ns + self.flush_ns;
        }
    }

    /// When the NIC interrupts where `waiting` descriptors are used. A time that is over means at once.
    pub fn interrupts_ns(&self, waiting: u32) -> u64 {
        let Some(coalescing) = &self.coalescing else {
            return 0;
        };
        let level = coalescing.dim.level();
        match waiting >= level.pkts {
            true => 0,
            false => coalescing.interrupted_ns + level.ns,
        }
    }

    /// The NIC interrupts.
    pub fn interrupted(&mut self, now_ns: u64) {
        self.interrupt_ns = NEVER;
        if let Some(coalescing) = &mut self.coalescing {
            coalescing.interrupted_ns = now_ns;
            coalescing.traffic.interrupts += 1;
        }
    }

    /// A poll that was not full is over. Returns whether coalescing has changed.
    pub fn adapts(&mut self, now_ns: u64) -> bool {
        let adapts = |coalescing: &mut Box<Coalescing>| {
            let traffic = coalescing.traffic;
            coalescing.dim.polled(now_ns, traffic)
        };
        self.coalescing.as_mut().is_some_and(adapts)
    }

    /// The event to push, if there is none yet that is early enough.
    pub fn awaits(&mut self) -> Option<u64> {
        let at_ns = self.timer_ns.min(self.interrupt_ns);
        let is_new = at_ns < self.event_ns;
        self.event_ns = self.event_ns.min(at_ns);
        is_new.then_some(at_ns)
    }

    /// An event has come. Is it still awaited?
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = self.event_ns == now_ns;
        if is_due {
            self.event_ns = NEVER;
        }
        is_due
    }
}
