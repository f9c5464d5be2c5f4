//! Waiting for the next interval, for events and for the end.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use knee_collect::KernelError;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::events::Events;

/// A timer that goes off at once and at each interval from then on.
pub struct Pace(TimerFd);

/// What there is to do.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// Intervals that began since the last look.
    pub ticks: u64,
    /// Destroyed sockets wait to be taken.
    pub events: bool,
    pub stop: bool,
}

impl Pace {
    pub fn new(every: Duration) -> Result<Pace, KernelError> {
        let timer = || {
            let timer = TimerFd::new(
                ClockId::CLOCK_MONOTONIC,
                TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
            )?;
            let first = TimeSpec::from(Duration::from_nanos(1));
            timer.set(
                Expiration::IntervalDelayed(first, TimeSpec::from(every)),
                TimerSetTimeFlags::empty(),
            )?;
            Ok::<_, Errno>(timer)
        };
        Ok(Pace(timer().map_err(KernelError::system("make a timer"))?))
    }

    /// Waits until there is something to do, for `rest` at most.
    pub fn wait(
        &self,
        stop: BorrowedFd<'_>,
        events: Option<&Events>,
        rest: Option<Duration>,
    ) -> Result<Due, KernelError> {
        let wake = events.map_or(self.0.as_fd(), |events| events.wake.as_fd());
        let mut fds = [self.0.as_fd(), stop, wake].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        // Rounded up, so that the end is not waited for in small steps.
        let timeout = rest.map_or(PollTimeout::NONE, |rest| {
            PollTimeout::try_from(rest + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(KernelError::system("wait for the timer")(errno)),
        }
        let [ticked, stop, events] = fds.map(|fd| fd.any().unwrap_or(false));
        let ticks = match ticked {
            true => self
                .ticks()
                .map_err(KernelError::system("read the timer"))?,
            false => 0,
        };
        Ok(Due {
            ticks,
            events,
            stop,
        })
    }

    /// Times that it went off since the last look.
    fn ticks(&self) -> nix::Result<u64> {
        let mut count = [0; 8];
        match nix::unistd::read(&self.0, &mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(0),
            Err(errno) => Err(errno),
        }
    }
}
