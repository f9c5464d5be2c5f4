//! Packet captures (pcap, pcapng): what they say of each TCP connection.
//!
//! Each packet goes through [`file`] (a record), [`packet`] (a TCP segment),
//! [`connection`] (handshake, place of the capture) and [`sender`], of which a
//! connection has two: what one side sent and what came back. Whoever reads a
//! capture keeps the connections and takes what they tell as [`Told`].

pub mod connection;
pub mod file;
mod interval;
pub mod packet;
mod quantiles;
mod ranges;
pub mod sender;

pub use connection::Told;
pub use interval::Interval;
