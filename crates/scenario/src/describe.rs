//! A cell in words: what reports print and `run.json` keeps.

use crate::key::Key;
use crate::key::keyed::Shown;
use crate::key::kind::list::Places;
use crate::key::kind::path::Offered;
use crate::key::names::Names;
use crate::key::settings::ParamInfo;
use crate::key::value::{Held, Value};
use knee_path::impairment::ImpairmentSpec;
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::Action;
use knee_path::{Backend, Path};
use knee_units::params::Params;
use knee_units::parse::BufferSize;
use knee_units::{Nanos, Rate};

use crate::cell::{Cell, FlowSpec};
use crate::keys::Section;
use crate::read::ACK;

/// Key, value with its unit, and what it means. Keys are those of the file;
/// what is derived has a key with its unit last: `path.bdp_bytes`.
pub type Fact = (String, String, String);

/// Every value of a cell, defaults and derived ones included. `names` are those that it was read with: they know
/// how the parameters of algorithms are written.
pub fn describe(cell: &Cell, names: &Names) -> Vec<Fact> {
    let mut facts = Facts(Vec::new());
    for line in cell.lines() {
        match line {
            Shown::Given("path") => match &cell.further[..] {
                [] => hop(&mut facts, Section::Path, &cell.path, cell.path.rtt),
                _ => {
                    for (i, path) in cell.hops().enumerate() {
                        hop(&mut facts, Section::Hop(i), path, cell.rtt());
                    }
                }
            },
            // All hops have been shown; what holds for them alike comes last.
            Shown::Given("further") => whole(&mut facts, &cell.path),
            Shown::Given("sender") => facts.lines(Section::Sender, cell.sender.lines()),
            Shown::Given("receiver") => {
                let section = Section::Receiver;
                facts.lines(section, cell.receiver.lines());
                facts.key(section, "algorithm", cell.receiver.algorithm.clone());
            }
            Shown::Given("flows") => {
                for (i, spec) in cell.flows.iter().enumerate() {
                    flow(
                        &mut facts,
                        Section::Flow(i),
                        spec,
                        names,
                        1 + cell.further.len(),
                    );
                }
            }
            line => facts.line(Section::Top, line),
        }
    }
    facts.0
}

struct Facts(Vec<Fact>);

impl Facts {
    /// A key of the registry and its value, with the registry's words.
    fn key(&mut self, section: Section, name: &str, value: impl Held) {
        let shown = known(section, name).kind.show(&Value::of(value));
        self.shown(section, name, shown);
    }

    fn shown(&mut self, section: Section, name: &str, value: String) {
        let doc = known(section, name).doc;
        self.0.push((section.path_of(name), value, doc.into()));
    }

    /// A parameter of `owner`, as it is written.
    fn param(&mut self, section: Section, owner: &str, info: &ParamInfo, value: f64, doc: &str) {
        let written = info.written(value);
        let key = format!("{owner}.{}", info.name);
        self.derived(section, &key, written.trim_matches('"'), doc);
    }

    /// What a thing tells of itself in this table.
    fn lines(&mut self, section: Section, lines: Vec<Shown>) {
        for line in lines {
            self.line(section, line);
        }
    }

    fn line(&mut self, section: Section, line: Shown) {
        match line {
            Shown::Key(name, value) => self.shown(section, name, value),
            Shown::Derived { name, value, doc } => self.derived(section, name, value, doc),
            // It has no key here, or not for this cell.
            Shown::Given(_) => {}
        }
    }

    fn derived(&mut self, section: Section, name: &str, value: impl ToString, doc: &str) {
        self.0
            .push((section.path_of(name), value.to_string(), doc.into()));
    }
}

fn known(section: Section, name: &str) -> &'static Key {
    let key = section.keys().find(|key| key.name == name);
    key.unwrap_or_else(|| panic!("{} is in the registry", section.path_of(name)))
}

