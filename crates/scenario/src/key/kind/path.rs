//! What only a path has.

use std::sync::Arc;

use knee_path::RttChange;
use knee_path::loss::{self, LossSpec};
use knee_path::trace::{self, Outage, RateTrace};
use knee_units::parse::{self, BUFFER_FORMS, BufferSize, SHARE_FORMS};
use knee_units::{Nanos, Rate as BitRate};

use super::{Given, Kind, Rate, quantity, quoted_list};
use crate::key::error::Problem;
use crate::key::value::Value;

/// A rate, or a trace of one; held as [`Offered`].
pub struct LinkRate;

/// Held as [`LossSpec`].
pub struct Loss;

/// Held as [`BufferSize`].
pub struct Buffer;

/// Times without a link, as one text or as a list of them that is no axis; held as `Vec` of [`Outage`].
pub struct Outages;

/// Held as `Vec` of [`RttChange`].
pub struct RttChanges;

/// A link's rate, of a trace the mean, and the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// `None`: unlimited.
    pub rate: Option<BitRate>,
    pub trace: Option<Arc<RateTrace>>,
}

impl Kind for LinkRate {
    fn forms(&self) -> String {
        format!(
            "{}, or \"trace cellular\" or \"trace FILE.up\"",
            Rate.forms()
        )
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let text = given.quantity(self)?;
        if text.split(' ').next() != Some("trace") {
            let rate = quantity::rate(self, given)?;
            return Ok(Value::of(Offered { rate, trace: None }));
        }
        let name = text["trace".len()..].trim();
        if name.is_empty() {
            return Err(given.wrong(self, ""));
        }
        let known: Vec<&str> = trace::bundled().collect();
        // A name without a dot or folder is no file's.
        if !name.contains(['.', '/']) && !known.contains(&name) {
            return Err(given.unknown("trace", name, known));
        }
        let trace = RateTrace::find(name, given.files).map_err(|error| Problem::File {
            key: given.path.into(),
            error: error.into(),
        })?;
        let (rate, trace) = (Some(trace.mean()), Some(trace));
        Ok(Value::of(Offered { rate, trace }))
    }

    fn show(&self, value: &Value) -> String {
        let offered = value.expect::<Offered>();
        match &offered.trace {
            Some(trace) => format!("trace {}", trace.name),
            None => Rate.show(&Value::of(offered.rate)),
        }
    }
}

impl Kind for Loss {
    fn forms(&self) -> String {
        let kinds: Vec<&str> = loss::KINDS[1..].iter().map(|kind| kind.example).collect();
        format!(
            "{SHARE_FORMS} up to 100%, or a kind of loss: {}",
            quoted_list(&kinds)
        )
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let spec = LossSpec::read(given.quantity(self)?, given.files);
        spec.map(Value::of).map_err(|error| {
            let known = loss::KINDS.iter().map(|kind| kind.name).collect();
            given.no(self, "loss", known, error)
        })
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<LossSpec>().to_string()
    }
}

impl Kind for Buffer {
    fn forms(&self) -> String {
        BUFFER_FORMS.into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let size = parse::buffer(given.quantity(self)?);
        size.map(Value::of).map_err(|error| given.unit(error))
    }

    fn show(&self, value: &Value) -> String {
        match value.expect() {
            BufferSize::Unlimited => "unlimited".into(),
            BufferSize::Bytes(bytes) => format!("{bytes}B"),
            BufferSize::Packets(n) => format!("{n}packets"),
            BufferSize::Time(time) => time.to_string(),
            BufferSize::Bdp {
                numerator,
                denominator,
            } => format!("{}bdp", *numerator as f64 / *denominator as f64),
        }
    }
}

impl Kind for Outages {
    fn forms(&self) -> String {
        "an outage such as \"10s for 2s\", or a list of such, in order of time".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let read = |(start, length)| Outage { start, length };
        let list: Vec<Outage> = pairs(self, given, " for ")?.into_iter().map(read).collect();
        let apart = list
            .windows(2)
            .all(|two| two[0].start + two[0].length < two[1].start);
        if apart && list.iter().all(|outage| outage.length > Nanos::ZERO) {
            Ok(Value::of(list))
        } else {
            Err(given.wrong(self, ""))
        }
    }

    fn show(&self, value: &Value) -> String {
        let outages = value.expect::<Vec<Outage>>().iter();
        outages
            .map(Outage::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn takes_list(&self) -> bool {
        true
    }
}

impl Kind for RttChanges {
    fn forms(&self) -> String {
        "a change such as \"20s to 80ms\", or a list of such, in order of time".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let read = |(at, rtt)| RttChange { at, rtt };
        let list: Vec<RttChange> = pairs(self, given, " to ")?.into_iter().map(read).collect();
        let fits = |rtt: Nanos| (Nanos::from_us(1)..=Nanos::from_secs(60)).contains(&rtt);
        let in_order = list.windows(2).all(|two| two[0].at < two[1].at);
        if in_order && list.iter().all(|change| fits(change.rtt)) {
            Ok(Value::of(list))
        } else {
            Err(given.wrong(self, ""))
        }
    }

    fn show(&self, value: &Value) -> String {
        let changes = value.expect::<Vec<RttChange>>().iter();
        let texts = changes.map(|change| format!("{} to {}", change.at, change.rtt));
        texts.collect::<Vec<_>>().join(", ")
    }

    fn takes_list(&self) -> bool {
        true
    }
}

/// `10s for 2s, 20s for 1s`: the times on both sides of the word, none above a day.
fn pairs(kind: &dyn Kind, given: &Given<'_>, word: &str) -> Result<Vec<(Nanos, Nanos)>, Problem> {
    let time = |text: &str| {
        let time = parse::duration(text.trim()).map_err(|error| given.unit(error))?;
        match time <= Nanos::from_secs(86_400) {
            true => Ok(time),
            false => Err(given.wrong(kind, "")),
        }
    };
    let text = given.texts(kind)?;
    text.split(',')
        .map(|one| {
            let (first, second) = one.split_once(word).ok_or_else(|| given.wrong(kind, ""))?;
            Ok((time(first)?, time(second)?))
        })
        .collect()
}
