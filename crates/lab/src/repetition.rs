//! What one repetition of a cell leaves.

use knee_tables::{
    CpuSamples, Events, Flows, Links, Packets, QueueSamples, Samples, TcpInfoSamples,
};

use crate::Facts;

/// What one repetition produced.
#[derive(Default)]
pub struct Output {
    pub flows: Flows,
    pub samples: Samples,
    /// Further columns of `samples`.
    pub tcp_info: TcpInfoSamples,
    pub queue: QueueSamples,
    pub events: Events,
    pub cpu: CpuSamples,
    pub links: Links,
    pub programs: knee_tables::Programs,
    pub packets: Packets,
    /// Data packets that entered the path.
    pub data_packets: u64,
    pub facts: Facts,
    /// What makes the results doubtful, in words.
    pub warnings: Vec<String>,
}

/// What every row of a flow begins with.
#[derive(Clone, Copy, Debug)]
pub struct Id {
    pub cell: i32,
    pub rep: i32,
    pub t_ns: i64,
    pub flow: i32,
}
