//! The hosts of a run: what a scenario says of them, as TCP and their NICs understand it, and what one sends late.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use knee_path::Backend;
use knee_scenario::{
    Cell, Host as Spec, PacingTimer, Prr, RcvbufGrowth, RcvbufShare, Reception, SendStamps,
};
use knee_units::Nanos;
use knee_units::rng::Lateness;

use crate::event::EndpointId;
use crate::machine::{MachineConf, Qdisc};
use knee_tcp::{BufferGrowth, HostConf, Pacing, PrrRule, Settings, TimerRule};

/// Descriptors of a veth's ring (Linux, drivers/net/veth.c).
const VETH_RING_SIZE: u32 = 256;

/// Packets on their way out of a host that is late.
pub struct Late {
    lateness: Lateness,
    /// When each leaves, and of which of its ends.
    pub waiting: VecDeque<(u64, EndpointId, u32)>,
    /// What is sent at this instant leaves together, because one wake-up of the host sends it...
    given_ns: u64,
    /// ... then.
    leaves_ns: u64,
}

impl Late {
    pub fn new(lateness: Lateness) -> Late {
        Late {
            lateness,
            waiting: VecDeque::new(),
            given_ns: 0,
            leaves_ns: 0,
        }
    }

    /// When a packet leaves that is sent now: never before one that was sent earlier.
    pub fn leaves_ns(&mut self, now_ns: u64) -> u64 {
        if self.given_ns != now_ns {
            self.given_ns = now_ns;
            self.leaves_ns = self.leaves_ns.max(now_ns + self.lateness.draw().0);
        }
        self.leaves_ns
    }
}

/// Addresses and ports of a connection's ends, by which hosts and NICs tell it from others: the sender's host at 10.0.0.0/16,
/// the receiver's at 10.1.0.0/16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourTuple {
    pub sender: SocketAddrV4,
    pub receiver: SocketAddrV4,
}

impl FourTuple {
    const HOSTS: u32 = 65_000;
    const FIRST_PORT: u16 = 10_000;
    /// So that ports stay below 60,000.
    const PORTS: u32 = 50_000;
    const RECEIVER_PORT: u32 = 5_001;

    /// Of flow `number`, between the hosts of these numbers. As long as there are no more than 65,000 hosts at a side and
    /// no more than three thousand million flows, no two flows have the same.
    pub fn new(number: u32, [sender, receiver]: [u32; 2]) -> FourTuple {
        let address = |net: u32, host: u32| Ipv4Addr::from_bits(net + host % Self::HOSTS + 1);
        let port = Self::FIRST_PORT + (number % Self::PORTS) as u16;
        let receiver_port = (Self::RECEIVER_PORT + number / Self::PORTS) as u16;
        FourTuple {
            sender: SocketAddrV4::new(address(0x0a00_0000, sender), port),
            receiver: SocketAddrV4::new(address(0x0a01_0000, receiver), receiver_port),
        }
    }
}

/// What the hosts at one end of the path are like.
pub struct HostType {
    pub tcp: HostConf,
    /// Does the receive path merge packets before TCP sees them?
    pub gro: bool,
    /// How long the NIC gathers packets before it interrupts.
    pub rx_coalesce: Nanos,
    /// Mean time by which it sends late.
    pub noise: Nanos,
    /// How many there are, over which connections are spread in turn; `None`: each connection has its own.
    pub hosts: Option<u32>,
    /// Of hosts whose work takes time.
    pub machine: Option<MachineConf>,
}

