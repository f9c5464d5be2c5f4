//! TCP sockets as the kernel destroys them: their last `tcp_info`.
//!
//! An event has addresses, ports, cookie and `tcp_info`. It has neither the
//! congestion control, the owner, the mark nor memory.
//! Source: Linux 6.18, net/ipv4/inet_diag.c, inet_diag_handler_get_info().

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use nix::sys::socket::{MsgFlags, recv, setsockopt};

use super::message::BY_FAMILY;
use knee_uapi::netlink::Messages;

// enum sknetlink_groups, include/uapi/linux/sock_diag.h.
const TCP_V4_DESTROYED: u32 = 1;
const TCP_V6_DESTROYED: u32 = 3;

/// An event takes about 1.3 kB of it: more than a second of 20,000 sockets destroyed each second.
const QUEUE_BYTES: usize = 32 << 20;
const BUFFER_BYTES: usize = 8 << 10;

/// What came in one go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub events: u64,
    /// Times the kernel said that its queue was full.
    pub overruns: u64,
}

/// The events of the namespace in which it was made, from then on.
pub struct Destroyed {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Destroyed {
    /// # Errors
    /// The kernel does not let the caller listen.
    pub fn new() -> io::Result<Destroyed> {
        Destroyed::with_queue(QUEUE_BYTES)
    }

    pub(super) fn with_queue(bytes: usize) -> io::Result<Destroyed> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        // Beyond net.core.rmem_max for who may, up to it for all others.
        if setsockopt(&borrow(&socket), RcvBufForce, &bytes).is_err() {
            setsockopt(&borrow(&socket), RcvBuf, &bytes)?;
        }
        socket.add_membership(TCP_V4_DESTROYED)?;
        socket.add_membership(TCP_V6_DESTROYED)?;
        Ok(Destroyed {
            socket,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// Hands what has come so far to `take`: messages for [`Diag::decode`](super::Diag::decode).
    ///
    /// # Errors
    /// The socket fails in another way than by overflowing.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<Received> {
        let mut received = Received::default();
        loop {
            let flags = MsgFlags::MSG_TRUNC;
            match recv(self.socket.as_raw_fd(), &mut self.buffer, flags) {
                Err(Errno::EAGAIN) => return Ok(received),
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => received.overruns += 1,
                Err(errno) => return Err(errno.into()),
                Ok(bytes) => {
                    let bytes = &self.buffer[..bytes.min(self.buffer.len())];
                    for message in Messages(bytes) {
                        let message = message?;
                        if message.kind == BY_FAMILY {
                            received.events += 1;
                            take(message.body);
                        }
                    }
                }
            }
        }
    }

    /// Events that the kernel had no room for, since the beginning. It counts each
    /// of them, also those between two overruns that it tells of.
    ///
    /// # Errors
    /// Linux before 4.12 does not tell.
    pub fn lost(&self) -> io::Result<u64> {
        const DROPS: usize = 8;
        let mut memory = [0u32; 9];
        let mut length = size_of_val(&memory) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `memory`, which
        // outlives the call.
        let done = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                memory.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        Errno::result(done)?;
        Ok(u64::from(memory[DROPS]))
    }
}

impl AsFd for Destroyed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        borrow(&self.socket)
    }
}

fn borrow(socket: &Socket) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open for as long as its owner lives.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}
