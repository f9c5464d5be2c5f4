//! One table of a cell under way, for those who read keys of their own.

use crate::key::error::{Problem, ScenarioError};
use crate::key::value::Value;
use crate::key::values::Values;

use super::Resolver;
use crate::keys::Section;

/// A table at a point of the matrix.
pub(super) struct Table<'a> {
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) section: Section,
}

impl Values for Table<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.resolver.value(self.section, key)
    }

    fn path_of(&self, key: &str) -> String {
        self.section.path_of(key)
    }

    fn missing(&self, key: &str, expected: &str, next: &str) -> ScenarioError {
        let workload = self.resolver.point.get(self.section, "workload");
        let line = workload.map_or(1, |(_, entry)| entry.line);
        let problem = Problem::Missing {
            key: self.path_of(key),
            expected: expected.into(),
            next: next.into(),
        };
        self.resolver.error(line, problem)
    }

    fn refuse(&self, key: &str, expected: String, next: &str) -> ScenarioError {
        self.resolver.refuse(self.section, key, expected, next)
    }
}
