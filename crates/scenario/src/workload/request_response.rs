//! Clients at the receiver's hosts ask servers at the sender's, keeping a
//! fixed number of requests in flight per connection, as `redis-benchmark -P`
//! or `netperf TCP_RR -b`.

use std::collections::VecDeque;

use crate::key::Default::Value;
use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use crate::key::{GIB, key, kind, real, secs};
use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;

use super::{App, Apps, Arrival, Counts, Example, Thread, Workload, WorkloadKind};

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

const MESSAGE: &dyn kind::Kind = &kind::Bytes { min: 1, max: GIB };

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
            &kind::Count { min: 1, max: 1_000_000 },
            Value("1"),
            "connections per flow",
            "memtier_benchmark(1), -c",
        );
        pub depth: u32 = key(
            "depth",
            &kind::Count { min: 1, max: 100_000 },
            Value("1"),
            "requests in flight per connection",
            "memtier_benchmark(1), --pipeline",
        );
        pub requests: Option<u64> = key(
            "requests",
            &kind::CountOrUnlimited(kind::Count { min: 1, max: 1_000_000_000_000 }),
            Value("unlimited"),
            "requests per connection, after which it closes",
            "memtier_benchmark(1), -n",
        );
        pub service_time: Nanos = key(
            "service_time",
            &kind::Duration { min: Nanos::ZERO, max: secs(10) },
            Value("0s"),
            "how long the server computes before it answers a request, one request at a time in each of its threads; a lab's server spins so long",
            "tcpknee",
        );
        pub threads: u32 = key(
            "threads",
            &kind::Count { min: 1, max: 1_024 },
            Value("1"),
            "threads of the server, over which connections are spread in turn; flows share them",
            "memcached(1), -t",
        );
        pub client_threads: u32 = real(key(
            "client_threads",
            &kind::Count { min: 1, max: 1_024 },
            Value("1"),
            "the same of the clients; those of the simulator take no time",
            "memtier_benchmark(1), -t",
        ));
    }
}

impl Workload for RequestResponse {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        let (request, response) = (self.request_bytes, self.response_bytes);
        Some(Apps {
            sender: Box::new(Server {
                request,
                response,
                service_time: self.service_time,
                thread: Thread::default(),
                unread: request,
                served: VecDeque::new(),
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

    fn threads(&self) -> [u32; 2] {
        [self.threads, self.client_threads]
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
    service_time: Nanos,
    thread: Thread,
    /// Left of the request being read.
    unread: u64,
    /// When the answer to each request that was read is there, oldest first.
    served: VecDeque<Nanos>,
    unwritten: u64,
}

impl App for Server {
    fn next_write_bytes(&mut self, now: Nanos) -> u64 {
        while self.served.front().is_some_and(|&at| at <= now) {
            self.served.pop_front();
            self.unwritten += self.response;
        }
        self.unwritten
    }
    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.unwritten -= bytes;
    }
    fn read(&mut self, now: Nanos, mut bytes: u64) {
        while bytes >= self.unread {
            bytes -= self.unread;
            self.unread = self.request;
            match self.service_time {
                Nanos::ZERO => self.unwritten += self.response,
                time => self.served.push_back(self.thread.work(now, time)),
            }
        }
        self.unread -= bytes;
    }
    fn wakes_at(&self, now: Nanos) -> Option<Nanos> {
        self.computes_until(now)
    }
    fn runs_on(&mut self, thread: &Thread) {
        self.thread = thread.clone();
    }
    fn computes_until(&self, _now: Nanos) -> Option<Nanos> {
        self.served.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(threads: u32, count: u32) -> Vec<Apps> {
        let spec = RequestResponse {
            request_bytes: 10,
            response_bytes: 100,
            connections: count,
            depth: 2,
            requests: None,
            service_time: Nanos::from_us(30),
            threads,
            client_threads: 1,
        };
        let all: Vec<Thread> = (0..threads).map(|_| Thread::default()).collect();
        (0..count)
            .map(|place| {
                let mut apps = spec.apps(0).expect("it has applications of ours");
                apps.sender
                    .runs_on(&all[crate::workload::in_turn(place, threads)]);
                apps
            })
            .collect()
    }

    #[test]
    fn thread_answers_one_request_after_the_other_whoever_asked() {
        let mut apps = servers(1, 2);
        let at = |us: u64| Nanos::from_us(1_000 + us);
        apps[0].sender.read(at(0), 20);
        apps[1].sender.read(at(10), 10);
        let mut due = |n: usize, us| apps[n].sender.next_write_bytes(at(us));
        assert_eq!(
            [due(0, 29), due(0, 30), due(0, 59), due(0, 60)],
            [0, 100, 100, 200]
        );
        assert_eq!([due(1, 89), due(1, 90)], [0, 100]);
        assert_eq!(apps[0].sender.wakes_at(at(90)), None);
        // An idle thread begins when it is asked.
        apps[1].sender.read(at(200), 10);
        assert_eq!(apps[1].sender.wakes_at(at(200)), Some(at(230)));
    }

    #[test]
    fn connections_of_different_threads_do_not_wait_for_each_other() {
        let mut apps = servers(2, 3);
        let at = |us: u64| Nanos::from_us(us);
        for app in &mut apps {
            app.sender.read(at(0), 10);
        }
        let done = apps.iter().map(|app| app.sender.wakes_at(at(0)).unwrap());
        assert_eq!(done.collect::<Vec<_>>(), [at(30), at(30), at(60)]);
    }
}
