//! Rows against the kernel's own units.

use super::*;

/// A socket of nothing but its `tcp_info`.
pub(crate) fn diag(bytes: &[u8]) -> Diag<'_> {
    Diag {
        state: 1,
        timer: 0,
        timer_retransmits: 0,
        timer_ms: 0,
        source: ([10, 77, 0, 1].into(), 10_000),
        destination: ([10, 78, 0, 1].into(), 5_201),
        interface: 0,
        cookie: 1,
        rqueue_bytes: 0,
        wqueue_bytes: 0,
        uid: 0,
        inode: 0,
        info: Some(TcpInfo(bytes)),
        congestion: Some("cubic"),
        bbr: None,
        vegas: None,
        dctcp: None,
        memory: None,
        tos: None,
        tclass: None,
        v6only: None,
        class_id: None,
        mark: None,
        cgroup_id: None,
        protocol: None,
    }
}

const ID: Id = Id {
    cell: 0,
    rep: 0,
    t_ns: 5,
    flow: 0,
};

#[test]
fn rates_are_in_bits_and_unlimited_is_null() {
    let mut bytes = vec![0; 280];
    bytes[104..112].copy_from_slice(&125_000u64.to_ne_bytes());
    bytes[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
    bytes[160..168].copy_from_slice(&1_000u64.to_ne_bytes());
    let (row, more) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, 0);
    assert_eq!(row.pacing_rate_bits_per_sec, Some(1_000_000));
    assert_eq!(row.delivery_rate_bits_per_sec, 8_000);
    assert_eq!(more.max_pacing_rate_bits_per_sec, None);
}

#[test]
fn least_rtt_that_was_never_measured_is_zero_as_in_the_simulator() {
    let mut bytes = vec![0; 280];
    bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
    let (row, _) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, 0);
    assert_eq!(row.min_rtt_us, 0);
}

#[test]
fn kernel_without_a_field_gives_null_in_the_further_columns() {
    let bytes = vec![1; 192];
    let (row, more) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, 0);
    assert_eq!(more.rehash, None);
    assert_eq!(more.total_rto, None);
    assert_eq!(row.delivered, 0);
}

#[test]
fn timeout_is_told_without_its_doublings() {
    let mut bytes = vec![0; 280];
    bytes[4] = 2;
    bytes[8..12].copy_from_slice(&800_000u32.to_ne_bytes());
    let (row, _) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, 0);
    assert_eq!((row.rto_us, row.backoff), (200_000, 2));
}
