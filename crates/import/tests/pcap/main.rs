//! Imports of packet captures.

mod captures;
mod connections;
mod files;
