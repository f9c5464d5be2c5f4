//! What a key is: its kind with its bounds, what holds without it, and what it means. Here are also the value that a file
//! gives it, the field of a struct that has that value, and the words in which a value is refused. Which keys there are,
//! [`crate::keys`] says.

pub mod error;
pub mod keyed;
pub mod names;
pub mod profile;
pub mod settings;
pub mod sizes;
pub mod value;
pub mod values;

use crate::release::Release;
use knee_path::loss;
use knee_units::Nanos;
use knee_units::parse::{
    BUFFER_FORMS, BYTES_FORMS, DURATION_FORMS, FIGURE_FORMS, PER_SEC_FORMS, RATE_FORMS, SHARE_FORMS,
};

/// Most that a sysctl or socket option of type int can say.
pub const INT_MAX: u64 = i32::MAX as u64;
pub const GIB: u64 = 1 << 30;

pub const fn us(n: u64) -> Nanos {
    Nanos::from_us(n)
}
pub const fn ms(n: u64) -> Nanos {
    Nanos::from_ms(n)
}
pub const fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

/// What holds when a file does not set a key.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// The file must say; how it would.
    Required(&'static str),
    /// As if the file said so.
    Value(&'static str),
    /// Depends on other keys; the words say how.
    Words(&'static str),
}

#[derive(Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// May a list stand here?
    pub axis: bool,
    pub engines: Engines,
    pub doc: &'static str,
    pub source: &'static str,
    /// The workloads it belongs to, which the registry of workloads says; empty: it belongs to the table itself.
    pub workloads: &'static [&'static str],
}

/// A key that may be an axis.
pub const fn key(
    name: &'static str,
    kind: Kind,
    default: Default,
    doc: &'static str,
    source: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        axis: true,
        engines: Engines::EVERY,
        doc,
        source,
        workloads: &[],
    }
}

/// The same, and no axis.
pub const fn fixed(key: Key) -> Key {
    Key { axis: false, ..key }
}

/// An engine, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sim,
    Kernel,
    Guest,
    Hosts,
}

impl Engine {
    pub const ALL: [Engine; 4] = [Engine::Sim, Engine::Kernel, Engine::Guest, Engine::Hosts];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Sim => "sim",
            Engine::Kernel => "kernel",
            Engine::Guest => "guest",
            Engine::Hosts => "hosts",
        }
    }
}

/// The engines in which a key has an effect. What is set without one is said: [`crate::Scenario::without_effect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engines {
    pub sim: Simulated,
    pub kernel: bool,
    pub guest: bool,
    pub hosts: bool,
}

/// When the simulator does what a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulated {
    Always,
    /// Of hosts that have `costs`: the host model.
    WithCosts,
    Never,
}

impl Engines {
    pub const EVERY: Engines = Engines {
        sim: Simulated::Always,
        kernel: true,
        guest: true,
        hosts: true,
    };
    const REAL: Engines = Engines {
        sim: Simulated::Never,
        ..Engines::EVERY
    };
    const SIM: Engines = Engines {
        sim: Simulated::Always,
        kernel: false,
        guest: false,
        hosts: false,
    };

    const MODEL: Engines = Engines {
        sim: Simulated::WithCosts,
        ..Engines::SIM
    };

    /// Has the key an effect there? In the simulator: whatever else is set?
    pub fn has(self, engine: Engine) -> bool {
        match engine {
            Engine::Sim => self.sim == Simulated::Always,
            Engine::Kernel => self.kernel,
            Engine::Guest => self.guest,
            Engine::Hosts => self.hosts,
        }
    }

    /// Has it none but on simulated hosts with a cost model?
    pub fn is_model(self) -> bool {
        self == Engines::MODEL
    }

    /// As a list: `kernel, guest, sim with costs`.
    pub fn listed(self) -> String {
        let names = Engine::ALL.into_iter().filter(|engine| self.has(*engine));
        let mut names: Vec<&str> = names.map(Engine::name).collect();
        if self.sim == Simulated::WithCosts {
            names.push("sim with costs");
        }
        names.join(", ")
    }
}

/// A key of the simulator alone: real hosts have rules and loads of their own.
pub const fn simulated(key: Key) -> Key {
    of(key, Engines::SIM)
}

/// One of the host model.
pub const fn modelled(key: Key) -> Key {
    of(key, Engines::MODEL)
}

/// One of real hosts.
pub const fn real(key: Key) -> Key {
    of(key, Engines::REAL)
}

/// One of real hosts, and of the host model.
pub const fn real_or_modelled(key: Key) -> Key {
    let sim = Simulated::WithCosts;
    of(
        key,
        Engines {
            sim,
            ..Engines::REAL
        },
    )
}

/// One of the host model, and of two hosts of the user's, who may let them be set: a lab leaves it alone.
pub const fn hosted_or_modelled(key: Key) -> Key {
    let hosts = true;
    of(
        key,
        Engines {
            hosts,
            ..Engines::MODEL
        },
    )
}

/// One of the simulator, and of a guest's kernel.
pub const fn of_release(key: Key) -> Key {
    let guest = true;
    of(
        key,
        Engines {
            guest,
            ..Engines::SIM
        },
    )
}

const fn of(key: Key, engines: Engines) -> Key {
    Key { engines, ..key }
}

