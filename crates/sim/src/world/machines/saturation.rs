//! Finds the connections that a saturated processor holds up, whatever TCP waits for.

use super::super::World;

/// Of the time since the last look. What is left are the pauses between interrupts of a processor that has no time.
const BUSY: f64 = 0.95;

impl World {
    /// Asks of every connection whether a processor held it up since the last look.
    pub(in crate::world) fn look_at_processors(&mut self) {
        if self.machines.cpus.count() == 0 || self.now_ns == self.machines.looked.0 {
            return;
        }
        let busy = self.busy_cpus();
        let (machines, types) = (&self.machines, &self.types);
        for flow in self.conns.flows.iter_mut() {
            let is_held_up = flow.ends.iter().zip(types).any(|(end, of)| {
                let thread = || machines.apps[end.thread as usize].cpu;
                let queue = || machines.queues[end.rx_queue as usize].cpu;
                of.machine.is_some()
                    && [end.cpu, thread(), queue()]
                        .iter()
                        .any(|&cpu| busy[cpu as usize])
            });
            flow.look(self.now_ns, is_held_up);
        }
        self.remember_busy();
    }

    /// What comes counts from now on.
    pub(in crate::world) fn remember_busy(&mut self) {
        self.machines.looked = (self.now_ns, self.busy_ns().collect());
    }

    /// Which processors have been busy since the last look, or with somebody else's work by the hypervisor.
    fn busy_cpus(&self) -> Vec<bool> {
        let (looked_ns, were_busy_ns) = &self.machines.looked;
        let elapsed_ns = (self.now_ns - looked_ns) as f64;
        let before = were_busy_ns.iter().copied().chain(std::iter::repeat(0));
        (self.busy_ns().zip(before))
            .map(|(now_ns, before_ns)| (now_ns - before_ns) as f64 >= BUSY * elapsed_ns)
            .collect()
    }

    fn busy_ns(&self) -> impl Iterator<Item = u64> + '_ {
        let spent = self.machines.cpus.iter().map(|cpu| cpu.core.spent());
        spent.map(|spent| spent.busy_ns() + spent.steal_ns)
    }
}
