//! What `ss` says of a socket after its addresses: tokens, in whatever order.
//!
//! Source: the output of iproute2 3.10 to 6.x; `tcp_info` fields are printed only
//! when they are not 0, so a field that is not there is null, unless [`zeros`] knows that it is 0.

use knee_tables::{Numbers, Sockets};

/// Splits a line at spaces; parentheses keep together what they hold, since a
/// process may be called anything.
pub struct Tokens<'a>(pub &'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let from = self.0.iter().position(|&byte| !is_space(byte))?;
        let text = &self.0[from..];
        let mut end = token_end(text);
        if text.starts_with(b"users:((") {
            end = memchr::memmem::find(text, b"))").map_or(text.len(), |at| at + 2);
        }
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Where the first space is, eight bytes at a time: a dump is millions of short tokens.
fn token_end(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&bytes) = text[at..].first_chunk() {
        let word = u64::from_le_bytes(bytes);
        // The top bit of the lowest byte that is at most b' '; bits above it mean nothing.
        let low = word.wrapping_sub(0x2121_2121_2121_2121) & !word & 0x8080_8080_8080_8080;
        if low == 0 {
            at += 8;
            continue;
        }
        at += low.trailing_zeros() as usize / 8;
        if is_space(text[at]) {
            return at;
        }
        at += 1;
    }
    let rest = text[at..].iter().position(|&byte| is_space(byte));
    rest.map_or(text.len(), |more| at + more)
}

/// Milliseconds as `%g` prints them, in microseconds.
fn us(text: &[u8]) -> Option<i64> {
    scaled(text, 1_000)
}

/// A decimal number times a power of ten, rounded.
fn scaled(text: &[u8], scale: i64) -> Option<i64> {
    let mut whole: i64 = 0;
    let mut position = 0;
    while let Some(digit) = text
        .get(position)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|digit| *digit < 10)
    {
        whole = whole.checked_mul(10)?.checked_add(i64::from(digit))?;
        position += 1;
    }
    match text.get(position) {
        None if position > 0 => whole.checked_mul(scale),
        Some(b'.' | b'e' | b'E') if position > 0 => {
            let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
            #[expect(clippy::cast_precision_loss, reason = "powers of ten")]
            let value = (number * scale as f64).round();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "within the bounds just checked"
            )]
            (value < 9e18).then_some(value as i64)
        }
        _ => None,
    }
}

fn int(text: &[u8]) -> Option<i64> {
    scaled(text, 1)
}

fn int32(text: &[u8]) -> Option<i32> {
    int(text)?.try_into().ok()
}

fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

fn hex(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// `98.5Mbps`, `1.2Gbps`, `500Kbps`, `20.5kbps`, `123456bps`.
fn rate(text: &[u8]) -> Option<i64> {
    let text = text.strip_suffix(b"bps")?;
    let (number, scale) = match text.split_last()? {
        (b'K' | b'k', rest) => (rest, 1_000),
        (b'M', rest) => (rest, 1_000_000),
        (b'G', rest) => (rest, 1_000_000_000),
        (b'T', rest) => (rest, 1_000_000_000_000),
        _ => (text, 1),
    };
    scaled(number, scale)
}

/// `200ms`, `1.500ms` of older versions (seconds, point, milliseconds), `12sec`,
/// `1min2sec`, `30min`.
fn timer_ms(text: &[u8]) -> Option<i64> {
    let (minutes_ms, rest) = match memchr::memmem::find(text, b"min") {
        Some(at) => (int(&text[..at])?.checked_mul(60_000)?, &text[at + 3..]),
        None => (0, text),
    };
    let rest_ms = if let Some(seconds) = rest.strip_suffix(b"sec") {
        int(seconds)?.checked_mul(1_000)?
    } else if let Some(number) = rest.strip_suffix(b"ms") {
        match pair(number, b'.') {
            // `1.500ms` is a second and a half.
            Some((seconds, ms)) => int(seconds)?.checked_mul(1_000)?.checked_add(int(ms)?)?,
            None => int(number)?,
        }
    } else if rest.is_empty() {
        0
    } else {
        return None;
    };
    minutes_ms.checked_add(rest_ms)
}

fn within(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"(")?.strip_suffix(b")")
}

fn pair(text: &[u8], by: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(by, text)?;
    Some((&text[..at], &text[at + 1..]))
}

fn name(text: &[u8]) -> Option<&str> {
    std::str::from_utf8(text)
        .ok()
        .filter(|text| !text.is_empty())
}

