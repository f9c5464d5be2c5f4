//! What is happening on this host: the recorder, the exporter, the tracer, and what the network costs it.

pub mod export;
pub mod host;
pub mod record;
pub mod trace;
