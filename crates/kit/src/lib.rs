//! Containers and processor hints of the hot paths, without a notion of networks.
//!
//! - `heap`: a four-ary heap of (time, number, value); `head_queue`: a queue whose head lies by itself
//! - `ranges`: ranges of numbers, kept in order; `places`: fixed places in huge pages
//! - `ahead`: fetch memory before it is read; `odds`: which way a branch goes

pub mod ahead;
pub mod head_queue;
pub mod heap;
pub mod odds;
pub mod places;
pub mod ranges;
