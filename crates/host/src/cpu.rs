//! One processor: what it runs, what waits for it, and whose turn it is.
//!
//! Work comes in chunks that are not divided: a poll, an skb's way up, a connection's turn in its application. Softirqs run
//! before threads and interrupt them; once they have kept the processor for too long they are ksoftirqd's, which shares it
//! with the threads as one of them (Linux, kernel/softirq.c: MAX_SOFTIRQ_TIME). Threads share fairly: who has run least is
//! next. Who runs keeps its slice, also from who is woken (EEVDF's RUN_TO_PARITY, Linux 6.6 on), unless `wakeup_preemption`
//! says otherwise, as CFS did before (Linux, kernel/sched/fair.c).

use std::collections::VecDeque;

use crate::bill::{Bill, Spent};
use crate::costs::Cost;
use crate::steal::Steal;

/// After that long softirqs are ksoftirqd's: MAX_SOFTIRQ_TIME, 2 ms.
const MAX_SOFTIRQ_NS: u64 = 2_000_000;
/// A thread's slice: base_slice_ns of two processors, 0.7 ms × (1 + log2 of them).
const SLICE_NS: u64 = 1_400_000;
/// Other work, that is always there, runs that long at a time.
const OTHER_CHUNK_NS: u64 = 100_000;

/// The number of ksoftirqd among a processor's threads.
const KSOFTIRQD: u32 = u32::MAX;
/// That of other work.
const OTHER: u32 = u32::MAX - 1;

/// A thread, as its processor counts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thread {
    /// Time on a processor, from when it was woken not much less than that of others there.
    ran_ns: u64,
    /// Has it not run since it was woken?
    woken: bool,
    /// What is left of a chunk that softirqs interrupted.
    left_ns: u64,
}

/// What a processor turns to.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<J> {
    /// Nothing is to be done.
    Idle,
    /// It is busy, or away, as was said before.
    Busy,
    /// It is busy, or away, until then.
    Until(u64),
    /// A job of a softirq.
    Softirq(J),
    /// A thread's next chunk; does it come from another thread or from idling?
    Thread { thread: u32, switches: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Nothing,
    /// The hypervisor has the processor.
    Elsewhere,
    Softirq,
    Thread(u32),
}

/// A chunk that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Softirq,
    Thread(u32),
}

/// A processor. `J`: jobs of softirqs.
#[derive(Debug)]
pub struct Cpu<J> {
    softirqs: VecDeque<J>,
    /// Numbers of the threads that can run here.
    runnable: Vec<u32>,
    runs: Runs,
    until_ns: u64,
    /// The thread that ran last, if nothing else did since.
    last: Option<u32>,
    /// How long it has run since.
    stint_ns: u64,
    /// Does a thread that is woken interrupt the one that runs?
    wakeup_preemption: bool,
    /// Since when softirqs have had the processor without a pause.
    softirqs_since_ns: Option<u64>,
    ksoftirqd: Option<Thread>,
    /// Work that others have for this processor without end.
    other: Option<Thread>,
    steal: Option<Steal>,
    pub spent: Spent,
}

impl<J> Cpu<J> {
    /// `busy`: has somebody else work for it at all times?
    pub fn new(steal: Option<Steal>, busy: bool, wakeup_preemption: bool) -> Cpu<J> {
        Cpu {
            softirqs: VecDeque::new(),
            runnable: Vec::new(),
            runs: Runs::Nothing,
            until_ns: 0,
            last: None,
            stint_ns: 0,
            wakeup_preemption,
            softirqs_since_ns: None,
            ksoftirqd: None,
            other: busy.then(Thread::default),
            steal,
            spent: Spent::default(),
        }
    }

    /// Has it nothing to do?
    pub fn is_idle(&self) -> bool {
        self.runs == Runs::Nothing
            && self.softirqs.is_empty()
            && self.runnable.is_empty()
            && self.other.is_none()
    }

    /// The chunk that is done by now; it is told once.
    pub fn done(&mut self, now_ns: u64) -> Option<Done> {
        if self.until_ns > now_ns {
            return None;
        }
        match std::mem::replace(&mut self.runs, Runs::Nothing) {
            Runs::Softirq => Some(Done::Softirq),
            Runs::Thread(number) if number != OTHER => Some(Done::Thread(number)),
            _ => None,
        }
    }

