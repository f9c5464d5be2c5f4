//! One processor: what it runs, what waits for it, and whose turn it is.
//!
//! Work comes in chunks that are not divided: a poll, an skb's way up, a connection's turn in its application. Softirqs run
//! before threads and interrupt them; once they have kept the processor for too long, or have started again too often, they are
//! ksoftirqd's, which shares it with the threads as one of them (Linux, kernel/softirq.c: MAX_SOFTIRQ_TIME,
//! MAX_SOFTIRQ_RESTART). Threads share fairly: who has run least is next. Who runs keeps its slice, also from who is woken
//! (EEVDF's RUN_TO_PARITY, Linux 6.6 on, without its lag: docs/host.md), unless `wakeup_preemption` says otherwise, as
//! CFS did before (Linux, kernel/sched/fair.c).

mod alone;

use std::collections::VecDeque;

use crate::bundles::{BUNDLES, Bundle};
use crate::costs::{Cost, Costs};
use crate::spent::Spent;
use crate::steal::Steal;

/// After that long softirqs are ksoftirqd's: MAX_SOFTIRQ_TIME, 2 ms.
const MAX_SOFTIRQ_NS: u64 = 2_000_000;
/// And after this many rounds of polls: MAX_SOFTIRQ_RESTART.
const MAX_SOFTIRQ_ROUNDS: u32 = 10;
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
    /// What is left of a thread's chunk that was interrupted, until then.
    Rest { thread: u32, until_ns: u64 },
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
    /// Rounds of polls since then that left something to poll.
    rounds: u32,
    ksoftirqd: Option<Thread>,
    /// Work that others have for this processor without end.
    other: Option<Thread>,
    steal: Option<Steal>,
    /// How many want the processor: jobs of softirqs that wait, threads that can run, ksoftirqd, and one more if it has other
    /// work or the hypervisor takes it away.
    wanting: u32,
    costs: Costs,
    /// What each bundle costs, ps.
    bundles_ps: [u64; BUNDLES],
    /// What the current job has cost so far.
    job_ps: u64,
    spent: Spent,
}

impl<J> Cpu<J> {
    /// It has idled until now. `busy`: has somebody else work for it at all times?
    pub fn new(
        costs: Costs,
        steal: Option<Steal>,
        busy: bool,
        wakeup_preemption: bool,
        now_ns: u64,
    ) -> Cpu<J> {
        Cpu {
            softirqs: VecDeque::new(),
            runnable: Vec::new(),
            runs: Runs::Nothing,
            until_ns: now_ns,
            last: None,
            stint_ns: 0,
            wakeup_preemption,
            softirqs_since_ns: None,
            rounds: 0,
            ksoftirqd: None,
            other: busy.then(Thread::default),
            wanting: u32::from(busy || steal.is_some()),
            steal,
            bundles_ps: Bundle::ALL.map(|bundle| bundle.ps(&costs)),
            costs,
            job_ps: 0,
            spent: Spent::default(),
        }
    }

    /// Charges the current job for `count` operations, or for one operation on `count` bytes.
    #[inline]
    pub fn charge(&mut self, cost: Cost, count: u64) {
        self.charge_ps(cost, self.costs.ps(cost) * count);
    }

    /// Charges the current job for `count` times all operations of a bundle.
    #[inline]
    pub fn charge_bundle(&mut self, bundle: Bundle, count: u64) {
        self.spent.on_bundle(bundle, count);
        self.job_ps += self.bundles_ps[bundle as usize] * count;
    }

    /// How many of a bundle it was charged for.
    pub fn bundled(&self, bundle: Bundle) -> u64 {
        self.spent.bundled(bundle)
    }

    /// What it has spent, each operation of a bundle by itself.
    pub fn spent(&self) -> Spent {
        self.spent.unbundled(&self.costs)
    }

    /// Charges the current job for time that no profile has, such as an application's own.
    #[inline]
    pub fn charge_ns(&mut self, cost: Cost, ns: u64) {
        self.charge_ps(cost, ns * 1_000);
    }

    #[inline]
    fn charge_ps(&mut self, cost: Cost, ps: u64) {
        self.spent.on(cost, ps);
        self.job_ps += ps;
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

    /// When its last chunk ends, or has ended.
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// How many jobs of softirqs wait.
    pub fn softirqs(&self) -> usize {
        self.softirqs.len()
    }

    /// The softirqs' jobs, for a final account.
    pub fn drain(&mut self) -> impl Iterator<Item = J> + '_ {
        self.wanting -= self.softirqs.len() as u32;
        self.softirqs.drain(..)
    }

    /// A round of polls is over and another one follows, for which softirqs start again.
    pub fn polls_again(&mut self) {
        self.rounds += 1;
    }

    /// Do further jobs of softirqs wait?
    #[inline]
    pub fn has_softirqs(&self, is_it: impl Fn(&J) -> bool) -> bool {
        !self.softirqs.is_empty() && self.softirqs.iter().any(is_it)
    }

    /// What the current job has cost so far, ns.
    pub fn job_ns(&self) -> u64 {
        self.job_ps / 1_000
    }

    /// A softirq has a further job.
    pub fn raise(&mut self, job: J) {
        self.wanting += 1;
        self.softirqs.push_back(job);
    }

    /// A softirq has a job to do before those that wait.
    pub fn raise_first(&mut self, job: J) {
        self.wanting += 1;
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
        self.wanting += 1;
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
        let before = self.runnable.len();
        self.runnable.retain(|&other| other != number);
        self.wanting -= (before - self.runnable.len()) as u32;
    }

