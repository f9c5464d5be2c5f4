//! What the network costs this host: timers, packets and their sizes, polls,
//! softirqs, wake-ups, and what its processors are doing.
//!
//! A [`Session`] attaches the BPF programs of `bpf/trace_host.bpf.c` and
//! `bpf/trace_stacks.bpf.c`, reads `/proc` at both ends of an interval, and
//! gives the difference as rows. Each instrument can be left out, and what the
//! programs themselves cost is told.

mod counters;
mod session;
mod stacks;

pub use session::{Asked, Found, Session};

/// Something that can be measured, and left out.
#[derive(Clone, Copy, Debug)]
pub struct Instrument {
    pub name: &'static str,
    pub summary: &'static str,
    /// Tracepoints of `bpf/trace_host.bpf.c` that it needs.
    tracepoints: &'static [&'static str],
    /// Does it need BPF?
    pub bpf: bool,
}

/// Every instrument. Times of processors and threads, interrupts and context
/// switches need none: `/proc` tells them for nothing.
#[rustfmt::skip]
pub const INSTRUMENTS: &[Instrument] = &[
    Instrument { name: "timers", summary: "timers of pacing: set, fired, taken back", tracepoints: &["hrtimer_start", "hrtimer_expire_entry", "hrtimer_cancel"], bpf: true },
    Instrument { name: "packets", summary: "TCP packets sent and received, with their sizes and segments", tracepoints: &["net_dev_queue", "netif_receive_skb"], bpf: true },
    Instrument { name: "polls", summary: "NAPI polls, and packets per poll", tracepoints: &["napi_poll"], bpf: true },
    Instrument { name: "softirqs", summary: "time in each softirq, by processor", tracepoints: &["softirq_entry", "softirq_exit"], bpf: true },
    Instrument { name: "wakeups", summary: "tasks made ready to run", tracepoints: &["sched_wakeup"], bpf: true },
    Instrument { name: "stacks", summary: "call stacks of the processors, sampled", tracepoints: &[], bpf: true },
    Instrument { name: "softnet", summary: "backlogs' drops and squeezes, rings' drops, retransmissions", tracepoints: &[], bpf: false },
];

/// The instrument of that name.
pub fn instrument(name: &str) -> Option<&'static Instrument> {
    INSTRUMENTS.iter().find(|one| one.name == name)
}
