//! Classes of service: the share of each tin, and the tin of each DSCP.

/// Rate of each tin, above which it gives way, and its weight when nothing shapes.
pub(super) fn shares(tins: usize, rate: u64) -> Vec<(u64, u32)> {
    match tins {
        1 => vec![(rate, 65_535)],
        3 => vec![(rate, 1_024), (rate >> 4, 64), (rate >> 2, 256)],
        4 => vec![
            (rate, 1_024),
            (rate >> 4, 64),
            (rate >> 1, 512),
            (rate >> 2, 256),
        ],
        _ => std::iter::successors(Some((rate, 256)), |&(rate, weight)| {
            Some(((rate * 7) >> 3, (weight * 7) >> 3))
        })
        .take(8)
        .collect(),
    }
}

/// The tin of a DSCP. Names: RFC 4594, RFC 8622 (LE), RFC 5865 (VA).
pub(super) fn tin_of(tins: usize, dscp: u8) -> usize {
    const LE: u8 = 1;
    const CS1: u8 = 8;
    const VA: u8 = 44;
    const EF: u8 = 46;
    match (tins, dscp) {
        // Bulk, best effort, latency sensitive.
        (3, LE | CS1) => 1,
        (3, 4 | VA | EF | 48 | 56) => 2,
        // Bulk, best effort, streaming media, latency sensitive.
        (4, LE | CS1) => 1,
        (4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
        (4, 32 | 40 | VA | EF | 48 | 56) => 3,
        // Least effort; bulk and AF1x; best effort; video, AF3x, AF4x; AF2x;
        // CS2; minimum latency; network control.
        (8, LE) => 0,
        (8, 2 | CS1 | 10 | 12 | 14) => 1,
        (8, 24 | 26 | 28 | 30 | 34 | 36 | 38) => 3,
        (8, 4 | 18 | 20 | 22) => 4,
        (8, 16) => 5,
        (8, 32 | 40 | VA | EF) => 6,
        (8, 48 | 56) => 7,
        (8, _) => 2,
        _ => 0,
    }
}
