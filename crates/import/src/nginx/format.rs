//! A `log_format`, compiled into literals and variables that take turns.

use std::fmt;
use std::ops::Range;

use memchr::memmem::Finder;
use thiserror::Error;

/// How nginx writes characters that could be mistaken for the format's own
/// (`log_format NAME escape=…`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escape {
    /// `"`, `\` and bytes below 32 or above 126 as `\xHH`; nothing as `-`.
    #[default]
    Default,
    /// As in JSON strings; nothing as an empty text.
    Json,
    /// As they are.
    None,
}

impl Escape {
    pub fn parse(word: &str) -> Option<Escape> {
        match word {
            "default" => Some(Escape::Default),
            "json" => Some(Escape::Json),
            "none" => Some(Escape::None),
            _ => None,
        }
    }
}

/// Formats known by name. Source: ngx_http_log_module, "log_format".
const NAMED: [(&str, &str); 1] = [(
    "combined",
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#,
)];

/// A format that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    #[error(
        "the format has no variable; expected a log_format as in nginx.conf, such as '$remote_addr [$time_local] \"$request\" $status'"
    )]
    NoVariable,
    #[error(
        "${first} and ${second} touch: where the one ends and the other begins cannot be told; put a literal between them"
    )]
    Touching { first: String, second: String },
    #[error("a '$' at byte {at} is followed by no variable name")]
    NoName { at: usize },
    #[error("'${{' at byte {at} is not closed by '}}'")]
    NotClosed { at: usize },
}

/// Where in a line a variable stands, and what ends it.
#[derive(Clone, Debug)]
struct Slot {
    /// What follows: none means the end of the line.
    end: Option<Finder<'static>>,
    kind: Kind,
}

/// What its value may hold that looks like its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Within quotes: an escaped quote is none.
    Quoted,
    /// `$time_local`: one space inside, before the zone.
    TimeLocal,
    /// `$upstream_*`: values of several servers, parted by ", " and " : "; and
    /// lists of proxies, parted by ", ".
    List,
}

/// Lists of proxies.
const LISTS: [&str; 3] = [
    "http_x_forwarded_for",
    "proxy_add_x_forwarded_for",
    "http_forwarded",
];

/// A compiled format.
#[derive(Clone, Debug)]
pub struct Format {
    escape: Escape,
    names: Vec<String>,
    head: Vec<u8>,
    slots: Vec<Slot>,
}

/// The piece of a format that a line did not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The variable at which the line and the format part; none: before the first.
    pub variable: Option<String>,
    /// The literal that was looked for; empty: the end of the line.
    pub expected: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variable {
            None => write!(f, "does not begin with {:?}", self.expected),
            Some(name) if self.expected.is_empty() => write!(f, "goes on after ${name}"),
            Some(name) => write!(f, "no {:?} after ${name}", self.expected),
        }
    }
}

