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

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_is_no_utf8_is_an_escape_and_the_rest_stays() {
        assert_eq!(escaped("grün0".as_bytes()), "grün0");
        assert_eq!(escaped(b"\xff\xfea\xc3"), "\\xff\\xfea\\xc3");
    }
}
