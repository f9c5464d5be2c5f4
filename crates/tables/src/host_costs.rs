//! `host_costs` and `stacks`: what sending and receiving cost the hosts, counted and sampled.

use crate::table;

table! {
    /// What each host spent and did between the end of the warm-up and the end
    /// of the run: a row for each counter. [`COUNTERS`] lists them. A counter
    /// that was not measured has no row.
    "host_costs" HostCosts of HostCost {
        cell: i32, "", "tcpknee", "cell of the matrix; 0 in a profile of a live host";
        rep: i32, "", "tcpknee", "repetition, from 0; 0 in a profile of a live host";
        host: &'static str, "", "tcpknee", "sender or receiver; machine: both hosts of a lab and whatever else runs on its processors, or a live host";
        counter: &'static str, "", "tcpknee", "what was counted: a counter below; or of the host model, an operation or a class of them, by time";
        value: i64, "", "tcpknee", "how much, in the unit beside it";
        unit: &'static str, "", "tcpknee", "ns, bytes, or what is counted: timers, skbs, segments, polls, …";
    }
}

table! {
    /// What the processors were doing, as samples of their call stacks.
    "stacks" Stacks of Stack {
        cell: i32, "", "tcpknee", "cell of the matrix; 0 in a profile of a live host";
        rep: i32, "", "tcpknee", "repetition, from 0; 0 in a profile of a live host";
        stack: String, "", "stack traces of the kernel", "folded: the program, then its functions from the outermost to the innermost, with ; between; _[k] ends the names of the kernel's functions";
        samples: i64, "", "perf_event_open(2)", "samples with this stack";
        class: &'static str, "", "tcpknee", "what the work was for: data copy, skb, memory, TCP/IP, netdev, scheduler, lock, timer, entry, BPF, user, other";
    }
}

/// A counter of the table `host_costs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCounter {
    pub name: &'static str,
    pub unit: &'static str,
    pub doc: &'static str,
}

/// Every counter that the table `host_costs` may have, in its order.
#[rustfmt::skip]
pub const COUNTERS: &[HostCounter] = &[
    of("pacing_timer_arms", "timers", "TCP's pacing timer was set"),
    of("pacing_timer_fires", "timers", "TCP's pacing timer fired"),
    of("pacing_timer_cancels", "timers", "TCP's pacing timer was taken back before it fired"),
    of("qdisc_timer_fires", "timers", "the timer of a qdisc fired, by which fq paces"),
    of("data_skbs_sent", "skbs", "TCP packets with payload that the host gave to a device, before they were cut into segments"),
    of("data_segments_sent", "segments", "segments within these packets"),
    of("data_bytes_sent", "bytes", "payload within these packets, retransmissions included"),
    of("acks_sent", "skbs", "TCP packets without payload and without SYN, FIN or RST that the host gave to a device"),
    of("skbs_received", "skbs", "TCP packets that reached the host's stack, after GRO; ACKs included"),
    of("segments_received", "segments", "segments within these packets"),
    of("napi_polls", "polls", "calls of a driver's poll function, or of the backlog's"),
    of("napi_packets", "packets", "packets that these calls handled"),
    of("napi_budget_ends", "polls", "calls that handled as many packets as they were allowed to"),
    of("interrupts", "interrupts", "hard interrupts that the processors served"),
    of("rx_coalesce_changes", "changes", "changes of how long a driver lets its NIC gather packets (adaptive coalescing); of the host model"),
    of("ipis", "interrupts", "interrupts that one processor sent another"),
    of("softirq_net_rx_ns", "ns", "time in the softirq that receives packets"),
    of("softirq_net_tx_ns", "ns", "time in the softirq that frees and restarts what is sent"),
    of("softirq_timer_ns", "ns", "time in the softirqs that run timers, high-resolution ones included"),
    of("softirq_sched_ns", "ns", "time in the softirq that moves tasks between processors"),
    of("ring_drops", "packets", "packets that a device dropped because its receive ring was full; likewise"),
    of("backlog_drops", "packets", "packets that a processor's backlog had no room for"),
    of("backlog_squeezes", "rounds", "rounds of receiving that ended with packets left, for want of time or budget"),
    of("backlog_flow_limits", "packets", "packets that the backlog's flow limit dropped"),
    of("backlog_rps", "interrupts", "wake-ups of a processor to receive what another one steered to it (RPS)"),
    of("retransmits", "segments", "TCP segments sent again; of the network namespace that was asked for, or else of the caller's"),
    of("cross_cpu_reads", "skbs", "packets read on another processor than the one that took them up the stack; of the host model"),
    of("cpu_ns", "ns", "time that processors were busy, interrupts included"),
    of("cpu_softirq_ns", "ns", "of that: in softirqs"),
    of("wakeups", "tasks", "tasks that were made ready to run"),
    of("context_switches", "switches", "changes from one task to another"),
];

const fn of(name: &'static str, unit: &'static str, doc: &'static str) -> HostCounter {
    HostCounter { name, unit, doc }
}

impl HostCosts {
    /// Appends time spent on something that the host model names: an operation, or a class of operations.
    pub fn spend(&mut self, cell: i32, rep: i32, host: &'static str, name: &'static str, ns: i64) {
        self.push(HostCost {
            cell,
            rep,
            host,
            counter: name,
            value: ns,
            unit: "ns",
        });
    }

    /// Appends what a counter came to.
    ///
    /// # Panics
    /// There is no counter of that name.
    pub fn count(&mut self, cell: i32, rep: i32, host: &'static str, name: &str, value: i64) {
        let counter = COUNTERS
            .iter()
            .find(|counter| counter.name == name)
            .unwrap_or_else(|| panic!("COUNTERS lacks {name}"));
        self.push(HostCost {
            cell,
            rep,
            host,
            counter: counter.name,
            value,
            unit: counter.unit,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_listed_once_and_names_its_unit() {
        for (at, counter) in COUNTERS.iter().enumerate() {
            let same = |other: &HostCounter| other.name == counter.name;
            assert_eq!(COUNTERS.iter().position(same), Some(at));
            assert_eq!(counter.name.ends_with("_ns"), counter.unit == "ns");
        }
    }

    #[test]
    fn a_counted_value_has_the_unit_of_its_counter() {
        let mut costs = HostCosts::default();
        costs.count(1, 2, "sender", "data_bytes_sent", 3);
        assert_eq!(
            (costs.unit[0], costs.value[0], costs.host[0]),
            ("bytes", 3, "sender")
        );
    }
}
