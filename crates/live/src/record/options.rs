//! What a recording is asked for, from the texts of a command line.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::sock_diag::STATES;
use knee_collect::sock_diag::tcp_info::TcpInfo;
use knee_collect::sock_diag::{CONNECTED, Diag, End, Filter};
use knee_store::Anonymiser;
use knee_units::parse;
use serde::Deserialize;

/// Which sockets, as texts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// `443`, `8000-8100`, `!22`; at either end.
    pub ports: Vec<String>,
    /// `10.0.0.0/8`, `2001:db8::1`, `!127.0.0.0/8`; at either end.
    pub addresses: Vec<String>,
    pub algorithms: Vec<String>,
    /// `established`, `ESTAB`, `listening`, `connected`, `all`, ….
    pub states: Vec<String>,
    /// Bytes acked and received together: `1MB`.
    pub min_bytes: Option<String>,
    /// `7`, `0x10/0xf0`.
    pub mark: Option<String>,
    /// Path of a cgroup v2.
    pub cgroup: Option<String>,
    /// A name of /run/netns or a PID.
    pub netns: Option<String>,
    /// `none`, `truncate`, `truncate:16/32`, `hash`, `hash:KEY`.
    pub anonymize: Option<String>,
    pub processes: bool,
}

/// How a recording goes, as texts.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    pub out: PathBuf,
    pub every: String,
    #[serde(rename = "for")]
    pub duration: Option<String>,
    pub keep: Option<String>,
    /// `256MiB` or `1h`.
    pub rotate: Option<String>,
    /// Are the host's counters recorded too?
    pub host: bool,
    #[serde(flatten)]
    pub wanted: Wanted,
}

/// Which sockets.
#[derive(Clone)]
pub struct Selection {
    pub filter: Filter,
    /// Bit n: state n.
    pub states: u32,
    /// Empty: any.
    pub algorithms: Vec<String>,
    pub min_bytes: u64,
    pub anonymiser: Anonymiser,
    pub netns: Option<Netns>,
    pub processes: bool,
}

/// A network namespace.
#[derive(Clone, Debug)]
pub struct Netns {
    pub name: String,
    pub path: PathBuf,
}

/// How a recording goes.
#[derive(Clone)]
pub struct Options {
    pub selection: Selection,
    pub dir: PathBuf,
    pub every: Duration,
    pub duration: Option<Duration>,
    pub keep_bytes: Option<u64>,
    pub segment_bytes: u64,
    pub segment_age: Duration,
    pub host: bool,
}

const SEGMENT_BYTES: u64 = 256 << 20;
/// Of each of the recorder's tables a segment is being written, which is not deleted.
const LEAST_KEPT_BYTES: u64 = 10_000_000;
const SEGMENT_AGE: Duration = Duration::from_secs(3600);
/// A shorter interval would be a walk without a pause.
const SHORTEST: Duration = Duration::from_millis(10);

impl Options {
    /// # Errors
    /// An invalid text.
    pub fn new(asked: Asked) -> Result<Options, KernelError> {
        let every = duration("every", &asked.every)?;
        if every < SHORTEST {
            return Err(wrong("every", &asked.every, "at least \"10ms\""));
        }
        let keep_bytes = asked
            .keep
            .as_deref()
            .map(|text| bytes("keep", text))
            .transpose()?;
        let (mut segment_bytes, mut segment_age) = (SEGMENT_BYTES, SEGMENT_AGE);
        if let Some(text) = asked.rotate.as_deref() {
            match (parse::bytes(text), parse::duration(text)) {
                (Ok(bytes), _) if bytes > 0 => segment_bytes = bytes,
                (_, Ok(age)) if age.0 > 0 => segment_age = Duration::from_nanos(age.0),
                _ => {
                    let forms = "a size such as \"256MiB\" or an age such as \"1h\"";
                    return Err(wrong("rotate", text, forms));
                }
            }
        }
        if let (Some(text), Some(0..LEAST_KEPT_BYTES)) = (&asked.keep, keep_bytes) {
            return Err(wrong("keep", text, "at least \"10MB\""));
        }
        // What is being written counts too, and is not deleted.
        let keep_bytes = keep_bytes.map(|keep: u64| {
            segment_bytes = segment_bytes.min(keep / 10).max(1 << 20);
            keep.saturating_sub(segment_bytes)
        });
        let duration = asked.duration.as_deref();
        Ok(Options {
            selection: Selection::new(&asked.wanted)?,
            dir: asked.out,
            every,
            duration: duration
                .map(|text| self::duration("for", text))
                .transpose()?,
            keep_bytes,
            segment_bytes,
            segment_age,
            host: asked.host,
        })
    }
}