impl Format {
    /// The format of that name if nginx or we know one, else `text` itself, as
    /// in a `log_format` directive without its quotes.
    ///
    /// # Errors
    /// Lines could not be told apart into the variables.
    pub fn compile(text: &str, escape: Escape) -> Result<Format, FormatError> {
        let text = NAMED
            .iter()
            .find(|(name, _)| *name == text)
            .map_or(text, |(_, format)| format);
        let mut literals = vec![Vec::new()];
        let mut names: Vec<String> = Vec::new();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at] != b'$' {
                literals.last_mut().expect("never empty").push(bytes[at]);
                at += 1;
                continue;
            }
            let (name, next) = variable(text, at)?;
            if let Some(first) = names.last()
                && literals.last().is_some_and(Vec::is_empty)
            {
                return Err(FormatError::Touching {
                    first: first.clone(),
                    second: name.into(),
                });
            }
            names.push(name.into());
            literals.push(Vec::new());
            at = next;
        }
        if names.is_empty() {
            return Err(FormatError::NoVariable);
        }
        let slots = names
            .iter()
            .zip(literals.windows(2))
            .map(|(name, around)| Slot {
                kind: Kind::of(name, &around[0], &around[1]),
                end: (!around[1].is_empty()).then(|| Finder::new(&around[1]).into_owned()),
            })
            .collect();
        Ok(Format {
            escape,
            names,
            head: literals.swap_remove(0),
            slots,
        })
    }

    /// The variables, without `$`, in the order of the line.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Does a line begin with the first variable?
    pub fn has_no_head(&self) -> bool {
        self.head.is_empty()
    }

    pub fn escape(&self) -> Escape {
        self.escape
    }

    /// Where each variable's value stands in the line (without its newline).
    ///
    /// # Errors
    /// The line was not written by this format.
    pub fn split(&self, line: &[u8], values: &mut Vec<Range<usize>>) -> Result<(), Mismatch> {
        values.clear();
        if !line.starts_with(&self.head) {
            return Err(self.mismatch(None));
        }
        let mut at = self.head.len();
        for (n, slot) in self.slots.iter().enumerate() {
            let rest = &line[at..];
            let (length, literal) = match &slot.end {
                None => (rest.len(), 0),
                Some(end) => match find(end, rest, slot.kind, self.escape) {
                    Some(length) => (length, end.needle().len()),
                    None => return Err(self.mismatch(Some(n))),
                },
            };
            values.push(at..at + length);
            at += length + literal;
        }
        // Only a format that ends in a literal can leave something over.
        if at < line.len() {
            return Err(Mismatch {
                variable: self.names.last().cloned(),
                expected: String::new(),
            });
        }
        Ok(())
    }

    fn mismatch(&self, slot: Option<usize>) -> Mismatch {
        let expected = match slot {
            None => &self.head[..],
            Some(n) => self.slots[n].end.as_ref().map_or(&[][..], Finder::needle),
        };
        Mismatch {
            variable: slot.map(|n| self.names[n].clone()),
            expected: String::from_utf8_lossy(expected).into_owned(),
        }
    }
}

/// The name of the variable whose `$` stands at `at`, and where it ends.
fn variable(text: &str, at: usize) -> Result<(&str, usize), FormatError> {
    let after = &text[at + 1..];
    let length = |text: &str| {
        text.bytes()
            .position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')
            .unwrap_or(text.len())
    };
    if let Some(inside) = after.strip_prefix('{') {
        let end = length(inside);
        return match (end, inside.as_bytes().get(end)) {
            (0, _) => Err(FormatError::NoName { at }),
            (_, Some(b'}')) => Ok((&inside[..end], at + end + 3)),
            _ => Err(FormatError::NotClosed { at }),
        };
    }
    match length(after) {
        0 => Err(FormatError::NoName { at }),
        end => Ok((&after[..end], at + 1 + end)),
    }
}

impl Kind {
    fn of(name: &str, before: &[u8], after: &[u8]) -> Kind {
        let is_quoted = before.ends_with(b"\"") && after.starts_with(b"\"");
        if is_quoted {
            Kind::Quoted
        } else if name == "time_local" && after.starts_with(b" ") {
            Kind::TimeLocal
        } else if (name.starts_with("upstream_") || LISTS.contains(&name))
            // A literal that looks like what parts servers ends the first one.
            && !after.starts_with(b", ")
            && !after.starts_with(b" : ")
        {
            Kind::List
        } else {
            Kind::Plain
        }
    }
}

/// Length of the value at the start of `rest`: up to the first `end` that is
/// not part of it.
fn find(end: &Finder<'_>, rest: &[u8], kind: Kind, escape: Escape) -> Option<usize> {
    let mut from = match kind {
        Kind::TimeLocal => memchr::memchr(b' ', rest)? + 1,
        _ => 0,
    };
    loop {
        let at = from + end.find(rest.get(from..)?)?;
        let is_inside = match kind {
            // Only JSON's escape leaves a quote in sight.
            Kind::Quoted => escape == Escape::Json && ends_in_backslash(&rest[..at]),
            Kind::List => is_between_servers(rest, at),
            Kind::Plain | Kind::TimeLocal => false,
        };
        if !is_inside {
            return Some(at);
        }
        from = at + 1;
    }
}

/// An odd number of them: the next character is escaped.
fn ends_in_backslash(value: &[u8]) -> bool {
    value
        .iter()
        .rev()
        .take_while(|&&byte| byte == b'\\')
        .count()
        % 2
        == 1
}

