//! A path: packets, what queues, delays, loses and alters them, and the links between, shared by both engines.
//!
//! Everything here is pure: no clock, no socket, no file, no thread. Whatever
//! depends on time takes `now`, so the simulator drives it with virtual time
//! and the link with the real clock, and both see the same behaviour.

pub mod bottleneck;
mod departures;
pub mod impairment;
pub mod loss;
mod nics;
pub mod packet;
pub mod pipe;
mod propagation;
pub mod queue;
mod routes;
pub mod sink;
mod spec;
pub mod trace;
mod transit;
pub mod way;

pub use spec::{AckLink, Backend, Direction, Path, RttChange, hop_streams, last_legs};
pub use transit::Transit;
