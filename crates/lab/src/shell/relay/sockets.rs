//! Sockets of the lab's far end that stand for addresses which are not theirs.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, setsockopt, socket,
    sockopt,
};

/// Where nft's tproxy hands over: an address of the far end's own, and a port
/// that nobody else has, for nobody else listens in that namespace.
pub const DOOR: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9);

/// Takes the lab's TCP connections, whatever address they are meant for.
/// What it accepts has the congestion control `algorithm` (a name of the
/// kernel's). Errors: it is not there, or may not be used (EPERM).
pub fn listener(algorithm: &str) -> io::Result<TcpListener> {
    let socket = transparent(SockType::Stream, DOOR)?;
    setsockopt(&socket, sockopt::TcpCongestion, &algorithm.into())?;
    listen(&socket, Backlog::MAXALLOWABLE)?;
    Ok(socket.into())
}

/// Takes the first datagrams of the lab's UDP flows.
pub fn arrivals() -> io::Result<OwnedFd> {
    let socket = transparent(SockType::Datagram, DOOR)?;
    setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?;
    Ok(socket)
}

/// Answers `client` in the name of `address`, and takes what it sends there
/// from now on.
pub fn answering(address: SocketAddrV4, client: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = UdpSocket::from(transparent(SockType::Datagram, address)?);
    socket.connect(client)?;
    Ok(socket)
}

fn transparent(kind: SockType, address: SocketAddrV4) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, kind, flags, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    setsockopt(&socket, sockopt::IpTransparent, &true)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    Ok(socket)
}
