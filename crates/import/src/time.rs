//! When a dump was taken: from lines that `date` printed and from file names.
//!
//! A time with an offset, `Z`, `UTC` or `GMT` says its zone. One without a zone
//! is in the zone that the user gave, by default UTC. Other abbreviations mean
//! different things in different countries: they are taken for the user's zone
//! when one was given, and not understood otherwise.

use chrono::{NaiveDate, NaiveTime};

use super::Given;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// What may stand before a time.
const NAMES: [&str; 4] = ["Time", "time", "Date", "date"];
/// Epochs from 2001 to 2286 have ten digits; other numbers are no times.
const EPOCH_DIGITS: usize = 10;

/// What a text says of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since 1970.
    At(i64),
    /// In a zone of that name, which means several; the user said none.
    In(String),
    /// Without its year, or without its day.
    Short,
}

impl Moment {
    pub fn ns(&self) -> Option<i64> {
        match self {
            Moment::At(ns) => Some(*ns),
            _ => None,
        }
    }
}

/// Nanoseconds since 1970 of a line that holds a time and nothing else, besides
/// punctuation around it and words as in `date: …`. `None`: no such line.
pub fn line(text: &str, zone_s: Option<i32>) -> Option<i64> {
    moment(text, zone_s)?.ns()
}

/// As [`line`], of times too that do not say all.
pub fn moment(text: &str, zone_s: Option<i32>) -> Option<Moment> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "#=-*[]".contains(c));
    if text.len() > 64 || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = text
        .split_once(": ")
        .filter(|(word, _)| NAMES.contains(word));
    if let Some(ns) = epoch(number.map_or(text, |(_, number)| number.trim_start())) {
        return Some(Moment::At(ns));
    }
    let mut when = When::default();
    // ISO 8601 joins date and time by T; a T within a word is no joint.
    let mut text = match text.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => text.replacen('T', " ", 1),
        _ => text.to_owned(),
    };
    // `date -Ins` has a comma before the fraction of a second.
    let is_fraction = |at: usize| {
        let (before, behind) = (&text.as_bytes()[..at], &text.as_bytes()[at + 1..]);
        matches!(before, [.., b':', _, _]) && behind.first().is_some_and(u8::is_ascii_digit)
    };
    if let Some(at) = text.find(',').filter(|at| is_fraction(*at)) {
        text.replace_range(at..=at, ".");
    }
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        when.take(word)?;
    }
    when.moment(zone_s)
}

/// The time in a file's name: `ss-20260821T120000.txt`, `20260821-120000`,
/// `2026-08-21_12:00:00`, `ss.1787313600.gz`.
pub fn name(name: &str, zone_s: Option<i32>) -> Option<i64> {
    let mut digits = String::new();
    let mut runs = Vec::new();
    for c in name.chars().chain([' ']) {
        if c.is_ascii_digit() {
            digits.push(c);
        } else if !digits.is_empty() {
            runs.push((std::mem::take(&mut digits), c));
        }
    }
    if let Some(ns) = runs.iter().find_map(|(run, _)| epoch(run)) {
        return Some(ns);
    }
    // Date and time as one run of digits, however they were separated.
    for from in 0..runs.len() {
        let mut all = String::new();
        for (run, after) in &runs[from..] {
            all.push_str(run);
            if all.len() == 14 && all.starts_with("20") {
                let part = |a: usize, b: usize| all[a..b].parse::<u32>().ok();
                let date =
                    NaiveDate::from_ymd_opt(part(0, 4)?.cast_signed(), part(4, 6)?, part(6, 8)?);
                let time = NaiveTime::from_hms_opt(part(8, 10)?, part(10, 12)?, part(12, 14)?);
                let zone_s = if *after == 'Z' {
                    0
                } else {
                    zone_s.unwrap_or(0)
                };
                if let (Some(date), Some(time)) = (date, time) {
                    return date
                        .and_time(time)
                        .and_utc()
                        .timestamp_nanos_opt()?
                        .checked_sub(i64::from(zone_s) * 1_000_000_000);
                }
            }
        }
    }
    None
}

