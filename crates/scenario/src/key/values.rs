//! What those see of a cell under way who read keys of their own: one table of the file.

use crate::key::error::ScenarioError;
use crate::key::value::Value;

/// The values of one table at a point of the matrix.
pub trait Values {
    /// `None`: neither the file nor a default sets it.
    fn value(&self, key: &str) -> Option<&Value>;

    /// As messages name the key: `flow.0.bytes`.
    fn path_of(&self, key: &str) -> String;

    /// That the key is missing, at the line that makes it necessary.
    fn missing(&self, key: &str, expected: &str, next: &str) -> ScenarioError;

    /// Refuses what the file says at `key`.
    fn refuse(&self, key: &str, expected: String, next: &str) -> ScenarioError;

    /// Refuses a table without this key, which the workload needs.
    fn needs(&self, key: &str, expected: &str, next: &str) -> Result<(), ScenarioError> {
        match self.value(key) {
            Some(_) => Ok(()),
            None => Err(self.missing(key, expected, next)),
        }
    }
}
