//! Memory that will be needed soon.

/// Bytes of a cache line of x86-64 processors.
const LINE_BYTES: usize = 64;

/// Asks the processor to bring a value into its cache, and does not wait for it. This changes nothing but how long a run takes;
/// processors other than x86-64 are not asked.
#[inline(always)]
pub fn fetch<T: ?Sized>(value: &T) {
    fetch_until(value, size_of_val(value));
}

/// The same of what begins at a place, if anything does: of its first bytes.
#[inline(always)]
pub fn fetch_at<T>(begin: *const T) {
    fetch_line(begin.cast());
}

/// The same of its first `bytes` bytes.
#[inline(always)]
pub fn fetch_until<T: ?Sized>(value: &T, bytes: usize) {
    let begin = std::ptr::from_ref(value).cast::<i8>();
    for offset in (0..bytes).step_by(LINE_BYTES) {
        fetch_line(begin.wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fetch_line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch neither reads nor writes as far as a program can tell, and ignores addresses that it may not read.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch_line(_at: *const i8) {}
