//! One value of a key, read and checked against the key's kind and bounds.

use std::sync::Arc;

use knee_path::RttChange;
use knee_path::loss::LossSpec;
use knee_path::trace::{self, Outage, RateTrace};
use knee_tables::KeptSamples;
use knee_units::cpus::Cpus;
use knee_units::files::Files;
use knee_units::parse::{self, BufferSize, UnitError, did_you_mean, quoted};
use knee_units::text::TextError;
use knee_units::{Nanos, Rate};
use toml_edit::Value as Toml;

use crate::key::error::{Problem, nearest, shown};
use crate::key::names::{Kernel, Names};
use crate::key::profile::Profile;
use crate::key::settings::ParamInfo;
use crate::key::sizes::SizeSpec;
use crate::key::{Kind, cost_names, loss_names, size_names};

/// What a list of processors is that names none.
pub(crate) const ANY: &str = "any";

/// A value as its kind says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Duration(Nanos),
    /// `None`: unlimited.
    Rate(Option<Rate>),
    Trace(Arc<RateTrace>),
    Share(f64),
    Outages(Vec<Outage>),
    RttChanges(Vec<RttChange>),
    /// The first and the last, from 1.
    Range(usize, usize),
    Keys(Vec<String>),
    Samples(KeptSamples),
    Bytes(u64),
    Count(u64),
    /// A count's `unlimited`.
    NoLimit,
    Flag(bool),
    Cpus(Cpus),
    Loss(LossSpec),
    PerSec(f64),
    Sizes(SizeSpec),
    /// `None`: what hosts do takes no time.
    Costs(Option<Box<Profile>>),
    Buffer(BufferSize),
    Name(&'static str),
    Text(String),
    Kernel(Kernel),
    /// Of an algorithm or a queue, in its own unit.
    Param(f64),
}

/// Reads `toml` as the value of a key of that `kind` at `path`.
///
/// Returns the value and its label as an axis of the matrix shows it.
pub fn read(
    kind: &Kind,
    path: &str,
    toml: &Toml,
    names: &Names,
    files: Files<'_>,
) -> Result<(Value, String), Problem> {
    let wrong = |next: &str| Problem::Value {
        key: path.into(),
        got: shown(toml),
        expected: kind.forms(),
        next: next.into(),
    };
    match (kind, toml) {
        (
            Kind::Count { .. } | Kind::CountOrUnlimited { .. } | Kind::Choice(_),
            Toml::Integer(n),
        ) => {
            let n = u64::try_from(*n.value()).map_err(|_| wrong(""))?;
            Ok((count(kind, n).ok_or_else(|| wrong(""))?, n.to_string()))
        }
        (Kind::CountOrUnlimited { .. }, Toml::String(text)) if text.value() == "unlimited" => {
            Ok((Value::NoLimit, "unlimited".into()))
        }
        (
            Kind::Count { .. } | Kind::CountOrUnlimited { .. } | Kind::Choice(_),
            Toml::String(text),
        ) => {
            let number =
                text.value().bytes().all(|b| b.is_ascii_digit()) && !text.value().is_empty();
            Err(wrong(if number {
                "Write it without quotes."
            } else {
                ""
            }))
        }
        (Kind::Flag, Toml::Boolean(flag)) => {
            Ok((Value::Flag(*flag.value()), flag.value().to_string()))
        }
        (Kind::Flag, Toml::String(text)) if matches!(text.value().as_str(), "true" | "false") => {
            Err(wrong("Write it without quotes."))
        }
        (Kind::Count { .. } | Kind::CountOrUnlimited { .. } | Kind::Choice(_) | Kind::Flag, _) => {
            Err(wrong(""))
        }
        (Kind::Outages | Kind::RttChanges | Kind::Keys, Toml::Array(list)) => {
            let texts: Option<Vec<&str>> = list.iter().map(Toml::as_str).collect();
            let texts = texts.filter(|texts| !texts.is_empty());
            let text = texts.ok_or_else(|| wrong(""))?.join(", ");
            Ok((read_text(kind, path, &text, names, files)?, text))
        }
        (Kind::Samples, Toml::Array(list)) => {
            let names: Option<Vec<&str>> = list.iter().map(Toml::as_str).collect();
            let names = names.ok_or_else(|| {
                let bad = list.iter().find(|toml| toml.as_str().is_none());
                Problem::Value {
                    key: path.into(),
                    got: bad.map(shown).unwrap_or_default(),
                    expected: kind.forms(),
                    next: String::new(),
                }
            })?;
            match KeptSamples::of(names.iter().copied()) {
                Ok(kept) => Ok((Value::Samples(kept), names.join(", "))),
                Err(unknown) => Err(no_column(path, unknown)),
            }
        }
        (Kind::Samples, _) => Err(wrong("")),
        (_, Toml::String(text)) => {
            let text = text.value();
            let value = read_text(kind, path, text, names, files)?;
            let label = match (kind, &value) {
                // Where Linux calls it otherwise.
                (Kind::Algorithm, Value::Text(name)) => name.clone(),
                _ => text.clone(),
            };
            Ok((value, label))
        }
        (
            Kind::Duration { .. }
            | Kind::Rate
            | Kind::LinkRate
            | Kind::Share
            | Kind::Outages
            | Kind::RttChanges
            | Kind::Bytes { .. }
            | Kind::Loss
            | Kind::PerSec { .. }
            | Kind::Sizes
            | Kind::Costs
            | Kind::Buffer
            | Kind::Figure,
            Toml::Integer(_) | Toml::Float(_),
        ) => Err(Problem::Value {
            key: path.into(),
            got: format!("the bare number {}", shown(toml)),
            expected: kind.forms(),
            next: "Write it with its unit, in quotes.".into(),
        }),
        // 6.10 would be 6.1.
        (Kind::Kernel, Toml::Float(_)) => Err(wrong("Write it in quotes.")),
        _ => Err(wrong("")),
    }
}

