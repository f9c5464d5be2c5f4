//! What differs between releases of Linux: rules and defaults of TCP and its hosts, each with the releases that changed it.
//!
//! A scenario that names a kernel has that kernel's values where it says nothing itself; what keys say without one is
//! Linux 6.18's.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::cell::Host;
use crate::key::Default;
use crate::keys::Section;
use crate::read::Entry;
use crate::release::Release;

mod list;

pub use list::RULES;

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A key of both hosts.
    Hosts(&'static str),
    /// A parameter of an algorithm, whose values are in its own unit.
    Param {
        algorithm: &'static str,
        name: &'static str,
    },
    /// Nothing that the simulator has.
    NotModelled(&'static str),
}

/// A rule of Linux that changed.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub subject: Subject,
    /// What its values mean.
    pub doc: &'static str,
    /// In the order of the releases; the first is what [`Release::OLDEST`] has.
    pub changes: &'static [Change],
}

/// From a release on.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub since: Release,
    pub value: &'static str,
    /// Commits with their subjects; of the first value nothing.
    pub source: &'static str,
}

impl Rule {
    /// What it is called: as a scenario has it, or in words.
    pub fn name(&self) -> String {
        match self.subject {
            Subject::Hosts(key) => key.into(),
            Subject::Param { algorithm, name } => format!("{algorithm}.{name}"),
            Subject::NotModelled(words) => words.into(),
        }
    }

    /// What that release has.
    pub fn value(&self, release: Release) -> &'static str {
        self.changes[self.at(release)].value
    }

    fn at(&self, release: Release) -> usize {
        let later = |change: &Change| change.since <= release;
        self.changes.partition_point(later).max(1) - 1
    }
}

/// The value of each change of a key of hosts, as a setting has it.
static OF_HOSTS: LazyLock<HashMap<&'static str, (&'static Rule, Vec<Entry>)>> =
    LazyLock::new(|| {
        let rules = RULES.iter().filter_map(|rule| match rule.subject {
            Subject::Hosts(key) => Some((key, rule)),
            _ => None,
        });
        let entries = |key: &str, rule: &Rule| {
            let known = Host::KEYS.iter().find(|known| known.name == key);
            let kind = known.expect("rules are of keys that hosts have").kind;
            let entry = |change: &Change| Entry::of_registry(kind, change.value, 1);
            rule.changes.iter().map(entry).collect()
        };
        rules
            .map(|(key, rule)| (key, (rule, entries(key, rule))))
            .collect()
    });

/// What that release has for a key of which the file says nothing; `None`: what the key's default says.
pub(super) fn default(
    section: Section,
    key: &str,
    release: Option<Release>,
) -> Option<&'static Entry> {
    let release = release.filter(|_| matches!(section, Section::Sender | Section::Receiver))?;
    let (rule, entries) = OF_HOSTS.get(key)?;
    Some(&entries[rule.at(release)])
}

/// May a kernel that has no setting of that name go without? It may where the value is that of kernels before they had it,
/// or the default, for which nobody asked.
pub fn is_dispensable(key: &str, value: &str) -> bool {
    let rule = OF_HOSTS.get(key).map(|(rule, _)| rule);
    let known = Host::KEYS.iter().find(|known| known.name == key);
    rule.is_some_and(|rule| rule.changes[0].value == value)
        || matches!(known.map(|known| known.default), Some(Default::Value(default)) if default == value)
}

/// The parameters that an algorithm has in that release, where they are not what our own defaults are.
pub fn params(of: &str, release: Release) -> impl Iterator<Item = (&'static str, u32)> {
    RULES.iter().filter_map(move |rule| match rule.subject {
        Subject::Param { algorithm, name } if algorithm == of => {
            let value = rule.value(release);
            let newest = rule.changes.last().expect("a rule has a value").value;
            let number = value.parse().expect("parameters are whole numbers");
            (value != newest).then_some((name, number))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_begins_with_the_oldest_release_and_changes() {
        for rule in RULES {
            let name = rule.name();
            let changes = rule.changes;
            assert_eq!(changes[0].since, Release::OLDEST, "{name}");
            assert!(changes.len() > 1, "{name} never changed");
            for pair in changes.windows(2) {
                assert!(pair[0].since < pair[1].since, "{name}");
                assert_ne!(pair[0].value, pair[1].value, "{name}");
                assert!(!pair[1].source.is_empty(), "{name} has no source");
            }
            assert!(
                changes
                    .last()
                    .is_some_and(|last| last.since <= Release::NEWEST)
            );
        }
    }

    #[test]
    fn what_keys_say_without_a_kernel_is_what_linux_6_18_has() {
        for (key, (rule, _)) in OF_HOSTS.iter() {
            let known = Host::KEYS.iter().find(|known| known.name == *key);
            let Some(Default::Value(default)) = known.map(|known| known.default) else {
                panic!("{key} has no default");
            };
            assert_eq!(rule.value(Release(6, 18)), default, "{key}");
        }
    }
}
