//! Texts of the kernel that others chose: names of devices, processes and threads may hold any byte.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// The text, with an escape (`\xff`) for each byte that is no UTF-8.
pub fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The text of a file.
///
/// # Errors
/// It cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read(path).map(|bytes| escaped(&bytes))
}

/// What an error of the system says, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_number() {
        let error = io::Error::from_raw_os_error(1);
        assert_eq!(reason(&error), "Operation not permitted");
        assert_eq!(reason(&io::Error::other("a message")), "a message");
    }

    #[test]
    fn what_is_no_utf8_is_an_escape_and_the_rest_stays() {
        assert_eq!(escaped("grün0".as_bytes()), "grün0");
        assert_eq!(escaped(b"\xff\xfea\xc3"), "\\xff\\xfea\\xc3");
    }
}
