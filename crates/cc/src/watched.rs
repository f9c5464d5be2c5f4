//! Calls of algorithms from files, which may be anything: each is taken down before it is made, and looked at after it.

use std::ptr;

use crate::contract::{CcIn, CcInfo, CcOut};

/// Words around what an op may write.
pub(crate) const MARGIN: usize = 8;
const UNTOUCHED: [u64; MARGIN] = [0x6b6e_6565_7c5a_31c3; MARGIN];

/// The blocks of a call, and where the caller has what they held before it.
#[repr(C)]
#[derive(Debug)]
pub struct Call {
    before: [u64; MARGIN],
    shown: CcIn,
    between: [u64; MARGIN],
    changed: CcOut,
    behind: [u64; MARGIN],
    told: CcInfo,
    last: [u64; MARGIN],
    given: *const CcIn,
    given_out: *const CcOut,
    state: Vec<u64>,
}

// SAFETY: the pointers are followed only while the call that gave them is under way, by its thread.
unsafe impl Send for Call {}

impl Call {
    pub(crate) fn new() -> Call {
        Call {
            before: UNTOUCHED,
            shown: CcIn::default(),
            between: UNTOUCHED,
            changed: CcOut::default(),
            behind: UNTOUCHED,
            told: CcInfo::default(),
            last: UNTOUCHED,
            given: ptr::null(),
            given_out: ptr::null(),
            // The most that cc.h allows, so that no call takes memory.
            state: Vec::with_capacity(256),
        }
    }

    /// Takes down what a call is about to be given. The caller holds both blocks until it has looked at the result,
    /// which is compared with them.
    #[inline]
    pub(crate) fn take_down(&mut self, input: &CcIn, out: &CcOut, state: &[u64]) {
        (self.given, self.shown) = (input, *input);
        (self.given_out, self.changed) = (out, *out);
        self.state.clear();
        self.state.extend_from_slice(state);
    }

    /// What the stack showed.
    ///
    /// # Safety
    /// The call is under way, or its result was not used yet.
    pub unsafe fn input(&self) -> &CcIn {
        unsafe { &*self.given }
    }

    /// What the op might change, as it was.
    ///
    /// # Safety
    /// As of [`input`](Call::input).
    pub unsafe fn out(&self) -> &CcOut {
        unsafe { &*self.given_out }
    }

    /// The algorithm's memory, as it was.
    pub fn state(&self) -> &[u64] {
        &self.state
    }

    /// The blocks that the op gets.
    pub(crate) fn blocks(&mut self) -> (*const CcIn, *mut CcOut) {
        (&raw const self.shown, &raw mut self.changed)
    }

    /// The blocks that `get_info` gets.
    pub(crate) fn blocks_of_info(&mut self) -> (*const CcIn, *mut CcInfo) {
        self.told = CcInfo::default();
        (&raw const self.shown, &raw mut self.told)
    }

    /// What the op changed; or what it did that it may not, and then all is as before.
    #[inline]
    pub(crate) fn result(&mut self, input: &CcIn, memory: &[u64]) -> Result<CcOut, &'static str> {
        self.kept_to_its_own(input, memory)?;
        // SAFETY: the caller holds it.
        match self.changed.snd_cwnd == 0 && unsafe { self.out() }.snd_cwnd != 0 {
            true => Err("left a window of 0 segments"),
            false => Ok(self.changed),
        }
    }

    /// The same of `get_info`.
    pub(crate) fn result_of_info(
        &mut self,
        input: &CcIn,
        memory: &[u64],
    ) -> Result<CcInfo, &'static str> {
        self.kept_to_its_own(input, memory)?;
        Ok(self.told)
    }

    #[inline]
    fn kept_to_its_own(&mut self, input: &CcIn, memory: &[u64]) -> Result<(), &'static str> {
        let margins = [&self.before, &self.between, &self.behind, &self.last];
        let around = [&memory[..MARGIN], &memory[memory.len() - MARGIN..]];
        let what = if words(&self.shown) != words(input) {
            "changed what the stack shows, which is read only"
        } else if margins.iter().any(|margin| **margin != UNTOUCHED) {
            "wrote outside of what it may change"
        } else if around.iter().any(|margin| **margin != UNTOUCHED) {
            "wrote outside of its state"
        } else {
            return Ok(());
        };
        (self.before, self.between) = (UNTOUCHED, UNTOUCHED);
        (self.behind, self.last) = (UNTOUCHED, UNTOUCHED);
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
    unsafe { std::slice::from_raw_parts(ptr::from_ref(block).cast(), WORDS) }
}

/// Memory for a state of so many words, with margins.
pub(crate) fn memory(words: usize) -> Box<[u64]> {
    let mut memory = UNTOUCHED.to_vec();
    memory.resize(MARGIN + words, 0);
    memory.extend(UNTOUCHED);
    memory.into_boxed_slice()
}
