//! Sums over sockets whose `tcp_info` is made up.

use knee_collect::sock_diag::tcp_info::KNOWN_BYTES;
use knee_collect::testing::diag;
use proptest::prelude::*;

use super::*;
use crate::export::labels::{MOST_ALGORITHMS, MOST_VALUES, OTHER};

/// Offsets in `struct tcp_info`.
const NOTSENT: usize = 144;
const BYTES_ACKED: usize = 120;
const BYTES_SENT: usize = 200;
const DATA_SEGS_OUT: usize = 156;
const TOTAL_RETRANS: usize = 100;
const BUSY_US: usize = 168;
const RWND_LIMITED_US: usize = 176;
const SNDBUF_LIMITED_US: usize = 184;
const SRTT_US: usize = 68;
const SND_CWND: usize = 80;
const UNACKED: usize = 24;

#[derive(Clone)]
struct Info(Vec<u8>);

impl Info {
    fn new() -> Info {
        let mut info = Info(vec![0; KNOWN_BYTES]);
        info.word(SND_CWND, 10);
        info
    }

    fn word(&mut self, at: usize, value: u32) -> &mut Info {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn wide(&mut self, at: usize, value: u64) -> &mut Info {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }
}

/// A sample every second of one connection at a time.
struct Driven {
    sums: Sums,
    entry: Entry<Base>,
    seconds: i64,
}

impl Driven {
    fn new(by: &str) -> Driven {
        let by = match by {
            "" => By::Nothing,
            text => By::parse(text).unwrap(),
        };
        Driven {
            sums: Sums::new(by),
            entry: Entry::default(),
            seconds: 0,
        }
    }

    fn now(&mut self) -> Moment {
        self.seconds += 1;
        Moment {
            unix_ns: 0,
            mono_ns: self.seconds * 1_000_000_000,
        }
    }

    fn sample(&mut self, diag: &Diag<'_>, first: bool) {
        let now = self.now();
        self.sums.begin();
        let info = diag.info.unwrap();
        self.sums
            .count(diag, &info, &mut self.entry, now, true, first);
    }