/// What kind of value a key takes, with its bounds (inclusive).
#[derive(Clone, Copy)]
pub enum Kind {
    Duration {
        min: Nanos,
        max: Nanos,
    },
    Rate,
    /// A rate, or a trace of one.
    LinkRate,
    Share,
    /// Times, as one text or as a list of them that is no axis.
    Outages,
    RttChanges,
    /// One hop or several in a row, counted from 1.
    Hops,
    /// Keys that have lists.
    Keys,
    /// Rows of a table, counted from 1.
    Rows,
    /// Columns of the table `samples`.
    Samples,
    Bytes {
        min: u64,
        max: u64,
    },
    Count {
        min: u64,
        max: u64,
    },
    CountOrUnlimited {
        min: u64,
        max: u64,
    },
    Choice(&'static [u64]),
    Flag,
    /// A list of processors; `any` means all of them.
    CpuList,
    /// Processors in a mask, in hexadecimal.
    CpuMask,
    Loss,
    /// Events per second.
    PerSec {
        min: f64,
        max: f64,
    },
    /// A distribution of sizes.
    Sizes,
    /// What a host's operations cost.
    Costs,
    Buffer,
    /// A name of a registry: what it is called, and the names.
    Name(&'static str, fn() -> Vec<&'static str>),
    Algorithm,
    /// A release of Linux, or the name of a kernel that was built.
    Kernel,
    /// A title, a condition, a source: not empty, on one line.
    Line,
    /// A quantity of any kind as others printed it, or a ratio.
    Figure,
    /// A claim's id.
    Id,
    /// A name that expectations can use.
    Identifier,
}

impl Kind {
    /// Does a list belong to the value, and make no axis?
    pub fn takes_list(&self) -> bool {
        matches!(
            self,
            Kind::Outages | Kind::RttChanges | Kind::Keys | Kind::Samples
        )
    }

    /// What may be written, as errors and help say it.
    pub fn forms(&self) -> String {
        match self {
            Kind::Duration { min, max } => format!("{DURATION_FORMS} from {min} to {max}"),
            Kind::Rate => format!("{RATE_FORMS}, up to 10Tbit/s"),
            Kind::LinkRate => {
                format!("{RATE_FORMS}, up to 10Tbit/s, or \"trace cellular\" or \"trace FILE.up\"")
            }
            Kind::Share => format!("{SHARE_FORMS} up to 100%"),
            Kind::Outages => {
                "an outage such as \"10s for 2s\", or a list of such, in order of time".into()
            }
            Kind::RttChanges => {
                "a change such as \"20s to 80ms\", or a list of such, in order of time".into()
            }
            Kind::Hops => {
                "a hop such as \"2\", or hops in a row such as \"1..3\", from 1 on".into()
            }
            Kind::Keys => {
                "a list of two keys or more whose values are lists, such as [\"path.rate\", \"path.rtt\"]"
                    .into()
            }
            Kind::Rows => "rows of the table such as \"1..500\", from 1 on".into(),
            Kind::Samples => {
                "a list of columns of the table samples, such as [\"srtt_us\", \"snd_cwnd\"], or [] for no row of it".into()
            }
            Kind::Bytes { min, max } => format!("{BYTES_FORMS} from {min}B to {max}B"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::CountOrUnlimited { min, max } => {
                format!("a whole number from {min} to {max}, or \"unlimited\"")
            }
            Kind::Choice(values) => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                format!("one of {}", values.join(", "))
            }
            Kind::Flag => "true or false".into(),
            Kind::CpuList => {
                "a list of processors such as \"0\" or \"0-1,4\", in quotes, or \"any\"".into()
            }
            Kind::CpuMask => {
                "a mask of processors in hexadecimal such as \"3\" or \"ff,00000000\", in quotes, as sysfs writes it".into()
            }
            Kind::Loss => {
                let kinds = loss::KINDS[1..].iter().map(|kind| kind.example);
                format!(
                    "{SHARE_FORMS} up to 100%, or a kind of loss: {}",
                    quoted_list(kinds.collect())
                )
            }
            Kind::PerSec { min, max } => format!("{PER_SEC_FORMS} from {min}/s to {max}/s"),
            Kind::Sizes => {
                let kinds = sizes::SIZES.iter().map(|kind| kind.example);
                format!("a distribution: {}", quoted_list(kinds.collect()))
            }
            Kind::Costs => {
                let names = cost_names();
                format!("{}, or \"file FILE.toml\"", quoted_list(names))
            }
            Kind::Buffer => BUFFER_FORMS.into(),
            Kind::Name(what, names) => format!("a {what}: {}", quoted_list(names())),
            Kind::Algorithm => "an algorithm's name such as \"cubic\"".into(),
            Kind::Kernel => format!(
                "a release of Linux such as \"6.12\", from {} to {}, or the name of a kernel of `knee kernel list`",
                Release::OLDEST,
                Release::NEWEST
            ),
            Kind::Figure => FIGURE_FORMS.into(),
            Kind::Line => "text on one line, in quotes".into(),
            Kind::Id => "an id of lower-case letters, digits, \"-\" and \".\", in quotes".into(),
            Kind::Identifier => {
                "a name of letters, digits and \"_\" that begins with a letter, in quotes".into()
            }
        }
    }
}

fn quoted_list(names: Vec<&str>) -> String {
    names
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Names of the kinds of loss, which stand in a value and not in a key of their own.
pub(crate) fn loss_names() -> Vec<&'static str> {
    loss::KINDS.iter().map(|kind| kind.name).collect()
}

/// Names of the cost profiles that need no file.
pub(crate) fn cost_names() -> Vec<&'static str> {
    let shipped = profile::SHIPPED.iter().map(|shipped| shipped.name);
    std::iter::once(profile::NONE).chain(shipped).collect()
}

/// Names of the distributions of sizes.
pub(crate) fn size_names() -> Vec<&'static str> {
    sizes::SIZES.iter().map(|kind| kind.name).collect()
}
