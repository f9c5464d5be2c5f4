//! How fast and how punctual the link is, beside a device pair without a link
//! (what the stack can do at most here) and a loop that only copies.
//!
//! Needs root, or `unshare --map-root-user`, and `ip` and `ethtool`. Every case
//! runs once per round, so that what else the machine does meets all alike.
//! `cargo bench -p knee-link -- ROUNDS [WORDS]`: another number of rounds; only
//! the cases whose name has the words.

mod copy;
mod hosts;
mod traffic;

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use hosts::{Hosts, RECEIVER, SENDER};
use knee_link::{Group, LinkConfig, Nic, Report};
use knee_path::impairment::Impairments;
use knee_path::loss::LossSpec;
use knee_path::queue::BufferLimit;
use knee_path::{AckLink, Backend, Path};
use knee_units::params::Params;
use knee_units::{Nanos, Rate};

const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(2);
const RTT: Nanos = Nanos::from_ms(10);
/// As a full-sized packet with timestamps: wire bytes and payload.
const WIRE_PER_PAYLOAD: f64 = 1_500.0 / 1_448.0;

/// What the hosts' devices and the link do with super-packets.
#[derive(Clone, Copy, PartialEq)]
enum Offload {
    /// Neither TSO nor GRO: each wire packet is read and written by itself.
    None,
    /// TSO and GRO; the link cuts, and merges again what arrives together.
    Split,
    /// TSO; the link passes super-packets whole.
    Kept,
}

impl Offload {
    fn name(self) -> &'static str {
        match self {
            Offload::None => "none",
            Offload::Split => "split, merged",
            Offload::Kept => "kept",
        }
    }
}

/// What is between the hosts.
#[derive(Clone, Copy, PartialEq)]
enum Between {
    Veth,
    CopyLoop,
    /// tcpknee's link at that many Mbit/s.
    Link(u64),
}

struct Case {
    between: Between,
    offload: Offload,
}

/// More than this machine can do: shows the most.
const MOST_MBIT_PER_SEC: u64 = 40_000;

impl Case {
    fn name(&self) -> String {
        let between = match self.between {
            Between::Veth => "veth, no link".into(),
            Between::CopyLoop => "copy loop".into(),
            Between::Link(MOST_MBIT_PER_SEC) => "link, 40 Gbit/s asked".into(),
            Between::Link(rate) => format!("link, {} Gbit/s asked", rate as f64 / 1e3),
        };
        format!("{:<14} {between}", self.offload.name())
    }
}

/// What was measured of a case, one entry per round.
#[derive(Default)]
struct Measured {
    wire_gbit_per_sec: Vec<f64>,
    rate_error_pct: Vec<f64>,
    added_us_p50: Vec<f64>,
    added_us_p99: Vec<f64>,
    back_added_us_p99: Vec<f64>,
    late_pct: Vec<f64>,
    syscalls_per_pkt: Vec<f64>,
    cpu_pct: Vec<f64>,
    overflowed_pkts: u64,
    kept_up: usize,
    is_link: bool,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    for needed in ["ip", "ethtool"] {
        if Command::new(needed).arg("--version").output().is_err() {
            println!("link: left out, because there is no `{needed}` here");
            return;
        }
    }
    if let Err(error) = File::open("/dev/net/tun") {
        println!("link: left out, because /dev/net/tun cannot be opened: {error}");
        return;
    }
    let rounds = words.first().and_then(|word| word.parse().ok());
    let wanted = &words[usize::from(rounds.is_some())..];
    let cases: Vec<Case> = cases()
        .filter(|case| wanted.iter().all(|word| case.name().contains(word)))
        .collect();
    let rounds = rounds.unwrap_or(ROUNDS);
    let mut measured: Vec<Measured> = cases.iter().map(|_| Measured::default()).collect();
    for _ in 0..rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            measure(case, measured);
        }
    }
    println!(
        "\nlink: one TCP connection, 1500-byte wire packets, {} ms, FIFO; {rounds} rounds of {} s; mean and half of the 95 % interval",
        RTT.as_us() / 1_000,
        SPAN.as_secs()
    );
    println!(
        "{:<36} {:>14} {:>15} {:>12} {:>14} {:>9} {:>14} {:>9} {:>10} {:>9} {:>8}",
        "offloads, between the hosts",
        "wire Gbit/s",
        "rate error %",
        "added us p50",
        "added us p99",
        "back p99",
        "late packets %",
        "CPU %",
        "calls/pkt",
        "overflow",
        "kept up"
    );
    for (case, measured) in cases.iter().zip(&measured) {
        measured.print(&case.name());
    }
    if wanted.is_empty() {
        println!("\nprobes of 1500 bytes, one each 2 ms: one-way delay more than asked");
        alone("veth, no link", None);
        for rate in [100, 1_500] {
            alone(
                &format!("link, {} Gbit/s, 10 ms", rate as f64 / 1e3),
                Some(rate),
            );
        }
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let of = |offload, betweens: &'static [Between]| {
        betweens
            .iter()
            .map(move |&between| Case { between, offload })
    };
    use Between::{CopyLoop, Link, Veth};
    of(
        Offload::None,
        &[
            Veth,
            CopyLoop,
            Link(MOST_MBIT_PER_SEC),
            Link(3_000),
            Link(1_500),
            Link(100),
        ],
    )
    .chain(of(
        Offload::Split,
        &[Link(MOST_MBIT_PER_SEC), Link(5_000), Link(100)],
    ))
    .chain(of(
        Offload::Kept,
        &[
            Veth,
            CopyLoop,
            Link(MOST_MBIT_PER_SEC),
            Link(10_000),
            Link(5_000),
            Link(100),
        ],
    ))
}

