//! Sets of processors, in the two ways in which Linux' tools write them.

use std::fmt::Write as _;

use serde::Serialize;

/// Processors that a kernel can have (Linux, arch/x86/Kconfig, NR_CPUS).
const MOST_CPUS: u32 = 8_192;
/// Bits of each part of a mask (Linux, lib/bitmap-str.c, CHUNKSZ).
const CHUNK_BITS: u32 = 32;

/// Numbers of processors, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpus(Vec<u32>);

impl Cpus {
    /// One processor.
    pub fn of(number: u32) -> Cpus {
        Cpus(vec![number])
    }

    /// As taskset and /sys/devices/system/cpu write it: `0`, `0-1,4`. `None`: it is no such list.
    pub fn of_list(text: &str) -> Option<Cpus> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            numbers.extend(first..=last);
        }
        numbers.sort_unstable();
        numbers.dedup();
        Some(Cpus(numbers))
    }

    /// As sysfs writes a mask: `3`, `ff,00000000`. `None`: it is no such mask.
    pub fn of_mask(text: &str) -> Option<Cpus> {
        let mut numbers = Vec::new();
        for (from, chunk) in (0..)
            .step_by(CHUNK_BITS as usize)
            .zip(text.split(',').rev())
        {
            let digits = (1..=8).contains(&chunk.len());
            if !digits || !chunk.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let bits = u32::from_str_radix(chunk, 16).ok()?;
            numbers.extend(
                (0..CHUNK_BITS)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| from + bit),
            );
        }
        let fits = numbers.last().is_none_or(|&last| last < MOST_CPUS);
        fits.then_some(Cpus(numbers))
    }

    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    /// `0-1,4`.
    pub fn list(&self) -> String {
        let mut text = String::new();
        for run in self.0.chunk_by(|one, next| one + 1 == *next) {
            let comma = if text.is_empty() { "" } else { "," };
            let _ = match *run {
                [only] => write!(text, "{comma}{only}"),
                _ => write!(text, "{comma}{}-{}", run[0], run[run.len() - 1]),
            };
        }
        text
    }

    /// `ff,00000000`; of none `0`.
    pub fn mask(&self) -> String {
        let chunks = self.0.last().map_or(0, |last| last / CHUNK_BITS);
        let bits = |chunk: u32| {
            let inside = self.0.iter().filter(|&&cpu| cpu / CHUNK_BITS == chunk);
            inside.fold(0u32, |bits, cpu| bits | 1 << (cpu % CHUNK_BITS))
        };
        let mut text = format!("{:x}", bits(chunks));
        for chunk in (0..chunks).rev() {
            let _ = write!(text, ",{:08x}", bits(chunk));
        }
        text
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    (number < MOST_CPUS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_taskset_does() {
        for (text, numbers, written) in [
            ("0", &[0][..], "0"),
            ("0-1,4", &[0, 1, 4], "0-1,4"),
            ("4,1,0,1-2", &[0, 1, 2, 4], "0-2,4"),
            ("8191", &[8_191], "8191"),
        ] {
            let cpus = Cpus::of_list(text).unwrap();
            assert_eq!((cpus.numbers(), &cpus.list()[..]), (numbers, written));
        }
        for text in [
            "",
            "a",
            "1-",
            "-1",
            "+1",
            "2-1",
            "1,,2",
            "0 1",
            "8192",
            "0-9999999999",
        ] {
            assert_eq!(Cpus::of_list(text), None, "{text}");
        }
    }

    #[test]
    fn masks_are_read_and_written_as_sysfs_does() {
        for (text, list, written) in [
            ("0", "", "0"),
            ("3", "0-1", "3"),
            ("00F", "0-3", "f"),
            ("ff,00000000", "32-39", "ff,00000000"),
            ("1,80000001", "0,31-32", "1,80000001"),
        ] {
            let cpus = Cpus::of_mask(text).unwrap();
            assert_eq!((&cpus.list()[..], &cpus.mask()[..]), (list, written));
        }
        for text in ["", "0x3", "g", "123456789", "1,", "+1", " 1"] {
            assert_eq!(Cpus::of_mask(text), None, "{text}");
        }
        assert_eq!(
            Cpus::of_mask(&format!("1{}", ",00000000".repeat(256))),
            None
        );
    }
}
