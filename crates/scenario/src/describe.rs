//! A cell in words: what reports print and `run.json` keeps.

use std::sync::Arc;

use knee_path::impairment::ImpairmentSpec;
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::Action;
use knee_path::trace::RateTrace;
use knee_path::{Backend, Path, RttChange};
use knee_units::params::Params;
use knee_units::{Nanos, Rate};

use super::keys::Section;
use super::read::ACK;
use super::{Cell, FlowSpec, Host, Names, ParamInfo, WorkloadSpec};
use crate::workload::web::ArrivalProcess;

/// Key, value with its unit, and what it means. Keys are those of the file;
/// what is derived has a key with its unit last: `path.bdp_bytes`.
pub type Fact = (String, String, String);

/// Every value of a cell, defaults and derived ones included. `names` are those that it was read with: they know
/// how the parameters of algorithms are written.
pub fn describe(cell: &Cell, names: &Names) -> Vec<Fact> {
    let mut facts = Facts(Vec::new());
    facts.key(Section::Top, "duration", cell.duration);
    facts.key(Section::Top, "warmup", cell.warmup);
    facts.key(Section::Top, "repeat", cell.repeat);
    facts.key(Section::Top, "seed", cell.seed);
    facts.key(Section::Top, "sample_interval", cell.sample_interval);
    match &cell.further[..] {
        [] => hop(&mut facts, Section::Path, &cell.path, cell.path.rtt),
        _ => {
            for (i, path) in cell.hops().enumerate() {
                hop(&mut facts, Section::Hop(i), path, cell.rtt());
            }
        }
    }
    whole(&mut facts, &cell.path);
    host(&mut facts, Section::Sender, &cell.sender);
    host(&mut facts, Section::Receiver, &cell.receiver);
    facts.key(Section::Receiver, "algorithm", &cell.receiver.algorithm);
    for (i, spec) in cell.flows.iter().enumerate() {
        let section = Section::Flow(i);
        facts.key(section, "name", &spec.name);
        facts.key(section, "algorithm", &spec.algorithm);
        algorithm_params(&mut facts, section, spec, names);
        flow(&mut facts, section, spec, 1 + cell.further.len());
    }
    facts.0
}

struct Facts(Vec<Fact>);

impl Facts {
    /// A key of the registry, with the registry's words.
    fn key(&mut self, section: Section, name: &str, value: impl ToString) {
        let key = section.keys().find(|key| key.name == name);
        let key = key.unwrap_or_else(|| panic!("{} is in the registry", section.path_of(name)));
        self.0
            .push((section.path_of(name), value.to_string(), key.doc.into()));
    }

    /// A parameter of `owner`, as it is written.
    fn param(&mut self, section: Section, owner: &str, info: &ParamInfo, value: f64, doc: &str) {
        let written = info.written(value);
        let key = format!("{owner}.{}", info.name);
        self.derived(section, &key, written.trim_matches('"'), doc);
    }

    fn derived(&mut self, section: Section, name: &str, value: impl ToString, doc: &str) {
        self.0
            .push((section.path_of(name), value.to_string(), doc.into()));
    }
}

