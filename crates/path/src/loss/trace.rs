//! Loss packet by packet, as a file says: to repeat what was recorded, or to
//! lose just the packets that a test is about.

use std::sync::Arc;

use knee_units::files::{FileError, Files, lines};
use knee_units::parse::quoted;
use knee_units::text::TextError;
use serde::Serialize;

use super::{Loss, LossKind, LossSpec, Pattern};

pub(super) const KIND: LossKind = LossKind {
    name: "trace",
    summary: "packets are lost as a file says: 0 and 1 (lost) for one packet each, from the beginning again at the end, or the numbers of the packets lost, from 1; 0 and 1 alone are numbers where no word begins with 0",
    source: "tcpknee",
    example: "trace losses.txt",
    read,
    build: |spec, _| {
        let Pattern::Sequence(sequence) = &spec.pattern else {
            unreachable!("a loss of this kind is a sequence")
        };
        Box::new(Trace {
            sequence: sequence.clone(),
            at: 0,
        })
    },
};

/// Most packets that a file may speak of.
const MOST_PACKETS: usize = 100_000_000;

/// The fate of each packet, in order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sequence {
    /// As the scenario names it.
    #[serde(skip)]
    pub file: String,
    lost: Vec<bool>,
    /// Begins anew at its end; else nothing is lost from there on.
    repeats: bool,
}

fn read(name: &str, files: Files<'_>) -> Result<LossSpec, TextError> {
    if name.is_empty() {
        return Err(TextError::Form);
    }
    let sequence = files
        .parsed(name, |path, found| Sequence::parse(name, path, &found.text))
        .map_err(TextError::File)?;
    let lost = sequence.lost.iter().filter(|lost| **lost).count();
    Ok(LossSpec {
        kind: KIND.name,
        share: lost as f64 / sequence.lost.len() as f64,
        pattern: Pattern::Sequence(Arc::new(sequence)),
    })
}

impl Sequence {
    /// Nothing but 0 and 1, together or apart, is a sequence if one of the words begins with 0, as no number does; anything
    /// else has to be numbers.
    fn parse(name: &str, path: &str, text: &str) -> Result<Sequence, FileError> {
        let words = || lines(text).flat_map(|(_, line)| line.split_whitespace());
        let mut bits = words().flat_map(str::bytes);
        let repeats =
            words().any(|word| word.starts_with('0')) && bits.all(|bit| matches!(bit, b'0' | b'1'));
        let lost = if repeats {
            words()
                .flat_map(str::bytes)
                .map(|bit| bit == b'1')
                .collect()
        } else {
            numbers(path, text)?
        };
        if lost.is_empty() {
            return Err(FileError::Content {
                file: path.into(),
                line: None,
                got: "it is empty".into(),
                expected: "a 0 or 1 per packet, or numbers of lost packets".into(),
            });
        }
        Ok(Sequence {
            file: name.into(),
            lost,
            repeats,
        })
    }
}

fn numbers(path: &str, text: &str) -> Result<Vec<bool>, FileError> {
    let mut lost = Vec::new();
    for (line, words) in lines(text) {
        for word in words.split_whitespace() {
            let number = word.parse::<usize>().ok();
            let Some(number) = number.filter(|n| (lost.len() + 1..=MOST_PACKETS).contains(n))
            else {
                return Err(FileError::Content {
                    file: path.into(),
                    line: Some(line),
                    got: format!("got {} behind {}", quoted(word), lost.len()),
                    expected: format!(
                        "the number of a packet from 1 to {MOST_PACKETS}; numbers rise"
                    ),
                });
            };
            lost.resize(number - 1, false);
            lost.push(true);
        }
    }
    Ok(lost)
}

struct Trace {
    sequence: Arc<Sequence>,
    at: usize,
}

impl Loss for Trace {
    #[inline]
    fn lose(&mut self) -> bool {
        let Some(&lost) = self.sequence.lost.get(self.at) else {
            return false;
        };
        self.at += 1;
        if self.sequence.repeats && self.at == self.sequence.lost.len() {
            self.at = 0;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use knee_units::rng::Stream;

    use super::*;

    fn fate(text: &str, packets: usize) -> String {
        let sequence = Sequence::parse("t", "t", text).unwrap();
        let spec = LossSpec {
            kind: "trace",
            share: 1.0,
            pattern: Pattern::Sequence(Arc::new(sequence)),
        };
        let mut process = spec.build(Stream::new(1, "loss")).unwrap();
        (0..packets)
            .map(|_| if process.lose() { '1' } else { '0' })
            .collect()
    }

    #[test]
    fn bits_repeat_and_numbers_do_not() {
        for (text, fates) in [
            ("0 1\n# twice\n001\n", "010010100101"),
            ("0001000", "000100000010"),
            ("1\n0\n0\n", "100100100100"),
            ("100 001", "100001100001"),
            ("0", "000000000000"),
            ("2 5", "010010000000"),
            // Of 0 and 1 alone, but no word begins with 0.
            ("10", "000000000100"),
            ("1", "100000000000"),
            ("1 10\n11\n100 101\n", "100000000110"),
        ] {
            assert_eq!(fate(text, 12), fates, "{text}");
        }
    }

    #[test]
    fn number_out_of_order_is_refused_with_its_line() {
        let error = Sequence::parse("t", "lab/t", "3\n\n7 # a comment\n5\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "lab/t:4: got \"5\" behind 7; expected the number of a packet from 1 to 100000000; numbers rise."
        );
    }
}