/// Seconds since 1970, or milliseconds, microseconds or nanoseconds as a whole number.
fn epoch(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 || !whole.starts_with('1') {
        return None;
    }
    let scale = match whole.len() {
        EPOCH_DIGITS => 1_000_000_000,
        13 => 1_000_000,
        16 => 1_000,
        19 => 1,
        _ => return None,
    };
    if scale != 1_000_000_000 && !fraction.is_empty() {
        return None;
    }
    let fraction = format!("{fraction:0<9}").parse::<i64>().ok()?;
    whole
        .parse::<i64>()
        .ok()?
        .checked_mul(scale)?
        .checked_add(fraction)
}

#[derive(Default)]
struct When {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    time: Option<NaiveTime>,
    afternoon: Option<bool>,
    offset_s: Option<i32>,
    /// A zone whose name is not one of the unambiguous ones.
    named: Option<String>,
}

impl When {
    /// `None`: the word is of no time.
    fn take(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        let start = lower.get(..3).unwrap_or(&lower);
        if word.contains(':') && word.as_bytes()[0].is_ascii_digit() && self.time.is_none() {
            let end = word.find(['Z', '+', '-']).unwrap_or(word.len());
            let (clock, zone) = word.split_at(end);
            self.time = Some(clock.replace(',', ".").parse().ok()?);
            return if zone.is_empty() {
                Some(())
            } else {
                self.zone(zone)
            };
        }
        if word.len() >= 10 && word.as_bytes()[4] == b'-' && self.year.is_none() {
            let date = word.parse::<NaiveDate>().ok()?;
            use chrono::Datelike as _;
            (self.year, self.month, self.day) =
                (Some(date.year()), Some(date.month()), Some(date.day()));
            return Some(());
        }
        if let Some(month) = MONTHS.iter().position(|name| *name == start) {
            self.month = Some(u32::try_from(month).ok()? + 1);
        } else if DAYS.contains(&start) && lower.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        } else if lower == "am" || lower == "pm" {
            self.afternoon = Some(lower == "pm");
        } else if let Ok(number) = word.trim_end_matches('.').parse::<u32>() {
            if word.len() == 4 && self.year.is_none() && !word.starts_with('+') {
                self.year = Some(number.cast_signed());
            } else if number <= 31 && self.day.is_none() {
                self.day = Some(number);
            } else {
                return self.zone(word);
            }
        } else if lower == "date" || lower == "date:" || lower == "time:" {
        } else {
            return self.zone(word);
        }
        Some(())
    }

    fn zone(&mut self, word: &str) -> Option<()> {
        let signed = word
            .strip_prefix('+')
            .map(|rest| (1, rest))
            .or_else(|| word.strip_prefix('-').map(|rest| (-1, rest)));
        if let Some((sign, digits)) = signed {
            let digits = digits.replace(':', "");
            let number = digits.parse::<i32>().ok()?;
            self.offset_s = Some(match digits.len() {
                2 => sign * number * 3600,
                4 => sign * (number / 100 * 3600 + number % 100 * 60),
                _ => return None,
            });
        } else if matches!(word, "Z" | "UTC" | "GMT") {
            self.offset_s = Some(0);
        } else if self.time.is_some()
            && (2..=5).contains(&word.len())
            && word.bytes().all(|b| b.is_ascii_uppercase())
        {
            self.named = Some(word.to_owned());
        } else {
            return None;
        }
        Some(())
    }

    fn moment(self, zone_s: Option<i32>) -> Option<Moment> {
        use chrono::Timelike as _;
        let mut time = self.time?;
        let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            let has_day = self.month.is_some() == self.day.is_some();
            return (has_day && self.year.is_none()).then_some(Moment::Short);
        };
        let date = NaiveDate::from_ymd_opt(year, month, day)?;
        if let Some(afternoon) = self.afternoon {
            time = time.with_hour(time.hour() % 12 + if afternoon { 12 } else { 0 })?;
        }
        let offset_s = match (self.offset_s, self.named, zone_s) {
            (Some(offset_s), ..) | (None, _, Some(offset_s)) => offset_s,
            (None, Some(name), None) => return Some(Moment::In(name)),
            (None, None, None) => 0,
        };
        let ns = date.and_time(time).and_utc().timestamp_nanos_opt()?;
        Some(Moment::At(
            ns.checked_sub(i64::from(offset_s) * 1_000_000_000)?,
        ))
    }
}

