//! Operations that always come together, which are charged and counted as one.

use crate::costs::{Cost, Costs};

macro_rules! bundles {
    ($($variant:ident $costs:tt $doc:literal;)*) => {
        /// Operations that are charged as one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bundle {
            $(#[doc = $doc] $variant,)*
        }

        impl Bundle {
            pub(crate) const ALL: [Bundle; BUNDLES] = [$(Bundle::$variant),*];

            pub(crate) fn costs(self) -> &'static [Cost] {
                use Cost::*;
                match self {
                    $(Bundle::$variant => &$costs,)*
                }
            }
        }

        /// How many there are.
        pub(crate) const BUNDLES: usize = [$($doc),*].len();
    };
}

bundles! {
    PollAtOnce [Interrupt, Softirq, Poll, IpReceive] "a poll in the softirq of an interrupt, of one skb that goes up at once";
    PollFromIdle [IdleExit, Interrupt, Softirq, Poll, IpReceive] "the same on a processor that has idled";
    PacketAtOnce [DriverReceive] "a driver's reception of one packet in such a poll";
    GroPacketAtOnce [DriverReceive, Gro] "the same with GRO";
    DataInSocket [SocketLock, TcpReceive] "a data skb in its socket";
    AckInSocket [SocketLock, AckReceive] "an ACK in its socket";
    AckSent [SkbAlloc, AckSend, Xmit, Completion, SkbFree] "sending a pure ACK where there is no qdisc";
    AckByFifo [SkbAlloc, AckSend, Qdisc, Xmit, Completion, SkbFree] "the same by a qdisc that queues nothing";
    AckBuilt [SkbAlloc, AckSend] "building one for a qdisc that may hold it";
    DataBuilt [SkbAlloc, TcpSend] "allocating and sending a data skb";
    Transmission [Xmit, Completion] "the driver sends one skb, and hears at once that it was sent";
    Woken [Wakeup] "waking a thread";
    Switched [Switch] "switching to another thread";
    ReadCall [ReceiveCall, SocketLock] "a call that reads";
}

impl Bundle {
    /// What its operations cost together, ps.
    pub(crate) fn ps(self, costs: &Costs) -> u64 {
        self.costs().iter().map(|&cost| costs.ps(cost)).sum()
    }
}
