//! Sockets with what a scenario says of them.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use knee_scenario::{Bytes, Cell, Pacing};
use knee_units::Rate;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, listen,
    setsockopt, sockopt,
};

use crate::Error;
use crate::connection::set;

/// Which end of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender,
    Receiver,
}

/// Options of a socket that the scenario settles.
#[derive(Clone, Copy, Debug)]
struct Options<'a> {
    congestion: &'a str,
    /// Does TCP's own timer space its packets, whatever the algorithm?
    paced: bool,
    max_pacing_rate: Option<Rate>,
    nodelay: bool,
    /// Bytes; `None`: the kernel chooses.
    sndbuf: Option<u64>,
    rcvbuf: Option<u64>,
    window_clamp: Option<u64>,
}

/// A TCP socket with the scenario's options.
fn open(options: Options<'_>, family: AddressFamily) -> nix::Result<OwnedFd> {
    let fd = nix::sys::socket::socket(
        family,
        SockType::Stream,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    // However the process ends, its sockets end with it. Else the kernel would keep
    // what they have not sent, and with it their namespace, for minutes.
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&fd, sockopt::Linger, &at_once)?;
    setsockopt(&fd, sockopt::TcpCongestion, &options.congestion.into())?;
    if options.nodelay {
        setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    }
    if options.paced {
        // A limit switches pacing on; lifting it leaves it on, at the rate that TCP reckons.
        set_max_pacing_rate(&fd, u64::MAX - 1)?;
        set_max_pacing_rate(&fd, u64::MAX)?;
    }
    if let Some(rate) = options.max_pacing_rate {
        set_max_pacing_rate(&fd, rate.bits_per_sec() / 8)?;
    }
    if let Some(bytes) = options.sndbuf {
        setsockopt(&fd, sockopt::SndBuf, &(bytes as usize))?;
    }
    if let Some(bytes) = options.rcvbuf {
        setsockopt(&fd, sockopt::RcvBuf, &(bytes as usize))?;
    }
    if let Some(bytes) = options.window_clamp {
        set(
            &fd,
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            bytes as libc::c_int,
        )?;
    }
    Ok(fd)
}

/// Send and receive buffer that the kernel gave it: twice what was asked for, up to the machine's own limits.
fn buffers(fd: &OwnedFd) -> nix::Result<[u64; 2]> {
    Ok([
        getsockopt(fd, sockopt::SndBuf)? as u64,
        getsockopt(fd, sockopt::RcvBuf)? as u64,
    ])
}

fn set_max_pacing_rate(fd: &OwnedFd, bytes_per_sec: u64) -> nix::Result<()> {
    // The option takes an unsigned long, which is eight bytes here.
    set(
        fd,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        bytes_per_sec,
    )
}

/// Begins to listen.
pub fn listen_at(fd: &OwnedFd, own: SocketAddr) -> nix::Result<()> {
    if own.is_ipv6() {
        setsockopt(fd, sockopt::Ipv6V6Only, &true)?;
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(own))?;
    listen(fd, Backlog::MAXCONN)
}

/// Begins to connect, from a port of its own where it has one.
pub fn connect_to(fd: &OwnedFd, own: Option<SocketAddr>, far: SocketAddr) -> nix::Result<()> {
    if let Some(own) = own {
        bind(fd.as_raw_fd(), &SockaddrStorage::from(own))?;
    }
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(far)) {
        Err(nix::Error::EINPROGRESS) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A congestion control.
#[derive(Clone, Debug)]
pub struct Algorithm {
    /// As the scenario writes it.
    pub written: String,
    /// What the kernel calls it.
    pub called: String,
}

/// A socket of one side, of the `[[flow]]` with that number. `asks`: is its receiver who opens?
pub fn socket(
    cell: &Cell,
    side: Side,
    (group, asks): (usize, bool),
    algorithm: &Algorithm,
    family: AddressFamily,
) -> Result<OwnedFd, Error> {
    let spec = &cell.flows[group];
    let (pacing, rate) = match side {
        Side::Sender => (
            spec.pacing.unwrap_or(cell.sender.pacing),
            spec.max_pacing_rate,
        ),
        Side::Receiver => (cell.receiver.pacing, None),
    };
    let Algorithm { written, called } = algorithm;
    let receives = side == Side::Receiver;
    let asked = |size: Option<Bytes>, most: u64| size.map(|Bytes(bytes)| bytes.min(most));
    let options = Options {
        congestion: called,
        paced: pacing == Pacing::Timer,
        max_pacing_rate: rate,
        nodelay: spec.nodelay.unwrap_or(asks),
        sndbuf: (asked(spec.sndbuf, cell.sender.wmem_max_bytes)).filter(|_| !receives),
        rcvbuf: (asked(spec.rcvbuf, cell.receiver.rmem_max_bytes)).filter(|_| receives),
        window_clamp: (spec.window_clamp)
            .map(|Bytes(bytes)| bytes)
            .filter(|_| receives),
    };
    let fd = open(options, family).map_err(|error| match error {
        nix::Error::ENOENT => Error::Unsupported {
            what: format!("flow.{}.algorithm = \"{written}\"", group),
            lacks: format!("has no congestion control \"{called}\""),
            hint: "See `knee list algorithms` for what it has and what can be loaded.".into(),
        },
        nix::Error::EPERM => Error::Unsupported {
            what: format!("flow.{}.algorithm = \"{written}\"", group),
            lacks: format!("keeps the congestion control \"{called}\" for root"),
            hint: "Run as root, or have it allowed: net.ipv4.tcp_allowed_congestion_control."
                .into(),
        },
        error => Error::system(format!("make a socket of flow.{group}"))(error),
    })?;
    let given = buffers(&fd).map_err(Error::system("ask for a buffer"))?;
    let limits = [
        ("sndbuf", options.sndbuf, given[0], "wmem_max"),
        ("rcvbuf", options.rcvbuf, given[1], "rmem_max"),
    ];
    for (key, asked, given, limit) in limits {
        if asked.is_some_and(|bytes| given < 2 * bytes) {
            return Err(Error::Unsupported {
                what: format!("flow.{}.{key}", group),
                lacks: format!("gives a socket that asks no more than {}B", given / 2),
                hint: format!("Ask for less, or raise net.core.{limit}."),
            });
        }
    }
    Ok(fd)
}
