//! A setting of this host: what it is now, what it is to be, and how it is written.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use super::qdisc::{self, Qdisc};
use super::setting::Setting;
use super::{offload, route, sysctl};

/// Where a setting is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Sysctl(String),
    Offload(String, String),
    Qdisc(String),
    /// The route as an order to the kernel.
    Route(Vec<u8>),
}

/// All that is needed to have a setting as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Text(String),
    Features(BTreeMap<String, bool>),
    Qdiscs(Vec<Qdisc>),
    Route(bool),
}

/// A change that is going to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub place: Place,
    /// The setting, for a person: `eth0 qdisc`.
    pub target: String,
    pub before: State,
    pub goal: State,
    /// What the kernel made of it. `None`: it may have been made, or not.
    pub after: Option<State>,
}

/// What came of putting one back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    pub setting: String,
    pub is_back: bool,
    /// Why it is not.
    pub said: String,
}

impl Place {
    pub fn read(&self) -> io::Result<State> {
        Ok(match self {
            Place::Sysctl(name) => State::Text(sysctl::read(name)?),
            Place::Offload(device, name) => State::Features(offload::read(device, name)?),
            Place::Qdisc(device) => State::Qdiscs(qdisc::read(device)?),
            Place::Route(order) => State::Route(route::is_there(order)?),
        })
    }

    fn write(&self, state: &State) -> io::Result<()> {
        match (self, state) {
            (Place::Sysctl(name), State::Text(value)) => sysctl::write(name, value),
            (Place::Offload(device, _), State::Features(wanted)) => offload::write(device, wanted),
            (Place::Qdisc(device), State::Qdiscs(qdiscs)) => qdisc::write(device, qdiscs),
            (Place::Route(order), State::Route(true)) => route::add(order),
            (Place::Route(order), State::Route(false)) => route::remove(order),
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }
}

impl Change {
    /// Where a setting that is wanted is on this host, and its name for a person.
    ///
    /// # Errors
    /// There is no way to the other host, in words.
    pub fn place_of(setting: &Setting) -> Result<(Place, String), String> {
        let device = |to: &std::net::IpAddr| match route::way(*to) {
            Ok(way) => Ok(way.device),
            Err(error) => Err(format!("the way to {to}: {}", reason(&error))),
        };
        Ok(match setting {
            Setting::Sysctl { name, .. } => (Place::Sysctl(name.clone()), name.clone()),
            Setting::Offload {
                towards, feature, ..
            } => {
                let device = device(towards)?;
                let target = format!("{device} {feature}");
                (Place::Offload(device, feature.clone()), target)
            }
            Setting::Qdisc { towards, .. } | Setting::Netem { towards, .. } => {
                let device = device(towards)?;
                let target = format!("{device} qdisc");
                (Place::Qdisc(device), target)
            }
            Setting::Route {
                towards,
                initcwnd,
                congctl,
            } => {
                let order = route::goal(*towards, *initcwnd, congctl.as_deref())?;
                (Place::Route(order), format!("route to {towards}"))
            }
        })
    }

    /// What a setting that is wanted would change there; `None`: it is as wanted.
    ///
    /// # Errors
    /// It cannot be read, changed or put back, in words.
    pub fn of(setting: &Setting, place: Place, target: String) -> Result<Option<Change>, String> {
        let before = (place.read()).map_err(|error| format!("{target}: {}", reason(&error)))?;
        let goal = match (setting, &place, &before) {
            (Setting::Sysctl { value, .. }, ..) => State::Text(sysctl::words(value)),
            (Setting::Offload { on, .. }, _, State::Features(features)) => {
                if features.is_empty() {
                    return Err(format!("{target}: is fixed by the driver; leave it out."));
                }
                State::Features(features.keys().map(|name| (name.clone(), *on)).collect())
            }
            (Setting::Qdisc { qdisc, options, .. }, Place::Qdisc(device), State::Qdiscs(now)) => {
                let options = qdisc::wanted_options(qdisc, options);
                State::Qdiscs(qdisc::goal(device, now, qdisc, &options)?)
            }
            (
                Setting::Netem {
                    delay_us,
                    loss_ppb,
                    rate_bits_per_sec,
                    limit_packets,
                    ..
                },
                Place::Qdisc(device),
                State::Qdiscs(now),
            ) => {
                let options =
                    qdisc::netem_options(*delay_us, *loss_ppb, *rate_bits_per_sec, *limit_packets);
                State::Qdiscs(qdisc::goal(device, now, "netem", &options)?)
            }
            (_, _, State::Route(true)) => {
                return Err(format!(
                    "{target}: there is one of the kind that nobody holds; take it away by hand (ip route del)."
                ));
            }
            _ => State::Route(true),
        };
        Ok((goal != before).then_some(Change {
            place,
            target,
            before,
            goal,
            after: None,
        }))
    }