/// One hop; `whole_rtt`: what its BDP is reckoned with.
fn hop(facts: &mut Facts, section: Section, path: &Path, whole_rtt: Nanos) {
    let times_rtt = match section {
        Section::Hop(_) => "the rtt of all hops together",
        _ => "path.rtt",
    };
    let packet_bytes = (path.mtu_bytes + path.overhead_bytes) as u64;
    let (rate, trace) = (path.rate, path.rate_trace.clone());
    facts.key(section, "rate", Offered { rate, trace });
    if let (Some(mean), Some(trace)) = (path.rate, &path.rate_trace) {
        facts.derived(
            section,
            "mean_rate",
            mean,
            &format!("mean of the trace, which is {} long", trace.length()),
        );
    }
    facts.key(section, "rtt", path.rtt);
    let bdp_bytes = path.rate.map(|rate| bdp_bytes(rate, whole_rtt));
    if let Some(bdp) = bdp_bytes {
        let rate = section.path_of(match path.rate_trace {
            None => "rate",
            Some(_) => "mean_rate",
        });
        let doc = format!("{rate} × {times_rtt}, rounded up");
        facts.derived(section, "bdp_bytes", bdp, &doc);
        let doc = "the same in packets of path.mtu + path.overhead, rounded up";
        facts.derived(section, "bdp_pkts", bdp.div_ceil(packet_bytes), doc);
    }
    facts.key(section, "loss", path.loss.clone());
    facts.key(section, "ack_loss", path.ack_loss.clone());
    let sizes = match path.buffer {
        BufferLimit::Unlimited => None,
        BufferLimit::Bytes(bytes) => Some((bytes, bytes / packet_bytes)),
        BufferLimit::Packets(n) => Some((n as u64 * packet_bytes, n as u64)),
    };
    facts.key(section, "buffer", size(path.buffer));
    if let Some((bytes, pkts)) = sizes {
        facts.derived(
            section,
            "buffer_bytes",
            bytes,
            "the buffer in bytes of full packets",
        );
        facts.derived(
            section,
            "buffer_pkts",
            pkts,
            "whole packets of path.mtu + path.overhead that fit",
        );
        if let Some(bdp) = bdp_bytes {
            let share = format!("{:.2}", bytes as f64 / bdp as f64);
            let doc = format!(
                "the buffer as a multiple of {}",
                section.path_of("bdp_bytes")
            );
            facts.derived(section, "buffer_bdp", share, &doc);
        }
        if let Some(rate) = path.rate {
            let drain = format!("{:.3}ms", rate.transmit_time(bytes).0 as f64 / 1e6);
            let at = match path.rate_trace {
                None => String::new(),
                Some(_) => format!(", at {}", section.path_of("mean_rate")),
            };
            let doc = format!("queueing delay when the buffer is full{at}");
            facts.derived(section, "buffer_drain", drain, &doc);
        }
    }
    facts.key(section, "queue", path.queue);
    queue_params(facts, section, "", path.queue, &path.queue_params);
    facts.key(section, "policer_rate", path.policer.map(|p| p.rate));
    if let Some(policer) = path.policer {
        facts.key(section, "policer_burst", policer.burst_bytes);
        let action = match policer.action {
            Action::Drop => "drop",
            Action::Mark => "mark",
        };
        facts.key(section, "policer_action", action);
    }
    uneven(facts, section, path);
    facts.key(section, "overhead", u64::from(path.overhead_bytes));
}

/// What holds for all hops alike.
fn whole(facts: &mut Facts, path: &Path) {
    let section = Section::Whole;
    facts.key(section, "mtu", u64::from(path.mtu_bytes));
    let backend = match path.backend {
        Backend::Auto => "auto",
        Backend::User => "user",
        Backend::Netem => "netem",
        Backend::Veth => "veth",
    };
    facts.key(section, "backend", backend);
    let treatment = if path.keep_super_packets {
        "keep"
    } else {
        "split"
    };
    facts.key(section, "super_packets", treatment);
}

/// What makes the path less than even, as far as the scenario has it.
fn uneven(facts: &mut Facts, section: Section, path: &Path) {
    for (key, value) in path.impairments.iter().flat_map(ImpairmentSpec::entries) {
        facts.shown(section, key.name, value.to_string());
    }
    if !path.rtt_changes.is_empty() {
        facts.key(section, "rtt_change", path.rtt_changes.clone());
    }
    let ack = &path.ack;
    if ack.rate.is_some() {
        let (rate, trace) = (ack.rate, ack.rate_trace.clone());
        facts.key(section, "ack_rate", Offered { rate, trace });
        facts.key(section, "ack_buffer", size(ack.buffer));
        facts.key(section, "ack_queue", ack.queue);
        queue_params(facts, section, ACK, ack.queue, &ack.queue_params);
    }
}

fn algorithm_params(facts: &mut Facts, section: Section, flow: &FlowSpec, names: &Names) {
    let params = names.algorithm(&flow.algorithm).map(|a| &a.params[..]);
    for info in params.unwrap_or_default() {
        let set = flow.params.iter().find(|(name, _)| *name == info.name);
        let value = set.map_or(info.default, |(_, value)| (*value).into());
        let doc = format!("parameter of {}", flow.algorithm);
        facts.param(section, &flow.algorithm, info, value, &doc);
    }
}

/// `prefix`: what the names of tables begin with that hold this queue's parameters.
fn queue_params(facts: &mut Facts, section: Section, prefix: &str, queue: &str, params: &Params) {
    for (param, value) in params.entries() {
        let info = ParamInfo::of_queue(param);
        facts.param(
            section,
            &format!("{prefix}{queue}"),
            &info,
            value,
            param.doc,
        );
    }
}

fn flow(facts: &mut Facts, section: Section, flow: &FlowSpec, names: &Names, n_hops: usize) {
    for line in flow.lines() {
        match line {
            Shown::Given("name") => facts.key(section, "name", flow.name.clone()),
            Shown::Given("algorithm") => facts.key(section, "algorithm", flow.algorithm.clone()),
            Shown::Given("params") => algorithm_params(facts, section, flow, names),
            Shown::Given("workload") => {
                facts.key(section, "workload", flow.workload.kind().name);
                facts.lines(section, flow.workload.shown());
            }
            Shown::Given("rtt") => facts.key(section, "rtt", flow.rtt),
            Shown::Given("hops") if n_hops > 1 => {
                let (first, last) = (flow.hops.start + 1, flow.hops.end);
                facts.key(section, "hops", Places { first, last });
            }
            line => facts.line(section, line),
        }
    }
}

fn size(limit: BufferLimit) -> BufferSize {
    match limit {
        BufferLimit::Unlimited => BufferSize::Unlimited,
        BufferLimit::Bytes(bytes) => BufferSize::Bytes(bytes),
        BufferLimit::Packets(n) => BufferSize::Packets(n),
    }
}

/// Rate × RTT, rounded up: what fills the path.
pub fn bdp_bytes(rate: Rate, rtt: Nanos) -> u64 {
    (rate.bits_per_sec() as u128 * rtt.0 as u128).div_ceil(8_000_000_000) as u64
}
