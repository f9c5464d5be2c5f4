//! What stands before every line that a program passed on: a time (`ts`), the
//! marks of quoted mail, syslog's header, a container's name.

use super::time;

/// A line without what was put before it.
pub struct Prefix<'a> {
    pub kind: Kind,
    /// The time that the prefix says.
    pub t_unix_ns: Option<i64>,
    pub rest: &'a [u8],
}

/// Who put it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ts` of moreutils, or a shell.
    Time,
    /// `> `
    Mail,
    /// `# `, the Test Anything Protocol's.
    Tap,
    Syslog,
    /// The log of a container: CRI, docker compose, kubectl --prefix.
    Container,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Time => "a time",
            Kind::Mail => "the mark of quoted mail",
            Kind::Tap => "the mark of a comment",
            Kind::Syslog => "the header of syslog",
            Kind::Container => "the name of a container",
        }
    }
}

/// Prefixes of prefixes: mail that quotes what `ts` printed.
const LAYERS: usize = 2;
/// Words of the longest time: `Thu Nov 26 12:00:00 PM UTC 2026`.
const TIME_WORDS: usize = 7;

/// The line behind a prefix of one of these kinds, which `accepts` what remains.
pub fn of<'a>(
    line: &'a [u8],
    kinds: &[Kind],
    zone_s: Option<i32>,
    accepts: &dyn Fn(&'a [u8]) -> bool,
) -> Option<Prefix<'a>> {
    layers(line, kinds, zone_s, accepts, LAYERS)
}

/// May the line begin with syslog's header, or a container's name? Asked of every
/// line of a log.
pub fn may_be_header(line: &[u8]) -> bool {
    match line {
        [b'<', b'0'..=b'9', ..] | [b'[', b'p', b'o', b'd', b'/', ..] => true,
        [_, _, _, _, b'-', _, _, b'-', _, _, b'T' | b' ', ..] => true,
        [first, _, _, b' ', ..] => first.is_ascii_uppercase(),
        _ => false,
    }
}

fn layers<'a>(
    line: &'a [u8],
    kinds: &[Kind],
    zone_s: Option<i32>,
    accepts: &dyn Fn(&'a [u8]) -> bool,
    left: usize,
) -> Option<Prefix<'a>> {
    let mut found: Vec<Prefix<'a>> = Vec::new();
    for kind in kinds {
        match kind {
            Kind::Time => times(line, zone_s, &mut found),
            Kind::Mail => found.extend(mail(line).map(|rest| plain(*kind, rest))),
            Kind::Tap => found.extend(line.strip_prefix(b"# ").map(|rest| plain(*kind, rest))),
            Kind::Syslog => found.extend(syslog(line, zone_s)),
            Kind::Container => found.extend(container(line, zone_s)),
        }
    }
    found.into_iter().find_map(|outer| {
        if accepts(outer.rest) {
            return Some(outer);
        }
        let inner = (left > 1).then(|| layers(outer.rest, kinds, zone_s, accepts, left - 1))??;
        Some(Prefix {
            kind: outer.kind,
            t_unix_ns: inner.t_unix_ns.or(outer.t_unix_ns),
            rest: inner.rest,
        })
    })
}

fn plain(kind: Kind, rest: &[u8]) -> Prefix<'_> {
    Prefix {
        kind,
        t_unix_ns: None,
        rest,
    }
}

/// Every beginning of the line that is a time, the shortest first.
fn times<'a>(line: &'a [u8], zone_s: Option<i32>, found: &mut Vec<Prefix<'a>>) {
    let begins = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || *byte == b'[';
    if !line.first().is_some_and(begins) {
        return;
    }
    let mut end = 0;
    for _ in 0..TIME_WORDS {
        let Some((word_end, rest)) = word(line, end) else {
            return;
        };
        if let Some(time) = moment(&line[..word_end], zone_s) {
            found.push(Prefix {
                kind: Kind::Time,
                t_unix_ns: time.ns(),
                rest,
            });
        }
        end = word_end;
    }
}

fn moment(text: &[u8], zone_s: Option<i32>) -> Option<time::Moment> {
    time::moment(std::str::from_utf8(text).ok()?, zone_s)
}

/// Where the word behind `from` ends, and what stands behind the blank after it.
fn word(line: &[u8], from: usize) -> Option<(usize, &[u8])> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = from + line[from..].iter().position(|byte| !is_blank(byte))?;
    let end = begin + line[begin..].iter().position(is_blank)?;
    Some((end, &line[end + 1..]))
}

