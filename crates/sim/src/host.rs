//! The hosts of a run: what a scenario says of them, as TCP and their NICs understand it.

use knee_scenario::Host as Spec;
use knee_units::Nanos;

use crate::tcp::{HostConf, Pacing, Settings};

/// The hosts at one end of the path.
pub struct Host {
    pub tcp: HostConf,
    /// Does the receive path merge packets before TCP sees them?
    pub gro: bool,
    /// How long the NIC gathers packets before it interrupts.
    pub rx_coalesce: Nanos,
    /// Mean time by which it sends late.
    pub noise: Nanos,
}

impl Host {
    pub fn new(spec: &Spec, mtu_bytes: u32) -> Host {
        let settings = Settings {
            hz: spec.hz,
            tcp_wmem_bytes: spec.tcp_wmem_bytes,
            tcp_rmem_bytes: spec.tcp_rmem_bytes,
            tcp_limit_output_bytes: spec.tcp_limit_output_bytes,
            tcp_slow_start_after_idle: spec.tcp_slow_start_after_idle,
            tcp_rto_min: spec.tcp_rto_min,
            tcp_comp_sack_delay: spec.tcp_comp_sack_delay,
            tcp_comp_sack_nr: spec.tcp_comp_sack_nr,
            tcp_ecn: spec.tcp_ecn,
            pacing: pacing(spec.pacing),
            quickack: spec.quickack,
            initcwnd: spec.initcwnd,
            gso_max_bytes: spec.gso_max_bytes,
            grow_skb: spec.grow_skb,
        };
        Host {
            tcp: HostConf::new(settings, mtu_bytes),
            gro: spec.gro,
            rx_coalesce: spec.rx_coalesce,
            noise: spec.noise,
        }
    }
}

/// As TCP knows it.
pub fn pacing(pacing: knee_scenario::Pacing) -> Pacing {
    match pacing {
        knee_scenario::Pacing::Internal => Pacing::Internal,
        knee_scenario::Pacing::Timer => Pacing::Timer,
        knee_scenario::Pacing::Fq => Pacing::Fq,
    }
}
