//! Which way a branch goes nearly always. Code for the other way is laid out apart, so that what runs for each packet lies
//! in one piece and jumps over nothing. This changes nothing but how long a run takes.

/// Calls of what is cold are what a compiler takes for unlikely.
#[cold]
#[inline]
const fn seldom() {}

/// A condition that hardly ever holds.
#[inline(always)]
pub const fn unlikely(condition: bool) -> bool {
    match condition {
        true => {
            seldom();
            true
        }
        false => false,
    }
}

/// A condition that hardly ever fails.
#[inline(always)]
pub const fn likely(condition: bool) -> bool {
    match condition {
        true => true,
        false => {
            seldom();
            false
        }
    }
}
