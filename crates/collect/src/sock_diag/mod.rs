//! TCP sockets of a network namespace, by sock_diag: requests, decoding of answers, and rows of the table `sockets`.
//!
//! A dump is read into one buffer and decoded in place, without an allocation per socket. Decoding and rows work on any
//! host: importers read files of answers by them.

#[macro_use]
pub mod columns;
mod destroyed;
mod diag;
mod filter;
mod message;
mod rows;
pub mod tcp_info;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::AsRawFd;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

pub use destroyed::{Destroyed, Received};
pub use diag::{Diag, MESSAGE_BYTES, Memory, attribute};
pub use filter::{End, Filter, TooLong};
pub use message::answers;
use message::request;
pub use rows::{STATES, SocketRows};
pub use tcp_info::bits_per_sec;

/// All states but LISTEN (10), TIME_WAIT (6), NEW_SYN_RECV (12) and CLOSE (7).
pub const CONNECTED: u32 = 0xfff & !(1 << 10 | 1 << 6 | 1 << 7);

/// The kernel fills at most 32 KiB for each call, whatever is offered.
/// Source: Linux 6.18, net/netlink/af_netlink.c, netlink_recvmsg().
const BUFFER_BYTES: usize = 1 << 16;

/// What is asked of each socket.
#[derive(Clone, Copy, Debug)]
pub struct Extensions(u8);

impl Extensions {
    /// tcp_info, congestion control and what it tells, memory.
    pub const ALL: Extensions = Extensions(
        1 << (attribute::INFO - 1)
            | 1 << (attribute::VEGASINFO - 1)
            | 1 << (attribute::CONG - 1)
            | 1 << (attribute::SKMEMINFO - 1),
    );
    /// The IP header's classes besides.
    pub const ALL_WITH_CLASSES: Extensions =
        Extensions(Extensions::ALL.0 | 1 << (attribute::TOS - 1) | 1 << (attribute::TCLASS - 1));
    /// tcp_info and the congestion control's name.
    pub const INFO_AND_ALGORITHM: Extensions =
        Extensions(1 << (attribute::INFO - 1) | 1 << (attribute::CONG - 1));
    /// Memory only.
    pub const MEMORY: Extensions = Extensions(1 << (attribute::SKMEMINFO - 1));
}

/// Of which addresses the sockets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
    /// Both, in one walk over the kernel's table. Only the oldest form of the
    /// request can say so; every kernel since 2.6 answers it.
    Both,
}

/// Which sockets are asked for, and what of each.
#[derive(Clone, Debug)]
pub struct Question {
    pub family: Family,
    /// Bit n: sockets in state n.
    pub states: u32,
    pub extensions: Extensions,
    /// What the kernel is to leave out, as [`Filter::compile`] has it. Empty: nothing.
    pub bytecode: Vec<u8>,
}

impl Question {
    /// Every socket of a family in one of the states.
    pub const fn of(family: Family, states: u32, extensions: Extensions) -> Question {
        Question {
            family,
            states,
            extensions,
            bytecode: Vec::new(),
        }
    }
}

/// How a dump went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Sockets that were handed out.
    pub sockets: u64,
    /// Did the kernel say that its table changed under the dump, so that sockets
    /// may be missing or told twice?
    pub interrupted: bool,
    /// Answers that were no socket: shorter than any kernel's.
    pub not_understood: u64,
}

/// A connection to sock_diag of the namespace in which it was made.
pub struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    pub fn new() -> io::Result<SockDiag> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(SockDiag {
            socket,
            buffer: vec![0; BUFFER_BYTES],
            sequence: 0,
        })
    }

    /// Hands every TCP socket that the question is about to `take`.
    ///
    /// # Errors
    /// The kernel refuses the dump, or answers what is none.
    pub fn dump(
        &mut self,
        question: &Question,
        mut take: impl FnMut(Diag<'_>),
    ) -> io::Result<Dump> {
        self.sequence += 1;
        self.socket.send(&request(self.sequence, question), 0)?;
        let mut dump = Dump::default();
        loop {
            let bytes = receive(&self.socket, &mut self.buffer)?;
            if answers(bytes, self.sequence, &mut dump, &mut take)? {
                return Ok(dump);
            }
        }
    }
}

/// The next datagram. One that is cut short makes the buffer larger for the next time.
fn receive<'a>(socket: &Socket, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
    loop {
        match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
            Ok(bytes) if bytes > buffer.len() => {
                let had = buffer.len();
                buffer.resize(bytes.next_power_of_two(), 0);
                return Err(io::Error::other(format!(
                    "sock_diag: an answer of {bytes} bytes came into a buffer of {had}; \
                     the next one is larger"
                )));
            }
            Ok(bytes) => return Ok(&buffer[..bytes]),
        }
    }
}
