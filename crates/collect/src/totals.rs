//! Counters of the machine as a whole that the network moves: interrupts, context switches, backlogs, retransmissions.

use std::fs;

use super::nic;
use super::proc_net::{self, Counter};
use super::routing::Routing;

/// Counters so far. What the kernel does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub interrupts: Option<i64>,
    pub ipis: Option<i64>,
    pub context_switches: Option<i64>,
    pub backlog_drops: Option<i64>,
    pub backlog_squeezes: Option<i64>,
    pub backlog_flow_limits: Option<i64>,
    pub backlog_rps: Option<i64>,
    /// Of the calling thread's network namespace.
    pub retransmits: Option<i64>,
    /// Of the devices of the calling thread's network namespace.
    pub ring_drops: Option<i64>,
}

impl Totals {
    /// As they are now; of softnet only when `softnet` says so.
    pub fn now(softnet: bool) -> Totals {
        let mut totals = Totals::default();
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        totals.of_stat(&read("/proc/stat"));
        totals.ipis = ipis(&read("/proc/interrupts"));
        if softnet {
            totals.of_network();
        }
        totals
    }

    /// What was counted since `then`, with the names of the counters.
    pub fn since(&self, then: &Totals) -> Vec<(&'static str, i64)> {
        let pairs = [
            ("interrupts", self.interrupts, then.interrupts),
            ("ipis", self.ipis, then.ipis),
            (
                "context_switches",
                self.context_switches,
                then.context_switches,
            ),
            ("backlog_drops", self.backlog_drops, then.backlog_drops),
            (
                "backlog_squeezes",
                self.backlog_squeezes,
                then.backlog_squeezes,
            ),
            (
                "backlog_flow_limits",
                self.backlog_flow_limits,
                then.backlog_flow_limits,
            ),
            ("backlog_rps", self.backlog_rps, then.backlog_rps),
            ("retransmits", self.retransmits, then.retransmits),
            ("ring_drops", self.ring_drops, then.ring_drops),
        ];
        pairs
            .into_iter()
            .filter_map(|(name, now, then)| Some((name, now? - then?)))
            .collect()
    }

    fn of_stat(&mut self, text: &str) {
        let total = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        self.interrupts = total("intr ");
        self.context_switches = total("ctxt ");
    }

    fn of_network(&mut self) {
        for &(file, parse) in proc_net::FILES {
            // A file that cannot be read leaves its counters unknown.
            let _ = proc_net::read(file, parse, &mut String::new(), &mut |counter| {
                self.take(counter);
            });
        }
        let devices = Routing::new().and_then(|mut routing| nic::devices(&mut routing));
        self.ring_drops = devices.ok().map(|devices| {
            let stats = devices.iter().filter_map(|device| device.stats);
            stats
                .map(|stats| (stats.rx_missed_errors + stats.rx_fifo_errors) as i64)
                .sum()
        });
    }

    fn take(&mut self, counter: Counter<'_>) {
        let place = match (counter.group, counter.name) {
            ("", "dropped") => &mut self.backlog_drops,
            ("", "time_squeeze") => &mut self.backlog_squeezes,
            ("", "received_rps") => &mut self.backlog_rps,
            ("", "flow_limit_count") => &mut self.backlog_flow_limits,
            ("Tcp", "RetransSegs") => &mut self.retransmits,
            _ => return,
        };
        *place = Some(place.unwrap_or(0) + counter.value);
    }
}

/// Interrupts between processors, by what /proc/interrupts calls them: its short names differ between architectures.
fn ipis(text: &str) -> Option<i64> {
    let lines = text.lines().filter(|line| {
        line.contains("Rescheduling interrupts") || line.contains("Function call interrupts")
    });
    let counts = lines.map(|line| {
        let words = line.split_whitespace().skip(1);
        words
            .map_while(|word| word.parse::<i64>().ok())
            .sum::<i64>()
    });
    counts.reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipis_are_found_by_their_description_on_x86_and_arm() {
        let x86 = "     CPU0  CPU1\n  0:  5  6  IO-APIC  timer\nRES:  10  20  Rescheduling interrupts\nCAL:  3  4  Function call interrupts\nTLB: 1 1 TLB shootdowns\n";
        assert_eq!(ipis(x86), Some(37));
        let arm = "IPI0: 1 2 Rescheduling interrupts\nIPI1: 4 8 Function call interrupts\n";
        assert_eq!(ipis(arm), Some(15));
        assert_eq!(ipis("  0: 5 6 timer\n"), None);
    }

    #[test]
    fn totals_of_stat_stand_behind_their_names() {
        let mut totals = Totals::default();
        totals.of_stat("cpu 1 2\nintr 70 1 2\nctxt 90\nbtime 5\n");
        assert_eq!(
            (totals.interrupts, totals.context_switches),
            (Some(70), Some(90))
        );
    }

    #[test]
    fn counters_of_all_processors_are_added() {
        let mut totals = Totals::default();
        for (cpu, value) in [(0, 3), (1, 4)] {
            let (group, cpu) = ("", Some(cpu));
            totals.take(Counter {
                group,
                name: "time_squeeze",
                cpu,
                value,
            });
        }
        assert_eq!(totals.backlog_squeezes, Some(7));
        assert_eq!(totals.backlog_drops, None);
    }

    #[test]
    fn what_was_counted_is_the_difference_and_what_is_unknown_is_left_out() {
        let then = Totals::now(true);
        let now = Totals {
            interrupts: then.interrupts.map(|count| count + 5),
            ipis: None,
            ..then
        };
        let since = now.since(&then);
        assert_eq!(since[0], ("interrupts", 5));
        assert!(since.contains(&("backlog_drops", 0)));
        assert!(since.iter().all(|(name, _)| *name != "ipis"));
        assert!(Totals::now(false).backlog_drops.is_none());
    }
}
