//! A path: packets, what queues and delays them, and the links between, shared by both engines.
//!
//! Everything here is pure: no clock, no socket, no file, no thread. Whatever
//! depends on time takes `now`, so the simulator drives it with virtual time
//! and the link with the real clock, and both see the same behaviour.

mod behind;
pub mod bottleneck;
mod foreseen;
mod nics;
pub mod packet;
pub mod pipe;
pub mod queue;
mod routes;
mod spec;
pub mod way;

pub use spec::{AckLink, Backend, Path, RttChange, hop_streams, last_legs};
