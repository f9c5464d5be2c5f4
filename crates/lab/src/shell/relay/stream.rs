//! One TCP connection carried on: two sockets, and what is under way between them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use nix::sys::socket::{setsockopt, sockopt};

/// Most reads of one direction before other connections have their turn.
const TURNS: u32 = 16;

/// How a connection stands after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing to do until a socket is ready again.
    Waiting,
    /// It could go on; others have their turn first.
    Ready,
    /// Both directions have ended.
    Ended,
    /// One side broke off; the other was told so by a reset.
    Broken,
}

/// A connection of the lab and the one that carries it on.
pub struct Stream {
    far: TcpStream,
    host: TcpStream,
    up: Direction,
    down: Direction,
}

/// What has been read of one side and not yet been written to the other.
#[derive(Default)]
struct Direction {
    pending: Vec<u8>,
    written: usize,
    ended: bool,
    shut: bool,
}

impl Stream {
    /// `far` is the lab's side, `host` the one towards the destination, which
    /// may still be connecting. Both are non-blocking.
    pub fn new(far: TcpStream, host: TcpStream) -> Self {
        Self {
            far,
            host,
            up: Direction::default(),
            down: Direction::default(),
        }
    }

    /// Moves what can be moved in both directions, by way of `scratch`.
    pub fn pump(&mut self, scratch: &mut [u8]) -> State {
        let moved = self
            .up
            .pump(&self.far, &self.host, scratch)
            .and_then(|up| Ok(up | self.down.pump(&self.host, &self.far, scratch)?));
        match moved {
            Err(_) => {
                self.reset();
                State::Broken
            }
            Ok(_) if self.up.shut && self.down.shut => State::Ended,
            Ok(true) => State::Ready,
            Ok(false) => State::Waiting,
        }
    }

    /// Makes the closing of both sockets a reset.
    pub fn reset(&self) {
        for socket in [&self.far, &self.host] {
            let linger = libc::linger {
                l_onoff: 1,
                l_linger: 0,
            };
            // On a socket that is dead already there is nothing left to reset.
            let _ = setsockopt(socket, sockopt::Linger, &linger);
        }
    }
}

impl Direction {
    /// Returns whether more could be moved at once.
    fn pump(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        for _ in 0..TURNS {
            if !self.flush(to)? {
                return Ok(false);
            }
            if self.ended {
                if !self.shut {
                    self.shut = true;
                    shut(to)?;
                }
                return Ok(false);
            }
            let Some(read) = unless_blocked(from.read(scratch))? else {
                return Ok(false);
            };
            if read == 0 {
                self.ended = true;
                continue;
            }
            let written = unless_blocked(to.write(&scratch[..read]))?.unwrap_or(0);
            self.pending.extend_from_slice(&scratch[written..read]);
        }
        Ok(true)
    }

    /// Writes what is pending. Returns whether nothing is left.
    fn flush(&mut self, mut to: &TcpStream) -> io::Result<bool> {
        while self.written < self.pending.len() {
            let Some(written) = unless_blocked(to.write(&self.pending[self.written..]))? else {
                return Ok(false);
            };
            self.written += written;
        }
        self.pending.clear();
        self.written = 0;
        Ok(true)
    }
}

fn shut(socket: &TcpStream) -> io::Result<()> {
    match socket.shutdown(Shutdown::Write) {
        // The other end has gone meanwhile: as good as shut.
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// `None` when the socket is not ready.
fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    /// Two ends of a connection over loopback.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// (client, stream between, server).
    fn joined() -> (TcpStream, Stream, TcpStream) {
        let (client, far) = connection();
        let (host, server) = connection();
        far.set_nonblocking(true).unwrap();
        host.set_nonblocking(true).unwrap();
        (client, Stream::new(far, host), server)
    }

    fn pump_until(stream: &mut Stream, wanted: State) {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut scratch = [0; 4096];
        while stream.pump(&mut scratch) != wanted {
            assert!(Instant::now() < deadline, "never {wanted:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn every_byte_arrives_in_order_though_the_reader_is_slow() {
        const BYTES: usize = 20_000_000;
        let (mut client, mut stream, mut server) = joined();
        let writer = std::thread::spawn(move || {
            let block: Vec<u8> = (0..BYTES).map(|at| (at / 7) as u8).collect();
            client.write_all(&block).unwrap();
        });
        let reader = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            let mut got = Vec::new();
            server.read_to_end(&mut got).unwrap();
            got
        });
        pump_until(&mut stream, State::Ended);
        writer.join().unwrap();
        let got = reader.join().unwrap();
        assert_eq!(got.len(), BYTES);
        assert!(
            got.iter()
                .enumerate()
                .all(|(at, &byte)| byte == (at / 7) as u8)
        );
    }

    #[test]
    fn one_direction_may_end_long_before_the_other() {
        let (mut client, mut stream, mut server) = joined();
        client.write_all(b"question").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        pump_until(&mut stream, State::Waiting);
        let mut question = String::new();
        let asked = std::thread::spawn(move || {
            server.read_to_string(&mut question).unwrap();
            server.write_all(b"answer").unwrap();
            question
        });
        pump_until(&mut stream, State::Ended);
        assert_eq!(asked.join().unwrap(), "question");
        drop(stream);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
    }

    #[test]
    fn a_reset_on_one_side_is_a_reset_on_the_other() {
        let (mut client, mut stream, server) = joined();
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(&server, sockopt::Linger, &linger).unwrap();
        drop(server);
        pump_until(&mut stream, State::Broken);
        drop(stream);
        let error = client.read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}