fn measure(case: &Case, measured: &mut Measured) {
    let goodput = match case.between {
        Between::Veth => {
            let hosts = Hosts::with_veth(case.offload != Offload::None);
            traffic::bulk(&hosts, SPAN)
        }
        Between::CopyLoop => {
            let (hosts, sender, receiver) = Hosts::with_tuns(case.offload != Offload::None);
            let (stop, stopper) = nix::unistd::pipe().expect("a pipe");
            std::thread::scope(|scope| {
                scope.spawn(|| copy::run(&sender, &receiver, stop.as_fd()));
                let goodput = traffic::bulk(&hosts, SPAN);
                drop(stopper);
                goodput
            })
        }
        Between::Link(rate) => {
            let config = config(rate, case.offload);
            let (goodput, report) = linked(&config, |hosts| traffic::bulk(hosts, SPAN));
            measured.add(&report);
            goodput
        }
    };
    measured
        .wire_gbit_per_sec
        .push(goodput * WIRE_PER_PAYLOAD / 1e9);
}

/// Does something to two hosts with the link between them.
fn linked<T>(config: &LinkConfig, work: impl FnOnce(&Hosts) -> T) -> (T, Report) {
    let (hosts, sender, receiver) = Hosts::with_tuns(config.sender.tso);
    let (stop, stopper) = nix::unistd::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        let link = scope
            .spawn(move || knee_link::run(config, sender, receiver, monotonic_ns(), stop.as_fd()));
        let result = work(&hosts);
        drop(stopper);
        let report = link.join().expect("the link ends");
        (result, report.expect("the link works"))
    })
}

fn config(rate_mbit_per_sec: u64, offload: Offload) -> LinkConfig {
    let rate = Rate::from_bits_per_sec(rate_mbit_per_sec * 1_000_000);
    let bdp_bytes = rate_mbit_per_sec * 1_000_000 / 8 * RTT.as_us() / 1_000_000;
    let nic = Nic {
        tso: offload != Offload::None,
        coalesce: Nanos::ZERO,
        gro: offload == Offload::Split,
    };
    LinkConfig {
        path: Path {
            rate,
            rtt: RTT,
            rate_trace: None,
            rtt_changes: Vec::new(),
            impairments: Impairments::NONE,
            ack: AckLink::open(),
            loss: LossSpec::NONE,
            ack_loss: LossSpec::NONE,
            buffer: BufferLimit::Bytes(bdp_bytes.max(1 << 20)),
            queue: "fifo",
            queue_params: Params::defaults(&[]),
            policer: None,
            mtu_bytes: 1_500,
            overhead_bytes: 0,
            backend: Backend::User,
            keep_super_packets: offload == Offload::Kept,
        },
        further: Vec::new(),
        groups: vec![Group {
            sender: SENDER.parse().expect("an address"),
            receiver: RECEIVER.parse().expect("an address"),
            rtt: RTT,
            warmup: Nanos::ZERO,
            hops: 0..1,
        }],
        first_port: 10_000,
        flows: 0,
        hosts: [None; 2],
        seed: 1,
        sample_interval: Nanos::from_ms(10),
        receiver: Nic {
            // What the simulator's NIC has by default.
            coalesce: if nic.gro {
                Nanos::from_us(20)
            } else {
                Nanos::ZERO
            },
            ..nic
        },
        sender: nic,
    }
}

