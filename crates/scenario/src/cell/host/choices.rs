//! Settings of a host whose values are names.

use crate::key::keyed::named;

named! {
    /// How packets come from the NIC.
    pub enum Reception {
        /// An interrupt, then polls until there is nothing left.
        Napi = "napi",
        /// An interrupt for each packet.
        Interrupts = "interrupts",
        /// Polls without a pause.
        BusyPoll = "busy-poll",
    }
}

named! {
    /// Where GRO holds packets.
    pub enum GroTable {
        /// Eight lists by hash, each of up to eight packets.
        Hash = "hash",
        /// One list of up to eight, which gives up its oldest for a new flow.
        ShortList = "short-list",
        /// One list of up to eight, past which a new flow goes when it is full.
        ShortListPassed = "short-list-passed",
        /// One list of any length.
        List = "list",
    }
}

named! {
    /// When TCP arms its pacing timer.
    pub enum PacingTimer {
        /// For a packet that has to wait.
        WhenNeeded = "when-needed",
        /// After every packet with data.
        EveryPacket = "every-packet",
        /// It has none.
        Never = "never",
    }
}

named! {
    /// How the window grows in a reduction, below ssthresh.
    pub enum Prr {
        /// It makes up for what was delivered and not sent for.
        CatchUp = "catch-up",
        /// The same while ACKs advance and report no loss; else it sends what the ACK delivered.
        OnProgress = "on-progress",
        /// The same while ACKs cover retransmissions.
        OnRepair = "on-repair",
        /// It makes up with each ACK.
        SlowStart = "slow-start",
    }
}

named! {
    /// How much of the receive buffer is taken for payload.
    pub enum RcvbufShare {
        /// What full packets have shown, half until then.
        Measured = "measured",
        /// The same, a quarter until then.
        MeasuredFromQuarter = "measured-from-quarter",
        /// Half.
        Half = "half",
    }
}

named! {
    /// What the receive buffer grows to when a round trip ends.
    pub enum RcvbufGrowth {
        /// Twice what was read in it, and twice again by how much that is more than before.
        Rise = "rise",
        /// Twice what was read in it.
        Twice = "twice",
        /// The first of it and of sixteen segments.
        Margin = "margin",
    }
}

named! {
    /// Which time of a packet is its sending time.
    pub enum SendStamps {
        /// When the qdisc lets it go.
        Departure = "departure",
        /// When TCP handed it to the qdisc.
        Handover = "handover",
    }
}
