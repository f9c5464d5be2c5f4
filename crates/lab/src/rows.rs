//! From what the kernel and the link say to rows of the tables.

use std::collections::HashMap;

use knee_collect::sock_diag::tcp_info::TcpInfo;
use knee_link::{DirectionReport, FlowReport, Report, Tuple};
use knee_tables::Link;
use knee_units::Nanos;

use crate::netem::is_user_mode_linux;
use crate::repetition::{Id, Output};
use crate::sample::{count, event, maybe};
use crate::sampler::{Book, Sampler, Track};
use knee_traffic::{EndReport, Progress};

/// The reports of a run's processes.
pub struct Reports<'a> {
    /// `None`: the path is nobody's.
    pub link: Option<Report>,
    /// By flow number.
    pub sender: &'a [EndReport],
    pub receiver: &'a [EndReport],
    pub start_ns: u64,
    /// When the run ended, since its start.
    pub ended_ns: u64,
}

/// A direction of the link has a thread, so a processor at most, and shares it with
/// the stacks and the applications; one that is
/// busier than this may have been the bottleneck.
const BUSY_LINK_PCT: f64 = 50.0;

/// The backend that is our own link, and not the kernel's emulation.
const OUR_LINK: &str = "user";

/// Fills what is left of the output: samples, flows, events, queue, links.
pub fn finish(sampler: Sampler, reports: Reports<'_>, output: &mut Output) {
    let measured = &mut output.facts.measured;
    let mut fact = |name: &str, value: f64| measured.insert(name.into(), value);
    fact("samples", sampler.count as f64);
    fact("samples_missed", sampler.missed as f64);
    let cost_us = sampler.cost_ns as f64 / 1e3 / sampler.count.max(1) as f64;
    fact("sample_cost_us_mean", cost_us);
    for (name, times) in [("late", &sampler.late_us), ("span", &sampler.span_us)] {
        if let Some(us) = times.quantile(0.99) {
            fact(&format!("sample_{name}_us_p99"), us);
        }
    }
    fact("sample_realtime", f64::from(u8::from(sampler.realtime)));
    let link = reports.link.as_ref().expect("a lab has a link");
    let syscalls: u64 = link.directions.iter().map(|d| d.syscalls).sum();
    fact("link_syscalls", syscalls as f64);
    fact("link_realtime", f64::from(u8::from(link.realtime)));
    if sampler.missed * 20 > sampler.count {
        output.warnings.push(format!(
            "{} of {} samples could not be taken in time and are left out",
            sampler.missed,
            sampler.missed + sampler.count
        ));
    }
    fill(sampler.book, reports, output);
}

/// The same of samples that were taken elsewhere: all but how well they were taken.
pub fn fill(mut book: Book, mut reports: Reports<'_>, output: &mut Output) {
    let link = reports.link.take();
    let link_flows = LinkFlows::new(link.as_ref().map_or(&[], |link| &link.flows));
    for index in 0..book.tracks.len() {
        let row = flow_row(&book, index, &reports, &link_flows, output.facts.backend);
        output.flows.push(row);
        note_turning_points(&mut book, index, reports.start_ns);
    }
    if let Some(link) = link {
        fill_links(&book, link, reports.ended_ns, output);
    }
    output.samples = book.rows;
    output.tcp_info = book.more;
    book.events.sort_by_key(|event| (event.t_ns, event.flow));
    for event in book.events {
        output.events.push(event);
    }
}

/// What the link did, as rows, and what is doubtful of it.
fn fill_links(book: &Book, link: Report, ended_ns: u64, output: &mut Output) {
    let (cell, rep) = (book.cell.index as i32, book.rep as i32);
    output.data_packets = link.flows.iter().map(|flow| flow.data_pkts).sum();
    for mut row in link.queue {
        // The link outlives the run by the time that reports take.
        if row.t_ns <= ended_ns as i64 {
            (row.cell, row.rep) = (cell, rep);
            output.queue.push(row);
        }
    }
    let last_hop = book.cell.hops().next_back().expect("a path has a hop");
    for (direction, report) in ["data", "back"].into_iter().zip(&link.directions) {
        let asked = match direction {
            "data" => last_hop.constant_rate(),
            _ => book.cell.path.constant_ack_rate(),
        };
        let row = link_row(
            cell,
            rep,
            direction,
            output.facts.backend,
            asked.map(|rate| rate.bits_per_sec()),
            report,
            ended_ns,
        );
        if !row.kept_up {
            output.warnings.push(fell_behind(&row, report));
        }
        if let Some(cpu_pct) = row.cpu_pct.filter(|&pct| pct > BUSY_LINK_PCT) {
            output.warnings.push(format!(
                "the link used {cpu_pct:.0} % of a processor ({direction} direction): it, and not the path, may be what is measured"
            ));
        }
        output.links.push(row);
    }
}