/// A line without the marks of quoted mail.
pub fn mail(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line.strip_prefix(b">")?;
    while let Some(deeper) = rest.strip_prefix(b">").or(rest.strip_prefix(b" >")) {
        rest = deeper;
    }
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// `<190>Nov 26 12:00:00 web1 nginx[7]: ` of RFC 3164 and of journalctl, and
/// `<190>1 2026-11-26T12:00:00Z web1 nginx 7 - - ` of RFC 5424.
fn syslog(line: &[u8], zone_s: Option<i32>) -> Option<Prefix<'_>> {
    let mut rest = line;
    if let Some(behind) = line.strip_prefix(b"<") {
        let end = behind.iter().position(|byte| !byte.is_ascii_digit())?;
        rest = behind[end..].strip_prefix(b">").filter(|_| end > 0)?;
    }
    if let Some(modern) = rest.strip_prefix(b"1 ") {
        let (end, mut rest) = word(modern, 0)?;
        let time = moment(&modern[..end], zone_s)?;
        // Host, program, process, message: a word each.
        for _ in 0..4 {
            rest = word(rest, 0)?.1;
        }
        let rest = match rest.strip_prefix(b"[") {
            Some(data) => &data[memchr::memmem::find(data, b"] ")? + 2..],
            None => rest.strip_prefix(b"- ")?,
        };
        return Some(Prefix {
            kind: Kind::Syslog,
            t_unix_ns: time.ns(),
            rest: rest.strip_prefix("\u{feff}".as_bytes()).unwrap_or(rest),
        });
    }
    let mut found = Vec::new();
    times(rest, zone_s, &mut found);
    found.into_iter().find_map(|time| {
        let (_, behind_host) = word(time.rest, 0)?;
        let (end, rest) = word(behind_host, 0)?;
        behind_host[..end].ends_with(b":").then_some(Prefix {
            kind: Kind::Syslog,
            rest,
            ..time
        })
    })
}

/// `2026-11-26T12:00:00.5Z stdout F ` of CRI, `web_1  | ` of docker compose,
/// `[pod/web-7/nginx] ` of kubectl. A part of a line (CRI's `P`) is no line.
fn container(line: &[u8], zone_s: Option<i32>) -> Option<Prefix<'_>> {
    if line.starts_with(b"[pod/") {
        let end = memchr::memmem::find(line, b"] ")?;
        return Some(plain(Kind::Container, &line[end + 2..]));
    }
    let (end, rest) = word(line, 0)?;
    if let Some(time) = moment(&line[..end], zone_s) {
        let rest = (rest.strip_prefix(b"stdout F ")).or(rest.strip_prefix(b"stderr F "))?;
        return Some(Prefix {
            kind: Kind::Container,
            t_unix_ns: time.ns(),
            rest,
        });
    }
    let behind = rest.trim_ascii_start().strip_prefix(b"|")?;
    Some(plain(
        Kind::Container,
        behind.strip_prefix(b" ").unwrap_or(behind),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 5] = [
        Kind::Time,
        Kind::Mail,
        Kind::Tap,
        Kind::Syslog,
        Kind::Container,
    ];

    #[test]
    fn each_prefix_is_taken_off_and_tells_its_time() {
        const NOON: i64 = 1_795_694_400_000_000_000; // 2026-11-26 12:00:00 UTC
        for (prefix, kind, t_unix_ns) in [
            ("1795694400.000000 ", Kind::Time, Some(NOON)),
            ("Nov 26 12:00:00 ", Kind::Time, None),
            ("Nov  6 12:00:00.25 ", Kind::Time, None),
            ("12:00:00 ", Kind::Time, None),
            ("2026-11-26T13:00:00+01:00 ", Kind::Time, Some(NOON)),
            ("[2026-11-26 12:00:00] ", Kind::Time, Some(NOON)),
            ("2026-11-26 13:00:00 +0100 ", Kind::Time, Some(NOON)),
            ("Thu Nov 26 12:00:00 UTC 2026 ", Kind::Time, Some(NOON)),
            ("> ", Kind::Mail, None),
            (">> > ", Kind::Mail, None),
            ("> 1795694400 ", Kind::Mail, Some(NOON)),
            ("# ", Kind::Tap, None),
            ("<190>Nov 26 12:00:00 web1 nginx: ", Kind::Syslog, None),
            ("Nov 26 12:00:00 web1 nginx[77]: ", Kind::Syslog, None),
            (
                "2026-11-26T12:00:00.000000+00:00 web1 nginx[77]: ",
                Kind::Syslog,
                Some(NOON),
            ),
            (
                "<190>1 2026-11-26T12:00:00Z web1 nginx 77 - - ",
                Kind::Syslog,
                Some(NOON),
            ),
            (
                "<190>1 2026-11-26T12:00:00Z web1 nginx - - [a@1 b=\"c\"] ",
                Kind::Syslog,
                Some(NOON),
            ),
            (
                "2026-11-26T12:00:00.000000000Z stdout F ",
                Kind::Container,
                Some(NOON),
            ),
            ("web_1  | ", Kind::Container, None),
            ("[pod/web-7/nginx] ", Kind::Container, None),
        ] {
            let line = format!("{prefix}the line");
            let found = of(line.as_bytes(), &ALL, None, &|rest| rest == b"the line");
            let found = found.unwrap_or_else(|| panic!("{prefix:?}"));
            assert_eq!((found.kind, found.t_unix_ns), (kind, t_unix_ns), "{prefix}");
        }
    }

    #[test]
    fn what_is_no_prefix_stays() {
        for line in [
            "edge1: the line",
            "the line",
            "2026-11-26T12:00:00Z stdout P the line",
            "Nov the line",
            "<>Nov 26 12:00:00 web1 nginx: the line",
            "> > > > # # # the line",
            "",
        ] {
            let found = of(line.as_bytes(), &ALL, None, &|rest| rest == b"the line");
            let kept = line.starts_with("> >") || found.is_none();
            assert!(kept, "{line}");
        }
    }
}