    /// How long it has idled until now, at most since a time.
    pub fn rested_ns(&self, now_ns: u64, since_ns: u64) -> u64 {
        now_ns.saturating_sub(self.until_ns.max(since_ns))
    }

    /// It has polled for so long, and found nothing.
    pub fn polled(&mut self, ns: u64) {
        let mut bill = Bill::default();
        bill.charge_ns(Cost::Poll, ns);
        self.spent.pay(&bill, true);
    }

    /// How many jobs of softirqs wait.
    pub fn softirqs(&self) -> usize {
        self.softirqs.len()
    }

    /// The softirqs' jobs, for a final account.
    pub fn drain(&mut self) -> impl Iterator<Item = J> + '_ {
        self.softirqs.drain(..)
    }

    /// A softirq has a further job.
    pub fn raise(&mut self, job: J) {
        self.softirqs.push_back(job);
    }

    /// A softirq has a job to do before those that wait.
    pub fn raise_first(&mut self, job: J) {
        self.softirqs.push_front(job);
    }

    /// A thread can run here from now on.
    pub fn wake(&mut self, now_ns: u64, number: u32, threads: &mut [Thread]) {
        let least_ns = self.least_ran_ns(threads);
        let thread = &mut threads[number as usize];
        if let Some(least_ns) = least_ns {
            thread.ran_ns = thread.ran_ns.max(least_ns.saturating_sub(SLICE_NS));
        }
        thread.woken = true;
        self.runnable.push(number);
        if self.wakeup_preemption && self.runs == Runs::Thread(OTHER) {
            // Other work gives way at once.
            self.interrupt_other(now_ns);
            self.until_ns = now_ns;
            self.runs = Runs::Nothing;
        }
    }

    /// What is left to do of the chunk that it is at; what was to be stolen of that is not, if it ends now.
    fn left_ns(&mut self, now_ns: u64) -> u64 {
        let stolen_ns = match &mut self.steal {
            None => 0,
            Some(steal) => steal.within_ns(now_ns, self.until_ns),
        };
        self.spent.steal_ns -= stolen_ns;
        self.until_ns - now_ns - stolen_ns
    }

    /// Other work is interrupted; it has run for less than it was to.
    fn interrupt_other(&mut self, now_ns: u64) {
        let left_ns = self.left_ns(now_ns);
        self.spent.other_ns -= left_ns;
        self.stint_ns -= left_ns;
        if let Some(other) = &mut self.other {
            other.ran_ns -= left_ns;
        }
    }

    /// The thread has nothing left to do.
    pub fn sleep(&mut self, number: u32) {
        self.runnable.retain(|&other| other != number);
    }

    fn least_ran_ns(&self, threads: &[Thread]) -> Option<u64> {
        let of_threads = self.runnable.iter().map(|&number| threads[number as usize]);
        let all = of_threads.chain(self.ksoftirqd).chain(self.other);
        all.map(|thread| thread.ran_ns).min()
    }

    /// What it does now. Of softirqs a job is taken off their list, of threads nothing. A chunk that ends now ends with
    /// [`Cpu::done`], and nothing else begins before.
    pub fn next(&mut self, now_ns: u64, threads: &mut [Thread]) -> Next<J> {
        if self.until_ns > now_ns {
            let Runs::Thread(number) = self.runs else {
                return Next::Busy;
            };
            if self.softirqs.is_empty() || self.ksoftirqd.is_some() {
                return Next::Busy;
            }
            match number {
                OTHER => self.interrupt_other(now_ns),
                _ => threads[number as usize].left_ns = self.left_ns(now_ns),
            }
        } else if !matches!(self.runs, Runs::Nothing | Runs::Elsewhere) {
            return Next::Busy;
        }
        self.runs = Runs::Nothing;
        self.until_ns = now_ns;
        if let Some(steal) = &mut self.steal
            && let Some(end_ns) = steal.ends_ns(now_ns)
        {
            if !self.softirqs.is_empty() || !self.runnable.is_empty() || self.other.is_some() {
                self.spent.steal_ns += end_ns - now_ns;
                self.until_ns = end_ns;
                self.runs = Runs::Elsewhere;
                return Next::Until(end_ns);
            }
            return Next::Idle;
        }
        if self.softirqs.is_empty() {
            self.softirqs_since_ns = None;
            self.ksoftirqd = None;
        } else {
            let since_ns = *self.softirqs_since_ns.get_or_insert(now_ns);
            let waits = !self.runnable.is_empty() || self.other.is_some();
            if self.ksoftirqd.is_none() && waits && now_ns - since_ns >= MAX_SOFTIRQ_NS {
                let ran_ns = self.least_ran_ns(threads).unwrap_or(0);
                self.ksoftirqd = Some(Thread {
                    ran_ns,
                    ..Thread::default()
                });
            }
            if self.ksoftirqd.is_none() || self.turn(threads) == Some(KSOFTIRQD) {
                return match self.softirqs.pop_front() {
                    Some(job) => Next::Softirq(job),
                    None => Next::Idle,
                };
            }
        }
        match self.turn(threads) {
            None => {
                self.last = None;
                Next::Idle
            }
            Some(OTHER) => {
                self.switch_to(OTHER);
                self.stint_ns += OTHER_CHUNK_NS;
                if let Some(other) = &mut self.other {
                    other.ran_ns += OTHER_CHUNK_NS;
                }
                self.spent.other_ns += OTHER_CHUNK_NS;
                self.begin(now_ns, Runs::Thread(OTHER), OTHER_CHUNK_NS);
                Next::Until(self.until_ns)
            }
            Some(thread) => {
                let of_thread = &mut threads[thread as usize];
                of_thread.woken = false;
                let left_ns = std::mem::take(&mut of_thread.left_ns);
                let switches = self.switch_to(thread);
                if left_ns > 0 {
                    self.begin(now_ns, Runs::Thread(thread), left_ns);
                    return Next::Until(self.until_ns);
                }
                Next::Thread { thread, switches }
            }
        }
    }

    fn switch_to(&mut self, thread: u32) -> bool {
        let switches = self.last != Some(thread);
        if switches {
            self.stint_ns = 0;
        }
        self.last = Some(thread);
        switches
    }

    /// Whose turn it is among threads, ksoftirqd and other work.
    fn turn(&self, threads: &[Thread]) -> Option<u32> {
        let number_of = |&number: &u32| (number, threads[number as usize]);
        let ours = self.runnable.iter().map(number_of);
        let ksoftirqd = self.ksoftirqd.map(|thread| (KSOFTIRQD, thread));
        let other = self.other.map(|thread| (OTHER, thread));
        let all = || ours.clone().chain(ksoftirqd).chain(other);
        let (first, least) = all().min_by_key(|(_, thread)| thread.ran_ns)?;
        // Who runs goes on to the end of its slice, whoever was woken meanwhile, unless that interrupts it.
        let runs_on = self.stint_ns < SLICE_NS && !(self.wakeup_preemption && least.woken);
        let current = all().find(|&(number, _)| Some(number) == self.last);
        match current {
            Some((number, _)) if runs_on => Some(number),
            _ => Some(first),
        }
    }

    fn begin(&mut self, now_ns: u64, runs: Runs, ns: u64) {
        let (end_ns, stolen_ns) = match &mut self.steal {
            None => (now_ns + ns, 0),
            Some(steal) => steal.finish(now_ns, ns),
        };
        self.spent.steal_ns += stolen_ns;
        self.until_ns = end_ns;
        self.runs = runs;
    }

    /// A softirq's job has begun and costs that; returns when it is done.
    pub fn run_softirq(&mut self, now_ns: u64, bill: &Bill) -> u64 {
        self.spent.pay(bill, true);
        if let Some(ksoftirqd) = &mut self.ksoftirqd {
            ksoftirqd.ran_ns += bill.total_ns();
            self.switch_to(KSOFTIRQD);
            self.stint_ns += bill.total_ns();
        }
        self.begin(now_ns, Runs::Softirq, bill.total_ns());
        self.until_ns
    }

    /// A thread's chunk has begun and costs that; returns when it is done.
    pub fn run_thread(
        &mut self,
        now_ns: u64,
        number: u32,
        threads: &mut [Thread],
        bill: &Bill,
    ) -> u64 {
        self.spent.pay(bill, false);
        threads[number as usize].ran_ns += bill.total_ns();
        self.stint_ns += bill.total_ns();
        self.begin(now_ns, Runs::Thread(number), bill.total_ns());
        self.until_ns
    }
}

