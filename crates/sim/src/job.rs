//! What processors do for connections, and what comes of it.

use crate::event::EndpointId;
use crate::napi::Cause;

/// What a softirq has to do.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// Polls a receive queue.
    Poll {
        queue: u32,
        cause: Cause,
    },
    /// A packet goes up the stack.
    Up(Up),
    Timer(EndpointId),
    /// The qdisc lets go what is due.
    Transmit(EndpointId),
    /// A transmit queue reports what it has sent.
    Report(u32),
    /// So many bytes of an end have left, which it may replace.
    Freed(EndpointId, u32),
}

/// A packet on its way up the stack.
#[derive(Clone, Copy, Debug)]
pub struct Up {
    pub to: EndpointId,
    /// Of the segment, in the slab.
    pub handle: u32,
    pub from: Came,
    /// The queue whose poll is over when this packet is up.
    pub ends_poll: Option<u32>,
}

/// Where a packet comes from that goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// From the poll at work.
    Poll,
    /// Out of the processor's backlog.
    Backlog {
        /// Does it start the backlog's softirq, and does that take an interrupt from another processor?
        starts: bool,
        by_ipi: bool,
    },
}

/// What comes of a job when it is done.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Most jobs have one effect at most.
    first: Option<Effect>,
    others: Vec<Effect>,
    /// After them.
    pub last: Last,
}

impl Outcome {
    #[inline]
    pub fn push(&mut self, effect: Effect) {
        match self.first {
            None => self.first = Some(effect),
            Some(_) => self.others.push(effect),
        }
    }

    /// Does anything come of it, besides what is over?
    #[inline]
    pub fn has_effects(&self) -> bool {
        self.first.is_some()
    }

    /// Has it one effect at most, that gives its own processor nothing to do at once but to run a thread?
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.others.is_empty() && !matches!(self.first, Some(Effect::Raise(..)))
    }

    /// The thread that can run, if that is its first effect, which comes.
    #[inline(always)]
    pub fn take_wake(&mut self) -> Option<u32> {
        let Some(Effect::Wake(thread)) = self.first else {
            return None;
        };
        self.first = None;
        Some(thread)
    }

    /// What was sent, if that is its first effect, which comes. In parts: as a whole it is slow to load, since it was just written
    /// in parts.
    #[inline(always)]
    pub fn take_sent(&mut self) -> Option<(EndpointId, u32, Option<u64>)> {
        let Some(Effect::Sent(from, handle, held)) = self.first else {
            return None;
        };
        self.first = None;
        Some((from, handle, held))
    }

    /// Its first effect, which comes.
    #[inline(always)]
    pub fn take_first(&mut self) -> Option<Effect> {
        self.first.take()
    }

    /// The job is done: its first effect, and what is over. The next job may begin before these have come.
    #[inline(always)]
    pub fn come(&mut self) -> (Option<Effect>, Last) {
        (self.first.take(), std::mem::take(&mut self.last))
    }

    /// Its other effects, if there are any.
    #[inline(always)]
    pub fn others(&mut self) -> Option<Vec<Effect>> {
        (!self.others.is_empty()).then(|| std::mem::take(&mut self.others))
    }

    /// The list of a job's other effects, emptied, for the next one. Where that has begun already it has another list.
    pub fn give_back(&mut self, others: Vec<Effect>) {
        if self.others.capacity() == 0 {
            self.others = others;
        }
    }

    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.first.iter().chain(&self.others)
    }
}

/// Part of what comes of a job.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// An end has sent that, which the qdisc held back then if it has a time.
    Sent(EndpointId, u32, Option<u64>),
    /// The qdisc has let it go.
    Released(EndpointId, u32),
    /// A thread can run.
    Wake(u32),
    /// Another processor has a job.
    Raise(u32, Job),
}

/// What is over with a job.
#[derive(Clone, Copy, Debug, Default)]
pub enum Last {
    #[default]
    Nothing,
    /// A queue's poll.
    Polled(u32),
    /// An application's turn, which gives its socket's lock back.
    Unlock(EndpointId),
}
