//! Forms of the kernel's interfaces to programs, as bytes: for who reads a host, and for the static helper that sets one.
//!
//! - `netlink`: messages and attributes, read where they lie
//! - `ioctl`: questions to a device's driver by the ioctl of ethtool; `groups`: the numbers that are asked for together

pub mod groups;
pub mod ioctl;
pub mod netlink;
