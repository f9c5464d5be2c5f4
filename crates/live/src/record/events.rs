//! The thread that keeps up with destroy events, whatever the recorder is doing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use knee_collect::sock_diag::Destroyed;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::marks::Marks;
use super::moment::{Moment, thread_cpu};
use super::report::Cpu;

/// Events of one piece, and how many pieces may wait: 16 MiB together.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS: usize = 64;
/// Between two looks: at 20,000 events a second each look takes a few hundred.
const PAUSE_MS: u16 = 10;
/// A piece that is not full is handed over after so many looks.
const LOOKS: u32 = 10;
/// The kernel runs its work queue side by side: an event may come this much after one that was queued later.
const GRACE: Duration = Duration::from_millis(50);
/// A work queue that is later than this is not waited for.
const LATEST: Duration = Duration::from_secs(10);

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
    marks: Arc<Marks>,
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
        let marks = Arc::new(Marks::default());
        let (their_lost, their_marks) = (Arc::clone(&lost), Arc::clone(&marks));
        let thread = std::thread::Builder::new()
            .name("destroyed".to_owned())
            .spawn(move || {
                let thread = Thread {
                    wake: their_wake,
                    stop: their_stop,
                    sender,
                    lost: their_lost,
                    marks: their_marks,
                };
                thread.run(destroyed)
            })
            .map_err(KernelError::system("start a thread"))?;
        Ok(Events {
            chunks,
            wake,
            lost,
            marks,
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

    /// Waits until the kernel has told of every socket that was destroyed before now, handing what comes to `take`.
    /// False: it has not within ten seconds, or that cannot be known, or the thread is over.
    ///
    /// The kernel tells from a work queue, which is late on a machine that is busy: on each processor a socket of our
    /// own is closed, and its event waited for.
    ///
    /// # Errors
    /// That of `take`.
    pub fn catch_up<E>(&self, mut take: impl FnMut(&Chunk) -> Result<(), E>) -> Result<bool, E> {
        let began = Instant::now();
        let is_set = self.marks.set();
        loop {
            let all = self.marks.have_come();
            let goes_on = self.take(&mut take)?;
            let late = began.elapsed() > LATEST;
            if all || late || !goes_on {
                std::thread::sleep(GRACE);
                return Ok(is_set && all && goes_on);
            }
            wait(&[self.wake.as_fd()], PollTimeout::from(PAUSE_MS));
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

/// What the thread works with.
struct Thread {
    wake: OwnedFd,
    stop: OwnedFd,
    sender: SyncSender<Chunk>,
    lost: Arc<AtomicU64>,
    marks: Arc<Marks>,
}

impl Thread {
    fn run(self, destroyed: Destroyed) -> Listened {
        let listened = self.listen(destroyed);
        // Whoever waits for events shall see that none will come.
        drop(self.sender);
        let _ = nix::unistd::write(&self.wake, &1u64.to_ne_bytes());
        listened
    }

    fn listen(&self, mut destroyed: Destroyed) -> Listened {
        let mut listened = Listened::default();
        let mut chunk = Chunk::default();
        let mut looks = 0;
        loop {
            // Sleep until something comes; then let more come.
            let nothing = chunk.bytes.is_empty();
            if nothing {
                wait(&[destroyed.as_fd(), self.stop.as_fd()], PollTimeout::NONE);
            }
            let stopping = wait(&[self.stop.as_fd()], PollTimeout::from(PAUSE_MS));
            let now = Moment::now();
            let (mut gone, mut marks) = (false, 0);
            let received = destroyed.receive(|body| {
                if self.marks.is_one(body) {
                    marks += 1;
                    return;
                }
                chunk.push(now, body);
                if chunk.bytes.len() >= CHUNK_BYTES {
                    gone |= self.hand_over(&mut chunk);
                }
            });
            let overruns = received.as_ref().map_or(0, |received| received.overruns);
            listened.overruns += overruns;
            if overruns > 0 {
                self.lost.store(
                    destroyed.lost().unwrap_or(listened.overruns),
                    Ordering::Relaxed,
                );
            }
            looks += 1;
            if (looks >= LOOKS || stopping || marks > 0) && !chunk.bytes.is_empty() {
                gone |= self.hand_over(&mut chunk);
                looks = 0;
            }
            // Once what came before them is handed over.
            self.marks.come(marks);
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

    /// Wakes the other end at each piece, as the channel may fill up within an interval. True: nobody takes pieces any more.
    fn hand_over(&self, chunk: &mut Chunk) -> bool {
        let gone = self.sender.send(std::mem::take(chunk)).is_err();
        let _ = nix::unistd::write(&self.wake, &1u64.to_ne_bytes());
        gone
    }
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use knee_collect::sock_diag::Diag;

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
    fn whatever_was_destroyed_before_is_told_of() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let events = Events::start().unwrap();
        let mut told = 0;
        for closed in 1..=3 {
            for _ in 0..200 {
                let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let far = listener.accept().unwrap();
                drop((near, far));
            }
            let all = events.catch_up(|chunk| {
                for (_, body) in chunk.events() {
                    let diag = Diag::decode(body).unwrap();
                    told += u32::from(diag.source.1 == port);
                }
                Ok::<_, ()>(())
            });
            assert_eq!((all, told), (Ok(true), 200 * closed));
        }
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
