//! One end of one connection: a socket and the application at it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use knee_scenario::workload::App;
use knee_tables::Reads;
use nix::sys::socket::{MsgFlags, sockopt};

use super::clock::Clock;

/// An option whose value is an integer as the kernel has it.
pub fn set<T: Copy>(fd: &OwnedFd, level: i32, option: i32, value: T) -> nix::Result<()> {
    // SAFETY: the kernel reads the value's bytes, which outlive the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    nix::Error::result(result).map(drop)
}

/// Longest single read.
const READ_BYTES: usize = 256 * 1024;
/// Reads, and writes, in one turn: a fast connection leaves time to the others.
const MOST_CALLS: usize = 16;

/// What a turn of the connection came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub read_bytes: u64,
    /// There is more to do, and no event will say so again.
    pub goes_on: bool,
}

/// One end.
pub struct Connection {
    pub fd: OwnedFd,
    pub app: Box<dyn App>,
    reading: MsgFlags,
    /// Calls that the socket took something of.
    pub writes: u64,
    /// Of a workload that counts how reads come.
    pub reads: Option<Reads>,
    /// Comes before all that the application writes.
    greeting: Vec<u8>,
    far_closed: bool,
    closed: bool,
}

impl Connection {
    /// `copies`: are bytes read as programs read them? Else TCP discards them (MSG_TRUNC, tcp(7)).
    pub fn new(
        fd: OwnedFd,
        app: Box<dyn App>,
        copies: bool,
        times_reads: bool,
        greeting: Vec<u8>,
    ) -> Connection {
        Connection {
            fd,
            app,
            reading: match copies {
                true => MsgFlags::empty(),
                false => MsgFlags::MSG_TRUNC,
            },
            writes: 0,
            reads: times_reads.then(Reads::default),
            greeting,
            far_closed: false,
            closed: false,
        }
    }

    /// Reads what there is, then writes what the application has and the socket takes.
    ///
    /// `to_the_end`: the far end may have closed, which only a read that finds nothing more tells.
    /// `scratch` is what is read into and written from: its content means nothing. It grows with the longest write.
    pub fn turn(
        &mut self,
        scratch: &mut Vec<u8>,
        clock: &Clock,
        to_the_end: bool,
    ) -> io::Result<Turn> {
        if scratch.len() < READ_BYTES {
            scratch.resize(READ_BYTES, 0);
        }
        let mut turn = Turn::default();
        let read = &mut turn.read_bytes;
        let all_read = self.read(&mut scratch[..READ_BYTES], clock, to_the_end, read)?;
        let mut all_written = self.write(scratch, clock)?;
        while let Some(until) = self.app.computes_until(clock.now()) {
            clock.compute(until);
            all_written = self.write(scratch, clock)?;
        }
        let over =
            self.app.closes() || self.far_closed && self.app.next_write_bytes(clock.now()) == 0;
        if over && !self.closed {
            self.closed = true;
            let _ =
                nix::sys::socket::shutdown(self.fd.as_raw_fd(), nix::sys::socket::Shutdown::Write);
        }
        turn.goes_on = !(all_read && all_written);
        Ok(turn)
    }

    /// True: there was no more to read.
    fn read(
        &mut self,
        scratch: &mut [u8],
        clock: &Clock,
        to_the_end: bool,
        read_bytes: &mut u64,
    ) -> io::Result<bool> {
        for _ in 0..MOST_CALLS {
            if self.far_closed {
                return Ok(true);
            }
            match self.receive(scratch) {
                Ok(0) => self.far_closed = true,
                Ok(bytes) => {
                    let now = clock.now();
                    *read_bytes += bytes as u64;
                    self.app.read(now, bytes as u64);
                    if let Some(reads) = &mut self.reads {
                        reads.add(now.0, bytes as u64);
                    }
                    // What comes from now on is an event of its own.
                    if bytes < scratch.len() && !to_the_end {
                        return Ok(true);
                    }
                }
                Err(nix::Error::EAGAIN) => return Ok(true),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// True: nothing more can be written now.
    fn write(&mut self, scratch: &mut Vec<u8>, clock: &Clock) -> io::Result<bool> {
        while !self.greeting.is_empty() {
            match nix::sys::socket::send(
                self.fd.as_raw_fd(),
                &self.greeting,
                MsgFlags::MSG_NOSIGNAL,
            ) {
                Ok(taken) => drop(self.greeting.drain(..taken)),
                Err(nix::Error::EAGAIN) => return Ok(true),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for _ in 0..MOST_CALLS {
            let bytes = self.app.next_write_bytes(clock.now());
            if bytes == 0 || self.closed {
                return Ok(true);
            }
            // A write is one call, however long it is; what the socket does not take at once follows in further ones.
            let length = bytes as usize;
            if scratch.len() < length {
                *scratch = vec![0; length];
            }
            match nix::sys::socket::send(
                self.fd.as_raw_fd(),
                &scratch[..length],
                MsgFlags::MSG_NOSIGNAL,
            ) {
                Ok(taken) => {
                    self.writes += 1;
                    self.app.wrote(clock.now(), taken as u64);
                }
                Err(nix::Error::EAGAIN) => return Ok(true),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn receive(&self, scratch: &mut [u8]) -> nix::Result<usize> {
        nix::sys::socket::recv(self.fd.as_raw_fd(), scratch, self.reading)
    }

    /// Have both ends said that they are done?
    pub fn is_over(&self) -> bool {
        self.closed && self.far_closed
    }
}

/// As long as any kernel's `tcp_info` so far, and longer.
const TCP_INFO_BYTES: usize = 512;

/// What the kernel says of a socket; empty: nothing.
pub fn read_tcp_info(fd: &impl AsRawFd) -> Vec<u8> {
    read_option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, TCP_INFO_BYTES)
}

/// An option's bytes, `most` of them; empty: the kernel has none.
pub fn read_option(fd: &impl AsRawFd, level: i32, option: i32, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the buffer is as long as said.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            option,
            bytes.as_mut_ptr().cast(),
            &mut length,
        )
    };
    bytes.truncate(if result == 0 { length as usize } else { 0 });
    bytes
}

/// Why the connection could not be made, if that is so.
pub fn pending_error(fd: &OwnedFd) -> Option<io::Error> {
    match nix::sys::socket::getsockopt(fd, sockopt::SocketError) {
        Ok(0) => None,
        Ok(code) => Some(io::Error::from_raw_os_error(code)),
        Err(error) => Some(error.into()),
    }
}
