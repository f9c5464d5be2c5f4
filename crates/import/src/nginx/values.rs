//! What nginx writes for numbers, seconds, times, lists and texts.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use chrono::DateTime;

use super::format::Escape;

/// nginx writes `-` for what it does not have (an empty text with escape=json).
pub fn is_absent(value: &[u8]) -> bool {
    value.is_empty() || value == b"-"
}

/// Does a value stand where nginx writes one address? Names of sockets and what
/// clients say of themselves begin as words do.
pub fn is_address(value: &[u8]) -> bool {
    value.starts_with(b"unix:")
        || std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// A whole number.
pub fn integer(value: &[u8]) -> Option<i64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0i64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + i64::from(byte - b'0'))
    })
}

const TENS: [i64; 10] = [
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

/// Seconds with a decimal fraction, exactly, in units of `10^-digits` s.
/// Further digits of the fraction are cut off; `digits` is at most 9.
pub fn seconds(value: &[u8], digits: usize) -> Option<i64> {
    let point = memchr::memchr(b'.', value).unwrap_or(value.len());
    let whole = integer(&value[..point])?;
    let fraction = value.get(point + 1..).unwrap_or(b"");
    let kept = &fraction[..fraction.len().min(digits)];
    let part = match kept {
        [] => 0,
        kept => integer(kept)?.checked_mul(TENS[digits - kept.len()])?,
    };
    if fraction.iter().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    whole.checked_mul(TENS[digits])?.checked_add(part)
}

/// The sum over a list of several servers (", " within a group, " : " between
/// groups), without those that have no value; `None` within: none of them has.
///
/// The outer `None`: an entry is not understood.
pub fn sum(value: &[u8], one: impl Fn(&[u8]) -> Option<i64>) -> Option<Option<i64>> {
    let mut total = None;
    for entry in value.split(|&byte| matches!(byte, b',' | b':')) {
        let entry = entry.trim_ascii();
        if is_absent(entry) {
            continue;
        }
        total = Some(one(entry)?.checked_add(total.unwrap_or(0))?);
    }
    Some(total)
}

/// A line that stands for itself: of each of its values [`text`] would be the value.
pub fn plain(line: &[u8], escape: Escape) -> Option<&str> {
    if has_escape(line, escape) {
        return None;
    }
    std::str::from_utf8(line).ok()
}

fn has_escape(text: &[u8], escape: Escape) -> bool {
    escape != Escape::None && memchr::memchr(b'\\', text).is_some()
}

/// A text, with the format's escapes undone; bytes that are no UTF-8 become U+FFFD.
pub fn text(value: &[u8], escape: Escape) -> Cow<'_, str> {
    if !has_escape(value, escape) {
        return String::from_utf8_lossy(value);
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let taken = match escape {
            Escape::Json => unescape_json(rest, &mut bytes),
            _ => unescape_hex(rest, &mut bytes),
        };
        if taken == 0 {
            bytes.push(b'\\');
        }
        rest = &rest[taken.max(1)..];
    }
    bytes.extend_from_slice(rest);
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes `\xHH`. Returns how many bytes it took; 0 if `rest` begins with no such escape.
fn unescape_hex(rest: &[u8], bytes: &mut Vec<u8>) -> usize {
    match rest {
        [b'\\', b'x', high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                4
            }
            _ => 0,
        },
        _ => 0,
    }
}

/// Decodes one escape of a JSON string. Returns how many bytes it took; 0 if `rest` begins with none.
fn unescape_json(rest: &[u8], bytes: &mut Vec<u8>) -> usize {
    let plain = match rest.get(1) {
        Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'b') => 8,
        Some(b'f') => 12,
        // nginx writes other bytes below 32 as \u00HH and nothing else so.
        Some(b'u') => {
            let Some(code) = rest.get(2..6).and_then(|digits| {
                digits
                    .iter()
                    .try_fold(0, |code, &digit| Some(code << 4 | hex(digit)?))
            }) else {
                return 0;
            };
            let char = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            return 6;
        }
        _ => return 0,
    };
    bytes.push(plain);
    2
}

fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

/// The request line's method, target and protocol; of one that is not of three
/// words the whole is the target. It is split before escapes are undone: what
/// they stand for is no space of the line.
pub fn request(line: &[u8]) -> [Option<Range<usize>>; 3] {
    let ends = (memchr::memchr(b' ', line), memchr::memrchr(b' ', line));
    match ends {
        (Some(first), Some(last)) if first < last && line[last + 1..].starts_with(b"HTTP/") => [
            Some(0..first),
            Some(first + 1..last),
            Some(last + 1..line.len()),
        ],
        _ => [None, Some(0..line.len()), None],
    }
}

