//! A processor that has one job at most: it begins with what comes, and idles after it.

use super::{Cpu, Runs};
use crate::costs::Cost;

impl<J> Cpu<J> {
    /// Has it nothing to do but the current job, of a softirq or of that thread, and does nobody else take the processor?
    #[inline(always)]
    pub fn has_only(&self, thread: Option<u32>) -> bool {
        // While a thread is at a chunk it can run.
        debug_assert!(thread.is_none_or(|number| self.runnable.contains(&number)));
        self.wanting == u32::from(thread.is_some())
    }

    /// Its only job is done: it idles from now on.
    #[inline(always)]
    pub fn rest(&mut self) {
        self.runs = Runs::Nothing;
        self.runnable.clear();
        self.wanting = 0;
        self.last = None;
        self.softirqs_since_ns = None;
        self.rounds = 0;
    }

    /// A job is done, of a softirq or of that thread, which has no other. If nobody else has one it idles. Returns whether it
    /// does.
    #[inline]
    pub fn rests(&mut self, thread: Option<u32>) -> bool {
        let rests = self.runs == Runs::Nothing && self.has_only(thread);
        if rests {
            self.rest();
        }
        rests
    }

    /// Does it idle, and can nobody else take it?
    #[inline]
    pub fn is_free(&self) -> bool {
        self.runs == Runs::Nothing && self.has_only(None)
    }

    /// Can a softirq's job that comes now begin at once? Then the caller begins it, and is told how long the processor has idled.
    #[inline]
    pub fn begins_at_once(&mut self, now_ns: u64) -> Option<u64> {
        self.is_free().then(|| self.begin_at_once(now_ns))
    }

    /// It idles, and a softirq's job begins. Returns how long it has idled.
    #[inline(always)]
    pub fn begin_at_once(&mut self, now_ns: u64) -> u64 {
        self.softirqs_since_ns.get_or_insert(now_ns);
        self.stop_idling(now_ns)
    }

    /// Can a thread that is woken now run at once, on a processor that no thread had last? Then the caller begins it, and is told
    /// how long the processor has idled.
    #[inline]
    pub fn begins_thread_at_once(&mut self, now_ns: u64, number: u32) -> Option<u64> {
        let begins = self.is_free() && self.last.is_none();
        begins.then(|| self.begin_thread(now_ns, number))
    }

    /// It idles, and a thread that is woken now runs on it. Returns how long it has idled.
    #[inline(always)]
    pub fn begin_thread(&mut self, now_ns: u64, number: u32) -> u64 {
        self.softirqs_since_ns = None;
        self.rounds = 0;
        self.runnable.push(number);
        self.wanting = 1;
        (self.last, self.stint_ns) = (Some(number), 0);
        self.stop_idling(now_ns)
    }

    #[inline]
    fn stop_idling(&mut self, now_ns: u64) -> u64 {
        now_ns - std::mem::replace(&mut self.until_ns, now_ns)
    }

    /// Since when softirqs have had it without a pause.
    pub fn softirqs_since_ns(&self) -> u64 {
        self.softirqs_since_ns.unwrap_or(self.until_ns)
    }

    /// How long it has idled until now.
    #[inline]
    pub fn rested_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.until_ns)
    }

    /// It has polled for `ns` until now, and found nothing.
    pub fn polled(&mut self, now_ns: u64, ns: u64) {
        self.until_ns = now_ns;
        self.spent.on(Cost::Poll, ns * 1_000);
    }
}
