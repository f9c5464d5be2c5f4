//! The thread that keeps up with destroy events, whatever the recorder is doing.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::sock_diag::Destroyed;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::moment::{Moment, thread_cpu};
use super::report::Cpu;

/// Events of one piece, and how many pieces may wait: 16 MiB together.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS: usize = 64;
/// Between two looks: at 20,000 events a second each look takes a few hundred.
const PAUSE_MS: u16 = 10;
/// A piece that is not full is handed over after so many looks.
const LOOKS: u32 = 10;

/// Events with the moment at which they were read.
#[derive(Default)]
pub struct Chunk {
    bytes: Vec<u8>,
}

impl Chunk {
    fn push(&mut self, now: Moment, body: &[u8]) {
        self.bytes.extend_from_slice(&now.unix_ns.to_ne_bytes());
        self.bytes.extend_from_slice(&now.mono_ns.to_ne_bytes());
        self.bytes
            .extend_from_slice(&(body.len() as u64).to_ne_bytes());
        self.bytes.extend_from_slice(body);
    }

    /// The events: when, and the message.
    pub fn events(&self) -> impl Iterator<Item = (Moment, &[u8])> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let mut word = || {
                let (word, more) = rest.split_first_chunk::<8>()?;
                rest = more;
                Some(*word)
            };
            let (unix, mono, length) = (word()?, word()?, word()?);
            let (body, more) = rest.split_at(u64::from_ne_bytes(length) as usize);
            rest = more;
            let now = Moment {
                unix_ns: i64::from_ne_bytes(unix),
                mono_ns: i64::from_ne_bytes(mono),
            };
            Some((now, body))
        })
    }
}

/// What the thread says at its end.
#[derive(Clone, Debug, Default)]
pub struct Listened {
    pub overruns: u64,
    /// Events that the kernel dropped, as it counts them.
    pub lost: Option<u64>,
    pub cpu: Cpu,
    /// Why it ended before it was told to.
    pub failed: Option<String>,
}

/// The thread's other end.
pub struct Events {
    chunks: Receiver<Chunk>,
    /// Readable when a piece waits.
    pub wake: EventFd,
    /// Events that the kernel dropped until the last overrun, as it counts them.
    pub lost: Arc<AtomicU64>,
    stop: EventFd,
    thread: std::thread::JoinHandle<Listened>,
}

impl Events {
    /// Begins to listen in the calling thread's network namespace.
    pub fn start() -> Result<Events, KernelError> {
        let destroyed =
            Destroyed::new().map_err(KernelError::system("listen to sockets being destroyed"))?;
        Events::of(destroyed)
    }

    fn of(destroyed: Destroyed) -> Result<Events, KernelError> {
        let event = || {
            EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
                .map_err(KernelError::system("make an eventfd"))
        };
        let (wake, stop) = (event()?, event()?);
        let duplicate = |fd: &EventFd| {
            let fd = fd.as_fd().try_clone_to_owned();
            fd.map_err(KernelError::system("hold an eventfd"))
        };
        let (their_wake, their_stop) = (duplicate(&wake)?, duplicate(&stop)?);
        let (sender, chunks) = sync_channel(CHUNKS);
        let lost = Arc::new(AtomicU64::new(0));
        let their_lost = Arc::clone(&lost);
        let thread = std::thread::Builder::new()
            .name("destroyed".to_owned())
            .spawn(move || {
                let listened = listen(destroyed, &their_wake, &their_stop, &sender, &their_lost);
                // Whoever waits for events shall see that none will come.
                drop(sender);
                let _ = nix::unistd::write(&their_wake, &1u64.to_ne_bytes());
                listened
            })
            .map_err(KernelError::system("start a thread"))?;
        Ok(Events {
            chunks,
            wake,
            lost,
            stop,
            thread,
        })
    }

    /// Hands what has come so far to `take`. False: the thread is over, so that no more comes; [`Events::stop`] says why.
    ///
    /// # Errors
    /// That of `take`.
    pub fn take<E>(&self, mut take: impl FnMut(&Chunk) -> Result<(), E>) -> Result<bool, E> {
        let _ = self.wake.read();
        loop {
            match self.chunks.try_recv() {
                Ok(chunk) => take(&chunk)?,
                Err(TryRecvError::Empty) => return Ok(true),
                Err(TryRecvError::Disconnected) => return Ok(false),
            }
        }
    }