/// Reads the tokens of `line` into `row`; `unknown` hears of each that means
/// nothing to it. Gives the word at its end whose value is yet to come, if any.
pub fn details<'a>(
    line: &'a [u8],
    sockets: &mut Sockets,
    row: usize,
    mut unknown: impl FnMut(&'a [u8]),
) -> &'static [u8] {
    let mut tokens = Tokens(line);
    while let Some(token) = tokens.next() {
        let known = match memchr::memchr(b':', token) {
            Some(at) => keyed(&token[..at], &token[at + 1..], sockets, row),
            None => match SPACED.into_iter().find(|key| *key == token) {
                Some(key) => match tokens.next() {
                    Some(value) => spaced(key, value, sockets, row),
                    None => return key,
                },
                None => bare(token, sockets, row),
            },
        };
        if known.is_none() {
            unknown(token);
        }
    }
    b""
}

/// What `ss` prints only where it is not 0 is 0 where something else is there that no earlier version of it prints.
/// iproute2: segs_out of 4.2, with retrans, lost, sacked and unacked before it; delivery_rate and app_limited of 4.9; busy and
/// the limits of 4.10; bytes_sent and those beside it, delivered and delivered_ce of 5.0.
pub fn zeros(s: &mut Sockets, row: usize) {
    macro_rules! zeros {
        ($beside:ident: $($column:ident),+) => {
            if s.$beside.get(row).is_some() {
                $(if s.$column.get(row).is_none() {
                    s.$column.set(row, 0);
                })+
            }
        };
    }
    zeros!(segs_out: retrans, total_retrans, lost, sacked, unacked);
    zeros!(busy_us: rwnd_limited_us, sndbuf_limited_us);
    zeros!(bytes_sent: bytes_retrans, dsack_dups, reord_seen);
    zeros!(delivered: delivered_ce);
    let rate = s.delivery_rate_bits_per_sec.get(row);
    if rate.is_some() && s.delivery_rate_app_limited.get(row).is_none() {
        s.delivery_rate_app_limited.set(row, false);
    }
}

/// Keys whose value stands behind a blank.
const SPACED: [&[u8]; 3] = [b"send", b"pacing_rate", b"delivery_rate"];

/// Every line of details that `ss` prints has one of these keys, and the rest of a
/// line that was cut in two begins with one.
const KEYS: [&[u8]; 53] = [
    b"skmem",
    b"mem",
    b"timer",
    b"users",
    b"uid",
    b"ino",
    b"sk",
    b"cgroup",
    b"fwmark",
    b"tos",
    b"tclass",
    b"class_id",
    b"v6only",
    b"wscale",
    b"rto",
    b"backoff",
    b"rtt",
    b"ato",
    b"qack",
    b"mss",
    b"pmtu",
    b"rcvmss",
    b"advmss",
    b"cwnd",
    b"ssthresh",
    b"bytes_sent",
    b"bytes_retrans",
    b"bytes_acked",
    b"bytes_received",
    b"segs_out",
    b"segs_in",
    b"data_segs_out",
    b"data_segs_in",
    b"lastsnd",
    b"lastrcv",
    b"lastack",
    b"delivered",
    b"busy",
    b"unacked",
    b"retrans",
    b"lost",
    b"sacked",
    b"reordering",
    b"rcv_rtt",
    b"rcv_space",
    b"rcv_ssthresh",
    b"notsent",
    b"minrtt",
    b"snd_wnd",
    b"token",
    b"write_seq",
    b"bbr",
    b"dctcp",
];

/// Is there a key that `ss` prints in the line?
pub fn has_key(line: &[u8]) -> bool {
    Tokens(line).any(is_key)
}

fn is_key(token: &[u8]) -> bool {
    pair(token, b':').is_some_and(|(key, _)| KEYS.contains(&key))
}

/// Does the line begin as what remains of one of details that was cut in two?
pub fn goes_on(line: &[u8]) -> bool {
    let mut tokens = Tokens(line);
    match tokens.next() {
        Some(b"ts" | b"sack" | b"ecn" | b"ecnseen" | b"fastopen" | b"app_limited") => true,
        Some(token) if is_key(token) || SPACED.contains(&token) => true,
        Some(token) => is_word(token) && tokens.next().is_some_and(is_key),
        None => false,
    }
}

/// May an indented line that begins so be one of details? Not what a shell asks.
pub fn may_be_details(token: &[u8]) -> bool {
    let key = pair(token, b':').map_or(token, |(key, _)| key);
    matches!(key, b"<->" | b"-->" | b"<--" | b"---")
        || key.first().is_some_and(u8::is_ascii_lowercase)
            && (key.iter()).all(|byte| is_word(&[*byte]) || byte.is_ascii_uppercase())
}