    /// The only group, as it is told.
    fn told(&self) -> serde_json::Value {
        let views = self.sums.views();
        assert_eq!(views.len(), 1);
        serde_json::to_value(&views[0]).unwrap()
    }
}

#[test]
fn what_a_connection_did_before_the_first_sample_is_not_counted() {
    let mut driven = Driven::new("");
    let mut info = Info::new();
    info.wide(BYTES_SENT, 1_000_000).wide(BYTES_ACKED, 900_000);
    driven.sample(&diag(&info.0), true);
    assert_eq!(driven.told()["counters"]["bytes_sent"], 0);
    assert_eq!(driven.told()["connections"], 1);
    info.wide(BYTES_SENT, 1_000_500);
    driven.sample(&diag(&info.0), false);
    assert_eq!(driven.told()["counters"]["bytes_sent"], 500);
}

#[test]
fn connection_that_is_new_counts_from_its_beginning_and_one_that_ends_to_its_end() {
    let mut driven = Driven::new("");
    let mut info = Info::new();
    info.wide(BYTES_SENT, 300);
    driven.sample(&diag(&info.0), false);
    info.wide(BYTES_SENT, 1_000);
    let now = driven.now();
    let ended = diag(&info.0);
    let info = ended.info.unwrap();
    let algorithm = ended.congestion;
    (driven.sums).close(&ended, &info, &driven.entry, algorithm, now);
    let told = driven.told();
    assert_eq!(told["counters"]["bytes_sent"], 1_000);
    assert_eq!(told["closed"], 1);
}

#[test]
fn every_microsecond_between_two_samples_is_held_back_by_one_thing() {
    let mut driven = Driven::new("");
    let mut info = Info::new();
    driven.sample(&diag(&info.0), true);
    for (unacked, notsent, limit) in [(10, 0, "cwnd"), (2, 5_000, "pacing"), (2, 0, "app")] {
        let before = driven.told()["limited_us"].clone();
        let busy = driven.seconds as u64 * 700_000;
        info.wide(BUSY_US, busy)
            .wide(RWND_LIMITED_US, busy / 7)
            .wide(SNDBUF_LIMITED_US, busy * 2 / 7)
            .word(UNACKED, unacked)
            .word(NOTSENT, notsent);
        driven.sample(&diag(&info.0), false);
        let after = driven.told()["limited_us"].clone();
        let part = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
        assert_eq!(part("rwnd"), 100_000);
        assert_eq!(part("sndbuf"), 200_000);
        let idle = if limit == "app" { 300_000 } else { 0 };
        assert_eq!(part(limit), 400_000 + idle);
        let all = ["cwnd", "rwnd", "sndbuf", "pacing", "app", "idle", "unknown"];
        assert_eq!(all.map(part).iter().sum::<u64>(), 1_000_000);
    }
}

#[test]
fn connection_without_an_ack_since_the_last_sample_is_not_observed_again() {
    let mut driven = Driven::new("");
    let mut info = Info::new();
    info.word(SRTT_US, 40_000).wide(BYTES_ACKED, 1);
    driven.sample(&diag(&info.0), false);
    driven.sample(&diag(&info.0), false);
    let srtt = driven.told()["histograms"]["srtt_us"].clone();
    assert_eq!(srtt["sum"], 40_000);
    let edges = srtt["le"].as_array().unwrap();
    let at = edges.iter().position(|edge| *edge == 50_000).unwrap();
    assert_eq!(srtt["counts"][at], 1);
}

#[test]
fn retransmissions_are_a_share_of_the_segments_of_the_interval() {
    let mut driven = Driven::new("");
    let mut info = Info::new();
    info.word(DATA_SEGS_OUT, 1_000).word(TOTAL_RETRANS, 500);
    driven.sample(&diag(&info.0), true);
    info.word(DATA_SEGS_OUT, 2_000).word(TOTAL_RETRANS, 510);
    driven.sample(&diag(&info.0), false);
    assert_eq!(driven.told()["histograms"]["retransmit_ppm"]["sum"], 10_000);
}

#[test]
fn groups_are_never_more_than_their_bound() {
    let values: Vec<String> = (1..=MOST_VALUES).map(|port| port.to_string()).collect();
    let mut driven = Driven::new(&format!("port={}", values.join(",")));
    let info = Info::new();
    let names: Vec<String> = (0..100).map(|at| format!("algorithm{at}")).collect();
    for name in &names {
        for port in 0..100 {
            let mut socket = diag(&info.0);
            socket.congestion = Some(name);
            socket.source.1 = port;
            driven.sample(&socket, false);
        }
    }
    let views = driven.sums.views();
    assert_eq!(views.len(), (MOST_ALGORITHMS + 1) * (MOST_VALUES + 1));
    assert!(views.len() <= driven.sums.groups.len());
    let rest = views
        .iter()
        .filter(|view| view.algorithm == OTHER && view.by == Some(OTHER));
    assert_eq!(rest.count(), 1);
}

#[test]
fn one_value_too_many_is_refused() {
    let values = vec!["a"; MOST_VALUES + 1].join(",");
    for text in [&*format!("process={values}"), "port=http", "port=9-3"] {
        assert!(By::parse(text).is_err(), "{text}");
    }
    for text in ["user=root", "process=a,,b", "process=a,a", "cgroup=other"] {
        assert!(By::parse(text).is_err(), "{text}");
    }
}

#[test]
fn cgroup_that_is_not_there_is_named() {
    let text = "cgroup=no/such/group";
    assert_eq!(Driven::new(text).sums.places.absent(), ["no/such/group"]);
}

#[test]
fn process_that_is_not_known_yet_is_waited_for_and_nothing_is_lost() {
    let mut driven = Driven::new("process=nginx");
    driven.sums.by_process = true;
    let mut info = Info::new();
    info.wide(BYTES_SENT, 700);
    (driven.entry.asked, driven.entry.kept.waiting) = (true, true);
    driven.sample(&diag(&info.0), false);
    driven.entry.kept.waiting = false;
    driven.entry.process = Some(Arc::new(knee_collect::processes::Process {
        pid: 7,
        comm: "nginx".to_owned(),
    }));
    driven.sample(&diag(&info.0), false);
    let sent: Vec<_> = (driven.sums.views().iter())
        .map(|view| {
            let told = serde_json::to_value(view).unwrap();
            (
                view.by.unwrap().to_owned(),
                told["counters"]["bytes_sent"].clone(),
            )
        })
        .collect();
    assert_eq!(
        sent,
        [
            ("nginx".to_owned(), 700.into()),
            ("unknown".to_owned(), 0.into())
        ]
    );
}

proptest! {
    /// Whatever the kernel tells, wrapped, set back or cleared.
    #[test]
    fn no_sum_ever_goes_back(samples in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..30)) {
        let mut driven = Driven::new("");
        let mut before: Option<serde_json::Value> = None;
        for (at, bytes) in samples.iter().enumerate() {
            driven.sample(&diag(bytes), at == 0);
            let after = driven.told();
            if let Some(before) = &before {
                for part in ["counters", "limited_us"] {
                    for (name, value) in after[part].as_object().unwrap() {
                        prop_assert!(value.as_u64() >= before[part][name].as_u64(), "{}", name);
                    }
                }
                for (name, histogram) in after["histograms"].as_object().unwrap() {
                    let earlier = &before["histograms"][name];
                    prop_assert!(histogram["sum"].as_u64() >= earlier["sum"].as_u64());
                    let counts = histogram["counts"].as_array().unwrap();
                    for (now, then) in counts.iter().zip(earlier["counts"].as_array().unwrap()) {
                        prop_assert!(now.as_u64() >= then.as_u64());
                    }
                }
            }
            before = Some(after);
        }
    }
}