impl Selection {
    /// # Errors
    /// An invalid text, or a namespace that is not there.
    pub fn new(wanted: &Wanted) -> Result<Selection, KernelError> {
        let mut filter = Vec::new();
        filter.extend(either(&wanted.ports, port)?);
        filter.extend(either(&wanted.addresses, prefix)?);
        filter.extend(wanted.mark.as_deref().map(mark).transpose()?);
        filter.extend(wanted.cgroup.as_deref().map(cgroup).transpose()?);
        let mut states = 0;
        for text in &wanted.states {
            states |= state(text)?;
        }
        Ok(Selection {
            filter: Filter::All(filter),
            states: if states == 0 { CONNECTED } else { states },
            algorithms: wanted.algorithms.clone(),
            min_bytes: match wanted.min_bytes.as_deref() {
                Some(text) => bytes("min-bytes", text)?,
                None => 0,
            },
            anonymiser: match wanted.anonymize.as_deref() {
                Some(text) => anonymiser(text)?,
                None => Anonymiser::Keep,
            },
            netns: wanted.netns.as_deref().map(netns).transpose()?,
            processes: wanted.processes,
        })
    }

    /// Is a socket wanted for what the kernel is not asked to judge?
    pub fn takes(&self, algorithm: Option<&str>, info: Option<&TcpInfo<'_>>) -> bool {
        let bytes = |info: &TcpInfo<'_>| {
            info.bytes_acked()
                .unwrap_or(0)
                .saturating_add(info.bytes_received().unwrap_or(0))
        };
        let named = |algorithm| self.algorithms.iter().any(|wanted| wanted == algorithm);
        (self.algorithms.is_empty() || algorithm.is_some_and(named))
            && (self.min_bytes == 0 || info.map_or(0, bytes) >= self.min_bytes)
    }

    /// Is a socket wanted that was destroyed, and that a dump had before (`known`) or
    /// not? `None`: that cannot be told.
    pub fn takes_destroyed(
        &self,
        known: bool,
        algorithm: Option<&str>,
        diag: &Diag<'_>,
    ) -> Option<bool> {
        const ESTABLISHED: u32 = 1 << 1;
        let told = known
            || self.algorithms.is_empty()
                && self.states & ESTABLISHED != 0
                && !self.filter.asks_for_mark_or_cgroup();
        // Of a socket that a dump had, the filter held; of one that was reset its
        // event no longer has the far end.
        told.then(|| {
            (known || self.filter.matches(diag)) && self.takes(algorithm, diag.info.as_ref())
        })
    }
}

fn wrong(what: &'static str, got: &str, expected: &str) -> KernelError {
    KernelError::Option {
        what,
        got: got.to_owned(),
        expected: expected.to_owned(),
    }
}

fn duration(what: &'static str, text: &str) -> Result<Duration, KernelError> {
    match parse::duration(text) {
        Ok(time) if time.0 > 0 => Ok(Duration::from_nanos(time.0)),
        Ok(_) => Err(wrong(what, text, "more than that, such as \"1s\"")),
        Err(error) => Err(KernelError::Quantity { what, error }),
    }
}

fn bytes(what: &'static str, text: &str) -> Result<u64, KernelError> {
    match parse::bytes(text) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        Ok(_) => Err(wrong(what, text, "more than that, such as \"1MB\"")),
        Err(error) => Err(KernelError::Quantity { what, error }),
    }
}

/// One of those without `!`, and none of those with.
fn either(
    texts: &[String],
    one: impl Fn(&str) -> Result<Filter, KernelError>,
) -> Result<Vec<Filter>, KernelError> {
    let (mut any, mut all) = (Vec::new(), Vec::new());
    for text in texts {
        match text.strip_prefix('!') {
            Some(text) => all.push(Filter::Not(Box::new(one(text)?))),
            None => any.push(one(text)?),
        }
    }
    if !any.is_empty() {
        all.push(Filter::Any(any));
    }
    Ok(all)
}

fn port(text: &str) -> Result<Filter, KernelError> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(low), Ok(high)) if low <= high => Ok(Filter::Port {
            end: End::Either,
            low,
            high,
        }),
        _ => Err(wrong(
            "port",
            text,
            "a port such as 443 or a range such as 8000-8100",
        )),
    }
}

fn prefix(text: &str) -> Result<Filter, KernelError> {
    let parsed = || {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        (bits <= width).then_some(Filter::Prefix {
            end: End::Either,
            address,
            bits,
        })
    };
    parsed().ok_or_else(|| {
        let forms = "an address or prefix such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32";
        wrong("address", text, forms)
    })
}

