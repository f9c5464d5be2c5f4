//! A test as one end told of it.

use std::collections::BTreeMap;

use super::super::json::{Part, ns};

/// `iperf3 -P` goes to 128; more than this is of no test.
const STREAMS_KEPT: usize = 4096;

/// What is known of a test so far.
#[derive(Default)]
pub struct Test {
    pub about: About,
    pub streams: BTreeMap<i64, Stream>,
    /// Those that no row has yet.
    pub intervals: Vec<Interval>,
    pub sums: Sums,
    pub title: Option<String>,
    pub extra_data: Option<String>,
    pub error: Option<String>,
}

/// What stands in `start`.
#[derive(Default)]
pub struct About {
    pub side: Option<&'static str>,
    pub host: Option<String>,
    pub version: Option<String>,
    pub system_info: Option<String>,
    pub cookie: Option<String>,
    pub protocol: Option<String>,
    pub t_unix_ns: Option<i64>,
    pub omit_s: Option<f64>,
    pub num_streams: Option<i64>,
    pub reverse: Option<bool>,
    pub bidir: Option<bool>,
    pub target_bits_per_sec: Option<i64>,
    pub write_bytes: Option<i64>,
    pub control_mss_bytes: Option<i64>,
    pub tos: Option<i64>,
}

/// What stands in `end` of the test as a whole.
#[derive(Default)]
pub struct Sums {
    pub sender_algorithm: Option<String>,
    pub receiver_algorithm: Option<String>,
    /// This end's and the far end's: total, user, system.
    pub cpu_pct: [Option<f64>; 6],
}

/// Of a connection.
pub struct End {
    pub host: Option<String>,
    pub port: Option<i64>,
}

#[derive(Default)]
pub struct Stream {
    pub local: Option<End>,
    pub remote: Option<End>,
    pub sender: Option<bool>,
    pub written: Option<Figures>,
    pub read: Option<Figures>,
    pub udp: Udp,
    pub total_retrans: Option<i64>,
    pub snd_cwnd_bytes_max: Option<i64>,
    pub snd_wnd_bytes_max: Option<i64>,
    pub srtt_us_max: Option<i64>,
    pub srtt_us_min: Option<i64>,
    pub srtt_us_mean: Option<f64>,
    pub reord_seen: Option<i64>,
}

/// Of one end over the test.
#[derive(Clone, Copy)]
pub struct Figures {
    pub bytes: Option<i64>,
    pub bits_per_sec: Option<f64>,
    pub duration_ns: Option<i64>,
}

#[derive(Default)]
pub struct Udp {
    pub packets: Option<i64>,
    pub lost_packets: Option<i64>,
    pub out_of_order: Option<i64>,
    pub jitter_us: Option<f64>,
}

pub struct Interval {
    pub stream: Option<i64>,
    pub sender: Option<bool>,
    pub omitted: Option<bool>,
    pub start_s: Option<f64>,
    pub end_s: Option<f64>,
    pub bytes: Option<i64>,
    pub bits_per_sec: Option<f64>,
    pub retrans: Option<i64>,
    pub snd_cwnd_bytes: Option<i64>,
    pub snd_wnd_bytes: Option<i64>,
    pub srtt_us: Option<i64>,
    pub rttvar_us: Option<i64>,
    pub pmtu_bytes: Option<i64>,
    pub reord_seen: Option<i64>,
    pub udp: Udp,
}

impl About {
    /// What client and server call a test, and whose word on it this is.
    pub fn identity(&self) -> (Option<&'static str>, String) {
        (self.side, self.cookie.clone().unwrap_or_default())
    }
}

