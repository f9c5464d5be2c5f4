//! What a host is set to and what it has counted: the tables of the doctor's snapshot. A part of the host is a list of
//! rows, whose fields are columns that `crates/tables/src/snapshot.rs` declares.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;

use super::cpu::{self, CpuState};
use super::ethtool::DriverStates;
use super::files::{Files, Missing, Roots};
use super::interrupts::{self, Interrupt};
use super::nic::{self, Interface};
use super::proc_net::{self, Count, Softnet};
use super::programs::{self, Namespace, Owner};
use super::qdisc;
use super::qdisc_state::{self, QdiscState};
use super::routes::{self, Routes};
use super::routing::Routing;
use super::sysctl::{self, Sysctl};
use super::sysfs::{self, Pci, Queue};
use super::text;

/// The parts of a host, and what of them could not be read.
#[derive(Debug, Default, Serialize)]
pub struct HostState {
    pub host: [Host; 1],
    pub sysctls: Vec<Sysctl>,
    pub counters: Vec<Count>,
    pub softnet: Vec<Softnet>,
    pub cpus: Vec<CpuState>,
    pub interfaces: Vec<Interface>,
    pub qdiscs: Vec<QdiscState>,
    pub routes: Vec<Routes>,
    pub queues: Vec<Queue>,
    pub irqs: Vec<Interrupt>,
    pub pci: Vec<Pci>,
    #[serde(flatten)]
    pub drivers: DriverStates,
    pub owners: Vec<Owner>,
    pub namespaces: Vec<Namespace>,
    pub missing: Vec<Missing>,
}

/// What the readers learn of the host as a whole.
#[derive(Debug, Default, Serialize)]
pub struct Host {
    pub stamping: BTreeSet<&'static str>,
    pub ksoftirqd_us: Option<i64>,
}

/// How much of a host is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All that it is set to, and its counters.
    Whole,
    /// The counters alone.
    Counts,
}

impl HostState {
    /// Reads this host, as far as the calling thread may see its network namespace, or files that were recorded of another
    /// host.
    pub fn read(roots: Roots, extent: Extent) -> HostState {
        let mut files = Files::new(roots);
        let is_whole = extent == Extent::Whole;
        let mut state = HostState::default();
        if is_whole {
            state.sysctls = sysctl::all(&mut files);
        }
        (state.counters, state.softnet) = proc_net::counts(&mut files);
        state.cpus = cpu::states(&mut files, is_whole);
        if is_whole {
            let programs = programs::programs(&mut files);
            (state.owners, state.namespaces) = (programs.owners, programs.namespaces);
            state.host = [Host {
                stamping: programs.stamping,
                ksoftirqd_us: programs.ksoftirqd_us,
            }];
        }
        if !is_whole {
            state.irqs = interrupts::all(&mut files);
        }
        if files.roots.are_recorded {
            let what = "interfaces, qdiscs, routes and sockets";
            files.miss(what, "only files were read", "the host itself");
        } else {
            if let Err(error) = state.ask_routing() {
                let needs = match error.kind() {
                    io::ErrorKind::PermissionDenied => "root",
                    _ => "",
                };
                let why = format!("the kernel refused: {}", text::reason(&error));
                files.miss("interfaces, qdiscs and routes", why, needs);
            }
            state.drivers = DriverStates::read(&mut files, &state.interfaces, is_whole);
            if is_whole {
                let devices = sysfs::add(&mut files, &mut state.interfaces);
                state.irqs =
                    interrupts::of_devices(&mut files, &devices.interrupts, &state.interfaces);
                (state.queues, state.pci) = (devices.queues, devices.pci);
            }
        }
        state.missing = files.missing;
        state
    }

    fn ask_routing(&mut self) -> io::Result<()> {
        let mut routing = Routing::new()?;
        let devices = nic::devices(&mut routing)?;
        let names: BTreeMap<u32, String> = (devices.iter())
            .map(|device| (device.index, device.name.clone()))
            .collect();
        let through;
        (self.routes, through) = routes::routes(&mut routing, &names)?;
        self.interfaces = (devices.iter())
            .map(|device| Interface::of(device, &names, &through))
            .collect();
        self.qdiscs = (qdisc::qdiscs(&mut routing)?.iter())
            // One of a device that came between the two dumps has no name.
            .filter_map(|qdisc| Some(qdisc_state::state(qdisc, names.get(&qdisc.interface)?)))
            .collect();
        Ok(())
    }
}
