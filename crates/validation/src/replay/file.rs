//! Recordings as files: a line that says of what, then the records.
//!
//! A record holds what changed since the one before it of the same flow, in words of 32 bits: the flow, the step
//! of its number, the op, which words changed (a mask of the bytes of a mask), and their differences. All are
//! integers of 7 bits per byte, lowest first. `out` is stored as its difference from what the op was shown.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use super::op_record::{OUT_AT, OpRecord, WORDS};

const MAGIC: &str = "tcpknee-recording 3";
/// The longest first line that is read in search of the magic.
const LINE_BYTES: u64 = 256;
const MASK_BYTES: usize = WORDS.div_ceil(8);

/// What a reader or a writer remembers of a flow.
struct Flow {
    next: u32,
    words: [u32; WORDS],
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            next: 0,
            words: [0; WORDS],
        }
    }
}

/// The words that stand for "nothing changed": the flow's last ones, and an op that does nothing.
fn predict(last: &[u32; WORDS], input_of: &OpRecord) -> [u32; WORDS] {
    let before = OpRecord {
        out: input_of.out_before(),
        ..OpRecord::default()
    };
    let mut words = *last;
    let out = &before.words()[OUT_AT..WORDS - 1];
    words[OUT_AT..WORDS - 1].copy_from_slice(out);
    words
}

/// Writes a recording.
pub struct Writer<W: Write> {
    to: W,
    flows: HashMap<u64, Flow>,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording of the kernel's `algorithm` (our name of it), made on the kernel `release`.
    pub fn new(mut to: W, algorithm: &str, release: &str) -> io::Result<Self> {
        writeln!(to, "{MAGIC} {algorithm} {release}")?;
        Ok(Writer {
            to,
            flows: HashMap::new(),
            buffer: Vec::new(),
        })
    }

    /// Adds a record. Those of one flow come in the order of their numbers.
    pub fn write(&mut self, record: &OpRecord) -> io::Result<()> {
        let flow = self.flows.entry(record.flow).or_default();
        let words = record.words();
        let predicted = predict(&flow.words, record);
        let mut mask = [0u8; MASK_BYTES];
        for i in 0..WORDS {
            if words[i] != predicted[i] {
                mask[i / 8] |= 1 << (i % 8);
            }
        }
        let mask_of_mask = (0..MASK_BYTES).fold(0, |m, i| m | u64::from(mask[i] != 0) << i);

        self.buffer.clear();
        put(&mut self.buffer, record.flow);
        put(
            &mut self.buffer,
            u64::from(record.number.wrapping_sub(flow.next)),
        );
        put(&mut self.buffer, u64::from(record.raw_op));
        put(&mut self.buffer, mask_of_mask);
        self.buffer.extend(mask.iter().filter(|&&byte| byte != 0));
        for i in 0..WORDS {
            if words[i] != predicted[i] {
                put(
                    &mut self.buffer,
                    zigzag(words[i].wrapping_sub(predicted[i])),
                );
            }
        }
        flow.next = record.number.wrapping_add(1);
        flow.words = words;
        self.to.write_all(&self.buffer)
    }

    /// Ends the recording; where it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Reads a recording, record by record.
pub struct Reader<R: BufRead> {
    from: R,
    algorithm: String,
    release: String,
    flows: HashMap<u64, Flow>,
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line. Anything but a recording is an error of kind `InvalidData`.
    pub fn new(mut from: R) -> io::Result<Self> {
        let mut line = Vec::new();
        io::Read::take(&mut from, LINE_BYTES).read_until(b'\n', &mut line)?;
        let line = String::from_utf8_lossy(&line);
        let Some((algorithm, release)) = line
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.trim().split_once(' '))
        else {
            return Err(invalid(format!(
                "begins with {:?}, expected \"{MAGIC} ALGORITHM RELEASE\": is it a recording of this version?",
                line.chars().take(60).collect::<String>()
            )));
        };
        Ok(Reader {
            algorithm: algorithm.to_owned(),
            release: release.to_owned(),
            from,
            flows: HashMap::new(),
        })
    }

    /// The algorithm recorded, by our name of it.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }

    /// The kernel recorded, as `uname -r` names it.
    pub fn release(&self) -> &str {
        &self.release
    }

    fn read(&mut self) -> io::Result<Option<OpRecord>> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let id = take(&mut self.from)?;
        let step = take(&mut self.from)? as u32;
        let raw_op = take(&mut self.from)? as u32;
        let mask_of_mask = take(&mut self.from)?;
        if mask_of_mask >> MASK_BYTES != 0 {
            return Err(invalid(format!(
                "a record of flow {id} names words that no record has: the file is damaged"
            )));
        }
        let mut mask = [0u8; MASK_BYTES];
        for (i, byte) in mask.iter_mut().enumerate() {
            if mask_of_mask >> i & 1 == 1 {
                self.from.read_exact(std::slice::from_mut(byte))?;
            }
        }
        let flow = self.flows.entry(id).or_default();
        let number = flow.next.wrapping_add(step);
        let mut words = flow.words;
        let mut change = |words: &mut [u32; WORDS], range: std::ops::Range<usize>| {
            for i in range {
                if mask[i / 8] >> (i % 8) & 1 == 1 {
                    words[i] = words[i].wrapping_add(unzigzag(take(&mut self.from)?));
                }
            }
            io::Result::Ok(())
        };
        // What `out` is predicted from must be there first.
        change(&mut words, 0..OUT_AT)?;
        words = predict(&words, &OpRecord::from_words(id, number, raw_op, &words));
        change(&mut words, OUT_AT..WORDS)?;
        flow.words = words;
        flow.next = number.wrapping_add(1);
        Ok(Some(OpRecord::from_words(id, number, raw_op, &words)))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<OpRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Small differences of either sign become small numbers.
fn zigzag(difference: u32) -> u64 {
    let d = difference.cast_signed();
    u64::from(((d << 1) ^ (d >> 31)).cast_unsigned())
}

fn unzigzag(z: u64) -> u32 {
    let z = z as u32;
    (z >> 1) ^ (z & 1).wrapping_neg()
}

fn put(to: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        to.push(x as u8 | 0x80);
        x >>= 7;
    }
    to.push(x as u8);
}

fn take(from: &mut impl BufRead) -> io::Result<u64> {
    let mut x = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = 0;
        from.read_exact(std::slice::from_mut(&mut byte))?;
        x |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(x);
        }
    }
    Err(invalid(
        "a number of more than 64 bits: the file is damaged".to_owned(),
    ))
}