/// The value of a parameter, which stands at `path`, and its label.
pub fn read_param(info: &ParamInfo, path: &str, toml: &Toml) -> Result<(Value, String), Problem> {
    let (value, label) = info.read(path, toml)?;
    Ok((Value::Param(value), label))
}

/// A default of the registry: as if the file had said so.
pub fn read_default(kind: &Kind, text: &str) -> Value {
    const WHY: &str = "a default of the registry is a value of its key's kind";
    match kind {
        Kind::Flag => Value::Flag(text == "true"),
        Kind::CountOrUnlimited { .. } if text == "unlimited" => Value::NoLimit,
        Kind::Count { .. } | Kind::CountOrUnlimited { .. } | Kind::Choice(_) => {
            count(kind, text.parse().expect(WHY)).expect(WHY)
        }
        // The default algorithm of a far end need not be among those offered to flows.
        Kind::Algorithm => Value::Text(text.into()),
        _ => read_text(kind, "", text, &Names::default(), Files::NONE).expect(WHY),
    }
}

fn count(kind: &Kind, n: u64) -> Option<Value> {
    let fits = match kind {
        Kind::Count { min, max } | Kind::CountOrUnlimited { min, max } => {
            (*min..=*max).contains(&n)
        }
        Kind::Choice(values) => values.contains(&n),
        _ => false,
    };
    fits.then_some(Value::Count(n))
}

