//! Scenarios as text, drawn at random: 1-4 groups of flows, all algorithms and workloads, rates of
//! 100 kbit/s to 1 Gbit/s and none, RTTs of 0.1-300 ms, hardly any buffer or a lot,
//! loss up to half of the packets, independent and in bursts, a third of the paths
//! uneven (jitter, reordering, duplicates, outages, route changes, aggregation, slow
//! links for ACKs), some at the rate of a trace, a fourth of two or three such hops of which
//! each flow crosses some, small socket buffers, offloads on and off.
//! Each is as long as some thousands of packets take.

use knee_path::queue::QUEUES;
use proptest::prelude::*;

use crate::common;

fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = u64> {
    (low.ln()..high.ln()).prop_map(|x| x.exp().round() as u64)
}

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("0%".to_owned()),
        3 => (1u32..=500).prop_map(|tenths| format!("{}%", f64::from(tenths) / 10.0)),
        2 => (1u32..=500).prop_map(|tenths| format!("periodic {}%", f64::from(tenths) / 10.0)),
        1 => (1u32..=500, 1u32..=40)
            .prop_map(|(tenths, burst)| format!("gilbert {}% burst {burst}", f64::from(tenths) / 10.0)),
    ]
}

/// A buffer as a function of rate, RTT and MTU: the parser refuses one that holds no packet.
#[derive(Clone, Copy, Debug)]
enum Buffer {
    Packets(u32),
    Bytes(u64),
    HundredthsOfBdp(u64),
    Ms(u64),
}

impl Buffer {
    fn text(self, rate_kbit: u64, rtt_us: u64, mtu: u32) -> String {
        let holds_one = |time_us: u64| rate_kbit * time_us / 8_000 > u64::from(mtu);
        match self {
            Buffer::Packets(n) => format!("{n}packets"),
            Buffer::Bytes(n) => format!("{}B", n + u64::from(mtu)),
            Buffer::HundredthsOfBdp(n) if holds_one(rtt_us * n / 100) => {
                format!("{}bdp", n as f64 / 100.0)
            }
            Buffer::Ms(n) if holds_one(n * 1_000) => format!("{n}ms"),
            Buffer::HundredthsOfBdp(_) | Buffer::Ms(_) => "1packet".to_owned(),
        }
    }
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (1u32..=200).prop_map(Buffer::Packets),
        log_uniform(1.0, 1e6).prop_map(Buffer::Bytes),
        (1u64..=800).prop_map(Buffer::HundredthsOfBdp),
        (1u64..=100).prop_map(Buffer::Ms),
    ]
}

fn queue() -> impl Strategy<Value = &'static str> {
    let names: Vec<_> = QUEUES.iter().map(|kind| kind.name).collect();
    proptest::sample::select(names)
}

pub fn algorithm() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(common::algorithms().collect::<Vec<_>>())
}

/// Three sizes in order: least, initial, largest.
fn memory(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        [log_uniform(4_096.0, 1e6), log_uniform(4_096.0, 1e6), log_uniform(4_096.0, 1e7)].prop_map(
            move |mut bytes| {
                bytes.sort_unstable();
                let [min, default, max] = bytes;
                format!("{name}_min = \"{min}B\"\n{name}_default = \"{default}B\"\n{name}_max = \"{max}B\"\n")
            }
        ),
    ]
}

/// What a host negotiates and how it acknowledges and times out.
fn tcp() -> impl Strategy<Value = String> {
    (
        prop_oneof![2 => Just(2u32), 3 => 0..=5u32],
        prop_oneof![3 => Just(false), 1 => Just(true)],
        prop_oneof![3 => Just(200_000u64), 1 => log_uniform(1e3, 1e6)],
        prop_oneof![2 => Just(44u32), 1 => 0..=255u32],
    )
        .prop_map(|(ecn, quickack, rto_min_us, comp_sack_nr)| {
            format!(
                "tcp_ecn = {ecn}\nquickack = {quickack}\ntcp_rto_min = \"{rto_min_us}us\"\n\
                 tcp_comp_sack_nr = {comp_sack_nr}\n"
            )
        })
}

/// A host's table; both sides take the same keys.
fn host() -> impl Strategy<Value = String> {
    (
        memory("tcp_wmem"),
        memory("tcp_rmem"),
        proptest::sample::select(vec![100, 250, 300, 1000]),
        any::<bool>(),
        prop_oneof![2 => Just(20u32), 1 => Just(0), 1 => 1..=200u32],
        (prop_oneof![2 => Just(65_536u32), 1 => Just(0), 1 => 9_000..=200_000u32], any::<bool>()),
        proptest::sample::select(vec!["internal", "fq"]),
        prop_oneof![2 => Just(10u32), 1 => 1..=100u32],
        any::<bool>(),
        tcp(),
    )
        .prop_map(
            |(wmem, rmem, hz, gro, coalesce_us, (gso_bytes, grow_skb), pacing, initcwnd, after_idle, tcp)| {
                format!(
                    "{wmem}{rmem}{tcp}hz = {hz}\ngro = {gro}\nrx_coalesce = \"{coalesce_us}us\"\n\
                 gso_max = \"{gso_bytes}B\"\ngrow_skb = {grow_skb}\npacing = \"{pacing}\"\ninitcwnd = {initcwnd}\n\
                 tcp_slow_start_after_idle = {after_idle}\n"
                )
            },
        )
}