/// Is it of letters and digits, as the names of algorithms?
fn is_word(token: &[u8]) -> bool {
    token.iter().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
    })
}

fn spaced(key: &[u8], value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    match key {
        b"send" => s.send_rate_bits_per_sec.set(row, rate(value)?),
        b"delivery_rate" => s.delivery_rate_bits_per_sec.set(row, rate(value)?),
        _ => {
            let (now, most) = pair(value, b'/').unwrap_or((value, b""));
            s.pacing_rate_bits_per_sec.set(row, rate(now)?);
            if !most.is_empty() {
                s.max_pacing_rate_bits_per_sec.set(row, rate(most)?);
            }
        }
    }
    Some(())
}

/// Bits of `tcpi_options`.
const TIMESTAMPS: i32 = 1;
const SACK: i32 = 2;
const WINDOW_SCALE: i32 = 4;
const ECN: i32 = 8;
const ECN_SEEN: i32 = 16;
const SYN_DATA: i32 = 32;
const USEC_TIMESTAMPS: i32 = 64;

fn option(bit: i32, s: &mut Sockets, row: usize) {
    let others = s.options.get(row).unwrap_or(0);
    s.options.set(row, others | bit);
}

fn bare(token: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    match token {
        b"ts" => option(TIMESTAMPS, s, row),
        b"sack" => option(SACK, s, row),
        b"ecn" => option(ECN, s, row),
        b"ecnseen" => option(ECN_SEEN, s, row),
        b"fastopen" => option(SYN_DATA, s, row),
        b"usec_ts" => option(USEC_TIMESTAMPS, s, row),
        b"app_limited" => s.delivery_rate_app_limited.set(row, true),
        // Of -e: the direction that is shut down; of -i: bidirectional traffic.
        b"<->" | b"-->" | b"<--" | b"---" | b"bidir" => {}
        // Of a path of MPTCP, and of TLS in the kernel.
        b"tcp-ulp-mptcp" | b"tcp-ulp-tls" => {}
        // Of a whole MPTCP connection: no algorithms.
        b"remote_key" | b"fallback" => return None,
        // Told before, as where the line is read once more.
        _ if s
            .algorithm
            .get(row)
            .is_some_and(|name| name.as_bytes() == token) => {}
        // The algorithm's name stands alone, before any other field of tcp_info.
        _ if s.algorithm.get(row).is_none() && s.rto_us.get(row).is_none() => {
            if token.len() >= 16 || !token[0].is_ascii_lowercase() || !is_word(token) {
                return None;
            }
            s.algorithm.set(row, name(token)?);
        }
        _ => return None,
    }
    Some(())
}

