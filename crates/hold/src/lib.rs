//! Settings of a host, changed for the time of a test and put back whatever happens: at the end, when the pipe of who
//! asked ends without a word, at a deadline, and after kill -9 of any one process. Only what a boot sets anew is changed.
//!
//! - `setting`: what may be asked for, checked again on the host; `change`: a setting of this host, read and written
//! - of one kind each: `sysctl`, `offload`, `qdisc`, `route`; `netlink`: questions to the kernel
//! - `hold`: the process that makes changes; `watchdog`: the one that puts them back
//! - `journal`: what is changed, written down for whoever comes after both were killed
//! - `lock`: one test at a time; `text`: all settings that a test may touch, to compare before with after
//! - `recorded`: the files by which the doctor of another machine judges this host
//!
//! No program is started, and nothing goes through a shell. It is linked into a static program: it needs no library.

mod change;
mod hold;
mod journal;
pub mod lock;
pub mod netlink;
mod offload;
mod qdisc;
pub mod recorded;
mod route;
mod setting;
mod sysctl;
pub mod text;
mod watchdog;

pub use hold::hold;
pub use route::device_towards;
pub use setting::{Order, Setting};
