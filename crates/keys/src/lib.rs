//! What a key of a scenario file is: its kind and bounds, the value that a file gives it, the field of a struct that has
//! that value, and the words in which a value is refused. Which keys there are, `knee-scenario` says.

pub mod error;
pub mod key;
pub mod keyed;
pub mod names;
pub mod profile;
pub mod settings;
pub mod sizes;
pub mod value;
pub mod values;
