//! A test's rows of `iperf3_intervals` and `iperf3_streams`.

use knee_store::Anonymiser;
use knee_tables::column::set;

use super::super::Filled;
use super::super::fill::{add_row, flag, host, name, put_away, words};
use super::super::json::ns;
use super::tables::{Iperf3Intervals, Iperf3Streams};
use super::test::{End, Interval, Stream, Sums, Test};

/// Which test a row is of.
#[derive(Clone, Copy)]
pub struct Position<'a> {
    pub file: &'a str,
    pub test: i32,
}

pub struct Rows {
    anonymiser: Anonymiser,
    intervals: Iperf3Intervals,
    streams: Iperf3Streams,
    full: Vec<Filled>,
}

impl Rows {
    pub fn new(anonymiser: Anonymiser) -> Rows {
        Rows {
            anonymiser,
            intervals: Iperf3Intervals::default(),
            streams: Iperf3Streams::default(),
            full: Vec::new(),
        }
    }

    /// Batches that are full.
    pub fn take_full(&mut self) -> Vec<Filled> {
        std::mem::take(&mut self.full)
    }

    /// All others.
    pub fn rest(&mut self) -> Vec<Filled> {
        put_away(&mut self.intervals, &mut self.full);
        put_away(&mut self.streams, &mut self.full);
        self.take_full()
    }

    /// Takes the intervals that a test has; tells how many.
    pub fn intervals(&mut self, at: Position<'_>, test: &mut Test) -> u64 {
        let intervals = std::mem::take(&mut test.intervals);
        for interval in &intervals {
            self.interval(at, test, interval);
        }
        intervals.len() as u64
    }

    fn interval(&mut self, at: Position<'_>, test: &Test, interval: &Interval) {
        let row = add_row(&mut self.intervals, &mut self.full);
        let to = &mut self.intervals;
        let sends = test.sends(interval.sender);
        let [start_ns, end_ns] = interval.times_ns(test.about.omit_s);
        let omit_ns = test.about.omit_s.and_then(ns).unwrap_or(0);
        let t_unix_ns = end_ns.and_then(|end| {
            let connected = test.about.t_unix_ns?;
            connected.checked_add(omit_ns)?.checked_add(end)
        });
        name(&mut to.file, row, Some(at.file));
        to.test.set(row, at.test);
        set(&mut to.stream, row, interval.stream);
        flag(&mut to.sender, row, sends);
        flag(&mut to.omitted, row, interval.omitted);
        set(&mut to.t_unix_ns, row, t_unix_ns);
        set(&mut to.start_ns, row, start_ns);
        set(&mut to.end_ns, row, end_ns);
        set(&mut to.bytes, row, interval.bytes);
        let bits = interval.bits_per_sec;
        match sends {
            Some(true) => set(&mut to.written_bits_per_sec, row, bits),
            Some(false) => set(&mut to.goodput_bits_per_sec, row, bits),
            None => {}
        }
        set(&mut to.interval_retrans, row, interval.retrans);
        set(&mut to.snd_cwnd_bytes, row, interval.snd_cwnd_bytes);
        set(&mut to.snd_wnd_bytes, row, interval.snd_wnd_bytes);
        set(&mut to.srtt_us, row, interval.srtt_us);
        set(&mut to.rttvar_us, row, interval.rttvar_us);
        set(&mut to.pmtu_bytes, row, interval.pmtu_bytes);
        set(&mut to.reord_seen, row, interval.reord_seen);
        set(&mut to.packets, row, interval.udp.packets);
        set(&mut to.lost_packets, row, interval.udp.lost_packets);
        set(&mut to.jitter_us, row, interval.udp.jitter_us);
    }

    /// A row for each stream of a test that is over; tells how many.
    pub fn streams(&mut self, at: Position<'_>, test: &Test) -> u64 {
        for (&socket, stream) in &test.streams {
            let row = add_row(&mut self.streams, &mut self.full);
            name(&mut self.streams.file, row, Some(at.file));
            self.streams.test.set(row, at.test);
            self.streams.stream.set(row, socket);
            self.stream(row, test, stream);
            self.test(row, test);
        }
        test.streams.len() as u64
    }

