//! The path as a connection without load finds it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use knee_traffic::{GREETING_BYTES, Secret, greeted, greeting, read_tcp_info};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;

use crate::asked::PathAsked;

/// What a greeting has in the place of a flow's number.
const NO_FLOW: u32 = u32::MAX;
/// What goes there and back.
const BYTES: usize = 32;
/// How long the far host may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
pub struct Measured {
    /// Of the round trips through both applications.
    rtt_us_least: f64,
    rtt_us_median: f64,
    connect_us: f64,
    /// What this host's kernel says of the connection; `tcp_info` as it has it.
    tcp_info: Vec<u8>,
    own: SocketAddr,
}

/// Round trips over a connection of its own.
pub fn measure(asked: &PathAsked) -> Result<Measured, String> {
    let far = asked.far;
    let began = Instant::now();
    let mut stream = TcpStream::connect_timeout(&far, PATIENCE).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::ConnectionRefused => "Nobody listens there, or a firewall says so",
            io::ErrorKind::TimedOut => "A firewall drops what comes, or the address is not the host's",
            _ => "The address is not one that this host reaches",
        };
        format!(
            "no connection to {far} within {} s: {error}. {hint}; expected the port of data open from this host to that one: open TCP port {} there, fix it with --port, or name another address with --address",
            PATIENCE.as_secs(),
            far.port(),
        )
    })?;
    let connect_us = began.elapsed().as_secs_f64() * 1e6;
    let failed =
        |error: io::Error| format!("the connection to {far} that measures the path broke: {error}");
    (|| -> io::Result<Measured> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&greeting(asked.secret, NO_FLOW))?;
        let mut times = Vec::new();
        let mut bytes = [0; BYTES];
        for _ in 0..asked.count.max(1) {
            let began = Instant::now();
            stream.write_all(&bytes)?;
            stream.read_exact(&mut bytes)?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        Ok(Measured {
            rtt_us_least: times[0],
            rtt_us_median: times[times.len() / 2],
            connect_us,
            tcp_info: read_tcp_info(&stream),
            own: stream.local_addr()?,
        })
    })()
    .map_err(failed)
}

/// Answers those who measure, one after the other, until `stop` is readable.
pub fn answer(listener: OwnedFd, stop: &impl AsFd, secret: Secret) {
    let listener = TcpListener::from(listener);
    loop {
        let mut fds = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
        ];
        if poll(&mut fds, PollTimeout::NONE).is_err() || fds[1].any() == Some(true) {
            return;
        }
        if let Ok((stream, _)) = listener.accept() {
            let _ = echo(stream, secret);
        }
    }
}

fn echo(mut stream: TcpStream, secret: Secret) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut said = [0; GREETING_BYTES];
    stream.read_exact(&mut said)?;
    if greeted(secret, &said) != Some(NO_FLOW) {
        return Ok(());
    }
    let mut bytes = [0; BYTES];
    loop {
        stream.read_exact(&mut bytes)?;
        stream.write_all(&bytes)?;
    }
}