    /// Ends the thread; what it still had goes to `take`.
    pub fn stop(self, mut take: impl FnMut(&Chunk)) -> Listened {
        let _ = self.stop.write(1);
        // The thread may wait for room; the channel ends when it does.
        for chunk in self.chunks {
            take(&chunk);
        }
        self.thread.join().unwrap_or_else(|_| Listened {
            failed: Some("the thread that listens to sockets being destroyed panicked".to_owned()),
            ..Listened::default()
        })
    }
}

fn listen(
    mut destroyed: Destroyed,
    wake: &std::os::fd::OwnedFd,
    stop: &std::os::fd::OwnedFd,
    sender: &SyncSender<Chunk>,
    lost: &AtomicU64,
) -> Listened {
    // Each piece is told: an interval may be longer than the channel has room for.
    let hand_over = |chunk: &mut Chunk| {
        let gone = sender.send(std::mem::take(chunk)).is_err();
        let _ = nix::unistd::write(wake, &1u64.to_ne_bytes());
        gone
    };
    let mut listened = Listened::default();
    let mut chunk = Chunk::default();
    let mut looks = 0;
    loop {
        // Sleep until something comes; then let more come.
        let nothing = chunk.bytes.is_empty();
        if nothing {
            wait(&[destroyed.as_fd(), stop.as_fd()], PollTimeout::NONE);
        }
        let stopping = wait(&[stop.as_fd()], PollTimeout::from(PAUSE_MS));
        let now = Moment::now();
        let mut gone = false;
        let received = destroyed.receive(|body| {
            chunk.push(now, body);
            if chunk.bytes.len() >= CHUNK_BYTES {
                gone |= hand_over(&mut chunk);
            }
        });
        let overruns = received.as_ref().map_or(0, |received| received.overruns);
        listened.overruns += overruns;
        if overruns > 0 {
            lost.store(
                destroyed.lost().unwrap_or(listened.overruns),
                Ordering::Relaxed,
            );
        }
        looks += 1;
        if (looks >= LOOKS || stopping) && !chunk.bytes.is_empty() {
            gone |= hand_over(&mut chunk);
            looks = 0;
        }
        if let Err(error) = received {
            let system = KernelError::system("listen to sockets being destroyed");
            listened.failed = Some(system(error).to_string());
        }
        if stopping || gone || listened.failed.is_some() {
            break;
        }
    }
    listened.lost = destroyed.lost().ok();
    listened.cpu = thread_cpu();
    listened
}

/// True: the last of them is ready.
fn wait(fds: &[std::os::fd::BorrowedFd<'_>], timeout: PollTimeout) -> bool {
    let mut fds: Vec<PollFd<'_>> = (fds.iter())
        .map(|&fd| PollFd::new(fd, PollFlags::POLLIN))
        .collect();
    // A signal ends the wait early, which does no harm.
    let _ = poll(&mut fds, timeout);
    fds.last().is_some_and(|fd| fd.any().unwrap_or(false))
}

/// Longer than an event is on its way through the kernel's work queue and the thread.
pub const GRACE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn piece_that_is_not_full_is_told_too() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let events = Events::start().unwrap();
        drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        drop(listener.accept().unwrap());
        assert!(wait(&[events.wake.as_fd()], PollTimeout::from(10_000u16)));
        let mut chunks = 0;
        let goes_on = events.take(|chunk| {
            assert!(chunk.events().count() >= 1);
            assert!(chunk.bytes.len() < CHUNK_BYTES);
            chunks += 1;
            Ok::<_, ()>(())
        });
        assert_eq!(goes_on, Ok(true));
        assert!(chunks >= 1);
        assert_eq!(events.stop(|_| {}).failed, None);
    }

    #[test]
    fn thread_that_can_no_longer_listen_says_so() {
        let destroyed = Destroyed::new().unwrap();
        // What it listens to becomes a file, of which nothing can be received.
        let null = std::fs::File::open("/dev/null").unwrap();
        let listens_to = destroyed.as_fd().as_raw_fd();
        // SAFETY: both are open descriptors of this process.
        assert_ne!(unsafe { libc::dup2(null.as_raw_fd(), listens_to) }, -1);
        let events = Events::of(destroyed).unwrap();
        while events.take(|_| Ok::<_, ()>(())) == Ok(true) {
            wait(&[events.wake.as_fd()], PollTimeout::from(10_000u16));
        }
        let failed = events.stop(|_| {}).failed.unwrap();
        assert!(
            failed.contains("listen to sockets being destroyed"),
            "{failed}"
        );
    }
}