    fn stream(&mut self, row: usize, test: &Test, stream: &Stream) {
        let sends = test.sends(stream.sender);
        let to = &mut self.streams;
        let (local, remote) = (stream.local.as_ref(), stream.remote.as_ref());
        let addr = local.and_then(|end| end.host.as_deref());
        host(&mut to.local_addr, row, addr, &self.anonymiser);
        set(&mut to.local_port, row, local.and_then(End::port));
        let addr = remote.and_then(|end| end.host.as_deref());
        host(&mut to.remote_addr, row, addr, &self.anonymiser);
        set(&mut to.remote_port, row, remote.and_then(End::port));
        flag(&mut to.sender, row, sends);
        name(&mut to.algorithm, row, test.algorithm(sends));
        let (written, read) = (stream.written, stream.read);
        let own = if sends == Some(false) { read } else { written };
        let duration = own.or(read).and_then(|figures| figures.duration_ns);
        set(&mut to.duration_ns, row, duration);
        set(&mut to.bytes_written, row, written.and_then(|f| f.bytes));
        set(&mut to.bytes_read, row, read.and_then(|f| f.bytes));
        let bits = written.and_then(|f| f.bits_per_sec);
        set(&mut to.written_bits_per_sec, row, bits);
        let bits = read.and_then(|f| f.bits_per_sec);
        set(&mut to.goodput_bits_per_sec, row, bits);
        set(&mut to.total_retrans, row, stream.total_retrans);
        set(&mut to.snd_cwnd_bytes_max, row, stream.snd_cwnd_bytes_max);
        set(&mut to.snd_wnd_bytes_max, row, stream.snd_wnd_bytes_max);
        set(&mut to.srtt_us_max, row, stream.srtt_us_max);
        set(&mut to.srtt_us_min, row, stream.srtt_us_min);
        set(&mut to.srtt_us_mean, row, stream.srtt_us_mean);
        set(&mut to.reord_seen, row, stream.reord_seen);
        set(&mut to.packets, row, stream.udp.packets);
        set(&mut to.lost_packets, row, stream.udp.lost_packets);
        set(&mut to.out_of_order, row, stream.udp.out_of_order);
        set(&mut to.jitter_us, row, stream.udp.jitter_us);
    }

    /// What the streams of a test have in common.
    fn test(&mut self, row: usize, test: &Test) {
        let about = &test.about;
        let hide = &self.anonymiser;
        let keeps = matches!(hide, Anonymiser::Keep);
        let to = &mut self.streams;
        host(&mut to.host, row, about.host.as_deref(), hide);
        words(&mut to.title, row, test.title.as_deref(), hide);
        words(&mut to.extra_data, row, test.extra_data.as_deref(), hide);
        words(&mut to.error, row, test.error.as_deref(), hide);
        name(&mut to.side, row, about.side);
        name(&mut to.protocol, row, about.protocol.as_deref());
        set(&mut to.t_unix_ns, row, about.t_unix_ns);
        let omit_ns = about.omit_s.and_then(ns);
        set(&mut to.omit_ns, row, omit_ns);
        let Sums { cpu_pct, .. } = &test.sums;
        for (to, value) in [
            &mut to.cpu_pct,
            &mut to.cpu_user_pct,
            &mut to.cpu_system_pct,
            &mut to.remote_cpu_pct,
            &mut to.remote_cpu_user_pct,
            &mut to.remote_cpu_system_pct,
        ]
        .into_iter()
        .zip(cpu_pct)
        {
            set(to, row, *value);
        }
        set(&mut to.streams, row, about.num_streams);
        flag(&mut to.reverse, row, about.reverse);
        flag(&mut to.bidir, row, test.bidir());
        let target = about.target_bits_per_sec;
        set(&mut to.target_bits_per_sec, row, target);
        set(&mut to.write_bytes, row, about.write_bytes);
        set(&mut to.control_mss_bytes, row, about.control_mss_bytes);
        set(&mut to.tos, row, about.tos);
        name(&mut to.cookie, row, about.cookie.as_deref());
        name(&mut to.version, row, about.version.as_deref());
        let info = about.system_info.as_deref().filter(|_| keeps);
        name(&mut to.system_info, row, info);
    }
}
