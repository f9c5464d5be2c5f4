//! Call stacks as the table `stacks` has them: one text each, and the class of their work.

mod classes;

pub use classes::class_of;

/// Ends the names of the kernel's functions in a folded stack.
const OF_KERNEL: &str = "_[k]";
/// A function without a name.
pub const UNKNOWN: &str = "[unknown]";

/// A stack as one text: program, its functions, those of the kernel, the outermost first. Both lists have the innermost
/// first.
pub fn fold(program: &str, user: &[impl AsRef<str>], kernel: &[impl AsRef<str>]) -> String {
    let mut frames = vec![plain(program)];
    frames.extend(user.iter().rev().map(|name| plain(name.as_ref())));
    // Of a run of functions without a name one tells as much.
    frames.dedup_by(|next, last| next == last && next == UNKNOWN);
    let kernel = kernel.iter().rev();
    frames.extend(kernel.map(|name| format!("{}{OF_KERNEL}", plain(name.as_ref()))));
    frames.join(";")
}

/// A name that ends neither its frame nor its line: anybody may call a program as he likes.
fn plain(name: &str) -> String {
    name.chars()
        .map(|char| match char {
            ';' => ':',
            char if char.is_control() => ' ',
            char => char,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn a_folded_stack_runs_from_the_program_to_the_innermost_function() {
        assert_eq!(
            fold("nginx", &["send", "main"], &["tcp_ack", "tcp_v4_rcv"]),
            "nginx;main;send;tcp_v4_rcv_[k];tcp_ack_[k]"
        );
    }

    #[test]
    fn a_name_cannot_end_its_frame_or_its_line() {
        assert_eq!(fold("a;b\nc\u{fffd}", &NONE, &NONE), "a:b c\u{fffd}");
        assert_eq!(
            fold("x", &[UNKNOWN, UNKNOWN, "main"], &NONE),
            "x;main;[unknown]"
        );
    }
}