fn read_text(
    kind: &Kind,
    path: &str,
    text: &str,
    names: &Names,
    files: Files<'_>,
) -> Result<Value, Problem> {
    let unit = |error: UnitError| Problem::Unit {
        key: path.into(),
        error,
    };
    let refuse = |expected| Problem::Value {
        key: path.into(),
        got: quoted(text),
        expected,
        next: String::new(),
    };
    let wrong = || refuse(kind.forms());
    // Of a thing that comes in kinds.
    let refused = |what, kinds: fn() -> Vec<&'static str>, error| match error {
        TextError::Kind(name) => unknown(path, what, &name, kinds()),
        TextError::Unit(error) => unit(error),
        TextError::Form => wrong(),
        TextError::Impossible(expected) => refuse(expected),
        TextError::File(error) => Problem::File {
            key: path.into(),
            error: error.into(),
        },
    };
    match kind {
        Kind::Duration { min, max } => {
            let time = parse::duration(text).map_err(unit)?;
            if (*min..=*max).contains(&time) {
                Ok(Value::Duration(time))
            } else {
                Err(wrong())
            }
        }
        Kind::LinkRate if text.split(' ').next() == Some("trace") => {
            let name = text["trace".len()..].trim();
            if name.is_empty() {
                return Err(wrong());
            }
            let known: Vec<&str> = trace::bundled().collect();
            // A name without a dot or folder is no file's.
            if !name.contains(['.', '/']) && !known.contains(&name) {
                return Err(unknown(path, "trace", name, known));
            }
            RateTrace::find(name, files)
                .map(Value::Trace)
                .map_err(|error| Problem::File {
                    key: path.into(),
                    error: error.into(),
                })
        }
        Kind::Share => match parse::share(text).map_err(unit)? {
            share if share <= 1.0 => Ok(Value::Share(share)),
            _ => Err(wrong()),
        },
        Kind::Outages => {
            let read = |(start, length)| Outage { start, length };
            let list: Vec<Outage> = pairs(text, " for ", &wrong, &unit)?
                .into_iter()
                .map(read)
                .collect();
            let apart = list
                .windows(2)
                .all(|two| two[0].start + two[0].length < two[1].start);
            if apart && list.iter().all(|outage| outage.length > Nanos::ZERO) {
                Ok(Value::Outages(list))
            } else {
                Err(wrong())
            }
        }
        Kind::RttChanges => {
            let read = |(at, rtt)| RttChange { at, rtt };
            let list: Vec<RttChange> = pairs(text, " to ", &wrong, &unit)?
                .into_iter()
                .map(read)
                .collect();
            let fits = |rtt: Nanos| (Nanos::from_us(1)..=Nanos::from_secs(60)).contains(&rtt);
            let in_order = list.windows(2).all(|two| two[0].at < two[1].at);
            if in_order && list.iter().all(|change| fits(change.rtt)) {
                Ok(Value::RttChanges(list))
            } else {
                Err(wrong())
            }
        }
        Kind::Hops | Kind::Rows => {
            let (first, last) = text.split_once("..").unwrap_or((text, text));
            let number = |text: &str| text.trim().parse().ok().filter(|&n: &usize| n > 0);
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => Ok(Value::Range(first, last)),
                _ => Err(wrong()),
            }
        }
        Kind::Keys => {
            let keys: Vec<String> = text.split(", ").map(String::from).collect();
            match keys.len() {
                0..2 => Err(wrong()),
                _ => Ok(Value::Keys(keys)),
            }
        }
        Kind::Rate | Kind::LinkRate => {
            const MAX_BITS_PER_SEC: u64 = 10_000_000_000_000;
            let rate = parse::rate(text).map_err(unit)?;
            let fits = rate.is_none_or(|rate| rate.bits_per_sec() <= MAX_BITS_PER_SEC);
            if fits {
                Ok(Value::Rate(rate))
            } else {
                Err(wrong())
            }
        }
        Kind::Bytes { min, max } => {
            let bytes = parse::bytes(text).map_err(unit)?;
            if (*min..=*max).contains(&bytes) {
                Ok(Value::Bytes(bytes))
            } else {
                Err(wrong())
            }
        }
        Kind::CpuList if text == ANY => Ok(Value::Cpus(Cpus::default())),
        Kind::CpuList => Cpus::of_list(text).map(Value::Cpus).ok_or_else(wrong),
        Kind::CpuMask => Cpus::of_mask(text).map(Value::Cpus).ok_or_else(wrong),
        Kind::Loss => LossSpec::read(text, files)
            .map(Value::Loss)
            .map_err(|error| refused("loss", loss_names, error)),
        Kind::PerSec { min, max } => {
            let per_sec = parse::per_sec(text).map_err(unit)?;
            if (*min..=*max).contains(&per_sec) {
                Ok(Value::PerSec(per_sec))
            } else {
                Err(wrong())
            }
        }
        Kind::Sizes => SizeSpec::read(text, files)
            .map(Value::Sizes)
            .map_err(|error| refused("distribution", size_names, error)),
        Kind::Costs => Profile::read(text, files)
            .map(Value::Costs)
            .map_err(|error| refused("cost profile", cost_names, error)),
        Kind::Buffer => parse::buffer(text).map(Value::Buffer).map_err(unit),
        Kind::Figure => parse::figure(text)
            .map(|()| Value::Text(text.into()))
            .map_err(unit),
        Kind::Name(what, known) => {
            let known = known();
            let found = known.iter().copied().find(|name| *name == text);
            found
                .map(Value::Name)
                .ok_or_else(|| unknown(path, what, text, known))
        }
        Kind::Algorithm => match names.algorithm(text) {
            Some(info) => Ok(Value::Text(info.name.clone())),
            None => Err(unknown(
                path,
                "algorithm",
                text,
                names.algorithms.iter().map(|a| a.name.as_str()).collect(),
            )),
        },
        Kind::Kernel => names.kernel(text).map(Value::Kernel).ok_or_else(wrong),
        Kind::Line => {
            let fits =
                !text.trim().is_empty() && text.len() <= 1_000 && !text.contains(char::is_control);
            if fits {
                Ok(Value::Text(text.into()))
            } else {
                Err(wrong())
            }
        }
        Kind::Id => {
            let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            let fits = text.len() <= 64 && text.starts_with(letter);
            let fits = fits && text.chars().all(|c| letter(c) || c == '-' || c == '.');
            if fits {
                Ok(Value::Text(text.into()))
            } else {
                Err(wrong())
            }
        }
        Kind::Identifier => {
            let fits = text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_alphabetic());
            let fits = fits && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if fits {
                Ok(Value::Text(text.into()))
            } else {
                Err(wrong())
            }
        }
        Kind::Count { .. }
        | Kind::CountOrUnlimited { .. }
        | Kind::Choice(_)
        | Kind::Flag
        | Kind::Samples => Err(wrong()),
    }
}