fn link_row(
    cell: i32,
    rep: i32,
    direction: &'static str,
    backend: &'static str,
    asked_bits_per_sec: Option<u64>,
    report: &DirectionReport,
    ended_ns: u64,
) -> Link {
    // Of the kernel's emulation neither lateness nor processor time is known.
    let is_ours = backend == OUR_LINK;
    Link {
        cell,
        rep,
        direction,
        backend,
        asked_rate_bits_per_sec: asked_bits_per_sec.map(|rate| rate as i64),
        achieved_rate_bits_per_sec: report.achieved_rate_bits_per_sec,
        rate_error_pct: report.rate_error_pct,
        added_delay_us_p50: report.added_delay_us.quantile(0.50),
        added_delay_us_p99: report.added_delay_us.quantile(0.99),
        added_delay_us_max: report.added_delay_us.quantile(1.0),
        late_pkts: is_ours.then_some(report.late_pkts as i64),
        forwarded_pkts: report.forwarded_pkts as i64,
        forwarded_bytes: report.forwarded_bytes as i64,
        cpu_pct: (is_ours && !is_user_mode_linux())
            .then_some(report.cpu_ns as f64 * 100.0 / ended_ns.max(1) as f64),
        kept_up: report.kept_up,
    }
}

/// How the link missed its bounds, in words.
fn fell_behind(row: &Link, report: &DirectionReport) -> String {
    let mut words = format!("the link did not keep up ({} direction)", row.direction);
    if let (Some(error), Some(achieved)) = (row.rate_error_pct, row.achieved_rate_bits_per_sec) {
        words += &format!(
            ": {:.1} Mbit/s, {error:+.2} % off what was asked",
            achieved / 1e6
        );
    }
    if let Some(late_us) = row.added_delay_us_p99 {
        words += &format!("; 1 % of packets left more than {late_us:.0} us late");
    }
    if report.refused_pkts > 0 {
        words += &format!(
            "; {} packets were refused by the far device",
            report.refused_pkts
        );
    }
    words
}

/// Openings and ends, which samples do not see.
fn note_turning_points(book: &mut Book, index: usize, start_ns: u64) {
    let Some(flow) = book.flows.get(index) else {
        return;
    };
    let progress = book.shared.get(flow.number);
    let last = std::mem::take(&mut book.tracks[index].last);
    for (event_name, slot) in [
        ("open", &progress.opened_ns),
        ("established", &progress.established_ns),
        ("complete", &progress.completed_ns),
        ("closed", &progress.closed_ns),
    ] {
        let Some(at_ns) = Progress::when(slot) else {
            continue;
        };
        let id = Id {
            cell: book.cell.index as i32,
            rep: book.rep as i32,
            t_ns: at_ns as i64 - start_ns as i64,
            flow: index as i32,
        };
        let opening = matches!(event_name, "open" | "established");
        let info = if opening { &[][..] } else { &last };
        book.events.push(event(id, event_name, &TcpInfo(info)));
    }
    book.tracks[index].last = last;
}

/// What the link says of flows, by number and by the ends of a program's.
struct LinkFlows<'a> {
    by_number: HashMap<u32, &'a FlowReport>,
    by_tuple: HashMap<Tuple, &'a FlowReport>,
}

impl<'a> LinkFlows<'a> {
    fn new(reports: &'a [FlowReport]) -> LinkFlows<'a> {
        let numbers = reports
            .iter()
            .filter_map(|report| Some((report.number?, report)));
        let tuples = reports
            .iter()
            .filter_map(|report| Some((report.tuple?, report)));
        LinkFlows {
            by_number: numbers.collect(),
            by_tuple: tuples.collect(),
        }
    }

    fn get(&self, track: &Track, index: usize) -> Option<&'a FlowReport> {
        let found = match track.external {
            None => self.by_number.get(&(index as u32)),
            Some([own, far]) => self.by_tuple.get(&Tuple {
                source: v4(own.0),
                destination: v4(far.0),
                source_port: own.1,
                destination_port: far.1,
            }),
        };
        found.copied()
    }
}

