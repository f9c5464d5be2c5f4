//! The `log_format` directives of an nginx configuration.

use thiserror::Error;

use super::format::Escape;

/// A `log_format` that could not be taken from a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfError {
    #[error("no log_format {name:?}; the file has {known}")]
    Unknown { name: String, known: String },
    #[error("log_format {name:?} (line {line}): escape={word:?}; known: default, json, none")]
    UnknownEscape {
        name: String,
        line: usize,
        word: String,
    },
    #[error("line {line}: a quote that is not closed")]
    OpenQuote { line: usize },
}

/// The text and the escape of the `log_format` of that name.
///
/// Files that the configuration includes are not followed.
///
/// # Errors
/// No such directive, or one that nginx would refuse.
pub fn log_format(conf: &str, name: &str) -> Result<(String, Escape), ConfError> {
    let words = words(conf)?;
    let mut known = Vec::new();
    for directive in words.split(|word| word.is_end) {
        let [first, title, rest @ ..] = directive else {
            continue;
        };
        if first.text != "log_format" {
            continue;
        }
        if title.text != name {
            known.push(title.text.as_str());
            continue;
        }
        let (escape, parts) = match rest {
            [escape, parts @ ..] if escape.text.starts_with("escape=") => {
                let word = &escape.text["escape=".len()..];
                let found = Escape::parse(word).ok_or_else(|| ConfError::UnknownEscape {
                    name: name.into(),
                    line: escape.line,
                    word: word.into(),
                })?;
                (found, parts)
            }
            parts => (Escape::Default, parts),
        };
        let text = parts.iter().map(|part| part.text.as_str()).collect();
        return Ok((text, escape));
    }
    Err(ConfError::Unknown {
        name: name.into(),
        known: match known.is_empty() {
            true => "none".into(),
            false => known.join(", "),
        },
    })
}

/// A word of the configuration, or what ends a directive.
struct Word {
    text: String,
    line: usize,
    is_end: bool,
}

/// The words, quotes and backslashes resolved as ngx_conf_read_token() does.
fn words(conf: &str) -> Result<Vec<Word>, ConfError> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut chars = conf.chars().peekable();
    while let Some(&first) = chars.peek() {
        let begun = line;
        match first {
            '\n' => {
                line += 1;
                chars.next();
            }
            _ if first.is_whitespace() => {
                chars.next();
            }
            '#' => while chars.next_if(|&next| next != '\n').is_some() {},
            ';' | '{' | '}' => {
                chars.next();
                words.push(Word {
                    text: String::new(),
                    line,
                    is_end: true,
                });
            }
            _ => {
                let quote = chars.next_if(|&next| next == '"' || next == '\'');
                let ends = |next: char| match quote {
                    Some(quote) => next == quote,
                    None => next.is_whitespace() || matches!(next, ';' | '{'),
                };
                let mut text = String::new();
                loop {
                    // `${name}` is no block.
                    let in_name = text.ends_with('$');
                    match chars.peek() {
                        None if quote.is_some() => {
                            return Err(ConfError::OpenQuote { line: begun });
                        }
                        None => break,
                        Some(&next) if ends(next) && !(in_name && next == '{') => break,
                        Some(_) => {}
                    }
                    let next = chars.next().expect("peeked");
                    line += usize::from(next == '\n');
                    match (next, chars.peek()) {
                        ('\\', Some('"' | '\'' | '\\')) => text.extend(chars.next()),
                        ('\\', Some('t')) => (text.push('\t'), chars.next()).0,
                        ('\\', Some('r')) => (text.push('\r'), chars.next()).0,
                        ('\\', Some('n')) => (text.push('\n'), chars.next()).0,
                        _ => text.push(next),
                    }
                }
                if quote.is_some() {
                    chars.next();
                }
                words.push(Word {
                    text,
                    line: begun,
                    is_end: false,
                });
            }
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONF: &str = r#"
http {
    # log_format main 'not this one';
    log_format main '$remote_addr [$time_local] '
                    '"$request" ${status}';
    log_format structured escape=json "{\"rtt\":$tcpinfo_rtt}";
    access_log logs/a.log main;
    log_format odd escape=xml '$status';
}
"#;

    #[test]
    fn directive_in_several_strings_is_one_format() {
        let (text, escape) = log_format(CONF, "main").unwrap();
        assert_eq!(text, r#"$remote_addr [$time_local] "$request" ${status}"#);
        assert_eq!(escape, Escape::Default);
    }

    #[test]
    fn escape_of_the_directive_is_taken_with_it() {
        let (text, escape) = log_format(CONF, "structured").unwrap();
        assert_eq!(text, r#"{"rtt":$tcpinfo_rtt}"#);
        assert_eq!(escape, Escape::Json);
    }

    #[test]
    fn what_the_file_does_not_have_is_refused_with_what_it_has() {
        let error = log_format(CONF, "mian").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"no log_format "mian"; the file has main, structured, odd"#
        );
        let error = log_format(CONF, "odd").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"log_format "odd" (line 8): escape="xml"; known: default, json, none"#
        );
        assert_eq!(
            log_format("log_format a 'b", "a").unwrap_err().to_string(),
            "line 1: a quote that is not closed"
        );
    }
}
