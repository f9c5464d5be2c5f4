//! What those see of a cell under way who read keys of their own: one table of the file.

use knee_units::Rate;

use super::Resolver;
use crate::error::{Problem, ScenarioError};
use crate::keyed::Field;
use crate::keys::{Key, Section};
use crate::value::Value;
use crate::workload::sizes::SizeSpec;

/// The values of one table at a point of the matrix.
pub(crate) struct Values<'a> {
    pub(super) resolver: &'a Resolver<'a>,
    pub(super) section: Section,
}

impl Values<'_> {
    /// The value of a field with these keys, of the kind that they say.
    pub(crate) fn field<T: Field>(&self, keys: &[Key]) -> T {
        let values: Vec<Option<&Value>> = keys.iter().map(|key| self.value(key.name)).collect();
        T::read(&values).unwrap_or_else(|| {
            let path = self.path_of(keys[0].name);
            panic!("{path} is not as the registry says: {values:?}")
        })
    }

    /// `None`: neither the file nor a default sets it.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.resolver.value(self.section, key)
    }

    pub(crate) fn name(&self, key: &str) -> &'static str {
        self.resolver.name(self.section, key)
    }

    pub(crate) fn rate(&self, key: &str) -> Option<Rate> {
        self.resolver.rate(self.section, key)
    }

    pub(crate) fn per_sec(&self, key: &str) -> f64 {
        self.resolver.per_sec(self.section, key)
    }

    pub(crate) fn sizes(&self, key: &str) -> SizeSpec {
        self.resolver.sizes(self.section, key)
    }

    /// As messages name the key: `flow.0.bytes`.
    pub(crate) fn path_of(&self, key: &str) -> String {
        self.section.path_of(key)
    }

    /// Refuses a table without this key, which the workload needs.
    pub(crate) fn needs(&self, key: &str, expected: &str, next: &str) -> Result<(), ScenarioError> {
        match self.value(key) {
            Some(_) => Ok(()),
            None => Err(self.missing(key, expected, next)),
        }
    }

    /// That the key is missing, at the line that makes it necessary.
    pub(crate) fn missing(&self, key: &str, expected: &str, next: &str) -> ScenarioError {
        let workload = self.resolver.point.get(self.section, "workload");
        let line = workload.map_or(1, |(_, entry)| entry.line);
        let problem = Problem::Missing {
            key: self.path_of(key),
            expected: expected.into(),
            next: next.into(),
        };
        self.resolver.error(line, problem)
    }

    /// Refuses what the file says at `key`.
    pub(crate) fn refuse(&self, key: &str, expected: String, next: &str) -> ScenarioError {
        self.resolver.refuse(self.section, key, expected, next)
    }
}
