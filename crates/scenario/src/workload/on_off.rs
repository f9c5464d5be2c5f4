//! Data without end, with pauses: cross traffic that comes and goes.

use crate::key::Default::Value;
use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use crate::key::{key, kind, ms, secs};
use knee_units::Nanos;
use serde::Serialize;

use super::{App, Apps, Counts, Example, Sink, WRITE, WRITE_BYTES, Workload, WorkloadKind, Write};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "on-off",
    summary: "the sender writes without end for `on`, pauses for `off`, and begins again",
    keys: OnOff::KEYS,
    counts: Counts::Goodput,
    draws: false,
    fewer: &[],
    example: Example {
        keys: "on = \"100ms\"\noff = \"100ms\"\nwrite = \"1000B\"",
        down_bytes: None,
        up_bytes: 0,
    },
    read: |from| Ok(OnOff::read(from).into()),
};

const PART: &dyn kind::Kind = &kind::Duration {
    min: ms(1),
    max: secs(86_400),
};

keyed! {
    /// Data without end for `on`, in writes of `write_bytes`, then none for `off`, and so on.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct OnOff {
        pub on: Nanos = key("on", PART, Value("1s"), "how long the application writes", "tcpknee");
        pub off: Nanos = key(
            "off",
            PART,
            Value("1s"),
            "how long it then pauses, by a clock that runs from its first write: what a write() that is still under way takes of the pause is not made up for",
            "tcpknee",
        );
        pub write_bytes: Write<WRITE_BYTES> = WRITE;
    }
}

impl Workload for OnOff {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        Some(Apps {
            sender: Box::new(Source {
                on: self.on,
                off: self.off,
                write_bytes: self.write_bytes.0,
                left: self.write_bytes.0,
                began: None,
            }),
            receiver: Box::new(Sink),
            receiver_opens: false,
        })
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }
}

struct Source {
    on: Nanos,
    off: Nanos,
    write_bytes: u64,
    /// Of the current write().
    left: u64,
    /// When it could first write.
    began: Option<Nanos>,
}

impl Source {
    /// How much of the pause is left; `None`: it is on.
    fn pause_left(&self, now: Nanos) -> Option<Nanos> {
        let round = self.on + self.off;
        let within = Nanos((now - self.began?).0 % round.0);
        (within >= self.on).then(|| round - within)
    }
}

impl App for Source {
    fn next_write_bytes(&mut self, now: Nanos) -> u64 {
        self.began.get_or_insert(now);
        let in_write = self.left < self.write_bytes;
        if in_write || self.pause_left(now).is_none() {
            self.left
        } else {
            0
        }
    }
    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.left -= bytes;
        if self.left == 0 {
            self.left = self.write_bytes;
        }
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
    fn wakes_at(&self, now: Nanos) -> Option<Nanos> {
        self.pause_left(now).map(|left| now + left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_begin_only_while_it_is_on() {
        let (on, off) = (Nanos::from_ms(30), Nanos::from_ms(70));
        let write_bytes = Write(1_000);
        let spec = OnOff {
            on,
            off,
            write_bytes,
        };
        let mut apps = spec.apps(0).expect("it has applications of ours");
        let at = |ms: u64| Nanos::from_ms(500 + ms);
        assert_eq!(apps.sender.next_write_bytes(at(0)), 1_000);
        assert_eq!(apps.sender.wakes_at(at(29)), None);
        // What is in write() is finished.
        apps.sender.wrote(at(29), 400);
        assert_eq!(apps.sender.next_write_bytes(at(40)), 600);
        apps.sender.wrote(at(40), 600);
        assert_eq!(apps.sender.next_write_bytes(at(41)), 0);
        assert_eq!(apps.sender.wakes_at(at(41)), Some(at(100)));
        assert_eq!(apps.sender.next_write_bytes(at(100)), 1_000);
    }
}