#[cfg(test)]
mod tests {
    use knee_units::rng::Stream;

    use super::*;
    use crate::costs::Cost;

    type Processor = Cpu<&'static str>;

    fn costing(ns: u64) -> Bill {
        let mut bill = Bill::default();
        bill.charge_ns(Cost::TcpSend, ns);
        bill
    }

    /// Lets threads that always have work, and softirqs whose next job is there at once, run until then; returns how long each
    /// thread and the softirqs ran.
    fn share(mut cpu: Processor, threads: u32, softirqs: bool, until_ns: u64) -> (Vec<u64>, u64) {
        let mut list = vec![Thread::default(); threads as usize];
        for number in 0..threads {
            cpu.wake(0, number, &mut list);
        }
        let (mut ran, mut in_softirqs, mut now_ns) = (vec![0; threads as usize], 0, 0);
        while now_ns < until_ns {
            cpu.done(now_ns);
            if softirqs && cpu.softirqs() == 0 {
                cpu.raise("job");
            }
            match cpu.next(now_ns, &mut list) {
                Next::Idle | Next::Busy => break,
                Next::Until(at_ns) => now_ns = at_ns,
                Next::Softirq(_) => {
                    in_softirqs += 20_000;
                    now_ns = cpu.run_softirq(now_ns, &costing(20_000));
                }
                Next::Thread { thread, .. } => {
                    ran[thread as usize] += 30_000;
                    now_ns = cpu.run_thread(now_ns, thread, &mut list, &costing(30_000));
                }
            }
        }
        (ran, in_softirqs)
    }

