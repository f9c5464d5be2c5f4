//! What crosses the link: a bulk transfer over TCP, and single probes.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::hosts::{Hosts, RECEIVER, SENDER};

const PORT: u16 = 5201;
/// Per system call of the application: small beside the processor's caches.
const CHUNK_BYTES: usize = 256 << 10;
/// Left out of the rate: the connection's slow start.
const WARM_UP: Duration = Duration::from_millis(500);
const PROBE_EVERY: Duration = Duration::from_millis(2);
pub const PROBE_BYTES: usize = 1_500;
const PROBE_HEADER_BYTES: usize = 28;

/// Goodput of one connection over that long, bit/s.
pub fn bulk(hosts: &Hosts, span: Duration) -> f64 {
    let listener = hosts
        .receiver
        .within(|| TcpListener::bind((RECEIVER, PORT)).expect("the port is free"));
    let (received, stopped) = (&AtomicU64::new(0), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("the sender connects");
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                match stream.read(&mut chunk) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => received.fetch_add(bytes as u64, Relaxed),
                };
                if stopped.load(Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(move || {
            hosts.sender.enter();
            let mut stream = TcpStream::connect((RECEIVER, PORT)).expect("the receiver listens");
            let chunk = vec![0; CHUNK_BYTES];
            // Ends with an error when the receiver has closed.
            while stream.write(&chunk).is_ok() && !stopped.load(Relaxed) {}
        });
        std::thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), received.load(Relaxed));
        std::thread::sleep(span);
        let bytes = received.load(Relaxed) - before;
        let seconds = begin.elapsed().as_secs_f64();
        stopped.store(true, Relaxed);
        bytes as f64 * 8.0 / seconds
    })
}

/// One-way delays of probes sent one by one over that long, ns, ascending.
pub fn probe(hosts: &Hosts, span: Duration) -> Vec<u64> {
    let far = hosts
        .receiver
        .within(|| UdpSocket::bind((RECEIVER, PORT)).expect("the port is free"));
    far.set_read_timeout(Some(Duration::from_millis(500)))
        .expect("sockets have timeouts");
    let near = hosts
        .sender
        .within(|| UdpSocket::bind((SENDER, PORT)).expect("the port is free"));
    let begin = Instant::now();
    let mut delays = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut delays = Vec::new();
            let mut probe = [0; PROBE_BYTES];
            loop {
                match far.recv(&mut probe) {
                    Ok(_) => {
                        let sent = u64::from_ne_bytes(probe[..8].try_into().expect("eight bytes"));
                        delays.push(begin.elapsed().as_nanos() as u64 - sent);
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                        return delays;
                    }
                }
            }
        });
        let mut probe = [0; PROBE_BYTES - PROBE_HEADER_BYTES];
        while begin.elapsed() < span {
            let sent = begin.elapsed().as_nanos() as u64;
            probe[..8].copy_from_slice(&sent.to_ne_bytes());
            near.send_to(&probe, (RECEIVER, PORT))
                .expect("there is a route");
            std::thread::sleep(PROBE_EVERY);
        }
        reader.join().expect("probes are read")
    });
    delays.sort_unstable();
    delays
}
