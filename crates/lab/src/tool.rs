//! Programs of the system's administrator, which read their work from stdin.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Runs one in the caller's namespaces until it ends. `Ok(Err(…))`: it refused, with these words.
///
/// # Errors
/// `NotFound`: it is not installed. It cannot be run or waited for.
pub(crate) fn feed(name: &str, arguments: &[&str], input: &str) -> io::Result<Result<(), String>> {
    let mut tool = Command::new(name)
        .args(arguments)
        .env("PATH", search_path(env::var_os("PATH")))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = tool.stdin.take().expect("a pipe was asked for");
    // When it ends early its own words say why.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = tool.wait_with_output()?;
    Ok(match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    })
}

/// On Debian these programs lie where an ordinary user's `PATH` does not lead.
fn search_path(path: Option<OsString>) -> OsString {
    let mut found = path.unwrap_or_default();
    if !found.is_empty() {
        found.push(":");
    }
    found.push("/usr/sbin:/sbin");
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administrators_programs_are_looked_for_last() {
        let path = |given: Option<&str>| search_path(given.map(Into::into));
        assert_eq!(path(Some("/usr/bin:/bin")), "/usr/bin:/bin:/usr/sbin:/sbin");
        // An empty entry would be the current folder.
        assert_eq!(path(None), "/usr/sbin:/sbin");
        assert_eq!(path(Some("")), "/usr/sbin:/sbin");
    }

    #[test]
    fn what_a_tool_says_when_it_refuses_is_told() {
        let ran = |script| feed("sh", &["-c", script], "words").unwrap();
        assert_eq!(ran("[ $(cat) = words ]"), Ok(()));
        assert_eq!(ran("cat >&2; exit 3"), Err("words".to_owned()));
        let missing = feed("knee-no-such-tool", &[], "").unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
