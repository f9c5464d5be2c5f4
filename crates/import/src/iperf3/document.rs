//! The output of `iperf3 -J`, handed on member by member, so that a test of a day
//! is never held as one value.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A member of the output, in the order in which it stands there.
pub enum Member {
    Start(Value),
    /// Its position where it is known.
    Interval(Option<usize>, Value),
    End(Value),
    /// The server's own output (`--get-server-output`).
    Server(Value),
    /// Title, error and whatever else is a text.
    Text(String, Value),
}

/// Reads one object and hands its members to `.0`, which may refuse: then the
/// object ends with an error.
pub struct Members<'a>(pub &'a mut dyn FnMut(Member) -> Result<(), Refused>);

/// What takes members failed, and keeps why.
#[derive(Debug, thiserror::Error)]
#[error("refused")]
pub struct Refused;

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the object that iperf3 -J prints")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut known = false;
        let mut members = 0;
        while let Some(key) = map.next_key::<String>()? {
            members += 1;
            known |= matches!(key.as_str(), "start" | "intervals" | "end" | "error");
            let member = match key.as_str() {
                "start" => Member::Start(map.next_value()?),
                "end" => Member::End(map.next_value()?),
                "server_output_json" => Member::Server(map.next_value()?),
                "intervals" => {
                    map.next_value_seed(Intervals(&mut *self.0))?;
                    continue;
                }
                "title" | "error" | "extra_data" => Member::Text(key, map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            (self.0)(member).map_err(A::Error::custom)?;
        }
        match known {
            true => Ok(()),
            false => Err(A::Error::custom(format_args!(
                "an object of {members} members, none of which is iperf3's start, intervals or end"
            ))),
        }
    }
}

struct Intervals<'a>(&'a mut dyn FnMut(Member) -> Result<(), Refused>);

impl<'de> DeserializeSeed<'de> for Intervals<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Intervals<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("iperf3's list of intervals")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(interval) = seq.next_element()? {
            (self.0)(Member::Interval(Some(index), interval)).map_err(A::Error::custom)?;
            index += 1;
        }
        Ok(())
    }
}