/// Is the space at `at` one of ", " or " : "?
fn is_between_servers(rest: &[u8], at: usize) -> bool {
    let byte = |at: Option<usize>| at.and_then(|at| rest.get(at)).copied();
    rest[at] == b' '
        && (matches!(byte(at.checked_sub(1)), Some(b',' | b':') if before_is_separator(rest, at))
            || rest[at..].starts_with(b" : "))
        || rest[at] == b',' && byte(Some(at + 1)) == Some(b' ')
}

/// `,` parts servers wherever it stands; `:` only with a space before it, for
/// it is also part of an address.
fn before_is_separator(rest: &[u8], at: usize) -> bool {
    rest[at - 1] == b',' || at >= 2 && rest[at - 2] == b' '
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'a>(format: &Format, line: &'a str) -> Result<Vec<&'a str>, String> {
        let mut values = Vec::new();
        format
            .split(line.as_bytes(), &mut values)
            .map(|()| values.into_iter().map(|range| &line[range]).collect())
            .map_err(|mismatch| mismatch.to_string())
    }

    fn format(text: &str) -> Format {
        Format::compile(text, Escape::Default).unwrap()
    }

    #[test]
    fn combined_line_is_told_apart_into_its_eight_variables() {
        let line = r#"10.0.0.9 - - [21/Nov/2026:10:00:00 +0000] "GET /a b HTTP/1.1" 200 512 "-" "curl \x22x\x22""#;
        let values = split(&format("combined"), line).unwrap();
        assert_eq!(
            values,
            [
                "10.0.0.9",
                "-",
                "21/Nov/2026:10:00:00 +0000",
                "GET /a b HTTP/1.1",
                "200",
                "512",
                "-",
                r"curl \x22x\x22",
            ]
        );
    }

    #[test]
    fn time_local_without_brackets_keeps_its_zone() {
        let values = split(
            &format("$time_local $status"),
            "21/Nov/2026:10:00:00 +0000 200",
        );
        assert_eq!(values.unwrap(), ["21/Nov/2026:10:00:00 +0000", "200"]);
    }

    #[test]
    fn lists_of_upstreams_are_one_value_with_commas_and_colons() {
        let format = format("$upstream_addr $upstream_response_time $status");
        let line = "10.1.1.1:80, [::1]:80 : unix:/run/a.sock 0.001, 0.002 : - 502";
        assert_eq!(
            split(&format, line).unwrap(),
            [
                "10.1.1.1:80, [::1]:80 : unix:/run/a.sock",
                "0.001, 0.002 : -",
                "502"
            ]
        );
    }

    #[test]
    fn json_escape_lets_a_quote_stand_in_a_value() {
        let format = Format::compile(
            r#"{"agent":"$http_user_agent","status":$status}"#,
            Escape::Json,
        )
        .unwrap();
        let line = r#"{"agent":"a \"b\" \\","status":200}"#;
        assert_eq!(split(&format, line).unwrap(), [r#"a \"b\" \\"#, "200"]);
    }

    #[test]
    fn braces_name_a_variable_that_letters_follow() {
        assert_eq!(
            split(&format("${request_time}s $status"), "0.5s 200").unwrap(),
            ["0.5", "200"]
        );
    }

    #[test]
    fn format_that_cannot_be_read_back_is_refused_with_the_reason() {
        let refused = |text: &str| {
            Format::compile(text, Escape::Default)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("$status$bytes_sent x").starts_with("$status and $bytes_sent touch"));
        assert!(refused("no variables").starts_with("the format has no variable"));
        assert!(refused("$status $ x").contains("byte 8"));
        assert!(refused("${status x").contains("not closed"));
    }

    #[test]
    fn line_of_another_format_is_told_with_the_place_where_it_parts() {
        let format = format("[$time_local] $status\"");
        assert_eq!(
            split(&format, "x").unwrap_err(),
            r#"does not begin with "[""#
        );
        assert_eq!(
            split(&format, "[21/Nov/2026:10:00:00 +0000] 200").unwrap_err(),
            r#"no "\"" after $status"#
        );
        assert_eq!(
            split(&format, "[21/Nov/2026:10:00:00 +0000] 200\"x").unwrap_err(),
            "goes on after $status"
        );
    }
}