/// Times as text. Lines of one second are read once.
#[derive(Debug, Default)]
pub struct Clock {
    text: Vec<u8>,
    t_unix_ns: i64,
}

impl Clock {
    /// `$time_local`: `21/Nov/2026:10:00:00 +0100`.
    pub fn local(&mut self, value: &[u8]) -> Option<i64> {
        self.read(value, "%d/%b/%Y:%H:%M:%S %z")
    }

    /// `$time_iso8601`: `2026-11-21T10:00:00+01:00`.
    pub fn iso(&mut self, value: &[u8]) -> Option<i64> {
        self.read(value, "%Y-%m-%dT%H:%M:%S%:z")
    }

    fn read(&mut self, value: &[u8], form: &str) -> Option<i64> {
        if self.text != value {
            let text = std::str::from_utf8(value).ok()?;
            let parsed = DateTime::parse_from_str(text, form).ok()?;
            self.t_unix_ns = parsed.timestamp_nanos_opt()?;
            self.text.clear();
            self.text.extend_from_slice(value);
        }
        Some(self.t_unix_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_by_itself() {
        for address in [
            "192.0.2.7",
            "2001:db8::1",
            "::ffff:192.0.2.7",
            "unix:",
            "unix:/run/a",
        ] {
            assert!(is_address(address.as_bytes()), "{address}");
        }
        for other in [
            "<190>x: 192.0.2.7",
            "12:192.0.2.7",
            "access.log:192.0.2.7",
            "",
            "web1",
        ] {
            assert!(!is_address(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn seconds_are_exact_in_the_unit_asked_for() {
        assert_eq!(seconds(b"0.123", 6), Some(123_000));
        assert_eq!(seconds(b"12", 6), Some(12_000_000));
        assert_eq!(
            seconds(b"1766311200.037", 9),
            Some(1_766_311_200_037_000_000)
        );
        assert_eq!(seconds(b"0.1234567", 6), Some(123_456));
        for odd in [&b""[..], b"-", b".5", b"1.5s", b"-1", b"99999999999999.0"] {
            assert_eq!(seconds(odd, 9), None, "{}", String::from_utf8_lossy(odd));
        }
    }

    #[test]
    fn sum_over_upstreams_leaves_out_those_that_did_not_answer() {
        let us = |value: &[u8]| sum(value, |one| seconds(one, 6));
        assert_eq!(us(b"0.001, - : 0.002"), Some(Some(3_000)));
        assert_eq!(us(b"-"), Some(None));
        assert_eq!(us(b"0.001, x"), None);
    }

    #[test]
    fn escapes_of_the_format_are_undone() {
        assert_eq!(text(br"a\x22\x5C\xE2\x82\xAC", Escape::Default), "a\"\\€");
        assert_eq!(text(br"a\xZZ\", Escape::Default), r"a\xZZ\");
        assert_eq!(
            text(br#"a\"\\\n\u001f\q"#, Escape::Json),
            "a\"\\\n\u{1f}\\q"
        );
        assert_eq!(text(br"a\x22", Escape::None), r"a\x22");
    }

    #[test]
    fn request_line_of_three_words_has_method_path_and_protocol() {
        let parts = |line: &'static str| {
            request(line.as_bytes()).map(|part| part.map_or("-", |range| &line[range]))
        };
        assert_eq!(parts("GET /a b?c HTTP/1.1"), ["GET", "/a b?c", "HTTP/1.1"]);
        assert_eq!(parts("\u{16}\u{3}"), ["-", "\u{16}\u{3}", "-"]);
        assert_eq!(parts("GET HTTP/1.1"), ["-", "GET HTTP/1.1", "-"]);
        assert_eq!(parts("GET /"), ["-", "GET /", "-"]);
    }

    #[test]
    fn both_spellings_of_a_time_give_the_same_nanosecond() {
        let mut clock = Clock::default();
        let local = clock.local(b"21/Nov/2026:11:00:00 +0100").unwrap();
        assert_eq!(clock.iso(b"2026-11-21T10:00:00+00:00"), Some(local));
        assert_eq!(local, 1_795_255_200 * 1_000_000_000);
        assert_eq!(clock.local(b"yesterday"), None);
    }
}