    #[test]
    fn a_softirq_interrupts_a_thread_which_goes_on_with_what_is_left() {
        let mut cpu = Processor::new(None, false, false);
        let mut threads = [Thread::default()];
        cpu.wake(0, 0, &mut threads);
        let first = Next::Thread {
            thread: 0,
            switches: true,
        };
        assert_eq!(cpu.next(0, &mut threads), first);
        assert_eq!(cpu.run_thread(0, 0, &mut threads, &costing(1_000)), 1_000);
        assert_eq!(cpu.next(400, &mut threads), Next::Busy);
        cpu.raise("packet");
        assert_eq!(cpu.next(400, &mut threads), Next::Softirq("packet"));
        assert_eq!(cpu.run_softirq(400, &costing(250)), 650);
        assert_eq!(cpu.next(650, &mut threads), Next::Busy);
        assert_eq!(cpu.done(650), Some(Done::Softirq));
        assert_eq!(cpu.next(650, &mut threads), Next::Until(1_250));
        assert_eq!(cpu.done(1_249), None);
        assert_eq!(cpu.done(1_250), Some(Done::Thread(0)));
        let on = Next::Thread {
            thread: 0,
            switches: false,
        };
        assert_eq!(cpu.next(1_250, &mut threads), on);
        cpu.sleep(0);
        assert!(cpu.is_idle());
    }

    #[test]
    fn threads_share_a_processor_evenly() {
        let (ran, _) = share(Processor::new(None, false, false), 3, false, 300_000_000);
        for ran_ns in ran {
            assert!(
                ran_ns.abs_diff(100_000_000) <= SLICE_NS + 30_000,
                "{ran_ns}"
            );
        }
    }

    #[test]
    fn softirqs_without_end_leave_threads_their_share() {
        let (ran, in_softirqs) = share(Processor::new(None, false, false), 1, true, 200_000_000);
        let half = 100_000_000;
        let tolerance = MAX_SOFTIRQ_NS + SLICE_NS + 30_000;
        assert!(ran[0].abs_diff(half) <= tolerance, "{ran:?}");
        assert!(in_softirqs.abs_diff(half) <= tolerance, "{in_softirqs}");
        // Alone they have it all, and ksoftirqd is not needed.
        let (_, in_softirqs) = share(Processor::new(None, false, false), 0, true, 200_000_000);
        assert_eq!(in_softirqs, 200_000_000);
    }

    #[test]
    fn who_runs_keeps_its_slice_unless_a_wake_up_interrupts_it() {
        for wakeup_preemption in [false, true] {
            let mut cpu = Processor::new(None, false, wakeup_preemption);
            let mut threads = [Thread::default(); 2];
            cpu.wake(0, 0, &mut threads);
            assert!(matches!(
                cpu.next(0, &mut threads),
                Next::Thread { thread: 0, .. }
            ));
            cpu.run_thread(0, 0, &mut threads, &costing(1_000));
            cpu.wake(500, 1, &mut threads);
            cpu.done(1_000);
            let second = Next::Thread {
                thread: u32::from(wakeup_preemption),
                switches: wakeup_preemption,
            };
            assert_eq!(cpu.next(1_000, &mut threads), second);
        }
    }

