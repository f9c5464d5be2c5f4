//! Kneepoint's kernel engine: the host's own TCP stack in network namespaces,
//! joined by an emulated link.

mod clock;
pub mod collect;
mod error;
pub mod export;
pub mod lab;
pub mod loader;
pub mod record;
pub mod replay;
mod rows;
pub mod run;
mod sampler;
pub mod shell;
mod tool;
pub mod trace;
mod traffic;

pub use error::KernelError;