fn keyed(key: &[u8], value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    /// Column and how its value is written.
    macro_rules! set {
        ($column:ident, $value:expr) => {
            s.$column.set(row, $value?)
        };
    }
    match key {
        b"rto" => set!(rto_us, us(value)),
        b"rtt" => {
            let (srtt, var) = pair(value, b'/').unwrap_or((value, b""));
            set!(srtt_us, us(srtt));
            if !var.is_empty() {
                set!(rttvar_us, us(var));
            }
        }
        b"wscale" => {
            let (snd, rcv) = pair(value, b',')?;
            set!(snd_wscale, int32(snd));
            set!(rcv_wscale, int32(rcv));
            option(WINDOW_SCALE, s, row);
        }
        b"cwnd" => set!(snd_cwnd, int(value)),
        b"ssthresh" => set!(snd_ssthresh, int(value)),
        b"mss" => set!(snd_mss_bytes, int(value)),
        b"pmtu" => set!(pmtu_bytes, int(value)),
        b"rcvmss" => set!(rcv_mss_bytes, int(value)),
        b"advmss" => set!(advmss_bytes, int(value)),
        b"ato" => set!(ato_us, us(value)),
        b"qack" => set!(qack, int32(value)),
        b"backoff" => set!(backoff, int32(value)),
        b"bytes_sent" => set!(bytes_sent, int(value)),
        b"bytes_retrans" => set!(bytes_retrans, int(value)),
        b"bytes_acked" => set!(bytes_acked, int(value)),
        b"bytes_received" => set!(bytes_received, int(value)),
        b"segs_out" => set!(segs_out, int(value)),
        b"segs_in" => set!(segs_in, int(value)),
        b"data_segs_out" => set!(data_segs_out, int(value)),
        b"data_segs_in" => set!(data_segs_in, int(value)),
        b"send" | b"pacing_rate" | b"delivery_rate" => return spaced(key, value, s, row),
        b"lastsnd" => set!(last_data_sent_ms, int(value)),
        b"lastrcv" => set!(last_data_recv_ms, int(value)),
        b"lastack" => set!(last_ack_recv_ms, int(value)),
        b"delivered" => set!(delivered, int(value)),
        b"delivered_ce" => set!(delivered_ce, int(value)),
        b"busy" => set!(busy_us, limited(value)),
        b"rwnd_limited" => set!(rwnd_limited_us, limited(value)),
        b"sndbuf_limited" => set!(sndbuf_limited_us, limited(value)),
        b"unacked" => set!(unacked, int(value)),
        b"retrans" => {
            let (now, total) = pair(value, b'/')?;
            set!(retrans, int(now));
            set!(total_retrans, int(total));
        }
        b"lost" => set!(lost, int(value)),
        b"sacked" => set!(sacked, int(value)),
        b"fackets" => set!(fackets, int(value)),
        b"reordering" => set!(reordering, int32(value)),
        b"reord_seen" => set!(reord_seen, int32(value)),
        b"dsack_dups" => set!(dsack_dups, int(value)),
        b"rcv_rtt" => set!(rcv_rtt_us, us(value)),
        b"rcv_space" => set!(rcv_space_bytes, int(value)),
        b"rcv_ssthresh" => set!(rcv_ssthresh_bytes, int(value)),
        b"notsent" => set!(notsent_bytes, int(value)),
        b"minrtt" => set!(min_rtt_us, us(value)),
        b"rcv_ooopack" => set!(rcv_ooopack, int(value)),
        b"snd_wnd" => set!(snd_wnd_bytes, int(value)),
        b"rcv_wnd" => set!(rcv_wnd_bytes, int(value)),
        b"rehash" => set!(rehash, int(value)),
        b"total_rto" => set!(total_rto, int(value)),
        b"total_rto_recoveries" => set!(total_rto_recoveries, int(value)),
        b"total_rto_time" => set!(
            total_rto_time_ms,
            int(value.strip_suffix(b"ms").unwrap_or(value))
        ),
        b"uid" => set!(uid, int(value)),
        b"ino" => set!(inode, int(value)),
        b"sk" => set!(cookie, hex(value)),
        b"fwmark" => set!(mark, hex(value).and_then(|mark| mark.try_into().ok())),
        b"cgroup" => set!(cgroup, name(value)),
        b"tos" => set!(tos, hex(value).and_then(|tos| tos.try_into().ok())),
        b"tclass" => set!(tclass, hex(value).and_then(|class| class.try_into().ok())),
        b"class_id" => set!(class_id, hex(value).and_then(|class| class.try_into().ok())),
        b"v6only" => s.v6only.set(row, value == b"1"),
        b"skmem" => return skmem(within(value)?, s, row),
        b"mem" => return mem(within(value)?, s, row),
        b"timer" => return timer(within(value)?, s, row),
        b"users" => return users(value, s, row),
        // What a path of MPTCP and TLS in the kernel say of themselves.
        b"flags" | b"token" | b"seq" | b"sfseq" | b"ssnoff" | b"maplen" | b"version"
        | b"cipher" | b"rxconf" | b"txconf" => {}
        b"bbr" => return bbr(within(value)?, s, row),
        b"dctcp" => return dctcp(value, s, row),
        _ => return None,
    }
    Some(())
}

/// `3020ms`, `2072ms(68.6%)`.
fn limited(value: &[u8]) -> Option<i64> {
    let end = memchr::memchr(b'(', value).unwrap_or(value.len());
    us(value[..end].strip_suffix(b"ms")?)
}

/// `r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0`; older versions stop before `bl` or `d`.
fn skmem(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    for item in value.split(|byte| *byte == b',') {
        let letters = item.iter().position(u8::is_ascii_digit)?;
        let (key, bytes) = (&item[..letters], int(&item[letters..])?);
        match key {
            b"r" => s.mem_rmem_bytes.set(row, bytes),
            b"rb" => s.rcvbuf_bytes.set(row, bytes),
            b"t" => s.mem_wmem_bytes.set(row, bytes),
            b"tb" => s.sndbuf_bytes.set(row, bytes),
            b"f" => s.mem_forward_alloc_bytes.set(row, bytes),
            b"w" => s.mem_wmem_queued_bytes.set(row, bytes),
            b"o" => s.mem_optmem_bytes.set(row, bytes),
            b"bl" => s.mem_backlog_bytes.set(row, bytes),
            b"d" => s.mem_drops.set(row, bytes),
            _ => return None,
        }
    }
    Some(())
}

