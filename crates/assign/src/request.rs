//! The request for an experiment: arms, units, links and filters.

use std::path::PathBuf;

use knee_collect::KernelError;
use serde::Deserialize;

use super::place;
use super::plan::{self, ARMS, CONNECTION, HOST, LINKS, PORTS, PREFIX, Plan, Ports, Prefix};

/// The unit that gets one algorithm for all its connections.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Prefix,
    Connection,
    Host,
}

/// An arm of the experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct Arm {
    pub name: String,
    pub algorithm: String,
}

/// Connections that share an allocation: those of a network namespace, of local
/// addresses, or all.
#[derive(Clone, Debug, Deserialize)]
pub struct Link {
    /// `None`: the design knows no links.
    pub name: Option<String>,
    pub netns: Option<PathBuf>,
    /// A prefix and its length.
    pub local: Option<(std::net::IpAddr, u8)>,
    pub interface: Option<String>,
}

/// An experiment, except for its shares.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    pub design: String,
    pub seed: u64,
    pub unit: Unit,
    pub v4_bits: u8,
    pub v6_bits: u8,
    pub arms: Vec<Arm>,
    pub links: Vec<Link>,
    /// Ranges of ports; none: all.
    pub ports: Vec<(u16, u16)>,
    pub netns: Option<PathBuf>,
    /// Our builds, also where the kernel has its own?
    pub ours: bool,
}

/// The shares that apply from now on.
#[derive(Clone, Debug, Deserialize)]
pub struct Allocation {
    /// `None`: the design has no periods.
    pub period: Option<i64>,
    /// Of each link the share of each arm, percent.
    pub shares_pct: Vec<Vec<f64>>,
}

/// A plan, and for each of its links the number of the requested link.
pub struct Resolved {
    pub plan: Plan,
    pub links: Vec<usize>,
}

impl Request {
    /// Looks up the network namespaces and devices in the kernel.
    /// `algorithms`: the kernel's name for each arm's algorithm; `own`: the unit that
    /// stands for this host or boot.
    ///
    /// # Errors
    /// A namespace or device is not there, or there are too many of something.
    pub fn resolve(
        &self,
        algorithms: &[String],
        own: plan::Words,
    ) -> Result<Resolved, KernelError> {
        let ports: Vec<Ports> = (self.ports.iter())
            .map(|&(low, high)| Ports { low, high })
            .collect();
        refuse_many("arms", self.arms.len(), ARMS)?;
        refuse_many("port", ports.len(), PORTS)?;
        let (mut links, mut places) = (Vec::new(), Vec::new());
        for (number, link) in self.links.iter().enumerate() {
            let netns = link.netns.as_deref().or(self.netns.as_deref());
            let cookie = link.netns.as_deref().map(place::netns_cookie);
            let locals = match (&link.local, &link.interface) {
                (Some((address, bits)), _) => vec![Prefix::new(*address, *bits)],
                (None, Some(interface)) => place::addresses(netns, interface)?,
                (None, None) => vec![Prefix::default()],
            };
            let netns = cookie.transpose()?.unwrap_or(0);
            for local in locals {
                links.push(plan::Link::new(netns, local));
                places.push(number);
            }
        }
        refuse_many("link", links.len(), LINKS)?;
        let mut plan = Plan::default();
        plan.seed = self.seed;
        plan.own = own;
        let netns = self.netns.as_deref().map(place::netns_cookie);
        let netns = netns.transpose()?.unwrap_or(0);
        plan.unit = match self.unit {
            Unit::Prefix => PREFIX,
            Unit::Connection => CONNECTION,
            Unit::Host => HOST,
        };
        plan.cut_to(self.v4_bits, self.v6_bits);
        plan.set(netns, algorithms, &links, &ports);
        Ok(Resolved {
            plan,
            links: places,
        })
    }
}

impl Resolved {
    /// Sets the shares that apply from now on.
    pub fn allocate(&mut self, allocation: &Allocation) {
        for (link, &requested) in self.links.iter().enumerate() {
            self.plan.share(link, &allocation.shares_pct[requested]);
        }
    }
}

fn refuse_many(what: &'static str, count: usize, most: usize) -> Result<(), KernelError> {
    if count <= most {
        return Ok(());
    }
    Err(KernelError::Option {
        what,
        got: format!("{count} of them"),
        expected: format!(
            "{most} at most; a device counts as often as it has addresses, and a prefix stands for many"
        ),
    })
}
