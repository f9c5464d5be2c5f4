//! Why a file is refused as a whole.

use std::fmt;

use crate::key::error::{MOST_LISTED, Mistakes, ScenarioError};

use crate::besides::{Expect, Published};

/// Everything that is wrong with a scenario, in the order of the lines.
///
/// Displays as a line for each mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioErrors {
    /// At least one, at most twenty.
    pub list: Vec<ScenarioError>,
    /// There may be more, which are not listed.
    pub cut: bool,
    /// Expectations and published figures of the file, for the front to judge: without text where it is no good.
    pub expects: Vec<Expect>,
    pub published: Vec<Published>,
}

impl std::error::Error for ScenarioErrors {}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.list.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{error}")?;
        }
        if self.cut {
            let last = self.list.last().expect("a refusal lists a mistake");
            write!(
                f,
                "\n{}:{}: only the first {MOST_LISTED} mistakes are listed. Correct these, then run it again.",
                last.file, last.line
            )?;
        }
        Ok(())
    }
}

/// `scenario`, or why there is none.
pub(super) fn result<T>(
    mistakes: Mistakes<'_>,
    scenario: Option<T>,
    (expects, published): (Vec<Expect>, Vec<Published>),
) -> Result<T, ScenarioErrors> {
    let (list, cut) = mistakes.listed();
    match scenario {
        Some(scenario) if list.is_empty() => Ok(scenario),
        _ => {
            assert!(!list.is_empty(), "a scenario is refused for a reason");
            Err(ScenarioErrors {
                list,
                cut,
                expects,
                published,
            })
        }
    }
}
