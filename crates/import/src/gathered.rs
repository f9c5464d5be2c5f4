//! JSON documents in files of lines, each over one or many of them.

/// The longest document that is held. Parsed, it takes several times as much.
const DOCUMENT_BYTES: usize = 8 << 20;

/// What is said of a longer one.
pub(super) const TOO_LONG: &str = "a JSON document of more than 8 MiB; expected 8 MiB at most";

/// A document whose lines are gathered until its last bracket.
#[derive(Default)]
pub(super) struct Gathered {
    text: Vec<u8>,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    is_too_long: bool,
}

/// What a line came to.
pub(super) enum Came {
    /// It belongs to no document.
    Outside,
    /// The document goes on.
    Within,
    /// The document is complete.
    Whole(Vec<u8>),
    /// The document that it ends is too long, see [`TOO_LONG`].
    TooLong,
}

impl Gathered {
    /// Takes a line; `begins` are the brackets with which a document may begin.
    pub fn line(&mut self, line: &[u8], begins: &[u8]) -> Came {
        let first = line.trim_ascii_start().first();
        if self.depth == 0 && !first.is_some_and(|first| begins.contains(first)) {
            return Came::Outside;
        }
        for &byte in line {
            match byte {
                _ if std::mem::take(&mut self.is_escaped) => {}
                b'\\' if self.is_in_text => self.is_escaped = true,
                b'"' => self.is_in_text = !self.is_in_text,
                b'[' | b'{' if !self.is_in_text => self.depth += 1,
                b']' | b'}' if !self.is_in_text => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.is_too_long |= self.text.len() + line.len() >= DOCUMENT_BYTES;
        if self.is_too_long {
            self.text = Vec::new();
        } else {
            self.text.extend_from_slice(line);
            self.text.push(b'\n');
        }
        // A text ends on its line.
        let is_broken = self.is_in_text;
        if self.depth > 0 && !is_broken {
            return Came::Within;
        }
        let found = std::mem::take(self);
        match found.is_too_long {
            true => Came::TooLong,
            false => Came::Whole(found.text),
        }
    }

    /// Ends the file: true where a document has no end.
    pub fn end(&mut self) -> bool {
        std::mem::take(self).depth > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(lines: &[&str]) -> Vec<String> {
        let mut gathered = Gathered::default();
        let mut found = Vec::new();
        for line in lines {
            found.push(match gathered.line(line.as_bytes(), b"[") {
                Came::Outside => "-".into(),
                Came::Within => "+".into(),
                Came::Whole(text) => String::from_utf8(text).unwrap().replace('\n', ""),
                Came::TooLong => "!".into(),
            });
        }
        if gathered.end() {
            found.push("?".into());
        }
        found
    }

    #[test]
    fn a_document_ends_with_its_last_bracket() {
        assert_eq!(
            documents(&["x", "[1]", "[ {", "\"a]\\\"\": 1", "} ]", "{"]),
            ["-", "[1]", "+", "+", "[ {\"a]\\\"\": 1} ]", "-"]
        );
        assert_eq!(documents(&["[", "1"]), ["+", "+", "?"]);
        assert_eq!(documents(&["[\"", "[2]"]), ["[\"", "[2]"]);
    }
}
