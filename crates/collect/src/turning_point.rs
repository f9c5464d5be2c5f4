//! Changes of the loss state that a sampler sees.

/// The event that a change of tcp_info's ca_state is, in the simulator's words.
pub fn turning_point(was: u8, is: u8) -> Option<&'static str> {
    const CWR: u8 = 2;
    const RECOVERY: u8 = 3;
    const LOSS: u8 = 4;
    match (was, is) {
        _ if was == is => None,
        (_, RECOVERY) => Some("recovery"),
        (_, LOSS) => Some("loss"),
        (_, CWR) => Some("cwr"),
        (RECOVERY, _) => Some("recovery_end"),
        (LOSS, _) => Some("loss_end"),
        (CWR, _) => Some("cwr_end"),
        _ => None,
    }
}