fn workload() -> impl Strategy<Value = String> {
    let write = || prop_oneof![Just(131_072u64), log_uniform(1.0, 3e5)];
    prop_oneof![
        3 => Just("workload = \"bulk\"\n".to_owned()),
        1 => (log_uniform(1e3, 1e6), log_uniform(1e3, 1e6)).prop_map(|(on_us, off_us)| {
            format!("workload = \"on-off\"\non = \"{on_us}us\"\noff = \"{off_us}us\"\n")
        }),
        // Small writes make an event each: few bytes in those.
        3 => (log_uniform(1.0, 3e6), write()).prop_map(|(bytes, write)| {
            let bytes = bytes.min(write * 2_000);
            format!("workload = \"transfer\"\nbytes = \"{bytes}B\"\nwrite = \"{write}B\"\n")
        }),
        1 => (1.0..20.0f64, log_uniform(1.0, 1e4)).prop_map(|(per_sec, from)| {
            format!("workload = \"web\"\narrivals = \"{per_sec:.2}/s\"\nsizes = \"pareto from {from}B to 3MB\"\n")
        }),
        3 => (log_uniform(1.0, 1e5), log_uniform(1.0, 1e5), 1..=3u32, 1..=8u32, prop_oneof![
            Just("\"unlimited\"".to_owned()),
            (1..=50u32).prop_map(|n| n.to_string()),
        ])
            .prop_map(|(request, response, connections, depth, requests)| format!(
                "workload = \"request-response\"\nrequest = \"{request}B\"\nresponse = \"{response}B\"\n\
                 connections = {connections}\ndepth = {depth}\nrequests = {requests}\n"
            )),
    ]
}

/// A flow's table, its start and its stagger in per cent of the run.
fn flow() -> impl Strategy<Value = (String, u64, u64)> {
    (
        algorithm(),
        workload(),
        1..=3u32,
        prop_oneof![2 => Just(0u64), 1 => 0u64..=90],
        0u64..=3,
        prop_oneof![
            3 => Just(String::new()),
            1 => log_uniform(100.0, 3e5).prop_map(|us| format!("rtt = \"{us}us\"\n")),
        ],
        prop_oneof![
            4 => Just(String::new()),
            1 => log_uniform(100.0, 1e6).prop_map(|k| format!("max_pacing_rate = \"{k}kbit/s\"\n")),
        ],
    )
        .prop_map(
            |(algorithm, workload, count, start_pct, stagger_pct, rtt, max_pacing_rate)| {
                let text = format!(
                    "[[flow]]\nalgorithm = \"{algorithm}\"\n{workload}count = {count}\n\
                     {rtt}{max_pacing_rate}"
                );
                (text, start_pct, stagger_pct)
            },
        )
}

/// How a rate is written, and what it is in kbit/s; `None`: unlimited.
fn rate() -> impl Strategy<Value = (String, Option<u64>)> {
    prop_oneof![
        9 => log_uniform(100.0, 1e6).prop_map(|kbit| (format!("{kbit}kbit/s"), Some(kbit))),
        1 => Just(("unlimited".to_owned(), None)),
        2 => proptest::sample::select(vec![("cellular", 4_394), ("wifi", 12_829), ("satellite", 3_679)])
            .prop_map(|(name, kbit)| (format!("trace {name}"), Some(kbit))),
    ]
}

/// What makes a path uneven; times that depend on the run's length are in per cent of it.
#[derive(Clone, Debug)]
struct Uneven {
    keys: String,
    outage_pct: Option<(u64, u64)>,
    route: Option<(u64, u64)>,
}

