//! The far end of the path: takes every connection of the lab, whatever
//! address it is meant for, and carries it on from the host's network.
//!
//! All addresses are local to the far end's namespace (a `local` route for
//! 0.0.0.0/0), and nft's tproxy hands new connections to one listener, which
//! then owns the address that the client asked for: no address is rewritten
//! and no connection tracked. So the lab's TCP runs over the emulated path
//! between two sockets of this kernel, and a second connection leads from here
//! to the destination.

mod datagrams;
mod sockets;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{SockaddrStorage, connect};

use self::datagrams::Flows;
use self::stream::{State, Stream};
use super::porter::{Kind, Porter};
use crate::tool;

/// Read at once of a socket: what fits the second-level cache and still
/// spreads a system call's cost.
const SCRATCH_BYTES: usize = 128 * 1024;
/// How often silent UDP flows are looked for.
const EXPIRY: Duration = Duration::from_secs(1);
/// Most events of one wait.
const EVENTS: usize = 256;
/// The port of name servers.
const DNS: u16 = 53;

/// What the relay needs to know.
pub struct Config {
    /// The interface that leads to the lab.
    pub device: String,
    /// The far end's own address: there the host's loopback is reached, and at
    /// port 53 its name server.
    pub address: Ipv4Addr,
    /// The host's name server.
    pub resolver: SocketAddr,
    /// The kernel's name of the congestion control towards the lab.
    pub algorithm: String,
}

/// Who is meant by an event: number × 4 + kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Listener,
    Arrivals,
    Stream(u64),
    Flow(u64),
}

/// The relay, ready to take connections.
pub struct Relay {
    config: Config,
    porter: Porter,
    epoll: Epoll,
    listener: TcpListener,
    /// No descriptor is left: nobody is let in until a connection ends.
    full: bool,
    arrivals: OwnedFd,
    streams: HashMap<u64, Stream>,
    next_stream: u64,
    flows: Flows,
    /// Had their turn and could go on.
    ready: VecDeque<Token>,
    scratch: Vec<u8>,
}

impl Relay {
    /// Opens the far end in the network namespace of this process, which needs
    /// CAP_NET_ADMIN in it. Connections are taken from here on.
    pub fn open(config: Config, porter: Porter) -> Result<Self, KernelError> {
        raise_file_limit().map_err(failed("relay: raise the limit of open files"))?;
        load_rules(&rules(&config))?;
        let listener = sockets::listener(&config.algorithm).map_err(failed(&format!(
            "relay: listen with congestion control \"{}\"",
            config.algorithm
        )))?;
        let arrivals = sockets::arrivals().map_err(failed("relay: open the UDP socket"))?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|error| failed("relay: epoll")(error.into()))?;
        let relay = Self {
            config,
            porter,
            epoll,
            listener,
            full: false,
            arrivals,
            streams: HashMap::new(),
            next_stream: 0,
            flows: Flows::default(),
            ready: VecDeque::new(),
            scratch: vec![0; SCRATCH_BYTES],
        };
        relay
            .watch(&relay.listener, Token::Listener, EpollFlags::EPOLLIN)
            .and_then(|()| relay.watch(&relay.arrivals, Token::Arrivals, EpollFlags::EPOLLIN))
            .map_err(failed("relay: watch the listening sockets"))?;
        Ok(relay)
    }

    /// Carries on until it fails: the porter is gone, or memory is.
    pub fn run(mut self) -> Result<(), KernelError> {
        let mut events = [EpollEvent::empty(); EVENTS];
        let mut looked = Instant::now();
        loop {
            let timeout = if !self.ready.is_empty() {
                EpollTimeout::ZERO
            } else if self.flows.is_empty() {
                EpollTimeout::NONE
            } else {
                EpollTimeout::try_from(EXPIRY).unwrap_or(EpollTimeout::MAX)
            };
            let count = match self.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(failed("relay: epoll_wait")(error.into())),
            };
            if looked.elapsed() >= EXPIRY {
                self.flows.expire();
                looked = Instant::now();
            }
            for _ in 0..self.ready.len() {
                let token = self.ready.pop_front().expect("its length was just taken");
                self.turn(token)?;
            }
            for event in &events[..count] {
                self.turn(Token::unpack(event.data()))?;
            }
        }
    }

    fn turn(&mut self, token: Token) -> Result<(), KernelError> {
        match token {
            Token::Listener => self.accept().map_err(failed("relay: accept")),
            Token::Arrivals => self.take_datagrams().map_err(failed("relay: take UDP")),
            Token::Stream(number) => self
                .pump_stream(number)
                .map_err(failed("relay: listen again")),
            Token::Flow(number) => {
                if self.flows.pump(number, &mut self.scratch) {
                    self.again(token);
                }
                Ok(())
            }
        }
    }

    fn again(&mut self, token: Token) {
        if !self.ready.contains(&token) {
            self.ready.push_back(token);
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            Ok((far, _)) => self.carry_on(far),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) if is_full(&error) => self.shut_door(),
            // The client gave up meanwhile.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Connects onward for a connection of the lab; where that cannot be done
    /// the client sees a reset.
    fn carry_on(&mut self, far: TcpStream) -> io::Result<()> {
        far.set_nonblocking(true)?;
        far.set_nodelay(true)?;
        let SocketAddr::V4(meant) = far.local_addr()? else {
            return Err(io::Error::other("an IPv4 listener accepted IPv6"));
        };
        let destination = self.destination(meant);
        let host = match self.porter.socket(Kind::Stream, destination.is_ipv6()) {
            Ok(host) => TcpStream::from(host),
            Err(error) if is_full(&error) => return self.shut_door(),
            Err(error) => return Err(error),
        };
        host.set_nodelay(true)?;
        let stream_ends = connect(host.as_raw_fd(), &SockaddrStorage::from(destination));
        let number = self.next_stream;
        self.next_stream += 1;
        let edges = EpollFlags::EPOLLIN
            | EpollFlags::EPOLLOUT
            | EpollFlags::EPOLLRDHUP
            | EpollFlags::EPOLLET;
        self.watch(&far, Token::Stream(number), edges)?;
        self.watch(&host, Token::Stream(number), edges)?;
        let stream = Stream::new(far, host);
        match stream_ends {
            Ok(()) | Err(Errno::EINPROGRESS) => {
                self.streams.insert(number, stream);
            }
            Err(_) => stream.reset(),
        }
        Ok(())
    }

    fn pump_stream(&mut self, number: u64) -> io::Result<()> {
        // One that has ended may still be named by an event or stand in the queue.
        let Some(stream) = self.streams.get_mut(&number) else {
            return Ok(());
        };
        match stream.pump(&mut self.scratch) {
            State::Waiting => Ok(()),
            State::Ready => {
                self.again(Token::Stream(number));
                Ok(())
            }
            State::Ended | State::Broken => {
                self.streams.remove(&number);
                self.open_door()
            }
        }
    }

    fn take_datagrams(&mut self) -> io::Result<()> {
        let Some((length, pair)) = datagrams::receive(&self.arrivals, &mut self.scratch)? else {
            return Ok(());
        };
        let number = match self.flows.number(&pair) {
            Some(number) => number,
            None => {
                let destination = self.destination(pair.1);
                // Without a socket, or a route to there, the datagram is lost.
                let Ok(number) = self.flows.open(pair, destination, &self.porter) else {
                    return Ok(());
                };
                if let Some(flow) = self.flows.get(number) {
                    let edges = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
                    for socket in flow.sockets() {
                        self.watch(socket, Token::Flow(number), edges)?;
                    }
                }
                number
            }
        };
        self.flows.send(number, &self.scratch[..length]);
        Ok(())
    }

    /// Where a connection for `meant` leads from the host.
    fn destination(&self, meant: SocketAddrV4) -> SocketAddr {
        if *meant.ip() != self.config.address {
            return meant.into();
        }
        match meant.port() {
            DNS => self.config.resolver,
            port => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port),
        }
    }

    fn watch(&self, socket: &impl AsFd, token: Token, events: EpollFlags) -> io::Result<()> {
        Ok(self
            .epoll
            .add(socket.as_fd(), EpollEvent::new(events, token.pack()))?)
    }

    fn shut_door(&mut self) -> io::Result<()> {
        self.full = true;
        Ok(self.epoll.delete(&self.listener)?)
    }

    fn open_door(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.full) {
            self.watch(&self.listener, Token::Listener, EpollFlags::EPOLLIN)?;
        }
        Ok(())
    }
}

