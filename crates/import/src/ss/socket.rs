//! The line of a socket: its state, queues and addresses.

use knee_collect::sock_diag::STATES;

use super::super::prefix::{Kind, Prefix};
use super::super::time;
use super::line::Tokens;

/// Of the line of titles.
const TITLES: [&[u8]; 9] = [
    b"State",
    b"Netid",
    b"Recv-Q",
    b"Send-Q",
    b"Local",
    b"Peer",
    b"Address:Port",
    b"AddressPort",
    b"Process",
];
/// Longest date behind what it was glued to.
const DATE_BYTES: usize = 64;

/// What a line that is not indented begins with.
pub enum Head<'a> {
    Titles,
    /// A socket other than TCP.
    Other,
    Socket(Socket<'a>),
    /// A socket, cut off behind a word.
    Begun,
    Nothing,
}

/// A socket of TCP.
pub struct Socket<'a> {
    /// A filter on one state hides its column.
    pub state: Option<&'static str>,
    pub recv_q_bytes: i64,
    pub send_q_bytes: i64,
    pub local: Endpoint<'a>,
    pub remote: Endpoint<'a>,
    pub rest: &'a [u8],
}

pub struct Endpoint<'a> {
    pub address: &'a str,
    pub interface: Option<&'a str>,
    pub port: Port<'a>,
}

#[derive(Clone, Copy)]
pub enum Port<'a> {
    /// 0: any.
    Number(i32),
    /// A service's, as ss prints without `-n`.
    Name(&'a str),
}

pub fn head(line: &[u8]) -> Head<'_> {
    let mut tokens = Tokens(line);
    let Some(mut token) = tokens.next() else {
        return Head::Nothing;
    };
    if matches!(token, b"State" | b"Netid" | b"Recv-Q")
        || TITLES.contains(&token) && Tokens(line).all(|token| TITLES.contains(&token))
    {
        return Head::Titles;
    }
    // By itself it is no socket's: no number follows.
    if token == b"tcp" {
        token = tokens.next().unwrap_or(b"");
    } else if is_protocol(token) {
        return Head::Other;
    }
    let state = STATES.into_iter().find(|state| state.as_bytes() == token);
    let mut is_begun = false;
    let mut read = || {
        let recv_q_bytes = number(match state {
            Some(_) => tokens.next()?,
            None => token,
        })?;
        // From here on a line may end where a mail program broke it.
        is_begun = state.is_some();
        let send_q_bytes = tokens.next()?;
        is_begun &= number(send_q_bytes).is_some();
        let send_q_bytes = number(send_q_bytes)?;
        let local = tokens.next()?;
        is_begun &= endpoint(local).is_some();
        let local = endpoint(local)?;
        let remote = tokens.next()?;
        is_begun = false;
        Some(Socket {
            state,
            recv_q_bytes,
            send_q_bytes,
            local,
            remote: endpoint(remote)?,
            rest: tokens.0,
        })
    };
    match read() {
        Some(socket) => Head::Socket(socket),
        None if is_begun => Head::Begun,
        None => Head::Nothing,
    }
}

/// Does a line of a socket begin with this word in its column Netid?
pub fn is_protocol(token: &[u8]) -> bool {
    matches!(
        token,
        b"tcp"
            | b"mptcp"
            | b"udp"
            | b"raw"
            | b"u_str"
            | b"u_dgr"
            | b"u_seq"
            | b"nl"
            | b"p_raw"
            | b"p_dgr"
            | b"icmp6"
            | b"sctp"
            | b"dccp"
            | b"v_str"
            | b"v_dgr"
            | b"ti_rd"
            | b"ti_dg"
            | b"ti_sq"
            | b"ti_st"
            | b"xdp"
            | b"???"
    )
}

/// `10.0.0.1:443`, `[2001:db8::1]:443`, `::1:443` of older versions,
/// `[fe80::1]%eth0:22`, `10.0.0.1%eth0:22`, `*:22`, `0.0.0.0:*`.
fn endpoint(text: &[u8]) -> Option<Endpoint<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, port) = text.rsplit_once(':')?;
    let port = match port {
        "*" => Port::Number(0),
        "" => return None,
        _ if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Port::Number(port.parse::<u16>().ok()?.into())
        }
        _ => Port::Name(port),
    };
    let (address, interface) = match address.split_once('%') {
        // Within brackets the scope stands before the closing one.
        Some((address, interface)) => (address, Some(interface.trim_end_matches(']'))),
        None => (address, None),
    };
    let address = address.trim_start_matches('[').trim_end_matches(']');
    (!address.is_empty()).then_some(Endpoint {
        address,
        interface,
        port,
    })
}

fn number(text: &[u8]) -> Option<i64> {
    if text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        text.iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0')),
    )
}

/// A date that stands before a socket without a blank between.
pub fn behind_date(line: &[u8], zone_s: Option<i32>) -> Option<Prefix<'_>> {
    let at = (STATES.iter())
        .filter_map(|state| memchr::memmem::find(line, state.as_bytes()))
        .min()?;
    let (before, rest) = line.split_at(at);
    let moment = time::moment(std::str::from_utf8(before).ok()?, zone_s)?;
    matches!(head(rest), Head::Socket(_)).then_some(Prefix {
        kind: Kind::Time,
        t_unix_ns: moment.ns(),
        rest,
    })
}

/// A date at the end of a line, where a dump without a last newline is glued to
/// it: where it begins, and the time.
pub fn date_at_end(line: &[u8], zone_s: Option<i32>) -> Option<(usize, i64)> {
    let from = line.len().saturating_sub(DATE_BYTES).max(1);
    let begins = |at: usize| {
        let (before, rest) = (line[at - 1], &line[at..]);
        let is_of_word = b":=/,(_-.".contains(&before);
        let is_date = matches!(rest, [a, b, c, d, b'-', ..] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()));
        let is_word = rest[0].is_ascii_uppercase()
            || rest.starts_with(b"time:")
            || rest.starts_with(b"date:")
            || matches!(rest[0], b'=' | b'#' | b'[');
        !is_of_word && (is_date || is_word)
    };
    (from..line.len()).filter(|at| begins(*at)).find_map(|at| {
        let text = std::str::from_utf8(&line[at..]).ok()?;
        Some((at, time::line(text, zone_s)?))
    })
}
