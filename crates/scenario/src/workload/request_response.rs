//! Clients at the receiver's hosts ask servers at the sender's, keeping a
//! fixed number of requests in flight per connection, as `redis-benchmark -P`
//! or `netperf TCP_RR -b`.

use std::collections::VecDeque;

use knee_keys::key::Default::Value;
use knee_keys::key::{GIB, Kind, key};
use knee_keys::keyed;
use knee_keys::keyed::Shown;
use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;

use super::{App, Apps, Arrival, Counts, Example, Workload, WorkloadKind};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "request-response",
    summary: "clients keep `depth` requests in flight per connection; latency and requests/s count",
    keys: RequestResponse::KEYS,
    counts: Counts::Requests,
    draws: false,
    fewer: &[("connections", "Lower the count.")],
    example: Example {
        keys: "request = \"44B\"\nresponse = \"5001B\"\ndepth = 3\nrequests = 17",
        down_bytes: Some(17 * 5_001),
        up_bytes: 17 * 44,
    },
    read: |from| Ok(RequestResponse::read(from).into()),
};

const MESSAGE: Kind = Kind::Bytes { min: 1, max: GIB };

keyed! {
    /// Clients at the receiver ask servers at the sender: latency and requests per second.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct RequestResponse {
        pub request_bytes: u64 =
            key("request", MESSAGE, Value("1B"), "size of a request", "netperf TCP_RR, -r");
        pub response_bytes: u64 =
            key("response", MESSAGE, Value("1B"), "size of a response", "netperf TCP_RR, -r");
        pub connections: u32 = key(
            "connections",
            Kind::Count { min: 1, max: 1_000_000 },
            Value("1"),
            "connections per flow",
            "memtier_benchmark(1), -c",
        );
        pub depth: u32 = key(
            "depth",
            Kind::Count { min: 1, max: 100_000 },
            Value("1"),
            "requests in flight per connection",
            "memtier_benchmark(1), --pipeline",
        );
        pub requests: Option<u64> = key(
            "requests",
            Kind::CountOrUnlimited { min: 1, max: 1_000_000_000_000 },
            Value("unlimited"),
            "requests per connection, after which it closes",
            "memtier_benchmark(1), -n",
        );
    }
}

impl Workload for RequestResponse {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        let (request, response) = (self.request_bytes, self.response_bytes);
        Some(Apps {
            sender: Box::new(Server {
                request,
                response,
                unread: request,
                unwritten: 0,
            }),
            receiver: Box::new(Client {
                request,
                response,
                depth: self.depth,
                to_ask: self.requests.unwrap_or(u64::MAX),
                in_write: 0,
                unread: response,
                asked: VecDeque::new(),
                latencies: Vec::new(),
                completed: None,
            }),
            receiver_opens: true,
        })
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }

    fn connections(
        &self,
        from: Nanos,
        _until: Nanos,
        _stream: &dyn Fn(&str) -> Stream,
    ) -> Vec<Arrival> {
        vec![Arrival { at: from, bytes: 0 }; self.connections as usize]
    }

    fn expected_connections(&self, _within: Nanos) -> u64 {
        self.connections.into()
    }
}

struct Client {
    request: u64,
    response: u64,
    depth: u32,
    /// Requests not yet begun.
    to_ask: u64,
    /// Left of the request being written.
    in_write: u64,
    /// Left of the answer being read.
    unread: u64,
    /// When each unanswered request was begun, oldest first.
    asked: VecDeque<Nanos>,
    latencies: Vec<Nanos>,
    completed: Option<Nanos>,
}

impl App for Client {
    fn next_write_bytes(&mut self, now: Nanos) -> u64 {
        if self.in_write == 0 && self.to_ask > 0 && self.asked.len() < self.depth as usize {
            self.to_ask -= 1;
            self.in_write = self.request;
            self.asked.push_back(now);
        }
        self.in_write
    }

    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.in_write -= bytes;
    }

    fn read(&mut self, now: Nanos, mut bytes: u64) {
        while bytes >= self.unread {
            bytes -= self.unread;
            self.unread = self.response;
            let asked = self
                .asked
                .pop_front()
                .expect("a server answers only what was asked");
            self.latencies.push(now - asked);
            if self.to_ask == 0 && self.asked.is_empty() {
                self.completed = Some(now);
                return;
            }
        }
        self.unread -= bytes;
    }

    fn closes(&self) -> bool {
        self.completed.is_some()
    }

    fn completed(&self) -> Option<Nanos> {
        self.completed
    }

    fn take_latencies(&mut self, into: &mut Vec<Nanos>) {
        into.append(&mut self.latencies);
    }
}

struct Server {
    request: u64,
    response: u64,
    /// Left of the request being read.
    unread: u64,
    unwritten: u64,
}

impl App for Server {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        self.unwritten
    }
    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.unwritten -= bytes;
    }
    fn read(&mut self, _now: Nanos, mut bytes: u64) {
        while bytes >= self.unread {
            bytes -= self.unread;
            self.unread = self.request;
            self.unwritten += self.response;
        }
        self.unread -= bytes;
    }
}
