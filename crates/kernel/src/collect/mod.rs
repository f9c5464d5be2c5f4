//! What samples the kernel: one file a collector.
