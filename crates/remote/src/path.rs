//! The path as a connection without load finds it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use knee_traffic::{GREETING_BYTES, Secret, Strangers, greeting, peer, read_tcp_info};
use nix::poll::{PollFd, PollFlags, poll};
use serde::Serialize;

use crate::asked::PathAsked;

/// What a greeting has in the place of a flow's number: what comes is sent back, or read and counted.
const ECHO: u32 = u32::MAX;
const COUNT: u32 = u32::MAX - 1;
/// What goes there and back.
const BYTES: usize = 32;
/// The length of one write, and of one read.
const PIECE_BYTES: usize = 64 * 1024;
/// How long the far host may take to answer, and to say a whole greeting.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked who has waited for too long, in ms.
const LOOK: u16 = 500;

#[derive(Serialize)]
pub struct Measured {
    /// Of the round trips through both applications.
    rtt_us_least: f64,
    rtt_us_median: f64,
    /// Payload that came in the later half of what was sent to measure it.
    rate_bits_per_sec: Option<f64>,
    retransmit_pct: Option<f64>,
    /// All that measuring sent, retransmissions aside.
    bytes: u64,
}

/// Round trips over a connection of its own, then a burst over another one.
pub fn measure(asked: &PathAsked) -> Result<Measured, String> {
    let broke = |error: io::Error| {
        let far = asked.far;
        format!("the connection to {far} that measures the path broke: {error}")
    };
    let mut measured = round_trips(asked, connect(asked.far)?).map_err(broke)?;
    if asked.bytes > 0 {
        burst(asked, connect(asked.far)?, &mut measured).map_err(broke)?;
    }
    Ok(measured)
}

fn connect(far: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&far, PATIENCE).map_err(|error| {
        let (time, hint) = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                (String::new(), "Nobody listens there, or a firewall says so")
            }
            io::ErrorKind::TimedOut => (
                format!(" within {} s", PATIENCE.as_secs()),
                "A firewall drops what comes, or the address is not the host's",
            ),
            _ => (
                String::new(),
                "The address is not one that this host reaches",
            ),
        };
        format!(
            "no connection to {far}{time}: {error}. {hint}; expected the port of data open from this host to that one: open TCP port {} there, fix it with --port, or name another address with --address",
            far.port(),
        )
    })
}

fn round_trips(asked: &PathAsked, mut stream: TcpStream) -> io::Result<Measured> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&greeting(asked.secret, ECHO))?;
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
        rate_bits_per_sec: None,
        retransmit_pct: None,
        bytes: (GREETING_BYTES + BYTES * times.len()) as u64,
    })
}

/// Sends for a while. The far host says how much came in the later half of the time, and how long that was.
fn burst(asked: &PathAsked, mut stream: TcpStream, measured: &mut Measured) -> io::Result<()> {
    stream.write_all(&greeting(asked.secret, COUNT))?;
    let until = Instant::now() + Duration::from_millis(asked.milliseconds);
    stream.set_write_timeout(Some(Duration::from_millis(asked.milliseconds.max(1))))?;
    let piece = vec![0; PIECE_BYTES];
    let mut sent = 0;
    while sent < asked.bytes && Instant::now() < until {
        let left = (asked.bytes - sent).min(piece.len() as u64) as usize;
        match stream.write(&piece[..left]) {
            Ok(count) => sent += count as u64,
            // The path is slower than this much takes.
            Err(error) if is_late(&error) => break,
            Err(error) => return Err(error),
        }
    }
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PATIENCE * 4))?;
    let mut said = [0; 16];
    stream.read_exact(&mut said)?;
    let number = |at: usize| u64::from_le_bytes(said[at..at + 8].try_into().expect("eight"));
    let (later_bytes, later_ns) = (number(0), number(8));
    measured.bytes += sent;
    if later_ns > 0 {
        measured.rate_bits_per_sec = Some(later_bytes as f64 * 8e9 / later_ns as f64);
    }
    let info = read_tcp_info(&stream);
    let bytes = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    // tcpi_bytes_sent and tcpi_bytes_retrans of include/uapi/linux/tcp.h.
    if let (Some(all), Some(again)) = (bytes(200), bytes(208)) {
        measured.retransmit_pct = (all > 0).then(|| again as f64 * 100.0 / all as f64);
    }
    Ok(())
}

fn is_late(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::WouldBlock || kind == io::ErrorKind::TimedOut
}

