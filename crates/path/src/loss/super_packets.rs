//! Loss where a host sends: netem as the qdisc of a sender sees TSO packets before the NIC cuts them, and one draw decides
//! over all of it.

use knee_units::rng::Chance;

use super::bernoulli::Bernoulli;
use super::{LossKind, LossSpec};

pub(super) const KIND: LossKind = LossKind {
    name: "super-packets",
    summary: "each TSO packet is lost whole with the same probability, as by netem on the host that sends; one draw for up to 64 KiB",
    source: "tc-netem(8), loss random; net/sched/sch_netem.c, which segments GSO packets for corruption alone",
    example: "super-packets 1.5%",
    read: |text, _| LossSpec::of_share(&KIND, text),
    build: |spec, rng| {
        Box::new(Bernoulli {
            chance: Chance::new(spec.share),
            rng,
        })
    },
};
