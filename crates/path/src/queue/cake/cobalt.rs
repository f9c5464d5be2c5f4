//! COBALT: CoDel for flows that react to drops, BLUE for those that do not.
//!
//! CoDel's counter is not forgotten when the wait falls below the target, but
//! runs down as it ran up. BLUE drops with a probability that rises when the
//! buffer overflows and falls when the flow's queue is empty.
//!
//! The first wait above the target that a queue ever has is not given an
//! interval: the packet after the first that waited so long is dropped. Linux
//! computes 1/sqrt(count) when the count changes, and starts it at 0, so that
//! the first drop is due at once. A slow start meets it, and ends there.

use knee_units::Nanos;
use knee_units::rng::Stream;

use crate::packet::Packet;

/// Steps of BLUE's probability, of 2^32: up 1/256, down 1/4096.
const BLUE_UP: u32 = 1 << 24;
const BLUE_DOWN: u32 = 1 << 20;

/// What the flows of a tin share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) target: Nanos,
    pub(super) interval: Nanos,
    /// Of the largest packet at the tin's rate; 0: no rate.
    pub(super) packet_time: Nanos,
}

/// State of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// 1 / sqrt(count), of 2^32; 0 until the count changes for the first time.
    inv_sqrt: u32,
    /// Time of the next drop, or until which the state is kept.
    drop_next: Nanos,
    blue_timer: Nanos,
    /// Of 2^32.
    blue: u32,
    dropping: bool,
}

impl Cobalt {
    /// The flow lost a packet because the buffer was full.
    #[cold]
    pub(super) fn buffer_full(&mut self, settings: &Settings, now: Nanos) {
        if now.saturating_sub(self.blue_timer) > settings.target {
            self.blue = self.blue.saturating_add(BLUE_UP);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// It was the flow's turn, and it had nothing.
    #[inline]
    pub(super) fn queue_empty(&mut self, settings: &Settings, now: Nanos) {
        if self.blue > 0 && now.saturating_sub(self.blue_timer) > settings.target {
            self.blue = self.blue.saturating_sub(BLUE_DOWN);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count_to(self.count - 1);
            self.drop_next = self.after(self.drop_next, settings);
        }
    }

    /// Nothing of it is left to forget.
    pub(super) fn rests(&self, now: Nanos) -> bool {
        self.blue == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Is the packet to be dropped? If CoDel says so it is marked where that can be.
    #[inline]
    pub(super) fn drops(
        &mut self,
        settings: &Settings,
        packet: &mut Packet,
        now: Nanos,
        rng: &mut Stream,
    ) -> bool {
        let waited = now.saturating_sub(packet.enqueued);
        let due = self.count > 0 && now >= self.drop_next;
        self.dropping = if waited > settings.target && waited > settings.packet_time * 4 {
            if !self.dropping {
                self.drop_next = self.after(now, settings);
            }
            self.count = self.count.max(1);
            true
        } else {
            false
        };
        let mut drop = due && self.is_due(settings, packet, now);
        if self.blue > 0 {
            drop |= rng.next_u32() < self.blue;
        }
        if self.count == 0 {
            self.drop_next = now + settings.interval;
        } else if now > self.drop_next && !drop {
            self.drop_next = now;
        }
        drop
    }

    /// The time of the next drop has come. Is the packet to be dropped?
    #[inline(never)]
    fn is_due(&mut self, settings: &Settings, packet: &mut Packet, now: Nanos) -> bool {
        if self.dropping {
            self.count_to(self.count.saturating_add(1));
            self.drop_next = self.after(self.drop_next, settings);
            return !packet.mark_ce();
        }
        while self.count > 0 && now >= self.drop_next {
            self.count_to(self.count - 1);
            self.drop_next = self.after(self.drop_next, settings);
        }
        false
    }

    /// Counts, where the root of 0 is as that of 1.
    fn count_to(&mut self, count: u32) {
        self.count = count;
        self.inv_sqrt = (u64::MAX / u64::from(count.max(1))).isqrt() as u32;
    }

    /// t + interval / sqrt(count).
    fn after(&self, t: Nanos, settings: &Settings) -> Nanos {
        let wait = u128::from(settings.interval.0) * u128::from(self.inv_sqrt);
        t + Nanos((wait >> 32) as u64)
    }
}
