//! What Kneepoint knows of paths, hosts and workloads, shared by both engines.
//!
//! Everything here is pure: no clock, no socket, no file, no thread. Whatever
//! depends on time takes `now`, so the simulator drives it with virtual time
//! and the link with the real clock, and both see the same behaviour.

pub mod bottleneck;
pub mod loss;
pub mod packet;
pub mod params;
pub mod queue;
pub mod record;
pub mod rng;
pub mod scenario;
pub mod trace;
pub mod transit;
pub mod units;
pub mod workload;