    fn least_ran_ns(&self, threads: &[Thread]) -> Option<u64> {
        let of_threads = self.runnable.iter().map(|&number| threads[number as usize]);
        let all = of_threads.chain(self.ksoftirqd).chain(self.other);
        all.map(|thread| thread.ran_ns).min()
    }

    /// The thread whose chunk it is at.
    pub fn thread(&self) -> Option<u32> {
        match self.runs {
            Runs::Thread(number) if number != OTHER => Some(number),
            _ => None,
        }
    }

    /// The thread whose chunk ends later than now, since softirqs interrupt it.
    pub fn interrupted(&self, now_ns: u64) -> Option<u32> {
        let is_under_way = self.until_ns > now_ns && !self.goes_on(now_ns);
        self.thread().filter(|_| is_under_way)
    }

    /// Is it at something, or away, that nothing interrupts?
    #[inline]
    pub fn goes_on(&self, now_ns: u64) -> bool {
        let is_interrupted = matches!(self.runs, Runs::Thread(_))
            && !self.softirqs.is_empty()
            && self.ksoftirqd.is_none();
        self.until_ns > now_ns && !is_interrupted
    }

    /// What it does now. Of softirqs a job is taken off their list, of threads nothing. A chunk that ends now ends with
    /// [`Cpu::done`], and nothing else begins before.
    pub fn next(&mut self, now_ns: u64, threads: &mut [Thread]) -> Next<J> {
        if self.goes_on(now_ns) {
            return Next::Busy;
        }
        if self.until_ns > now_ns
            && let Runs::Thread(number) = self.runs
        {
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
            self.rounds = 0;
            self.wanting -= u32::from(self.ksoftirqd.take().is_some());
        } else {
            let since_ns = *self.softirqs_since_ns.get_or_insert(now_ns);
            let waits = !self.runnable.is_empty() || self.other.is_some();
            let is_long = now_ns - since_ns >= MAX_SOFTIRQ_NS || self.rounds >= MAX_SOFTIRQ_ROUNDS;
            if self.ksoftirqd.is_none() && waits && is_long {
                let ran_ns = self.least_ran_ns(threads).unwrap_or(0);
                self.wanting += 1;
                self.ksoftirqd = Some(Thread {
                    ran_ns,
                    ..Thread::default()
                });
            }
            if self.ksoftirqd.is_none() || self.turn(threads) == Some(KSOFTIRQD) {
                let Some(job) = self.softirqs.pop_front() else {
                    return Next::Idle;
                };
                self.wanting -= 1;
                return Next::Softirq(job);
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
                    let until_ns = self.until_ns;
                    return Next::Rest { thread, until_ns };
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
    #[inline]
    fn turn(&self, threads: &[Thread]) -> Option<u32> {
        let alone = self.ksoftirqd.is_none() && self.other.is_none();
        match &self.runnable[..] {
            [] if alone => None,
            &[only] if alone => Some(only),
            _ => self.turn_among_several(threads),
        }
    }

    fn turn_among_several(&self, threads: &[Thread]) -> Option<u32> {
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

    /// Something begins that takes so long, and longer if the hypervisor takes its part of it.
    #[inline(never)]
    fn begin(&mut self, now_ns: u64, runs: Runs, ns: u64) {
        self.begin_alone(now_ns, runs, ns);
        if let Some(steal) = &mut self.steal {
            let (end_ns, stolen_ns) = steal.finish(now_ns, ns);
            self.spent.steal_ns += stolen_ns;
            self.until_ns = end_ns;
        }
    }

    /// The same where nobody takes the processor away.
    #[inline(always)]
    fn begin_alone(&mut self, now_ns: u64, runs: Runs, ns: u64) {
        (self.until_ns, self.runs) = (now_ns + ns, runs);
    }

    /// A softirq's job has begun, which costs what was charged; returns when it is done.
    #[inline(always)]
    pub fn run_softirq(&mut self, now_ns: u64) -> u64 {
        let ns = self.end_job() / 1_000;
        match self.wanting > 0 {
            true => self.run_softirq_among(now_ns, ns),
            false => self.begin_alone(now_ns, Runs::Softirq, ns),
        }
        self.until_ns
    }

    #[inline(never)]
    fn run_softirq_among(&mut self, now_ns: u64, ns: u64) {
        if let Some(ksoftirqd) = &mut self.ksoftirqd {
            ksoftirqd.ran_ns += ns;
            self.switch_to(KSOFTIRQD);
            self.stint_ns += ns;
        }
        self.begin(now_ns, Runs::Softirq, ns);
    }

    /// A thread's chunk has begun, which costs what was charged; returns when it is done.
    #[inline(always)]
    pub fn run_thread(&mut self, now_ns: u64, number: u32, threads: &mut [Thread]) -> u64 {
        let ps = self.end_job();
        self.spent.in_thread(ps);
        let ns = ps / 1_000;
        threads[number as usize].ran_ns += ns;
        self.stint_ns += ns;
        // It is one of those who want the processor.
        match self.wanting > 1 {
            true => self.begin(now_ns, Runs::Thread(number), ns),
            false => self.begin_alone(now_ns, Runs::Thread(number), ns),
        }
        self.until_ns
    }

    /// All has been charged that the job does; returns what that is, ps.
    #[inline]
    fn end_job(&mut self) -> u64 {
        std::mem::take(&mut self.job_ps)
    }
}

#[cfg(test)]
mod tests;