fn uneven() -> impl Strategy<Value = Uneven> {
    fn maybe(text: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
        prop_oneof![2 => Just(String::new()), 1 => text]
    }
    let some = (
        maybe((log_uniform(1.0, 5e4), any::<bool>(), any::<bool>()).prop_map(|(us, normal, reorders)| {
            let distribution = if normal { "normal" } else { "uniform" };
            format!(
                "jitter = \"{us}us\"\njitter_distribution = \"{distribution}\"\njitter_reorders = {reorders}\n"
            )
        })),
        maybe((1u32..=500, log_uniform(1.0, 5e4)).prop_map(|(tenths, us)| {
            format!("reorder = \"{}%\"\nreorder_delay = \"{us}us\"\n", f64::from(tenths) / 10.0)
        })),
        maybe((1u32..=500).prop_map(|tenths| format!("duplicate = \"{}%\"\n", f64::from(tenths) / 10.0))),
        maybe(log_uniform(1.0, 2e4).prop_map(|us| format!("aggregate = \"{us}us\"\n"))),
        maybe((log_uniform(20.0, 1e5), 1u32..=200).prop_map(|(kbit, packets)| {
            format!("ack_rate = \"{kbit}kbit/s\"\nack_buffer = \"{packets}packets\"\n")
        })),
        prop_oneof![2 => Just(None), 1 => (0u64..=90, 1u64..=40).prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => (0u64..=90, log_uniform(100.0, 3e5)).prop_map(Some)],
    );
    prop_oneof![
        2 => Just(Uneven { keys: String::new(), outage_pct: None, route: None }),
        1 => some.prop_map(|(jitter, reorder, duplicate, aggregate, ack, outage_pct, route)| Uneven {
            keys: jitter + &reorder + &duplicate + &aggregate + &ack,
            outage_pct,
            route,
        }),
    ]
}

pub fn scenario() -> impl Strategy<Value = String> {
    (
        rate(),
        log_uniform(100.0, 3e5),
        (buffer(), queue()),
        (loss(), loss()),
        uneven(),
        host(),
        host(),
        proptest::collection::vec(flow(), 1..=4),
        0.05..1.0f64,
        0u32..=50,
        any::<u32>(),
        prop_oneof![3 => Just(1500u32), 1 => 576..=9000u32],
    )
        .prop_map(
            |((rate, rate_kbit), rtt_us, (buffer, queue), (loss, ack_loss), uneven, sender, receiver, flows, length, warmup_pct, seed, mtu)| {
                let n_hops = [1, 1, 1, 1, 1, 1, 2, 3][seed as usize % 8];
                // As long as 3,000 packets take, or six round trips, and not forever.
                let packets_us = rate_kbit.map_or(0, |kbit| 3_000 * 12_000_000 / (kbit * 1_000));
                let most_us = packets_us.max(6 * rtt_us).min(20_000_000);
                let duration_us = ((most_us as f64 * length) as u64).max(10);
                let warmup_us = duration_us * u64::from(warmup_pct) / 100;
                let sample_us = (duration_us / 20).max(10);
                let flow_tables: String = flows
                    .into_iter()
                    .enumerate()
                    .map(|(number, (text, start_pct, stagger_pct))| {
                        let hops = hops_crossed(n_hops, seed as usize + number, &text);
                        format!(
                            "{text}{hops}start = \"{}us\"\nstagger = \"{}us\"\n",
                            duration_us * start_pct / 100,
                            duration_us * stagger_pct / 100
                        )
                    })
                    .collect();
                let mut link = format!("rate = \"{rate}\"\n{}", uneven.keys);
                if let Some(kbit) = rate_kbit {
                    link += &format!("buffer = \"{}\"\n", buffer.text(kbit, rtt_us, mtu));
                }
                if let Some((start_pct, length_pct)) = uneven.outage_pct {
                    let (start_us, length_us) = (duration_us * start_pct / 100, duration_us * length_pct / 100);
                    link += &format!("outage = [\"{start_us}us for {}us\"]\n", length_us.max(1));
                }
                if let Some((at_pct, rtt_us)) = uneven.route {
                    link += &format!("rtt_change = \"{}us to {rtt_us}us\"\n", duration_us * at_pct / 100);
                }
                let hop = format!(
                    "{link}queue = \"{queue}\"\nrtt = \"{rtt_us}us\"\nloss = \"{loss}\"\nack_loss = \"{ack_loss}\"\n"
                );
                let hops = match n_hops {
                    1 => hop,
                    n => format!("[[hop]]\n{hop}").repeat(n),
                };
                let (before, after) = if n_hops == 1 { (hops.as_str(), "") } else { ("", hops.as_str()) };
                format!(
                    "duration = \"{duration_us}us\"\nwarmup = \"{warmup_us}us\"\nseed = {seed}\n\
                     sample_interval = \"{sample_us}us\"\n\
                     [path]\n{before}mtu = \"{mtu}B\"\n{after}\
                     [sender]\n{sender}[receiver]\n{receiver}{}",
                    flow_tables
                )
            },
        )
}

/// The hops that a flow crosses, of so many; a flow with an RTT of its own crosses one,
/// because several may take longer.
fn hops_crossed(n_hops: usize, choice: usize, flow: &str) -> String {
    if n_hops == 1 {
        return String::new();
    }
    let first = choice % n_hops;
    let more = match flow.contains("\nrtt = ") {
        true => 0,
        false => choice / n_hops % (n_hops - first),
    };
    format!("hops = \"{}..{}\"\n", first + 1, first + more + 1)
}