fn mark(text: &str) -> Result<Filter, KernelError> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let parsed = match text.split_once('/') {
        Some((value, mask)) => number(value).zip(number(mask)),
        None => number(text).map(|value| (value, u32::MAX)),
    };
    let (value, mask) = parsed.ok_or_else(|| {
        wrong(
            "mark",
            text,
            "a mark such as 7 or 0x10, or one with a mask: 0x10/0xf0",
        )
    })?;
    Ok(Filter::Mark { value, mask })
}

/// The id of a cgroup v2 is the inode of its folder.
fn cgroup(text: &str) -> Result<Filter, KernelError> {
    use std::os::unix::fs::MetadataExt;
    let folders = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", ""];
    let name = text.trim_start_matches('/');
    let found = folders
        .iter()
        .find_map(|root| std::fs::metadata(format!("{root}/{name}")).ok())
        .filter(std::fs::Metadata::is_dir);
    let folder = found.ok_or_else(|| {
        wrong(
            "cgroup",
            text,
            "the path of a cgroup v2 below /sys/fs/cgroup, such as system.slice/nginx.service",
        )
    })?;
    Ok(Filter::Cgroup(folder.ino()))
}

fn state(text: &str) -> Result<u32, KernelError> {
    let upper = text.to_ascii_uppercase();
    let one = match upper.as_str() {
        "ALL" => return Ok(0xffe | 1 << 12),
        "CONNECTED" => return Ok(CONNECTED),
        "ESTABLISHED" => "ESTAB",
        "LISTENING" => "LISTEN",
        "CLOSED" => "UNCONN",
        other => other,
    };
    match STATES.iter().position(|&name| name == one) {
        Some(at) => Ok(1 << (at + 1)),
        None => {
            let forms = format!("connected, listening, all, or one of {}", STATES.join(", "));
            Err(wrong("state", text, &forms))
        }
    }
}

fn anonymiser(text: &str) -> Result<Anonymiser, KernelError> {
    Anonymiser::from_text(text)
        .map_err(|error| KernelError::system("make a key")(io::Error::other(error.to_string())))?
        // The key is not repeated: terminals are logged.
        .ok_or_else(|| {
            let how = text.split(':').next().unwrap_or(text);
            wrong("anonymize", how, Anonymiser::FORMS)
        })
}

fn netns(text: &str) -> Result<Netns, KernelError> {
    let path = match text.parse::<u32>() {
        Ok(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        Err(_) => PathBuf::from("/run/netns").join(text),
    };
    File::open(&path).map_err(|error| {
        let forms = format!(
            "a name that `ip netns` lists or the PID of a process in it, which can be opened ({}: {error})",
            path.display()
        );
        wrong("netns", text, &forms)
    })?;
    Ok(Netns {
        name: text.to_owned(),
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<impl Sized, KernelError>) -> String {
        match result {
            Ok(_) => panic!("it is taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn several_ports_are_alternatives_and_negated_ones_are_left_out() {
        let texts = ["443", "8000-8100", "!8080"].map(str::to_owned);
        let filter = Filter::All(either(&texts, port).unwrap());
        let port = |low, high| Filter::Port {
            end: End::Either,
            low,
            high,
        };
        let expected = Filter::All(vec![
            Filter::Not(Box::new(port(8_080, 8_080))),
            Filter::Any(vec![port(443, 443), port(8_000, 8_100)]),
        ]);
        assert_eq!(filter, expected);
    }

    #[test]
    fn each_wrong_text_is_refused_with_what_is_expected() {
        assert!(refused(port("http")).contains("got \"http\""));
        assert!(refused(port("9-3")).contains("range"));
        assert!(refused(prefix("10.0.0.0/33")).contains("10.0.0.0/8"));
        assert!(refused(mark("x")).contains("0x10/0xf0"));
        assert!(refused(state("open")).contains("CLOSE-WAIT"));
        assert!(refused(anonymiser("truncate:40/48")).contains("V4BITS"));
        assert!(refused(netns("no-such-namespace")).contains("ip netns"));
        assert!(refused(cgroup("no/such/group")).contains("system.slice"));
        assert!(refused(bytes("keep", "10")).contains("KiB"));
    }

    #[test]
    fn key_of_a_hash_does_not_stand_in_an_error() {
        assert!(!refused(anonymiser("hashed:secret")).contains("secret"));
    }

    #[test]
    fn states_have_the_names_of_ss_in_the_kernel_s_order() {
        assert_eq!(state("established").unwrap(), 1 << 1);
        assert_eq!(state("time-wait").unwrap(), 1 << 6);
        assert_eq!(state("listening").unwrap(), 1 << 10);
        assert_eq!(state("all").unwrap() & 1 << 12, 1 << 12);
    }
}
