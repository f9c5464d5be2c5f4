//! What each parser of foreign bytes claims for every input, and what searches
//! for one that breaks it.
//!
//! A [`Target`] is one parser: samples to begin with and a check that panics where
//! a claim does not hold. Two things run it: the test of this crate, on samples,
//! findings and some thousand damaged samples; and `make fuzz`, where libFuzzer
//! looks for inputs that reach new code (`docs/ci.md`).

pub mod guard;
pub mod mutate;
mod targets;

use peak_alloc::PeakAlloc;

pub use targets::TARGETS;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Longest input that is tried: several datagrams of netlink, or a page of lines.
pub const INPUT_BYTES: usize = 16 << 10;

/// A parser under search.
pub struct Target {
    pub name: &'static str,
    pub about: &'static str,
    /// Real samples, and what reaches code that they do not.
    pub seeds: &'static (dyn Fn() -> Vec<Vec<u8>> + Sync),
    /// Words of its language, which chance alone finds late.
    pub words: &'static [&'static str],
    /// Panics where a claim does not hold. Returns the bytes of memory that the
    /// parser may have held at once for such an input.
    pub check: &'static (dyn Fn(&[u8]) -> usize + Sync),
}

impl Target {
    /// Checks one input; the most memory that was held at once for it, bytes.
    ///
    /// # Panics
    /// A claim does not hold, or it took more memory than the parser may.
    pub fn run(&self, input: &[u8]) -> usize {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let allowed = (self.check)(input);
        let peak = MEMORY.peak_usage().saturating_sub(before);
        assert!(
            peak <= allowed,
            "{}: {peak} bytes of memory for an input of {}; expected at most {allowed}",
            self.name,
            input.len()
        );
        peak
    }
}
