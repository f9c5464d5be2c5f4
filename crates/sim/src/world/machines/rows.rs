//! What machines leave: rows of the tables `cpu` and `host_costs`, and packets that wait in them.

use knee_host::{COSTS, Class, Spent};
use knee_tables::CpuSample;

use super::super::World;
use super::super::passage::Connections;
use crate::event::{EndpointId, Side};
use crate::job::{Effect, Job, Outcome};
use crate::processor::Counts;

/// How often the table `cpu` has rows, as a lab's.
const CPU_INTERVAL_NS: u64 = 100_000_000;

impl World {
    /// How tables tell a machine with the settings of a side: by that, unless it is the machine of both.
    fn label_of(&self, side: Side) -> &'static str {
        match self.crosses {
            true => "machine",
            false => side.label(),
        }
    }

    /// Rows of the table `cpu`, if their time has come.
    #[inline]
    pub(in crate::world) fn sample_cpus(&mut self) {
        if self.machines.cpus.count() > 0 && self.now_ns >= self.machines.next_rows_ns {
            self.sample_cpus_now();
        }
    }

    #[inline(never)]
    fn sample_cpus_now(&mut self) {
        self.machines.next_rows_ns = self.now_ns + CPU_INTERVAL_NS;
        let (cell, rep, t_ns) = self.recorder.at(self.now_ns);
        for cpu in 0..self.machines.cpus.count() {
            let machine = self.machines.cpus[cpu].machine;
            let of = &self.machines.list[machine as usize];
            let (label, number) = (self.label_of(of.side), cpu - of.first_cpu);
            let name = match self.types[of.side as usize].hosts {
                Some(2..) => format!("{label}{machine}/cpu{number}"),
                _ => format!("{label}/cpu{number}"),
            };
            let spent = self.machines.cpus[cpu].core.spent();
            self.recorder.rows.cpu.push(CpuSample {
                cell,
                rep,
                t_ns,
                name,
                run_us: (spent.busy_ns() + spent.other_ns) as i64 / 1_000,
                user_us: Some((spent.user_ns() + spent.other_ns) as i64 / 1_000),
                system_us: Some(spent.system_ns() as i64 / 1_000),
                softirq_us: Some((spent.softirq_ns() + spent.irq_ns()) as i64 / 1_000),
                steal_us: Some(spent.steal_ns as i64 / 1_000),
            });
        }
    }

    /// Rows of the table `host_costs`: what machines did and spent since the warm-up, by side.
    pub(in crate::world) fn record_machines(&mut self) {
        self.count_polling();
        let machines = std::mem::take(&mut self.machines);
        let (cell, rep, _) = self.recorder.at(self.now_ns);
        let (counts_before, spent_before) = &machines.at_warm;
        for side in [Side::Sender, Side::Receiver] {
            let of_side = |machine: &u32| machines.list[*machine as usize].side == side;
            let numbers: Vec<u32> = (0..machines.list.len() as u32).filter(of_side).collect();
            if numbers.is_empty() {
                continue;
            }
            let label = self.label_of(side);
            let mut sums: Vec<(&'static str, u64)> = Counts::default().since(&Counts::default());
            let mut ops = vec![0; COSTS.len()];
            let (mut busy_ns, mut softirq_ns) = (0, 0);
            let (none_done, none) = (Counts::default(), Spent::default());
            for (cpu, of) in machines.cpus.iter().enumerate() {
                if !numbers.contains(&of.machine) {
                    continue;
                }
                let before = counts_before.get(cpu).unwrap_or(&none_done);
                for (sum, (_, count)) in sums.iter_mut().zip(of.done().since(before)) {
                    sum.1 += count;
                }
                let (before, spent) = (spent_before.get(cpu).unwrap_or(&none), of.core.spent());
                busy_ns += spent.busy_ns() - before.busy_ns();
                softirq_ns += spent.softirq_ns() - before.softirq_ns();
                for (position, ns) in ops.iter_mut().enumerate() {
                    *ns += spent.on_ns(position) - before.on_ns(position);
                }
            }
            let rows = &mut self.recorder.rows.host_costs;
            for (name, count) in sums {
                rows.count(cell, rep, label, name, count as i64);
            }
            rows.count(cell, rep, label, "cpu_ns", busy_ns as i64);
            rows.count(cell, rep, label, "cpu_softirq_ns", softirq_ns as i64);
            for class in Class::ALL {
                let of_class = COSTS
                    .iter()
                    .zip(&ops)
                    .filter(|(kind, _)| kind.class == class);
                let ns: u64 = of_class.map(|(_, ns)| ns).sum();
                rows.spend(cell, rep, label, class.counter(), ns as i64);
            }
            for (kind, ns) in COSTS.iter().zip(ops) {
                rows.spend(cell, rep, label, kind.name, ns as i64);
            }
        }
    }

    /// Every packet that waits in a machine, for a final account: flow, side and payload.
    pub(in crate::world) fn drain_machines(&mut self) -> Vec<(EndpointId, u32)> {
        let mut found = Vec::new();
        let World {
            machines,
            conns: Connections { slab, .. },
            ..
        } = self;
        for queue in &mut machines.queues {
            let side = queue.side;
            for passing in queue.ring.drain() {
                let segment = slab.take(passing.handle, passing.pkts);
                found.push((EndpointId::new(passing.flow, side), segment.payload_bytes));
            }
            let held = queue.held.drain();
            found.extend(held.map(|(to, segment)| (to, segment.payload_bytes)));
        }
        let of_threads = machines.apps.iter().map(|app| &app.interrupted);
        let of_cpus = machines.cpus.iter().map(|of| &of.outcome);
        let outcomes = of_cpus.chain(of_threads);
        for effect in outcomes.flat_map(Outcome::effects) {
            match effect {
                Effect::Sent(from, handle, _) | Effect::Released(from, handle) => {
                    let to = EndpointId::new(from.flow(), from.side().other());
                    found.push((to, slab.get(*handle).payload_bytes));
                }
                Effect::Raise(_, Job::Up(up)) => {
                    found.push((up.to, slab.get(up.handle).payload_bytes));
                }
                _ => {}
            }
        }
        let deferred = machines.deferred.drain(..).map(|(_, job)| job);
        let locked = machines
            .apps
            .iter_mut()
            .flat_map(|app| app.locked.drain(..));
        let waiting = machines.cpus.iter_mut().flat_map(|of| of.core.drain());
        for job in deferred.chain(locked).chain(waiting) {
            if let Job::Up(up) = job {
                found.push((up.to, slab.get(up.handle).payload_bytes));
            }
        }
        found
    }
}
