//! Addresses within texts, made unrecognisable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use knee_store::Anonymiser;

/// Stands for what is no address where one is expected: a name tells as much.
const NO_ADDRESS: &str = "?";
/// Of RFC 7239 and X-Forwarded-For, what tells of nobody.
const WORDS: [&str; 8] = [
    "for", "by", "host", "proto", "http", "https", "unknown", "-",
];
const LONGEST_V6: usize = 45;

/// Replaces `out` by a list of addresses in which each has been anonymised, with
/// its port if it has one, and everything else is `?`.
pub fn list(text: &str, anonymiser: &Anonymiser, out: &mut String) {
    out.clear();
    let mut one = String::new();
    let mut write = |entry: &str, out: &mut String| {
        if let Ok(address) = entry.parse::<IpAddr>() {
            anonymiser.write(address, &mut one);
            out.push_str(&one);
        } else if let Ok(address) = entry.parse::<SocketAddr>() {
            anonymiser.write(address.ip(), &mut one);
            push_endpoint(&one, Some(address.port()), out);
        } else if let Some(address) = bracketed(entry) {
            anonymiser.write(address.into(), &mut one);
            push_endpoint(&one, None, out);
        } else {
            let word = WORDS.iter().find(|word| word.eq_ignore_ascii_case(entry));
            out.push_str(word.unwrap_or(&NO_ADDRESS));
        }
    };
    let mut from = 0;
    for (at, separator) in text.match_indices([',', ' ', ';', '=', '"']) {
        if at > from {
            entry_or_colon(&text[from..at], out, &mut write);
        }
        out.push_str(separator);
        from = at + separator.len();
    }
    if from < text.len() {
        entry_or_colon(&text[from..], out, &mut write);
    }
}

/// A colon by itself parts groups of upstream servers.
fn entry_or_colon(entry: &str, out: &mut String, write: &mut impl FnMut(&str, &mut String)) {
    match entry {
        ":" => out.push(':'),
        _ => write(entry, out),
    }
}

fn bracketed(entry: &str) -> Option<Ipv6Addr> {
    entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

fn push_endpoint(address: &str, port: Option<u16>, out: &mut String) {
    let brackets = address.contains(':');
    out.push_str(if brackets { "[" } else { "" });
    out.push_str(address);
    out.push_str(if brackets { "]" } else { "" });
    if let Some(port) = port {
        out.push(':');
        out.push_str(&port.to_string());
    }
}

/// Replaces `out` by a text in which each address has been anonymised and the
/// rest stays: paths, names of browsers and headers may hold some.
pub fn within(text: &str, anonymiser: &Anonymiser, out: &mut String) {
    out.clear();
    let bytes = text.as_bytes();
    let mut one = String::new();
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let begins = at == 0 || !is_of_v6(bytes[at - 1]);
        let found = v4(&bytes[at..], at.checked_sub(1).map(|before| bytes[before]))
            .map(|(four, length)| (IpAddr::V4(four), length))
            .or_else(|| begins.then(|| v6(&text[at..])).flatten());
        if let Some((address, length)) = found {
            out.push_str(&text[kept..at]);
            anonymiser.write(address, &mut one);
            out.push_str(&one);
            at += length;
            kept = at;
        } else {
            at += 1;
            while at < bytes.len() && !bytes[at].is_ascii_hexdigit() && bytes[at] != b':' {
                at += 1;
            }
        }
    }
    out.push_str(&text[kept..]);
}

fn is_of_v6(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')
}

/// Four numbers below 256 with dots between, not within a longer number.
fn v4(rest: &[u8], before: Option<u8>) -> Option<(Ipv4Addr, usize)> {
    if before.is_some_and(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut octets = [0; 4];
    let mut at = 0;
    for (n, octet) in octets.iter_mut().enumerate() {
        if n > 0 {
            (rest.get(at) == Some(&b'.')).then(|| at += 1)?;
        }
        let digits = rest[at..]
            .iter()
            .take(4)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        // Longer ones are no octets; none is no number.
        let number = std::str::from_utf8(&rest[at..at + digits]).ok()?;
        *octet = (digits < 4).then(|| number.parse().ok()).flatten()?;
        at += digits;
    }
    Some((octets.into(), at))
}

fn v6(rest: &str) -> Option<(IpAddr, usize)> {
    let end = rest
        .bytes()
        .take(LONGEST_V6 + 2)
        .take_while(|&byte| is_of_v6(byte))
        .count();
    let run = &rest[..end];
    if run.bytes().filter(|&byte| byte == b':').count() < 2 {
        return None;
    }
    // A sentence's punctuation may stand behind it.
    let candidates = [run, run.trim_end_matches(['.', ':'])];
    candidates
        .into_iter()
        .find_map(|run| Some((IpAddr::V6(run.parse().ok()?), run.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Anonymiser = Anonymiser::Truncate {
        v4_bits: 24,
        v6_bits: 48,
    };

    fn list_of(text: &str) -> String {
        let mut out = "old".to_owned();
        list(text, &SHORT, &mut out);
        out
    }

    fn text_of(text: &str) -> String {
        let mut out = "old".to_owned();
        within(text, &SHORT, &mut out);
        out
    }

    #[test]
    fn each_address_of_a_list_is_anonymised_and_what_is_none_is_hidden() {
        for (text, expected) in [
            ("192.0.2.77", "192.0.2.0"),
            (
                "192.0.2.77, 198.51.100.9,203.0.113.4",
                "192.0.2.0, 198.51.100.0,203.0.113.0",
            ),
            ("2001:db8:1:2::3", "2001:db8:1::"),
            (
                "10.1.1.1:80, [2001:db8:1:2::1]:80 : unix:/run/a.sock",
                "10.1.1.0:80, [2001:db8:1::]:80 : ?",
            ),
            (
                "for=192.0.2.60;proto=https;by=\"[2001:db8:1:2::1]\"",
                "for=192.0.2.0;proto=https;by=\"[2001:db8:1::]\"",
            ),
            ("host-192-0-2-77.example, _secret, unknown", "?, ?, unknown"),
            ("192.0.2.77x 0xc000024d", "? ?"),
            ("", ""),
        ] {
            assert_eq!(list_of(text), expected, "{text}");
        }
    }

    #[test]
    fn addresses_within_a_text_are_anonymised_and_the_rest_stays() {
        for (text, expected) in [
            ("/show?ip=192.0.2.77&b=1.2", "/show?ip=192.0.2.0&b=1.2"),
            ("http://[2001:db8:1:2::3]:80/", "http://[2001:db8:1::]:80/"),
            ("from 2001:db8:1:2::3.", "from 2001:db8:1::."),
            ("abc192.0.2.77:443", "abc192.0.2.0:443"),
            ("€192.0.2.77€", "€192.0.2.0€"),
            (
                "at 12:30:45, 1234.1.1.1, 1.2.3",
                "at 12:30:45, 1234.1.1.1, 1.2.3",
            ),
            ("::ffff:192.0.2.77", "192.0.2.0"),
            ("", ""),
        ] {
            assert_eq!(text_of(text), expected, "{text}");
        }
    }
}
