//! Data without end, with pauses: cross traffic that comes and goes.

use knee_units::Nanos;

use super::{App, Apps, Sink, WorkloadKind};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "on-off",
    summary: "the sender writes without end for `on`, pauses for `off`, and begins again",
    keys: &["on", "off", "write"],
};

pub(super) fn apps(on: Nanos, off: Nanos, write_bytes: u64) -> Apps {
    Apps {
        sender: Box::new(Source {
            on,
            off,
            write_bytes,
            left: write_bytes,
            began: None,
        }),
        receiver: Box::new(Sink),
        receiver_opens: false,
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
        let mut apps = apps(on, off, 1_000);
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