impl Token {
    fn pack(self) -> u64 {
        match self {
            Self::Listener => 0,
            Self::Arrivals => 1,
            Self::Stream(number) => number << 2 | 2,
            Self::Flow(number) => number << 2 | 3,
        }
    }

    fn unpack(data: u64) -> Self {
        match data & 3 {
            0 => Self::Listener,
            1 => Self::Arrivals,
            2 => Self::Stream(data >> 2),
            _ => Self::Flow(data >> 2),
        }
    }
}

/// What nft is to do with what arrives from the lab. Multicast stays there; a
/// ping of a foreign address is refused, for no host of that name would answer.
fn rules(config: &Config) -> String {
    let Config {
        device, address, ..
    } = config;
    let door = sockets::DOOR;
    format!(
        "table ip knee {{
            chain arriving {{
                type filter hook prerouting priority mangle; policy accept;
                iifname != \"{device}\" accept
                ip daddr 224.0.0.0/3 drop
                meta l4proto {{ tcp, udp }} tproxy to {door} accept
                ip daddr != {address} reject with icmp type admin-prohibited
            }}
        }}"
    )
}

fn load_rules(rules: &str) -> Result<(), KernelError> {
    let what = "relay: load the rules that take the lab's connections, with nft";
    let ran = tool::feed("nft", &["-f", "-"], rules).map_err(|error| match error.kind() {
        ErrorKind::NotFound => KernelError::Unsupported {
            what: "`knee shell` takes the lab's connections by rules of nft".into(),
            lacks: "may take them, but the command nft is not installed".into(),
            hint: "Install the package nftables.".into(),
        },
        _ => failed(what)(error),
    })?;
    let Err(said) = ran else {
        return Ok(());
    };
    Err(KernelError::Unsupported {
        what: "`knee shell` takes the lab's connections by rules of nft".into(),
        lacks: format!("refused them: {}", said.lines().next().unwrap_or_default()),
        hint: "It needs CONFIG_NF_TABLES_IPV4, CONFIG_NFT_TPROXY and CONFIG_NFT_REJECT_IPV4, \
               built in or as modules."
            .into(),
    })
}

/// A relay of a browser needs more descriptors than the usual 1024.
fn raise_file_limit() -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

fn failed(what: &str) -> impl FnOnce(io::Error) -> KernelError {
    let what = what.to_owned();
    move |source| KernelError::System { what, source }
}
