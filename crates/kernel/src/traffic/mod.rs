//! The workloads on real sockets.
