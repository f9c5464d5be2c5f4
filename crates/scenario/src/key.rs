//! What a key is: its kind with its bounds, what holds without it, and what it means. Here are also the kinds, the value that
//! a file gives it, the field of a struct that has that value, and the words in which a value is refused. Which keys there
//! are, [`crate::keys`] says.

pub mod error;
pub mod keyed;
pub mod kind;
pub mod names;
pub mod profile;
pub mod settings;
pub mod sizes;
pub mod value;
pub mod values;

pub use kind::Kind;
use knee_units::Nanos;

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
    pub kind: &'static dyn Kind,
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
    kind: &'static dyn Kind,
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
