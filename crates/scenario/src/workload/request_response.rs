//! Clients at the receiver's hosts ask servers at the sender's, keeping a
//! fixed number of requests in flight per connection, as `redis-benchmark -P`
//! or `netperf TCP_RR -b`.

use std::collections::VecDeque;

use knee_units::Nanos;

use super::{App, Apps, WorkloadKind};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "request-response",
    summary: "clients keep `depth` requests in flight per connection; latency and requests/s count",
    keys: &["request", "response", "connections", "depth", "requests"],
};

pub(super) fn apps(request: u64, response: u64, depth: u32, requests: Option<u64>) -> Apps {
    Apps {
        sender: Box::new(Server {
            request,
            response,
            unread: request,
            unwritten: 0,
        }),
        receiver: Box::new(Client {
            request,
            response,
            depth,
            to_ask: requests.unwrap_or(u64::MAX),
            in_write: 0,
            unread: response,
            asked: VecDeque::new(),
            latencies: Vec::new(),
            completed: None,
        }),
        receiver_opens: true,
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