/// Answers those who measure until `stop` is readable; sets `far` to where they come from. Nobody can delay its end: who
/// has not greeted is waited for together with all others, and who has is served by a thread whose socket is shut.
pub fn answer(listener: OwnedFd, stop: &impl AsFd, secret: Secret, far: &Mutex<Option<IpAddr>>) {
    let listener = TcpListener::from(listener);
    let mut strangers = Strangers::default();
    let mut served: Vec<TcpStream> = Vec::new();
    std::thread::scope(|scope| {
        loop {
            let (names, sockets): (Vec<u64>, Vec<&OwnedFd>) = strangers.iter().unzip();
            let mut fds = vec![
                PollFd::new(stop.as_fd(), PollFlags::POLLIN),
                PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            ];
            fds.extend(
                sockets
                    .iter()
                    .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)),
            );
            match poll(&mut fds, LOOK) {
                Err(nix::Error::EINTR) => continue,
                Err(_) => break,
                Ok(_) => {}
            }
            let ready: Vec<bool> = fds.iter().map(|fd| fd.any() == Some(true)).collect();
            if ready[0] {
                break;
            }
            for (name, _) in names
                .into_iter()
                .zip(&ready[2..])
                .filter(|(_, ready)| **ready)
            {
                if let Some((number, fd)) = strangers.hear(name, secret) {
                    let stream = TcpStream::from(fd);
                    *far.lock().expect("nobody panics with it") = peer(&stream);
                    served.extend(stream.try_clone());
                    scope.spawn(move || serve(stream, number));
                }
            }
            strangers.send_late_away(PATIENCE);
            if ready[1] {
                match listener.accept() {
                    Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                        strangers.add(stream.into());
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // It lacks something that strangers may have.
                    Err(_) => {
                        strangers.send_one_away();
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
            }
        }
        for stream in served {
            let _ = stream.shutdown(Shutdown::Both);
        }
    });
}

fn serve(mut stream: TcpStream, number: u32) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    match number {
        ECHO => {
            let mut bytes = [0; BYTES];
            loop {
                stream.read_exact(&mut bytes)?;
                stream.write_all(&bytes)?;
            }
        }
        COUNT => count(stream),
        _ => Ok(()),
    }
}

/// Reads to the end, and says how much came in the later half of the time.
fn count(mut stream: TcpStream) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut all, mut seen) = (0, Vec::new());
    loop {
        match stream.read(&mut piece)? {
            0 => break,
            bytes => {
                all += bytes as u64;
                seen.push((Instant::now(), all));
            }
        }
    }
    let (bytes, time) = later_half(&seen);
    stream.write_all(&bytes.to_le_bytes())?;
    stream.write_all(&(time.as_nanos() as u64).to_le_bytes())
}

/// What came behind the middle of the time, and how long that took.
fn later_half(seen: &[(Instant, u64)]) -> (u64, Duration) {
    let (Some(&(first, _)), Some(&(last, all))) = (seen.first(), seen.last()) else {
        return (0, Duration::ZERO);
    };
    let middle = first + (last - first) / 2;
    let before = seen.iter().rev().find(|&&(at, _)| at <= middle);
    before.map_or((0, Duration::ZERO), |&(at, so_far)| {
        (all - so_far, last - at)
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use nix::sys::eventfd::EventFd;

    use super::*;

    #[test]
    fn who_knows_nothing_delays_neither_who_measures_nor_the_end() {
        let (listener, stop) = (
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            EventFd::new().unwrap(),
        );
        listener.set_nonblocking(true).unwrap();
        let (at, secret, far) = (listener.local_addr().unwrap(), [7; 16], Mutex::new(None));
        std::thread::scope(|scope| {
            let answering = scope.spawn(|| answer(listener.into(), &stop, secret, &far));
            let _idle: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(at).unwrap()).collect();
            let asked = PathAsked {
                far: at,
                secret,
                count: 3,
                bytes: 100_000,
                milliseconds: 500,
            };
            let began = Instant::now();
            assert!(measure(&asked).unwrap().rtt_us_least > 0.0);
            // This one knows the secret, and says nothing more.
            let mut silent = TcpStream::connect(at).unwrap();
            silent.write_all(&greeting(secret, ECHO)).unwrap();
            silent.write_all(&[0; BYTES]).unwrap();
            silent.read_exact(&mut [0; BYTES]).unwrap();
            stop.write(1).unwrap();
            answering.join().unwrap();
            assert!(began.elapsed() < PATIENCE);
        });
        assert_eq!(*far.lock().unwrap(), Some(Ipv4Addr::LOCALHOST.into()));
    }

    #[test]
    fn the_later_half_leaves_the_slow_start_out() {
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        let seen = [
            (at(0), 1),
            (at(10), 2),
            (at(50), 5),
            (at(75), 105),
            (at(100), 205),
        ];
        assert_eq!(later_half(&seen), (200, Duration::from_millis(50)));
        assert_eq!(later_half(&seen[..1]), (0, Duration::ZERO));
        assert_eq!(later_half(&[]), (0, Duration::ZERO));
    }
}