/// The shorter form, of kernels without SO_MEMINFO: `r0,w0,f0,t0`, where t is
/// what skmem calls t and w what it calls w.
fn mem(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    skmem(value, s, row)
}

fn timer(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    let (kind, rest) = pair(value, b',')?;
    let (left, retransmits) = pair(rest, b',')?;
    s.timer.set(row, name(kind)?);
    let left_ms = timer_ms(left)?;
    // One that is overdue is printed as what is left of 2^32 ms, whole minutes
    // of it: by how much is not told.
    if left_ms <= i64::from(i32::MAX) {
        s.timer_ms.set(row, left_ms);
    }
    s.timer_retransmits.set(row, int32(retransmits)?);
    Some(())
}

/// `(("nginx",pid=1234,fd=5),("nginx",pid=1235,fd=5))`, and `(("nginx",1234,5))`
/// before iproute2 3.17. The first holder stands for all.
fn users(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    let value = value.strip_prefix(b"((\"")?;
    let end = memchr::memmem::find(value, b"\",")?;
    s.process.set(row, name(&value[..end])?);
    let rest = &value[end + 2..];
    let rest = rest.strip_prefix(b"pid=").unwrap_or(rest);
    s.pid.set(row, int(&rest[..memchr::memchr(b',', rest)?])?);
    Some(())
}

/// Sets what is not all ones: 32 of them, to the six digits that ss prints, are
/// what was not measured.
fn measured(value: i64, column: &mut Numbers<i64>, row: usize) {
    const ALL_ONES: i64 = 4_294_967_295;
    if value < ALL_ONES - 10_000 {
        column.set(row, value);
    }
}

/// An item that is not understood does not hide those behind it.
fn bbr(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    let mut all = Some(());
    for item in value.split(|byte| *byte == b',') {
        all = bbr_item(item, s, row).and(all);
    }
    all
}

fn bbr_item(item: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    let (key, value) = pair(item, b':')?;
    match key {
        b"bw" => s.bbr_bw_bits_per_sec.set(row, rate(value)?),
        b"mrtt" => measured(us(value)?, &mut s.bbr_min_rtt_us, row),
        b"pacing_gain" => s.bbr_pacing_gain.set(row, float(value)?),
        b"cwnd_gain" => s.bbr_cwnd_gain.set(row, float(value)?),
        b"version" => s.bbr_version.set(row, int32(value)?),
        b"bw_hi" => s.bbr_bw_hi_bits_per_sec.set(row, rate(value)?),
        b"bw_lo" => s.bbr_bw_lo_bits_per_sec.set(row, rate(value)?),
        b"mode" => s.bbr_mode.set(row, int32(value)?),
        b"phase" => s.bbr_phase.set(row, int32(value)?),
        b"inflight_lo" => measured(int(value)?, &mut s.bbr_inflight_lo, row),
        b"inflight_hi" => measured(int(value)?, &mut s.bbr_inflight_hi, row),
        b"extra_acked" => s.bbr_extra_acked.set(row, int(value)?),
        _ => return None,
    }
    Some(())
}

/// `(ce_state:0,alpha:512,ab_ecn:0,ab_tot:0)`, or `fallback_mode`: no ECN.
fn dctcp(value: &[u8], s: &mut Sockets, row: usize) -> Option<()> {
    /// alpha counts in 1/1024, `DCTCP_MAX_ALPHA`.
    const ALPHA_UNIT: f64 = 1024.0;
    if value == b"fallback_mode" {
        s.dctcp_enabled.set(row, 0);
        return Some(());
    }
    s.dctcp_enabled.set(row, 1);
    for item in within(value)?.split(|byte| *byte == b',') {
        let (key, value) = pair(item, b':')?;
        match key {
            b"ce_state" => s.dctcp_ce_state.set(row, int(value)?),
            b"alpha" => s.dctcp_alpha.set(row, float(value)? / ALPHA_UNIT),
            b"ab_ecn" => s.dctcp_ab_ecn_bytes.set(row, int(value)?),
            b"ab_tot" => s.dctcp_ab_tot_bytes.set(row, int(value)?),
            _ => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Spaces, what lies beside them, and bytes whose top bit is set.
        #[test]
        fn a_token_ends_at_the_first_space(
            text in prop::collection::vec(prop::sample::select(&b"\0\x08\t\n\x0c\r\x1f !a\x7f\x80\x89\xa0\xff"[..]), 0..40)
        ) {
            let first = text.iter().position(|byte| b" \t\r".contains(byte));
            prop_assert_eq!(token_end(&text), first.unwrap_or(text.len()));
        }
    }
}
