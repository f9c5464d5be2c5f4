//! What happens to packets on their way besides queueing: losses, impairments, and rates that change with time.
//!
//! Pure, as the path is: no clock, no socket, no file, no thread. Whatever depends on time takes `now`.

pub mod impairment;
pub mod loss;
pub mod trace;
mod transit;

pub use transit::Transit;
