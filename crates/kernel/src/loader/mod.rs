//! Puts algorithms into the running kernel, and takes them out again.