impl HostType {
    pub fn new(spec: &Spec, cell: &Cell) -> HostType {
        let machine = machine(spec, cell);
        let settings = Settings {
            hz: spec.hz,
            tcp_wmem_bytes: spec.tcp_wmem_bytes,
            tcp_rmem_bytes: spec.tcp_rmem_bytes,
            // Either end's SYN turns it off for both.
            tcp_window_scaling: cell.sender.tcp_window_scaling && cell.receiver.tcp_window_scaling,
            tcp_moderate_rcvbuf: spec.tcp_moderate_rcvbuf,
            tcp_limit_output_bytes: spec.tcp_limit_output_bytes,
            tsq_limits_paced: spec.tsq_limits_paced,
            reports_sent: machine.as_ref().is_some_and(|conf| conf.tx_coalesce_ns > 0),
            tcp_slow_start_after_idle: spec.tcp_slow_start_after_idle,
            tcp_rto_min: spec.tcp_rto_min,
            tcp_comp_sack_delay: spec.tcp_comp_sack_delay,
            tcp_comp_sack_nr: spec.tcp_comp_sack_nr,
            tcp_comp_sack_rtt_percent: spec.tcp_comp_sack_rtt_percent,
            tcp_syn_linear_timeouts: spec.tcp_syn_linear_timeouts,
            tcp_ecn: spec.tcp_ecn,
            pacing: pacing(spec.pacing),
            pacing_timer: match spec.pacing_timer {
                PacingTimer::WhenNeeded => TimerRule::WhenNeeded,
                PacingTimer::EveryPacket => TimerRule::EveryPacket,
                PacingTimer::Never => TimerRule::Never,
            },
            tcp_pacing_ss_ratio: spec.tcp_pacing_ss_ratio,
            tcp_pacing_ca_ratio: spec.tcp_pacing_ca_ratio,
            stamps_handover: spec.send_stamps == SendStamps::Handover,
            quickack: spec.quickack,
            initcwnd: spec.initcwnd,
            gso_max_bytes: spec.gso_max_bytes,
            tso_autosizing: spec.tso_autosizing,
            tcp_tso_rtt_log: spec.tcp_tso_rtt_log,
            // TCP_DEFAULT_SCALING_RATIO: 1,200 of 4,672 bytes.
            payload_share_q8: match spec.rcvbuf_share {
                RcvbufShare::Measured | RcvbufShare::Half => 128,
                RcvbufShare::MeasuredFromQuarter => 65,
            },
            measures_payload: spec.rcvbuf_share != RcvbufShare::Half,
            rcvbuf_growth: match spec.rcvbuf_growth {
                RcvbufGrowth::Rise => BufferGrowth::Rise,
                RcvbufGrowth::Twice => BufferGrowth::Twice,
                RcvbufGrowth::Margin => BufferGrowth::Margin,
            },
            tcp_rcvbuf_low_rtt: spec.tcp_rcvbuf_low_rtt,
            grow_skb: spec.grow_skb,
            prr: match spec.prr {
                Prr::CatchUp => PrrRule::CatchUp,
                Prr::OnProgress => PrrRule::OnProgress,
                Prr::OnRepair => PrrRule::OnRepair,
                Prr::SlowStart => PrrRule::SlowStart,
            },
        };
        HostType {
            tcp: HostConf::new(settings, cell.path.mtu_bytes),
            gro: spec.gro,
            // A driver that adapts it has it in the queues of its machine.
            rx_coalesce: match machine.as_ref().is_some_and(|conf| conf.adaptive_rx) {
                true => Nanos::ZERO,
                false => spec.rx_coalesce,
            },
            noise: spec.noise,
            // On one machine the scenario says it of the senders' hosts.
            hosts: match crosses(cell) {
                true => cell.sender.shared_hosts(),
                false => spec.shared_hosts(),
            },
            machine,
        }
    }

    /// Does the NIC report what it has sent by an interrupt?
    #[inline]
    pub fn reports_sent(&self) -> bool {
        self.tcp.settings.reports_sent
    }

    /// The number of the host that a flow ends at.
    pub fn host_of(&self, flow: u32) -> u32 {
        self.hosts.map_or(flow, |hosts| flow % hosts)
    }
}

/// Is there but a veth pair between the two sides, whose hosts have processors? Then they share them.
pub fn crosses(cell: &Cell) -> bool {
    let hosts = [&cell.sender, &cell.receiver];
    cell.path.backend == Backend::Veth && hosts.iter().all(|host| host.costs.is_some())
}

/// The processors and the NIC of hosts whose work costs time.
fn machine(spec: &Spec, cell: &Cell) -> Option<MachineConf> {
    let profile = spec.costs.as_ref()?;
    let crosses = crosses(cell);
    let has_napi = spec.reception == Reception::Napi;
    Some(MachineConf {
        costs: profile.costs.clone(),
        cpus: spec.cpus,
        queues: spec.queues,
        rx_ring: match crosses {
            true => VETH_RING_SIZE.min(spec.rx_ring),
            false => spec.rx_ring,
        },
        netdev_budget: spec.netdev_budget,
        netdev_budget_ns: u64::from(spec.netdev_budget_usecs) * 1_000,
        gro_flush_timeout_ns: if has_napi {
            spec.gro_flush_timeout.0
        } else {
            0
        },
        napi_defer_hard_irqs: spec.napi_defer_hard_irqs,
        // What crosses a veth pair interrupts nobody.
        adaptive_rx: spec.adaptive_rx && has_napi && !crosses,
        mq: spec.mq,
        xps: spec.xps,
        rps_cpus: spec.rps_cpus.numbers().to_vec(),
        rps_sock_flow_entries: spec.rps_sock_flow_entries as u32,
        netdev_max_backlog: spec.netdev_max_backlog,
        flow_limit_cpus: spec.flow_limit_cpu_bitmap.numbers().to_vec(),
        app_cpus: spec.app_cpus.numbers().to_vec(),
        threads: spec.app_threads,
        read_bytes: spec.read_bytes,
        qdisc: match spec.pacing {
            knee_scenario::Pacing::Fq => Qdisc::Fq {
                fast_path: spec.fq_fast_path,
            },
            _ if crosses => Qdisc::None,
            _ => Qdisc::Fifo,
        },
        // What crosses a veth pair is no NIC's.
        tx_coalesce_ns: if crosses { 0 } else { spec.tx_coalesce.0 },
        reception: spec.reception,
        gro: spec.gro,
        gro_table: spec.gro_table,
        // A veth has no TSO, and leaves skbs whole or lets software split them.
        splits: match crosses {
            true => !cell.path.keep_super_packets,
            false => !spec.tso,
        },
        steal: (spec.steal > 0.0).then_some((spec.steal, spec.steal_slice.0)),
        contention: spec.contention,
        wakeup_preemption: spec.wakeup_preemption,
    })
}

/// As TCP knows it.
pub fn pacing(pacing: knee_scenario::Pacing) -> Pacing {
    match pacing {
        knee_scenario::Pacing::Internal => Pacing::Internal,
        knee_scenario::Pacing::Timer => Pacing::Timer,
        knee_scenario::Pacing::Fq => Pacing::Fq,
    }
}
