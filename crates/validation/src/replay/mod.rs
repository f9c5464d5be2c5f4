//! Records what the kernel's own algorithms did on live flows, and replays it through `cc/`.
//!
//! A recorder is the kernel's own reno, cubic or bbr under the name `knee_rec_NAME` (`bpf/record.h`): for each op
//! it writes what the op was shown and what the kernel made of it. [`record`] takes that from the kernel,
//! [`Writer`] and [`Reader`] keep it in a file, and [`Replay`] calls our algorithm with the same input and counts
//! where it decided otherwise. Only recording needs root.

mod compare;
mod cubic;
mod file;
mod op_record;
mod recorder;
mod report;
mod step;

pub use compare::Replay;
pub use file::{Reader, Writer};
pub use op_record::OpRecord;
pub use recorder::{Recorded, record};
pub use report::{Cause, Difference, Field, Report};

#[cfg(test)]
mod tests;
