//! What a call stack's work was for.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Classes of stacks. Samples of `idle` have no rows.
const CLASSES: &[&str] = &[
    "data copy",
    "skb",
    "memory",
    "TCP/IP",
    "netdev",
    "scheduler",
    "lock",
    "timer",
    "entry",
    "BPF",
    "user",
    "other",
];
const IDLE: &str = "idle";
/// A function of this class says nothing: who called it does.
const CALLER: &str = "caller";
const USER: &str = "user";
const OTHER: &str = "other";

/// Functions of the kernel by class.
struct Patterns {
    whole: HashMap<&'static str, &'static str>,
    /// Those of which the file gives only how they begin.
    beginnings: Vec<(&'static str, &'static str)>,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| parse(include_str!("classes.txt")));

fn parse(text: &'static str) -> Patterns {
    let (mut whole, mut beginnings) = (HashMap::new(), Vec::new());
    let mut class = OTHER;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    for line in lines.map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']');
            let mut known = CLASSES.iter().chain(&[IDLE, CALLER]);
            let found = known.find(|known| **known == name);
            class = found.unwrap_or_else(|| panic!("classes.txt: no class {name}"));
            continue;
        }
        for pattern in line.split_whitespace() {
            match pattern.strip_suffix('*') {
                Some(beginning) => beginnings.push((beginning, class)),
                None => drop(whole.insert(pattern, class)),
            }
        }
    }
    Patterns { whole, beginnings }
}

/// The class of a function of the kernel; `None`: the list does not know it.
fn of_function(name: &str) -> Option<&'static str> {
    // The compiler's copies of a function: `tcp_ack.isra.0`, `schedule.cold`.
    let name = name.split('.').next().unwrap_or(name);
    if let Some(class) = PATTERNS.whole.get(name) {
        return Some(class);
    }
    let known = PATTERNS.beginnings.iter();
    // The longest says most.
    known
        .filter(|(beginning, _)| name.starts_with(beginning))
        .max_by_key(|(beginning, _)| beginning.len())
        .map(|(_, class)| *class)
}

/// The class of a stack, by the innermost of its functions that the list knows. `kernel`: its functions in the kernel,
/// the innermost first; none: the program itself was running. `None`: the processor was idle.
pub fn class_of<'a>(kernel: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let mut is_user = true;
    for name in kernel {
        is_user = false;
        match of_function(name) {
            Some(IDLE) => return None,
            Some(CALLER) | None => {}
            Some(class) => return Some(class),
        }
    }
    Some(if is_user { USER } else { OTHER })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folded stacks as this host's kernels gave them, each with the class that it is for.
    const FIXTURE: &str = include_str!("stacks.fixture.txt");

    #[test]
    fn every_stack_of_the_fixture_has_its_class() {
        let mut count = 0;
        for line in FIXTURE.lines().filter(|line| !line.starts_with('#')) {
            let (expected, stack) = line.split_once(": ").unwrap();
            let kernel = stack
                .split(';')
                .rev()
                .map_while(|frame| frame.strip_suffix("_[k]"));
            assert_eq!(class_of(kernel).unwrap_or(IDLE), expected, "{stack}");
            count += 1;
        }
        assert!(count > 20);
    }

    #[test]
    fn every_class_but_user_and_other_has_functions() {
        let named: Vec<&str> = (PATTERNS.whole.values())
            .chain(PATTERNS.beginnings.iter().map(|(_, class)| class))
            .copied()
            .collect();
        for class in CLASSES {
            assert_eq!(
                named.contains(class),
                ![USER, OTHER].contains(class),
                "{class}"
            );
        }
    }

    #[test]
    fn copies_that_the_compiler_made_are_of_the_function() {
        assert_eq!(of_function("tcp_ack.isra.0"), Some("TCP/IP"));
        assert_eq!(of_function("__schedule.cold"), Some("scheduler"));
        assert_eq!(of_function("no_such_function"), None);
    }

    #[test]
    fn a_stack_that_no_pattern_knows_is_other_and_one_without_the_kernel_is_the_program() {
        assert_eq!(class_of(["no_such_function", "nor_this"]), Some("other"));
        assert_eq!(class_of([]), Some("user"));
        assert_eq!(class_of(["no_such_function", "tcp_ack"]), Some("TCP/IP"));
    }
}