impl Test {
    pub fn start(&mut self, start: &Part<'_>) {
        let text = |part: &Part<'_>, key| part.text(key).map(str::to_owned);
        let about = &mut self.about;
        for (key, side) in [
            ("connecting_to", "client"),
            ("accepted_connection", "server"),
        ] {
            if let Some(part) = start.object(key) {
                about.side = Some(side);
                about.host = text(&part, "host");
            }
        }
        about.version = text(start, "version");
        about.system_info = text(start, "system_info");
        about.cookie = text(start, "cookie");
        if let Some(timestamp) = start.object("timestamp") {
            let finer = timestamp.int("timemillisecs");
            let finer = finer.and_then(|ms| ms.checked_mul(1_000_000));
            about.t_unix_ns = finer.or_else(|| ns(timestamp.float("timesecs")?));
        }
        let mss = start
            .int("tcp_mss")
            .or_else(|| start.int("tcp_mss_default"));
        // A server does not ask its control connection.
        about.control_mss_bytes = mss.filter(|&mss| mss > 0);
        if let Some(asked) = start.object("test_start") {
            about.protocol = text(&asked, "protocol");
            about.omit_s = asked.float("omit");
            about.num_streams = asked.int("num_streams");
            about.reverse = asked.flag("reverse");
            about.bidir = asked.flag("bidir");
            about.target_bits_per_sec = asked.int("target_bitrate");
            about.write_bytes = asked.int("blksize");
            about.tos = asked.int("tos");
        }
        if about.target_bits_per_sec.is_none() {
            about.target_bits_per_sec = start.int("target_bitrate");
        }
        for part in start.objects("connected") {
            let Some(stream) = part.int("socket").and_then(|socket| self.stream(socket)) else {
                continue;
            };
            let end = |host, port| End {
                host: text(&part, host),
                port: part.int(port),
            };
            stream.local = Some(end("local_host", "local_port"));
            stream.remote = Some(end("remote_host", "remote_port"));
        }
    }

    /// An interval's list of streams; its sums are what the rows add up to.
    pub fn interval(&mut self, interval: &Part<'_>) {
        for part in interval.objects("streams") {
            let row = Interval {
                stream: part.int("socket"),
                sender: part.flag("sender"),
                omitted: part.flag("omitted"),
                start_s: part.float("start"),
                end_s: part.float("end"),
                bytes: part.int("bytes"),
                bits_per_sec: part.float("bits_per_second"),
                retrans: part.count("retransmits"),
                snd_cwnd_bytes: part.count("snd_cwnd"),
                snd_wnd_bytes: part.count("snd_wnd"),
                srtt_us: part.count("rtt"),
                rttvar_us: part.count("rttvar"),
                pmtu_bytes: part.count("pmtu"),
                reord_seen: part.count("reorder"),
                udp: Udp::of(&part, self.about.omit_s),
            };
            if row.bytes.is_none() && row.bits_per_sec.is_none() {
                part.unexpected("an interval of a stream, with bytes");
                continue;
            }
            if let Some(stream) = row.stream.and_then(|socket| self.stream(socket)) {
                stream.sender = row.sender.or(stream.sender);
            }
            self.intervals.push(row);
        }
    }

    pub fn end(&mut self, end: &Part<'_>) {
        let omit_s = self.about.omit_s;
        for part in end.objects("streams") {
            let (sender, receiver) = (part.object("sender"), part.object("receiver"));
            let udp = part.object("udp");
            let told = [&sender, &receiver, &udp];
            let socket = told.iter().find_map(|told| told.as_ref()?.int("socket"));
            let Some(stream) = socket.and_then(|socket| self.stream(socket)) else {
                part.unexpected("a stream's sums, with its socket");
                continue;
            };
            let of_stream = told.iter().find_map(|told| told.as_ref()?.flag("sender"));
            stream.sender = of_stream.or(stream.sender);
            stream.written = sender.as_ref().or(udp.as_ref()).map(Figures::of);
            stream.read = receiver.as_ref().map(Figures::of);
            if let Some(sender) = &sender {
                stream.sums(sender);
            }
            if let Some(udp) = &udp {
                stream.udp = Udp::of(udp, omit_s);
            }
        }
        // Of UDP only the sum tells both ends apart.
        if let (Some(received), 1) = (end.object("sum_received"), self.streams.len())
            && let Some(stream) = self.streams.values_mut().next()
            && stream.read.is_none()
        {
            stream.read = Some(Figures::of(&received));
        }
        for stream in self.streams.values_mut() {
            stream.leave_out_what_was_not_told();
        }
        let text = |key| end.text(key).map(str::to_owned);
        self.sums.sender_algorithm = text("sender_tcp_congestion");
        self.sums.receiver_algorithm = text("receiver_tcp_congestion");
        if let Some(cpu) = end.object("cpu_utilization_percent") {
            self.sums.cpu_pct = [
                "host_total",
                "host_user",
                "host_system",
                "remote_total",
                "remote_user",
                "remote_system",
            ]
            .map(|key| cpu.float(key));
        }
    }