fn v4(address: std::net::IpAddr) -> std::net::Ipv4Addr {
    match address {
        std::net::IpAddr::V4(address) => address,
        std::net::IpAddr::V6(_) => std::net::Ipv4Addr::UNSPECIFIED,
    }
}

fn flow_row(
    book: &Book,
    index: usize,
    reports: &Reports<'_>,
    link_flows: &LinkFlows<'_>,
    backend: &str,
) -> knee_tables::Flow {
    let track = &book.tracks[index];
    let spec = &book.cell.flows[track.group];
    let own = book.flows.get(index);
    let progress = own.map(|flow| book.shared.get(flow.number));
    let since_start = |at_ns: u64| at_ns.saturating_sub(reports.start_ns);
    // A connection that has closed left its last word with the generator.
    let last_word = own.and_then(|flow| reports.sender.get(flow.number as usize));
    let bytes = match last_word {
        Some(report) if !report.tcp_info.is_empty() => &report.tcp_info,
        _ => &track.last,
    };
    let info = TcpInfo(bytes);

    let opened_ns = progress.and_then(|progress| Progress::when(&progress.opened_ns));
    let open_ns = match (opened_ns, own) {
        (Some(at_ns), _) => since_start(at_ns),
        (None, Some(flow)) => flow.open.0,
        (None, None) => track.first_ns.unwrap_or(0),
    };
    let completed_ns = progress
        .and_then(|progress| Progress::when(&progress.completed_ns))
        .map(since_start);
    let end_ns = completed_ns
        .unwrap_or(match track.external {
            // A program's connection ends when it is seen no more.
            Some(_) => track.last_ns,
            None => reports.ended_ns,
        })
        .max(open_ns);
    // A transfer, and what was done before the steady part began, counts as a whole.
    let baseline = Some(track.baseline)
        .filter(|baseline| !track.is_transfer && (open_ns.max(1)..end_ns).contains(&baseline.t_ns));
    let steady_ns = end_ns - baseline.map_or(open_ns, |baseline| baseline.t_ns);
    let baseline = baseline.unwrap_or_default();
    let seconds = steady_ns as f64 / 1e9;
    let per_sec = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };

    let bytes_read = book.bytes_read(index, &info);
    // A socket that was never seen did nothing; of one that was, what its kernel does not tell is null.
    let told = |value: Option<u64>| if info.0.is_empty() { Some(0) } else { value };
    let in_full = |value: Option<u64>| told(value).map(|value| value as i64);
    let since = |now: Option<u64>, then: u64| told(now).map(|now| now.saturating_sub(then));
    let in_part = |now: Option<u64>, then: u64| since(now, then).map(|value| value as i64);
    let steady_us = Nanos(steady_ns).as_us() as i64;
    let rwnd_limited_us = in_part(info.rwnd_limited_us(), baseline.rwnd_limited_us);
    let sndbuf_limited_us = in_part(info.sndbuf_limited_us(), baseline.sndbuf_limited_us);
    let app_limited_us =
        in_part(info.busy_us(), baseline.busy_us).map(|busy_us| (steady_us - busy_us).max(0));
    let told = [rwnd_limited_us, sndbuf_limited_us, app_limited_us];
    let limited = track.limits.limited(steady_us, told);
    let total_retrans = count(info.total_retrans());
    let data_segs_out = in_full(info.data_segs_out().map(u64::from));
    let mean = |sum: u64| (track.samples > 0).then(|| sum as f64 / track.samples as f64);
    let asks = own.is_some_and(|flow| flow.receiver_opens);
    let of_receiver = own.and_then(|flow| reports.receiver.get(flow.number as usize));
    let reads = of_receiver.and_then(|report| report.reads.as_ref());
    let latency_us = of_receiver
        .map(|report| &report.latency_us)
        .filter(|_| asks);
    let latency = |share: f64| latency_us.and_then(|latency| latency.quantile(share));
    let transfer_bytes = own.and_then(|flow| spec.workload.transfer_bytes(flow.bytes));
    let link = link_flows.get(track, index);
    // Our link tells every flow; of one that it never met it lost nothing.
    let by_link = |pkts: fn(&FlowReport) -> u64| {
        (backend == OUR_LINK).then(|| link.map_or(0, |link| pkts(link) as i64))
    };
    let queue = link.map(|link| &link.queue_delay_us);
    let waited = |share: f64| queue.and_then(|queue| queue.quantile(share));
    knee_tables::Flow {
        cell: book.cell.index as i32,
        rep: book.rep as i32,
        flow: index as i32,
        group: track.group as i32,
        name: spec.name.clone(),
        algorithm: spec.algorithm.clone(),
        workload: spec.workload.kind().name,
        start_ns: open_ns as i64,
        end_ns: completed_ns.map(|ns| ns as i64),
        completion_us: completed_ns
            .filter(|_| !asks)
            .map(|ns| Nanos(ns - open_ns.min(ns)).as_us() as i64),
        transfer_bytes: transfer_bytes.map(|bytes| bytes as i64),
        slowdown: completed_ns
            .zip(transfer_bytes.and_then(|bytes| book.cell.least_completion(spec, bytes)))
            .map(|(ns, least)| ns.saturating_sub(open_ns) as f64 / least.0 as f64),
        goodput_bits_per_sec: per_sec(bytes_read.saturating_sub(baseline.bytes_read) as f64 * 8.0),
        throughput_bits_per_sec: since(info.bytes_sent(), baseline.bytes_sent)
            .map(|bytes| per_sec(bytes as f64 * 8.0)),
        bytes_read: bytes_read as i64,
        bytes_acked: in_full(info.bytes_acked()),
        bytes_sent: in_full(info.bytes_sent()),
        bytes_retrans: in_full(info.bytes_retrans()),
        data_segs_out,
        total_retrans,
        retransmit_pct: data_segs_out.map(|sent| match sent {
            0 => 0.0,
            sent => total_retrans as f64 * 100.0 / sent as f64,
        }),
        path_lost_pkts: by_link(|link| link.path_lost_pkts),
        queue_dropped_pkts: by_link(|link| link.queue_dropped_pkts),
        srtt_us_mean: track.srtt_us.mean(),
        srtt_us_p50: track.srtt_us.quantile(0.50),
        srtt_us_p95: track.srtt_us.quantile(0.95),
        srtt_us_p99: track.srtt_us.quantile(0.99),
        min_rtt_us: maybe(info.min_rtt_us().filter(|&us| us != u32::MAX)),
        queue_delay_us_mean: queue.and_then(|queue| queue.mean()),
        queue_delay_us_p50: waited(0.50),
        queue_delay_us_p95: waited(0.95),
        queue_delay_us_p99: waited(0.99),
        snd_cwnd_mean: mean(track.cwnd_sum),
        inflight_mean: mean(track.inflight_sum),
        cwnd_limited_us: limited.cwnd_us,
        rwnd_limited_us,
        sndbuf_limited_us: limited.sndbuf_us,
        pacing_limited_us: limited.pacing_us,
        app_limited_us,
        cpu_limited_us: None,
        rto_count: maybe(info.total_rto()),
        recovery_count: None,
        undo_count: None,
        tlp_count: None,
        requests: latency_us.map(|latency| latency.count() as i64),
        requests_per_sec: latency_us.map(|latency| per_sec(latency.count() as f64)),
        latency_us_p50: latency(0.50),
        latency_us_p95: latency(0.95),
        latency_us_p99: latency(0.99),
        writes: last_word.map_or(0, |report| report.writes as i64),
        reads: reads.map(|reads| reads.bytes.count() as i64),
        read_bytes_p50: reads.and_then(|reads| reads.bytes.quantile(0.50)),
        read_bytes_p99: reads.and_then(|reads| reads.bytes.quantile(0.99)),
        read_gap_us_p50: reads.and_then(|reads| reads.gap_us.quantile(0.50)),
        read_gap_us_p99: reads.and_then(|reads| reads.gap_us.quantile(0.99)),
    }
}

#[cfg(test)]
mod tests;
