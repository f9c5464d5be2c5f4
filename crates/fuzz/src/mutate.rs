//! Damages samples as their writers, carriers and newer versions do: bits, lengths,
//! numbers, lines, words, repeats, truncations, splices.

use std::ops::Range;

use knee_units::rng::Stream;

/// Numbers at which something overflows, ends or is not set.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "00",
    "1e999",
    "1e-9",
    "0.5",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
];
const BYTES: [u8; 16] = [
    0, 1, 9, b'\n', b'\r', b' ', b'"', b'$', b',', b':', b'\\', b'[', 0x7f, 0x80, 0xc3, 0xff,
];
const WORDS: [u32; 10] = [
    0,
    1,
    3,
    4,
    15,
    16,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

/// A damaged copy of `input`, of at most `most` bytes: the same for the same seed.
/// `other` is spliced in; `words` are of the input's language.
pub fn mutate(seed: u64, input: &[u8], other: &[u8], words: &[&str], most: usize) -> Vec<u8> {
    let mut damage = Damage {
        random: Stream::new(seed, "fuzz"),
        bytes: input.to_vec(),
    };
    for _ in 0..=damage.below(4) {
        damage.once(other, words);
        damage.bytes.truncate(most);
    }
    damage.bytes
}

struct Damage {
    random: Stream,
    bytes: Vec<u8>,
}

impl Damage {
    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A place in the input, its end included.
    fn place(&mut self) -> usize {
        self.below(self.bytes.len() + 1)
    }

    /// Some bytes, short ones more often than long ones; may be none.
    fn range(&mut self) -> Range<usize> {
        let from = self.place();
        let longest = 1 << self.below(11);
        let to = from + self.below(longest + 1);
        from..to.min(self.bytes.len())
    }

    fn insert(&mut self, at: usize, bytes: &[u8]) {
        self.bytes.splice(at..at, bytes.iter().copied());
    }

    fn once(&mut self, other: &[u8], words: &[&str]) {
        match self.below(14) {
            0 if !self.bytes.is_empty() => {
                let at = self.below(self.bytes.len());
                self.bytes[at] ^= 1 << self.below(8);
            }
            1 if !self.bytes.is_empty() => {
                let at = self.below(self.bytes.len());
                self.bytes[at] = self.one(&BYTES);
            }
            2 => {
                let range = self.range();
                self.bytes.drain(range);
            }
            3 => {
                let (range, at) = (self.range(), self.place());
                let copied = self.bytes[range].to_vec();
                let times = 1 << self.below(6);
                self.insert(at, &copied.repeat(times));
            }
            4 => {
                let end = self.place();
                self.bytes.truncate(end);
            }
            5 => {
                let at = self.place();
                let (byte, length) = (self.one(&BYTES), 1 << self.below(13));
                self.insert(at, &vec![byte; length]);
            }
            6 if !other.is_empty() => {
                let (at, from) = (self.place(), self.below(other.len()));
                self.bytes.truncate(at);
                self.bytes.extend_from_slice(&other[from..]);
            }
            7 | 8 if !words.is_empty() => {
                let (range, word) = (self.range(), self.one(words));
                let end = range.start + self.below(2) * range.len();
                self.bytes.splice(range.start..end, word.bytes());
            }
            9 => self.number(),
            10 => self.lines(),
            11 => self.word(),
            12 => self.length(),
            _ => self.grow(),
        }
    }

    /// Replaces a decimal number.
    fn number(&mut self) {
        let from = self.place();
        let is_digit = u8::is_ascii_digit;
        let Some(from) = self.bytes[from..]
            .iter()
            .position(is_digit)
            .map(|at| from + at)
        else {
            return;
        };
        let length = self.bytes[from..].iter().take_while(|byte| is_digit(byte));
        let range = from..from + length.count();
        let number = self.one(&NUMBERS);
        self.bytes.splice(range, number.bytes());
    }

    /// Moves, repeats or leaves out whole lines.
    fn lines(&mut self) {
        let mut lines: Vec<&[u8]> = self.bytes.split(|&byte| byte == b'\n').collect();
        let random = &mut self.random;
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        let (a, b) = (below(lines.len()), below(lines.len()));
        match below(3) {
            0 => lines.swap(a, b),
            1 => lines.insert(b, lines[a]),
            _ => drop(lines.remove(a)),
        }
        self.bytes = lines.join(&b'\n');
    }

    /// Writes a word of a binary struct, where words stand.
    fn word(&mut self) {
        let at = self.place() & !1;
        let (word, length) = (self.one(&WORDS).to_ne_bytes(), 2 << self.below(2));
        if let Some(place) = self.bytes.get_mut(at..at + length) {
            place.copy_from_slice(&word[..length]);
        }
    }

    /// Changes what may be an attribute's length by a little.
    fn length(&mut self) {
        let Some((at, length)) = self.attribute() else {
            return;
        };
        let by = self.below(17) as u16;
        let changed = length.wrapping_add(by).wrapping_sub(8);
        self.bytes[at..at + 2].copy_from_slice(&changed.to_ne_bytes());
    }

    /// Makes what may be an attribute longer or shorter with its bytes and its
    /// message, as a newer or an older kernel does.
    fn grow(&mut self) {
        let Some((at, length)) = self.attribute() else {
            return;
        };
        let end = at + usize::from(length);
        let by = 4 * (1 + self.below(8));
        let longer = self.below(2) == 0;
        let (changed, moved) = if longer {
            let filling = self.one(&BYTES);
            self.insert(end, &vec![filling; by]);
            (length.wrapping_add(by as u16), by as u32)
        } else {
            let by = by.min(usize::from(length) - 4);
            self.bytes.drain(end - by..end);
            (length - by as u16, (by as u32).wrapping_neg())
        };
        self.bytes[at..at + 2].copy_from_slice(&changed.to_ne_bytes());
        if let Some(message) = self.bytes.first_chunk_mut::<4>() {
            *message = u32::from_ne_bytes(*message)
                .wrapping_add(moved)
                .to_ne_bytes();
        }
    }

    /// Where a length stands that could be an attribute's, and the length.
    fn attribute(&mut self) -> Option<(usize, u16)> {
        let from = self.place() & !3;
        (from..self.bytes.len()).step_by(4).find_map(|at| {
            let length = u16::from_ne_bytes(*self.bytes.get(at..)?.first_chunk()?);
            let fits = length >= 4 && at + usize::from(length) <= self.bytes.len();
            fits.then_some((at, length))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"ESTAB 0 36 10.0.0.1:443\n\tcubic rto:204\n";

    #[test]
    fn same_seed_gives_the_same_damage_and_others_give_others() {
        let of = |seed| mutate(seed, TEXT, TEXT, &["bbr"], 4_096);
        assert_eq!(of(7), of(7));
        let different: std::collections::HashSet<_> = (0..1_000).map(of).collect();
        assert!(different.len() > 800, "{}", different.len());
    }

    #[test]
    fn no_damage_is_longer_than_asked_for() {
        assert!((0..2_000).all(|seed| mutate(seed, TEXT, TEXT, &[], 64).len() <= 64));
        assert!((0..2_000).all(|seed| mutate(seed, b"", b"", &[], 64).len() <= 64));
    }

    #[test]
    fn attribute_made_longer_still_ends_where_it_says() {
        let mut message = 28_u32.to_ne_bytes().to_vec();
        message.resize(16, 0xff);
        message.extend_from_slice(&[12, 0, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let found = (0..500).any(|seed| {
            let mut damage = Damage {
                random: Stream::new(seed, "fuzz"),
                bytes: message.clone(),
            };
            damage.grow();
            let length = |at: usize| usize::from(damage.bytes[at]);
            damage.bytes.len() > 28
                && length(0) == damage.bytes.len()
                && length(16) == damage.bytes.len() - 16
                && damage.bytes[20..28] == message[20..28]
        });
        assert!(found);
    }
}