/// The table `samples` has no such column, or every row has it.
fn no_column(path: &str, got: &str) -> Problem {
    let known = || KeptSamples::choices().map(|column| column.name);
    // A name without its unit is more than a few edits away.
    let whole = known().find(|name| {
        name.strip_prefix(got)
            .is_some_and(|unit| unit.starts_with('_'))
    });
    let meant = whole.map(String::from).or_else(|| nearest(got, known()));
    Problem::Value {
        key: path.into(),
        got: quoted(got),
        expected:
            "columns of the table samples, beside cell, rep, t_ns and flow, which every row has"
                .into(),
        next: match &meant {
            Some(_) => did_you_mean(&meant).trim().into(),
            None => "`knee list tables` prints them.".into(),
        },
    }
}

/// `10s for 2s, 20s for 1s`: the times on both sides of the word, none above a day.
fn pairs(
    text: &str,
    word: &str,
    wrong: &dyn Fn() -> Problem,
    unit: &dyn Fn(UnitError) -> Problem,
) -> Result<Vec<(Nanos, Nanos)>, Problem> {
    let time = |text: &str| {
        let time = parse::duration(text.trim()).map_err(unit)?;
        if time > Nanos::from_secs(86_400) {
            return Err(wrong());
        }
        Ok(time)
    };
    text.split(',')
        .map(|one| {
            let (first, second) = one.split_once(word).ok_or_else(wrong)?;
            Ok((time(first)?, time(second)?))
        })
        .collect()
}

fn unknown(path: &str, what: &'static str, got: &str, known: Vec<&str>) -> Problem {
    Problem::UnknownName {
        key: path.into(),
        what,
        got: got.into(),
        suggestion: nearest(got, known.iter().copied()),
        known: known.into_iter().map(String::from).collect(),
    }
}