    /// Does this end send? Where the version does not say, the direction does.
    pub fn sends(&self, told: Option<bool>) -> Option<bool> {
        let reverse = || match self.about.bidir {
            Some(true) => None,
            _ => self.about.reverse,
        };
        told.or_else(|| match self.about.side? {
            "client" => reverse().map(|reverse| !reverse),
            _ => reverse(),
        })
    }

    /// Do both ends send? Some versions that can do not say.
    pub fn bidir(&self) -> Option<bool> {
        let mut senders = self.streams.values().filter_map(|stream| stream.sender);
        let first = senders.next();
        let both = senders.any(|sender| Some(sender) != first);
        self.about.bidir.or(both.then_some(true))
    }

    /// What sends on the stream. `sender_tcp_congestion` of a two-way test is this
    /// end's.
    pub fn algorithm(&self, sends: Option<bool>) -> Option<&str> {
        let own = match (self.bidir(), sends) {
            (Some(true), Some(false)) => &self.sums.receiver_algorithm,
            (Some(true), None) => &None,
            _ => &self.sums.sender_algorithm,
        };
        own.as_deref()
    }

    fn stream(&mut self, socket: i64) -> Option<&mut Stream> {
        if self.streams.len() >= STREAMS_KEPT && !self.streams.contains_key(&socket) {
            return None;
        }
        Some(self.streams.entry(socket).or_default())
    }
}

impl Interval {
    /// Its beginning and end since the stream began to count; iperf3 begins anew
    /// after what is omitted.
    pub fn times_ns(&self, omit_s: Option<f64>) -> [Option<i64>; 2] {
        let before = match self.omitted {
            Some(true) => omit_s,
            _ => Some(0.0),
        };
        [self.start_s, self.end_s].map(|t| ns(t? - before?))
    }
}

impl Stream {
    /// What the sender's sums tell beyond bytes.
    fn sums(&mut self, sender: &Part<'_>) {
        // 0: the far end sends, and does not tell.
        let positive = |key| sender.count(key).filter(|&value| value > 0);
        self.total_retrans = sender.count("retransmits");
        self.snd_cwnd_bytes_max = positive("max_snd_cwnd");
        self.snd_wnd_bytes_max = positive("max_snd_wnd");
        self.srtt_us_max = positive("max_rtt");
        self.srtt_us_min = positive("min_rtt");
        self.srtt_us_mean = sender.float("mean_rtt").filter(|&mean| mean > 0.0);
        self.reord_seen = sender.count("reorder");
    }

    /// A server is not told the far end's sums, and neither end is when the test
    /// was stopped: iperf3 prints 0 then.
    fn leave_out_what_was_not_told(&mut self) {
        let moved = |figures: &Option<Figures>| figures.and_then(|f| f.bytes).unwrap_or(0) > 0;
        match self.sender {
            Some(true) if moved(&self.written) && !moved(&self.read) => self.read = None,
            Some(false) if moved(&self.read) && !moved(&self.written) => self.written = None,
            _ => {}
        }
    }
}

impl End {
    pub fn port(&self) -> Option<i32> {
        i32::try_from(self.port?).ok()
    }
}

impl Figures {
    fn of(part: &Part<'_>) -> Figures {
        Figures {
            bytes: part.int("bytes"),
            bits_per_sec: part.float("bits_per_second"),
            duration_ns: part.float("seconds").and_then(ns),
        }
    }
}

impl Udp {
    fn of(part: &Part<'_>, omit_s: Option<f64>) -> Udp {
        let jitter_ms = part.float("jitter_ms");
        // No packet was longer on its way than the test had lasted. Some versions
        // take the difference of two hosts' clocks for a part of it.
        let lasted_ms = part
            .float("end")
            .map(|end| (end + omit_s.unwrap_or(0.0)) * 1000.0);
        let is_possible = jitter_ms
            .zip(lasted_ms)
            .is_none_or(|(jitter, lasted)| jitter <= lasted);
        if !is_possible {
            part.impossible("jitter_ms", "less than the test had lasted");
        }
        Udp {
            packets: part.int("packets"),
            lost_packets: part.int("lost_packets"),
            out_of_order: part.int("out_of_order"),
            jitter_us: jitter_ms.filter(|_| is_possible).map(|ms| ms * 1000.0),
        }
    }
}
