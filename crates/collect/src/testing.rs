//! For tests, of this crate and of those that use it.

use knee_store::sock_diag::tcp_info::TcpInfo;

use crate::sock_diag::Diag;

/// A socket of nothing but its `tcp_info`.
pub fn diag(bytes: &[u8]) -> Diag<'_> {
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