/// Delay of single probes beyond the delay and the time on the wire.
fn alone(name: &str, rate_mbit_per_sec: Option<u64>) {
    let (delays, asked_ns) = match rate_mbit_per_sec {
        None => (traffic::probe(&Hosts::with_veth(true), SPAN), 0),
        Some(rate) => {
            let config = config(rate, Offload::None);
            let wire_ns = config.path.rate.map_or(Nanos::ZERO, |rate| {
                rate.transmit_time(traffic::PROBE_BYTES as u64)
            });
            let (delays, _) = linked(&config, |hosts| traffic::probe(hosts, SPAN));
            (delays, RTT.0 / 2 + wire_ns.0)
        }
    };
    let early = delays.iter().filter(|&&delay| delay < asked_ns).count();
    let quantile = |share: f64| {
        let at = ((delays.len() - 1) as f64 * share) as usize;
        (delays[at] as f64 - asked_ns as f64) / 1e3
    };
    println!(
        "  {name:<26} p50 {:>7.1} us, p99 {:>7.1} us, most {:>7.1} us; early: {early} of {}",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0),
        delays.len()
    );
}

impl Measured {
    fn add(&mut self, report: &Report) {
        self.is_link = true;
        let [data, back] = &report.directions;
        self.rate_error_pct.extend(data.rate_error_pct);
        self.added_us_p50.extend(data.added_delay_us.quantile(0.5));
        self.added_us_p99.extend(data.added_delay_us.quantile(0.99));
        self.back_added_us_p99
            .extend(back.added_delay_us.quantile(0.99));
        let pkts = data.forwarded_pkts.max(1) as f64;
        self.late_pct.push(data.late_pkts as f64 / pkts * 100.0);
        let calls = data.syscalls + back.syscalls;
        self.syscalls_per_pkt.push(calls as f64 / pkts);
        // Of one processor, over the link's life: bulk() and half a second before it.
        let life_ns = (SPAN + Duration::from_millis(500)).as_nanos() as f64;
        let cpu_ns = (data.cpu_ns + back.cpu_ns) as f64;
        self.cpu_pct.push(cpu_ns / life_ns * 100.0);
        self.overflowed_pkts += data.overflowed_pkts.expect("the namespaces are ours");
        self.kept_up += usize::from(data.kept_up && back.kept_up);
    }

    fn print(&self, name: &str) {
        let rate = interval(&self.wire_gbit_per_sec);
        if !self.is_link {
            println!("{name:<36} {rate:>14}");
            return;
        }
        println!(
            "{name:<36} {rate:>14} {:>15} {:>12.0} {:>14} {:>9.0} {:>14.2} {:>9.0} {:>10.2} {:>9} {:>8}",
            interval(&self.rate_error_pct),
            mean(&self.added_us_p50),
            interval(&self.added_us_p99),
            mean(&self.back_added_us_p99),
            mean(&self.late_pct),
            mean(&self.cpu_pct),
            mean(&self.syscalls_per_pkt),
            self.overflowed_pkts,
            format!("{}/{}", self.kept_up, self.wire_gbit_per_sec.len()),
        );
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean and half of the 95 % interval, by Student's t.
fn interval(values: &[f64]) -> String {
    /// Of 1 to 9 degrees of freedom.
    const T: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    let Some(t) = values
        .len()
        .checked_sub(2)
        .map(|at| T.get(at).copied().unwrap_or(2.0))
    else {
        return values
            .first()
            .map_or("-".into(), |only| format!("{only:.3}"));
    };
    let mean = mean(values);
    let count = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = t * (squares / (count - 1.0) / count).sqrt();
    let digits = if mean.abs() < 10.0 { 3 } else { 1 };
    format!("{mean:.digits$} ±{half:.digits$}")
}

fn monotonic_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
