//! What applications do with a connection: one file each, driven by both engines.