    #[test]
    fn other_work_takes_its_share_and_gives_way_to_who_is_woken() {
        let (ran, _) = share(Processor::new(None, true, false), 1, false, 200_000_000);
        assert!(ran[0].abs_diff(100_000_000) <= 2 * SLICE_NS, "{ran:?}");
        let mut cpu = Processor::new(None, true, true);
        let mut threads = [Thread::default()];
        assert_eq!(cpu.next(0, &mut threads), Next::Until(OTHER_CHUNK_NS));
        cpu.wake(10, 0, &mut threads);
        assert!(matches!(
            cpu.next(10, &mut threads),
            Next::Thread { thread: 0, .. }
        ));
    }

    #[test]
    fn stolen_time_is_nobodys() {
        let steal = || Steal::new(0.5, 1_000_000, Stream::new(1, "steal"), 0);
        let (ran, _) = share(
            Processor::new(Some(steal()), false, false),
            1,
            false,
            1_000_000_000,
        );
        let share = ran[0] as f64 / 1e9;
        assert!((share - 0.5).abs() < 0.02, "{share}");
        let mut cpu = Processor::new(Some(steal()), false, false);
        let begin_ns = (0..10_000_000)
            .step_by(1_000)
            .find(|&now_ns| steal().ends_ns(now_ns).is_some());
        let begin_ns = begin_ns.expect("half of the time is stolen");
        assert_eq!(cpu.next(begin_ns, &mut []), Next::Idle);
        cpu.raise("packet");
        let Next::Until(end_ns) = cpu.next(begin_ns, &mut []) else {
            panic!("it is away");
        };
        assert_eq!(cpu.next(end_ns, &mut []), Next::Softirq("packet"));
    }

    /// Softirqs interrupt other work and a thread again and again, also while the processor is away: each moment is spent
    /// once, whoever has it.
    #[test]
    fn each_moment_is_spent_once() {
        for wakeup_preemption in [false, true] {
            let mut draws = Stream::new(3, "interrupts");
            let steal = Steal::new(0.3, 40_000, Stream::new(1, "steal"), 0);
            let mut cpu = Processor::new(Some(steal), true, wakeup_preemption);
            let mut threads = [Thread::default()];
            let (mut now_ns, mut free_ns, mut raised, mut runnable) = (0, 0, 0, false);
            while now_ns < 300_000_000 {
                if cpu.done(now_ns) == Some(Done::Thread(0)) {
                    cpu.sleep(0);
                    runnable = false;
                }
                match cpu.next(now_ns, &mut threads) {
                    Next::Idle | Next::Busy => {}
                    Next::Until(at_ns) => free_ns = at_ns,
                    Next::Softirq(_) => {
                        raised -= 1;
                        free_ns = cpu.run_softirq(now_ns, &costing(3_000));
                    }
                    Next::Thread { .. } => {
                        free_ns = cpu.run_thread(now_ns, 0, &mut threads, &costing(30_000));
                    }
                }
                let arrives_ns = now_ns + 1 + (draws.next_share() * 50_000.0) as u64;
                if free_ns > now_ns && free_ns <= arrives_ns {
                    now_ns = free_ns;
                    continue;
                }
                now_ns = arrives_ns;
                if raised == 0 {
                    cpu.raise("packet");
                    raised = 1;
                }
                if !runnable && draws.next_share() < 0.2 {
                    cpu.wake(now_ns, 0, &mut threads);
                    runnable = true;
                }
            }
            let spent_ns = cpu.spent.busy_ns() + cpu.spent.other_ns + cpu.spent.steal_ns;
            let (least_ns, most_ns) = (now_ns, now_ns + OTHER_CHUNK_NS + 80_000);
            assert!(
                (least_ns..=most_ns).contains(&spent_ns),
                "{spent_ns} of {now_ns}, {wakeup_preemption}"
            );
            let shares = [cpu.spent.busy_ns(), cpu.spent.other_ns, cpu.spent.steal_ns];
            assert!(shares.iter().all(|&ns| ns > now_ns / 20), "{shares:?}");
        }
    }
}
