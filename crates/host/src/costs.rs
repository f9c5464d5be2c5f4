//! What each operation costs, and which class of a report it belongs to.

/// Where a report puts an operation's time. The first eight are those of Cai et al., "Understanding Host Network Stack
/// Overheads", SIGCOMM 2021.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    DataCopy,
    TcpIp,
    Netdev,
    Skb,
    Memory,
    Lock,
    Scheduler,
    Timer,
    /// Entering and leaving the kernel.
    Syscall,
    Other,
}

impl Class {
    pub const ALL: [Class; 10] = [
        Class::DataCopy,
        Class::TcpIp,
        Class::Netdev,
        Class::Skb,
        Class::Memory,
        Class::Lock,
        Class::Scheduler,
        Class::Timer,
        Class::Syscall,
        Class::Other,
    ];

    /// The counter that has its time in the table `host_costs`.
    pub fn counter(self) -> &'static str {
        match self {
            Class::DataCopy => "class_data_copy_ns",
            Class::TcpIp => "class_tcp_ip_ns",
            Class::Netdev => "class_netdev_ns",
            Class::Skb => "class_skb_ns",
            Class::Memory => "class_memory_ns",
            Class::Lock => "class_lock_ns",
            Class::Scheduler => "class_scheduler_ns",
            Class::Timer => "class_timer_ns",
            Class::Syscall => "class_syscall_ns",
            Class::Other => "class_other_ns",
        }
    }

    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Class::DataCopy => "data copy",
            Class::TcpIp => "TCP/IP",
            Class::Netdev => "netdev",
            Class::Skb => "skb",
            Class::Memory => "memory",
            Class::Lock => "lock",
            Class::Scheduler => "scheduler",
            Class::Timer => "timer",
            Class::Syscall => "syscall",
            Class::Other => "other",
        }
    }
}

/// An operation, as profiles name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostKind {
    /// With its unit last: `copy_in_ns_per_byte`, `wakeup_ns`.
    pub name: &'static str,
    pub class: Class,
    pub doc: &'static str,
}

macro_rules! costs {
    ($($variant:ident $name:literal $class:ident $doc:literal;)*) => {
        /// An operation that costs time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cost {
            $(#[doc = $doc] $variant,)*
        }

        /// All of them, in the order of [`Cost`].
        pub const COSTS: &[CostKind] = &[
            $(CostKind { name: $name, class: Class::$class, doc: $doc },)*
        ];
    };
}

costs! {
    SendCall "send_call_ns" Syscall "send(): entry, exit and queueing, without what it copies and sends";
    ReceiveCall "receive_call_ns" Syscall "recv(): entry, exit and what it takes off the queue, without copying";
    WaitCall "wait_call_ns" Syscall "epoll_wait() or select(): one call that reports what is ready";
    CopyIn "copy_in_ns_per_byte" DataCopy "copying from a program into skbs, per byte";
    CopyOut "copy_out_ns_per_byte" DataCopy "copying from skbs to a program, per byte";
    Page "page_ns_per_byte" Memory "allocating and freeing the memory behind written data, per byte";
    SkbAlloc "skb_alloc_ns" Skb "allocating an skb";
    SkbFree "skb_free_ns" Skb "freeing an skb";
    SocketLock "socket_lock_ns" Lock "taking and releasing a socket's lock";
    QdiscLock "qdisc_lock_ns" Lock "waiting for the lock of a qdisc that another processor has";
    TcpSend "tcp_send_ns" TcpIp "sending one data skb: tcp_write_xmit() to the qdisc";
    AckSend "ack_send_ns" TcpIp "building and sending a pure ACK, to the qdisc";
    IpReceive "ip_receive_ns" TcpIp "an skb's way up: netif_receive_skb() to the socket";
    TcpReceive "tcp_receive_ns" TcpIp "a data skb in its socket: tcp_rcv_established() to the receive queue";
    AckReceive "ack_receive_ns" TcpIp "an ACK in its socket: tcp_ack() with the algorithm";
    Qdisc "qdisc_ns" Netdev "enqueue and dequeue at a qdisc other than fq; 0 where there is none";
    Fq "fq_ns" Netdev "enqueue and dequeue at fq, by its tree of flows";
    FqFast "fq_fast_ns" Netdev "the same by fq's fast path (Linux 6.7)";
    Xmit "xmit_ns" Netdev "a driver's transmission of one skb";
    Segment "segment_ns" Netdev "each further packet of an skb that software splits";
    Completion "completion_ns" Netdev "taking a sent skb back from the NIC";
    Interrupt "interrupt_ns" Other "a hardware interrupt";
    Softirq "softirq_ns" Other "entering softirq processing";
    Poll "poll_ns" Netdev "one call of a NAPI poll function";
    DriverReceive "driver_receive_ns" Netdev "a driver's reception of one packet";
    Gro "gro_ns" Netdev "GRO of one packet";
    GroCompare "gro_compare_ns" Netdev "GRO's comparison of a packet with one that it holds";
    Backlog "backlog_ns" Netdev "an skb's way through a processor's backlog: veth, loopback, RPS";
    TimerArm "timer_arm_ns" Timer "arming a high-resolution timer";
    TimerFire "timer_fire_ns" Timer "a high-resolution timer's expiry, until its function runs";
    Wakeup "wakeup_ns" Scheduler "waking a thread";
    Switch "switch_ns" Scheduler "switching to another thread";
    IdleExit "idle_exit_ns" Scheduler "leaving the idle state";
    Ipi "ipi_ns" Scheduler "an interrupt to another processor, at both ends";
    CacheMiss "cache_miss_ns" Other "an skb whose data lie in another processor's cache";
    Service "service_ns" Other "computing of the application's own";
}

/// The number of operations.
pub const COUNT: usize = COSTS.len();

/// What each operation costs, ps: of a byte fractions of a nanosecond.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Costs {
    #[serde(serialize_with = "as_list")]
    ps: [u64; COUNT],
}

/// serde knows arrays up to 32.
fn as_list<S: serde::Serializer>(ps: &[u64; COUNT], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ps)
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { ps: [0; COUNT] }
    }
}

impl Costs {
    /// The operation of that name.
    pub fn position(name: &str) -> Option<usize> {
        COSTS.iter().position(|kind| kind.name == name)
    }

    /// Sets the cost of the operation at that position of [`COSTS`], ns.
    pub fn set(&mut self, position: usize, ns: f64) {
        self.ps[position] = (ns * 1_000.0).round() as u64;
    }

    #[inline]
    pub fn ps(&self, cost: Cost) -> u64 {
        self.ps[cost as usize]
    }

    /// ns of the operation at that position of [`COSTS`].
    pub fn ns_at(&self, position: usize) -> f64 {
        self.ps[position] as f64 / 1_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own_with_its_unit() {
        for (position, kind) in COSTS.iter().enumerate() {
            assert_eq!(Costs::position(kind.name), Some(position));
            assert!(kind.name.ends_with("_ns") || kind.name.ends_with("_ns_per_byte"));
        }
        assert_eq!(COSTS[Cost::Service as usize].name, "service_ns");
        assert_eq!(COSTS[Cost::Gro as usize].name, "gro_ns");
    }

    #[test]
    fn a_cost_keeps_a_thousandth_of_a_nanosecond() {
        let mut costs = Costs::default();
        costs.set(Cost::CopyIn as usize, 0.0625);
        assert_eq!(costs.ps(Cost::CopyIn), 63);
        costs.set(Cost::Wakeup as usize, 812.5);
        assert_eq!(costs.ns_at(Cost::Wakeup as usize), 812.5);
    }
}