/// One hop; `whole_rtt`: what its BDP is reckoned with.
fn hop(facts: &mut Facts, section: Section, path: &Path, whole_rtt: Nanos) {
    let times_rtt = match section {
        Section::Hop(_) => "the rtt of all hops together",
        _ => "path.rtt",
    };
    let packet_bytes = (path.mtu_bytes + path.overhead_bytes) as u64;
    facts.key(section, "rate", link_rate(path.rate, &path.rate_trace));
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
    facts.key(section, "loss", &path.loss);
    facts.key(section, "ack_loss", &path.ack_loss);
    let sizes = match path.buffer {
        BufferLimit::Unlimited => None,
        BufferLimit::Bytes(bytes) => Some((format!("{bytes}B"), bytes, bytes / packet_bytes)),
        BufferLimit::Packets(n) => Some((format!("{n}packets"), n as u64 * packet_bytes, n as u64)),
    };
    facts.key(
        section,
        "buffer",
        sizes.as_ref().map_or("unlimited", |(text, ..)| text),
    );
    if let Some((_, bytes, pkts)) = sizes {
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
    facts.key(section, "policer_rate", rate(path.policer.map(|p| p.rate)));
    if let Some(policer) = path.policer {
        facts.key(
            section,
            "policer_burst",
            format!("{}B", policer.burst_bytes),
        );
        let action = match policer.action {
            Action::Drop => "drop",
            Action::Mark => "mark",
        };
        facts.key(section, "policer_action", action);
    }
    uneven(facts, section, path);
    facts.key(section, "overhead", format!("{}B", path.overhead_bytes));
}

/// What holds for all hops alike.
fn whole(facts: &mut Facts, path: &Path) {
    let section = Section::Whole;
    facts.key(section, "mtu", format!("{}B", path.mtu_bytes));
    let backend = match path.backend {
        Backend::Auto => "auto",
        Backend::User => "user",
        Backend::Netem => "netem",
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
        facts.key(section, key.name, value);
    }
    if !path.rtt_changes.is_empty() {
        let text = |change: &RttChange| format!("{} to {}", change.at, change.rtt);
        let texts: Vec<String> = path.rtt_changes.iter().map(text).collect();
        facts.key(section, "rtt_change", texts.join(", "));
    }
    let ack = &path.ack;
    if ack.rate.is_some() {
        facts.key(section, "ack_rate", link_rate(ack.rate, &ack.rate_trace));
        let buffer = match ack.buffer {
            BufferLimit::Unlimited => "unlimited".into(),
            BufferLimit::Bytes(bytes) => format!("{bytes}B"),
            BufferLimit::Packets(n) => format!("{n}packets"),
        };
        facts.key(section, "ack_buffer", buffer);
        facts.key(section, "ack_queue", ack.queue);
        queue_params(facts, section, ACK, ack.queue, &ack.queue_params);
    }
}

fn host(facts: &mut Facts, section: Section, host: &Host) {
    let bytes = |n: u64| format!("{n}B");
    facts.key(section, "hz", host.hz);
    for (what, sizes) in [
        ("tcp_wmem", host.tcp_wmem_bytes),
        ("tcp_rmem", host.tcp_rmem_bytes),
    ] {
        for (part, size) in ["min", "default", "max"].into_iter().zip(sizes) {
            facts.key(section, &format!("{what}_{part}"), bytes(size));
        }
    }
    facts.key(
        section,
        "tcp_limit_output_bytes",
        bytes(host.tcp_limit_output_bytes),
    );
    facts.key(
        section,
        "tcp_slow_start_after_idle",
        host.tcp_slow_start_after_idle,
    );
    facts.key(section, "tcp_rto_min", host.tcp_rto_min);
    facts.key(section, "tcp_comp_sack_delay", host.tcp_comp_sack_delay);
    facts.key(section, "tcp_comp_sack_nr", host.tcp_comp_sack_nr);
    facts.key(section, "pacing", host.pacing.name());
    facts.key(section, "qdisc", host.qdisc.as_deref().unwrap_or("default"));
    facts.key(section, "tcp_ecn", host.tcp_ecn);
    facts.key(section, "quickack", host.quickack);
    facts.key(section, "initcwnd", host.initcwnd);
    facts.key(section, "gso_max", bytes(host.gso_max_bytes.into()));
    facts.key(section, "grow_skb", host.grow_skb);
    facts.key(section, "gro", host.gro);
    facts.key(section, "rx_coalesce", host.rx_coalesce);
    facts.key(section, "noise", host.noise);
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

fn flow(facts: &mut Facts, section: Section, flow: &FlowSpec, n_hops: usize) {
    facts.key(section, "workload", flow.workload.kind().name);
    match &flow.workload {
        WorkloadSpec::Bulk { write_bytes } => {
            facts.key(section, "write", format!("{write_bytes}B"))
        }
        WorkloadSpec::Transfer { bytes, write_bytes } => {
            facts.key(section, "bytes", format!("{bytes}B"));
            facts.key(section, "write", format!("{write_bytes}B"));
        }
        WorkloadSpec::OnOff {
            on,
            off,
            write_bytes,
        } => {
            facts.key(section, "on", on);
            facts.key(section, "off", off);
            facts.key(section, "write", format!("{write_bytes}B"));
        }
        WorkloadSpec::Web {
            arrivals,
            write_bytes,
        } => {
            let process = match arrivals.process {
                ArrivalProcess::Poisson => "poisson",
                ArrivalProcess::Regular => "regular",
            };
            let load = format!("{:.0}bit/s", arrivals.load_bits_per_sec());
            facts.key(section, "load", load);
            facts.derived(
                section,
                "arrivals_per_sec",
                format!("{:.3}", arrivals.per_sec()),
                "transfers per second in the long run",
            );
            facts.key(section, "arrival_process", process);
            facts.key(section, "sizes", &arrivals.sizes);
            facts.key(section, "write", format!("{write_bytes}B"));
        }
        WorkloadSpec::Programs { server, client } => {
            if let Some(server) = server {
                facts.key(section, "server", server);
            }
            facts.key(section, "client", client);
        }
        WorkloadSpec::RequestResponse {
            request_bytes,
            response_bytes,
            connections,
            depth,
            requests,
        } => {
            facts.key(section, "request", format!("{request_bytes}B"));
            facts.key(section, "response", format!("{response_bytes}B"));
            facts.key(section, "connections", connections);
            facts.key(section, "depth", depth);
            facts.key(
                section,
                "requests",
                requests.map_or("unlimited".into(), |n| n.to_string()),
            );
        }
    }
    facts.key(section, "count", flow.count);
    facts.key(section, "start", flow.start);
    facts.key(section, "stagger", flow.stagger);
    facts.key(section, "rtt", flow.rtt);
    if n_hops > 1 {
        let hops = format!("{}..{}", flow.hops.start + 1, flow.hops.end);
        facts.key(section, "hops", hops);
    }
    facts.key(section, "blocking", flow.blocking.to_string());
    if let Some(pacing) = flow.pacing {
        facts.key(section, "pacing", pacing.name());
    }
    facts.key(section, "max_pacing_rate", rate(flow.max_pacing_rate));
}

fn link_rate(mean: Option<Rate>, trace: &Option<Arc<RateTrace>>) -> String {
    match trace {
        Some(trace) => format!("trace {}", trace.name),
        None => rate(mean),
    }
}

fn rate(rate: Option<Rate>) -> String {
    rate.map_or("unlimited".into(), |rate| rate.to_string())
}

/// Rate × RTT, rounded up: what fills the path.
pub fn bdp_bytes(rate: Rate, rtt: Nanos) -> u64 {
    (rate.bits_per_sec() as u128 * rtt.0 as u128).div_ceil(8_000_000_000) as u64
}
