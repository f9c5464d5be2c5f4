//! Traces: what was recorded of a real path, in files beside the scenario; and
//! when a link sends that follows one.

mod rate;
mod schedule;

pub use rate::{Cursor, OPPORTUNITY_BYTES, RateTrace, bundled};
pub use schedule::{Outage, Outages, Schedule};
