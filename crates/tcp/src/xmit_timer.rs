//! The transmit timer: one of retransmission timeout, tail loss probe (RFC 8985, 7), RACK's reordering wait, or window
//! probe at a time; and how often its timeout was doubled.

use knee_units::NEVER;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmitTimerKind {
    None,
    Retransmit,
    LossProbe,
    Reorder,
    WindowProbe,
}

#[derive(Clone, Debug)]
pub struct XmitTimer {
    at_ns: u64,
    kind: XmitTimerKind,
    /// Doublings of the timeout since an RTT was last measured.
    backoff: u32,
    /// An ACK asks for a loss probe, unless what is sent because of it does.
    probe_is_due: bool,
}

impl XmitTimer {
    pub fn new() -> XmitTimer {
        XmitTimer {
            at_ns: NEVER,
            kind: XmitTimerKind::None,
            backoff: 0,
            probe_is_due: false,
        }
    }

    #[inline]
    pub fn kind(&self) -> XmitTimerKind {
        self.kind
    }

    /// When it fires, if it does.
    #[inline]
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    #[inline]
    pub fn arm(&mut self, kind: XmitTimerKind, at_ns: u64) {
        self.kind = kind;
        self.at_ns = at_ns;
        self.probe_is_due = false;
    }

    /// It is to be that of a loss probe, as soon as the ACK is through.
    #[inline]
    pub fn put_off_probe(&mut self) {
        self.probe_is_due = true;
    }

    /// Was it put off, and has nothing been armed since?
    #[inline]
    pub fn probe_is_due(&self) -> bool {
        self.probe_is_due
    }

    pub fn disarm(&mut self) {
        self.arm(XmitTimerKind::None, NEVER);
    }

    /// It fires. The kind stays while the handler runs: rearm_rto() asks what it was.
    pub fn fire(&mut self) -> XmitTimerKind {
        self.at_ns = NEVER;
        self.kind
    }

    /// The next timeout counts from now, not from the head's transmission.
    pub fn forget_kind(&mut self) {
        self.kind = XmitTimerKind::None;
    }

    #[inline]
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    #[inline]
    pub fn clear_backoff(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fired_is_known_until_it_is_armed_anew() {
        let mut timer = XmitTimer::new();
        timer.arm(XmitTimerKind::LossProbe, 5);
        timer.back_off();
        assert_eq!(timer.fire(), XmitTimerKind::LossProbe);
        assert_eq!(
            (timer.kind(), timer.at_ns()),
            (XmitTimerKind::LossProbe, NEVER)
        );
        timer.arm(XmitTimerKind::Retransmit, 9);
        assert_eq!((timer.at_ns(), timer.backoff()), (9, 1));
        timer.disarm();
        assert_eq!((timer.kind(), timer.at_ns()), (XmitTimerKind::None, NEVER));
    }
}
