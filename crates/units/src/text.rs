//! Why a text is no value.

use crate::files::FileError;
use crate::parse::UnitError;

/// Why a text is no value of a thing that comes in kinds, as losses, distributions of sizes and cost profiles do.
#[derive(Clone, Debug, PartialEq)]
pub enum TextError {
    /// No such kind.
    Kind(String),
    Unit(UnitError),
    /// Not as the forms say.
    Form,
    /// Not possible, and what would be.
    Impossible(String),
    File(FileError),
}
