//! Rows of one sample of a socket.

use knee_collect::sock_diag::Diag;
use knee_collect::sock_diag::bits_per_sec;
use knee_collect::sock_diag::columns::Stored;
use knee_collect::sock_diag::tcp_info::TcpInfo;
use knee_collect::tcp_info_columns;
use knee_tables::{Event, Sample, TcpInfoSample};

use crate::repetition::Id;

pub fn count(value: Option<impl Into<u64>>) -> i64 {
    value.map_or(0, |value| value.into() as i64)
}

pub fn maybe(value: Option<impl Into<u64>>) -> Option<i64> {
    value.map(|value| value.into() as i64)
}

/// Makes a row of `events`.
pub fn event(id: Id, event: &'static str, info: &TcpInfo<'_>) -> Event {
    Event {
        cell: id.cell,
        rep: id.rep,
        t_ns: id.t_ns,
        flow: id.flow,
        event,
        snd_cwnd: maybe(info.snd_cwnd()),
        snd_ssthresh: maybe(info.snd_ssthresh()),
    }
}

/// A column of a run. In one without nulls 0 stands for what the kernel does not tell.
trait Cell {
    type Value;
    fn of(told: Option<Self::Value>) -> Self;
}

impl<V> Cell for Option<V> {
    type Value = V;
    fn of(told: Option<V>) -> Option<V> {
        told
    }
}

impl Cell for i64 {
    type Value = i64;
    fn of(told: Option<i64>) -> i64 {
        told.unwrap_or(0)
    }
}

impl Cell for i32 {
    type Value = i32;
    fn of(told: Option<i32>) -> i32 {
        told.unwrap_or(0)
    }
}

fn cell<C: Cell>(told: Option<impl Stored<C::Value>>) -> C {
    C::of(told.map(Stored::stored))
}

/// Makes a row of `samples` and one of its further columns.
pub fn sample(
    id: Id,
    diag: &Diag<'_>,
    info: &TcpInfo<'_>,
    bytes_read: u64,
    rcvbuf_bytes: Option<i64>,
) -> (Sample, TcpInfoSample) {
    let memory = diag.memory;
    macro_rules! sample {
        ($($column:ident: $field:ident, $how:ident;)*) => {
            Sample {
                cell: id.cell,
                rep: id.rep,
                t_ns: id.t_ns,
                flow: id.flow,
                $($column: cell(info.$how()),)*
                delivery_rate_app_limited: info
                    .delivery_rate()
                    .and(info.flags())
                    .is_some_and(|flags| flags & 1 != 0),
                bytes_read: bytes_read as i64,
                sndbuf_bytes: maybe(memory.map(|memory| memory.sndbuf)),
                rcvbuf_bytes,
                bbr_bw_bits_per_sec: diag
                    .bbr
                    .map(|bbr| bits_per_sec(bbr.bw_bytes_per_sec))
                    .filter(|&bw| bw > 0),
                bbr_min_rtt_us: diag
                    .bbr
                    .map(|bbr| i64::from(bbr.min_rtt_us))
                    .filter(|&us| us != i64::from(u32::MAX)),
                bbr_pacing_gain: diag.bbr.map(|bbr| bbr.pacing_gain),
                bbr_cwnd_gain: diag.bbr.map(|bbr| bbr.cwnd_gain),
                cc_phase: diag.bbr.map_or("", |bbr| bbr.phase()),
            }
        };
    }
    (tcp_info_columns!(samples sample), further(diag, info))
}

fn further(diag: &Diag<'_>, info: &TcpInfo<'_>) -> TcpInfoSample {
    let (memory, vegas, dctcp) = (diag.memory, diag.vegas, diag.dctcp);
    macro_rules! further {
        ($($column:ident: $field:ident, $how:ident;)*) => {
            TcpInfoSample {
                $($column: cell(info.$how()),)*
                vegas_enabled: vegas.map(|vegas| i64::from(vegas.enabled)),
                vegas_rttcnt: vegas.map(|vegas| i64::from(vegas.rttcnt)),
                vegas_rtt_us: vegas.map(|vegas| i64::from(vegas.rtt_us)),
                vegas_minrtt_us: vegas.map(|vegas| i64::from(vegas.minrtt_us)),
                dctcp_enabled: dctcp.map(|dctcp| i64::from(dctcp.enabled)),
                dctcp_ce_state: dctcp.map(|dctcp| i64::from(dctcp.ce_state)),
                dctcp_alpha: dctcp.map(|dctcp| dctcp.alpha),
                dctcp_ab_ecn_bytes: dctcp.map(|dctcp| i64::from(dctcp.ab_ecn_bytes)),
                dctcp_ab_tot_bytes: dctcp.map(|dctcp| i64::from(dctcp.ab_tot_bytes)),
                mem_rmem_bytes: memory.map(|memory| i64::from(memory.rmem_alloc)),
                mem_wmem_bytes: memory.map(|memory| i64::from(memory.wmem_alloc)),
                mem_wmem_queued_bytes: memory.map(|memory| i64::from(memory.wmem_queued)),
                mem_drops: memory.and_then(|memory| memory.drops).map(i64::from),
            }
        };
    }
    tcp_info_columns!(further further)
}