    /// Makes it, and takes down what the kernel made of it.
    ///
    /// # Errors
    /// It is not as was wanted, in words; perhaps it is half-way.
    pub fn make(&mut self) -> Result<(), String> {
        let said = |error: io::Error| format!("{}: {}", self.target, reason(&error));
        self.place.write(&self.goal).map_err(said)?;
        let now = self.place.read().map_err(said)?;
        let is_reached = match (&self.goal, &now) {
            (State::Qdiscs(goal), State::Qdiscs(now)) => qdisc::reached(goal, now),
            (goal, now) => goal == now,
        };
        let what = (shown(&self.goal), shown(&now));
        self.after = Some(now);
        match is_reached {
            true => Ok(()),
            false => Err(format!(
                "{}: asked for {}, and the kernel made {} of it.",
                self.target, what.0, what.1
            )),
        }
    }

    /// Puts back what was there. What somebody else changed since stays.
    pub fn take_back(&self) -> Back {
        let outcome = self.put_back();
        Back {
            setting: self.target.clone(),
            is_back: outcome.is_ok(),
            said: outcome.err().unwrap_or_default(),
        }
    }

    /// Is what stands there still of our making?
    pub fn stands(&self) -> bool {
        let now = self.place.read();
        now.is_ok_and(|now| {
            now != self.before && self.after.as_ref().is_none_or(|after| *after == now)
        })
    }

    fn put_back(&self) -> Result<(), String> {
        let now = self.place.read().map_err(|error| reason(&error))?;
        if now == self.before {
            return Ok(());
        }
        if self.after.as_ref().is_some_and(|after| *after != now) {
            let (was, now) = (shown(&self.before), shown(&now));
            return Err(format!(
                "somebody else changed it meanwhile to {now}, and that stays; it was {was}."
            ));
        }
        self.place
            .write(&self.before)
            .map_err(|error| reason(&error))?;
        let now = self.place.read().map_err(|error| reason(&error))?;
        match now == self.before {
            true => Ok(()),
            false => Err(format!(
                "it was {} and is {}; put it right by hand.",
                shown(&self.before),
                shown(&now)
            )),
        }
    }
}

/// A state for a person.
pub fn shown(state: &State) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match state {
        State::Text(text) => text.clone(),
        State::Features(features) => joined(
            (features.iter())
                .map(|(name, on)| format!("{name} {}", if *on { "on" } else { "off" }))
                .collect(),
        ),
        State::Qdiscs(qdiscs) => {
            let mut names: Vec<&str> = qdiscs.iter().map(|one| one.kind.as_str()).collect();
            names.dedup();
            names.join(" of ")
        }
        State::Route(true) => "a route of its own".into(),
        State::Route(false) => "no route of its own".into(),
    }
}

pub fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "only root may change it.".into(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY) => "this device or kernel does not have it.".into(),
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => "this kernel does not have it.".into(),
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => "there is no route.".into(),
        Some(libc::EEXIST) => {
            "somebody has made one of the kind, which stays; leave it out.".into()
        }
        Some(libc::EINVAL) => "the kernel refuses the value; give one within its bounds.".into(),
        _ => format!("{error}."),
    }
}
