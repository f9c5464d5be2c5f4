//! What is happening on this host: the recorder, the exporter, the tracer.

pub mod export;
pub mod record;
pub mod trace;
