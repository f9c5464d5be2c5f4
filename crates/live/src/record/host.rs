//! The host's own counters at each interval.

use std::path::PathBuf;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::routing::Routing;
use knee_collect::{cpu, nic, proc_net, qdisc};
use knee_store::segment::Error;
use knee_tables::{Counters, Cpu, Nic, Qdisc};

use super::files::Sink;
use super::moment::Moment;
use super::options::Options;
use super::rows::Place;
use super::settings::Changes;

/// Counters count on: what is lost of them is not how far they came, only when.
const LOST: Duration = Duration::from_secs(10);

/// The tables besides `sockets`.
pub struct Host {
    routing: Routing,
    counters: Sink<Counters>,
    cpu: Sink<Cpu>,
    qdisc: Sink<Qdisc>,
    nic: Sink<Nic>,
    settings: Changes,
    text: String,
}

impl Host {
    pub fn new(options: &Options) -> Result<Host, KernelError> {
        Ok(Host {
            routing: Routing::new().map_err(KernelError::system("reach the kernel's routing"))?,
            counters: Sink::new(options, LOST)?,
            cpu: Sink::new(options, LOST)?,
            qdisc: Sink::new(options, LOST)?,
            nic: Sink::new(options, LOST)?,
            settings: Changes::new(options)?,
            text: String::new(),
        })
    }

    /// Rows of every table. What could not be read is told by `note`.
    pub fn sample(&mut self, place: &Place, mut note: impl FnMut(String)) -> Result<(), Error> {
        macro_rules! row {
            ($sink:ident, $now:ident) => {{
                let row = self.$sink.row()?;
                let table = &mut self.$sink.table;
                table.t_unix_ns.set(row, $now.unix_ns);
                table.t_mono_ns.set(row, $now.mono_ns);
                table.host.set(row, &place.host);
                if let Some(id) = &place.boot_id {
                    table.boot_id.set(row, id);
                }
                row
            }};
        }
        for &(file, parse) in proc_net::FILES {
            let now = Moment::now();
            let mut full = Ok(());
            let counters = &mut self.counters;
            let mut name = String::new();
            let read = proc_net::read(file, parse, &mut self.text, &mut |counter| {
                if full.is_err() {
                    return;
                }
                let row = match counters.row() {
                    Ok(row) => row,
                    Err(error) => {
                        full = Err(error);
                        return;
                    }
                };
                name.clear();
                name.push_str(counter.group);
                if !counter.group.is_empty() {
                    name.push('.');
                }
                name.push_str(counter.name);
                let table = &mut counters.table;
                table.t_unix_ns.set(row, now.unix_ns);
                table.t_mono_ns.set(row, now.mono_ns);
                table.host.set(row, &place.host);
                if let Some(id) = &place.boot_id {
                    table.boot_id.set(row, id);
                }
                table.netns.set(row, &place.netns);
                table.source.set(row, file);
                table.name.set(row, &name);
                if let Some(cpu) = counter.cpu {
                    table.cpu.set(row, cpu);
                }
                table.value.set(row, counter.value);
            });
            full?;
            if let Err(error) = read {
                note(format!("/proc/net/{file} cannot be read: {error}"));
            }
        }
        let now = Moment::now();
        for processor in cpu::processors() {
            let row = row!(cpu, now);
            cpu::fill(&mut self.cpu.table, row, &processor);
        }
        let now = Moment::now();
        let devices = nic::devices(&mut self.routing).unwrap_or_else(|error| {
            note(format!("the devices cannot be read: {error}"));
            Vec::new()
        });
        for device in &devices {
            let row = row!(nic, now);
            self.nic.table.netns.set(row, &place.netns);
            nic::fill(&mut self.nic.table, row, device);
        }
        let now = Moment::now();
        let qdiscs = qdisc::qdiscs(&mut self.routing).unwrap_or_else(|error| {
            note(format!("the qdiscs cannot be read: {error}"));
            Vec::new()
        });
        for found in &qdiscs {
            let row = row!(qdisc, now);
            let table = &mut self.qdisc.table;
            table.netns.set(row, &place.netns);
            if let Some(device) = devices
                .iter()
                .find(|device| device.index == found.interface)
            {
                table.interface.set(row, &device.name);
            }
            qdisc::fill(table, row, found);
        }
        self.settings.sample(place)?;
        self.counters.commit()?;
        self.cpu.commit()?;
        self.nic.commit()?;
        self.qdisc.commit()
    }

    /// What was set since the last sample is in the recording too.
    pub fn last(&mut self, place: &Place) -> Result<(), Error> {
        self.settings.read(place)
    }

    /// Closes every table's files, also when one of them fails.
    pub fn finish(self) -> Result<Vec<PathBuf>, Error> {
        let ends = [
            self.counters.finish(),
            self.cpu.finish(),
            self.nic.finish(),
            self.qdisc.finish(),
            self.settings.finish(),
        ];
        let mut files = Vec::new();
        for end in ends {
            files.extend(end?);
        }
        Ok(files)
    }
}