/// Seconds east of UTC of `+02:00`, `-0330`, `UTC` or `Z`.
pub fn zone_s(text: &str) -> Option<i32> {
    if matches!(text, "UTC" | "Z") {
        return Some(0);
    }
    let (sign, digits) = match text.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let ([a, b, c, d] | [a, b, b':', c, d]) = *digits else {
        return None;
    };
    let two = |tens: u8, ones: u8| {
        let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
        is_number.then(|| i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
    };
    let (hours, minutes) = (two(a, b)?, two(c, d)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Value of the option `zone`; the error is a sentence for the user.
pub fn zone_option(given: &Given) -> Result<Option<i32>, String> {
    let zone_s = |text| {
        zone_s(text).ok_or_else(|| {
            format!("zone: got \"{text}\"; expected an offset from UTC such as +02:00, or UTC.")
        })
    };
    given.text("zone").map(zone_s).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_offsets_or_utc() {
        assert_eq!(zone_s("+02:00"), Some(7200));
        assert_eq!(zone_s("-0330"), Some(-12_600));
        assert_eq!(["UTC", "Z"].map(zone_s), [Some(0); 2]);
        for wrong in ["CEST", "2", "+2:00", "+15:00", "+0060", "+02:00 ", ""] {
            assert_eq!(zone_s(wrong), None, "{wrong}");
        }
    }

    const NOON: i64 = 1_787_313_600_000_000_000; // 2026-08-21 12:00:00 UTC

    #[test]
    fn every_usual_form_of_date_means_the_same_moment() {
        for text in [
            "Fri Aug 21 12:00:00 UTC 2026",
            "Fri Aug 21 12:00:00 PM UTC 2026",
            "Fri 21 Aug 2026 12:00:00 PM UTC",
            "Fri 21 Aug 12:00:00 UTC 2026",
            "Fri, 21 Aug 2026 14:00:00 +0200",
            "2026-08-21T12:00:00Z",
            "2026-08-21T14:00:00+02:00",
            "2026-08-21 12:00:00",
            "2026-08-21 12:00:00.000",
            "=== 2026-08-21 12:00:00 ===",
            "# Fri Aug 21 12:00:00 UTC 2026",
            "1787313600",
            "1787313600.000000000",
            "1787313600000",
            "Time: 1787313600",
            "date: Fri Aug 21 12:00:00 UTC 2026",
            "2026-08-21T14:00:00,000000000+02:00",
        ] {
            assert_eq!(line(text, None), Some(NOON), "{text}");
        }
        assert_eq!(line("1787313600.25", None), Some(NOON + 250_000_000));
    }

    #[test]
    fn a_time_without_zone_is_in_the_users() {
        assert_eq!(line("2026-08-21 14:00:00", Some(7200)), Some(NOON));
        assert_eq!(
            line("Fri Aug 21 14:00:00 CEST 2026", Some(7200)),
            Some(NOON)
        );
        assert_eq!(
            line("Fri Aug 21 14:00:00 CEST 2026", None),
            None,
            "CEST is not for us to guess"
        );
        assert_eq!(line("2026-08-21T12:00:00Z", Some(7200)), Some(NOON));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "hello",
            "ESTAB 0 0 10.0.0.1:22 10.0.0.2:5",
            "12",
            "31 31 31",
            "99:99:99",
            "Total: 25",
        ] {
            assert_eq!(line(text, None), None, "{text}");
        }
    }

    #[test]
    fn file_names_tell_the_time() {
        for text in [
            "ss-20260821T120000.txt",
            "ss-20260821T120000Z.txt.gz",
            "edge7_20260821-120000",
            "2026-08-21_12:00:00.ss",
            "ss.1787313600.zst",
            "host12-20260821120000.txt",
        ] {
            assert_eq!(name(text, None), Some(NOON), "{text}");
        }
        assert_eq!(name("ss.txt", None), None);
        assert_eq!(name("ss-20269921T120000.txt", None), None);
    }
}
