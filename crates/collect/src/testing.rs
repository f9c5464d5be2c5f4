//! Test data for this crate and those that use it.

use crate::sock_diag::tcp_info::TcpInfo;
use crate::sock_diag::{Diag, MESSAGE_BYTES};

/// A socket that has `tcp_info` and little else.
pub fn diag(info: &[u8]) -> Diag<'_> {
    Diag {
        state: 1,
        source: ([10, 77, 0, 1].into(), 10_000),
        destination: ([10, 78, 0, 1].into(), 5_201),
        cookie: 1,
        info: Some(TcpInfo(info)),
        congestion: Some("cubic"),
        ..Diag::head(&[0; MESSAGE_BYTES])
    }
}
