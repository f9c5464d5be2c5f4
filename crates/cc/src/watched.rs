//! Calls of algorithms from files, which may be anything: each is taken down before it is made, and looked at after it.

use std::sync::OnceLock;

use crate::contract::{CcIn, CcOut};
use crate::under_way::UnderWay;

/// Words around what an op may write.
pub(crate) const MARGIN: usize = 8;
const UNTOUCHED: [u64; MARGIN] = [0x6b6e_6565_7c5a_31c3; MARGIN];

/// The blocks of a call, and what they held before it.
#[repr(C)]
#[derive(Debug)]
pub struct Call {
    before: [u64; MARGIN],
    shown: CcIn,
    between: [u64; MARGIN],
    changed: CcOut,
    behind: [u64; MARGIN],
    /// What the stack showed.
    pub input: CcIn,
    /// What the op might change.
    pub out: CcOut,
    /// The algorithm's memory.
    pub state: Vec<u64>,
}

impl Call {
    pub(crate) fn new() -> Call {
        Call {
            before: UNTOUCHED,
            shown: CcIn::default(),
            between: UNTOUCHED,
            changed: CcOut::default(),
            behind: UNTOUCHED,
            input: CcIn::default(),
            out: CcOut::default(),
            // The most that cc.h allows, so that no call takes memory.
            state: Vec::with_capacity(256),
        }
    }

    /// Takes down what a call is about to be given.
    #[inline]
    pub(crate) fn take_down(&mut self, input: &CcIn, out: &CcOut, state: &[u64]) {
        (self.shown, self.input) = (*input, *input);
        (self.changed, self.out) = (*out, *out);
        self.state.clear();
        self.state.extend_from_slice(state);
    }

    /// The blocks that the op gets.
    pub(crate) fn blocks(&mut self) -> (*const CcIn, *mut CcOut) {
        (&raw const self.shown, &raw mut self.changed)
    }

    /// What the op changed; or what it did that it may not, and then all is as before.
    #[inline]
    pub(crate) fn result(&mut self, memory: &[u64]) -> Result<CcOut, &'static str> {
        let margins = [&self.before, &self.between, &self.behind];
        let around = [&memory[..MARGIN], &memory[memory.len() - MARGIN..]];
        let what = if words(&self.shown) != words(&self.input) {
            "changed what the stack shows, which is read only"
        } else if margins.iter().any(|margin| **margin != UNTOUCHED) {
            "wrote outside of what it may change"
        } else if around.iter().any(|margin| **margin != UNTOUCHED) {
            "wrote outside of its state"
        } else if self.changed.snd_cwnd == 0 && self.out.snd_cwnd != 0 {
            "left a window of 0 segments"
        } else {
            return Ok(self.changed);
        };
        (self.before, self.between, self.behind) = (UNTOUCHED, UNTOUCHED, UNTOUCHED);
        Err(what)
    }
}

/// The block as the words that it consists of: they are compared at once, and its many fields are not.
fn words(block: &CcIn) -> &[u32] {
    const WORDS: usize =
        (std::mem::offset_of!(CcIn, rcv_nxt) + size_of::<u32>()) / size_of::<u32>();
    const {
        assert!(
            size_of::<CcIn>() - size_of::<u32>() * WORDS < 8,
            "rcv_nxt is the last field"
        )
    };
    // SAFETY: the fields are integers without a hole between them, up to the last of them.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(block).cast(), WORDS) }
}

/// Memory for a state of so many words, with margins.
pub(crate) fn memory(words: usize) -> Box<[u64]> {
    let mut memory = UNTOUCHED.to_vec();
    memory.resize(MARGIN + words, 0);
    memory.extend(UNTOUCHED);
    memory.into_boxed_slice()
}

type OnBreach = fn(&UnderWay, &'static str);

static ON_BREACH: OnceLock<OnBreach> = OnceLock::new();

/// Has `told` called when an algorithm did what it may not, with the call that did it under way; it may end the process.
pub fn on_breach(told: OnBreach) {
    let _ = ON_BREACH.set(told);
}

#[cold]
pub(crate) fn breached(under_way: &UnderWay, what: &'static str) -> ! {
    if let Some(told) = ON_BREACH.get() {
        told(under_way, what);
    }
    let name = under_way
        .call()
        .map(|(algorithm, function, _)| (algorithm.name(), function));
    panic!("{name:?} {what}");
}
