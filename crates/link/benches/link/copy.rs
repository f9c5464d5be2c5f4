//! The least that a user-space link could be: one thread that copies packets
//! from each device to the other, without rate, queue or delay.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const LARGEST_BYTES: usize = 10 + (1 << 16);

/// Copies until `stop` becomes readable.
pub fn run(sender: &OwnedFd, receiver: &OwnedFd, stop: BorrowedFd<'_>) {
    let mut packet = vec![0; LARGEST_BYTES];
    loop {
        let mut fds =
            [sender.as_fd(), receiver.as_fd(), stop].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        poll(&mut fds, PollTimeout::NONE).expect("devices can be waited for");
        if fds[2].any() == Some(true) {
            return;
        }
        for (from, to) in [(sender, receiver), (receiver, sender)] {
            while let Ok(bytes) = nix::unistd::read(from, &mut packet) {
                // What the far device does not take is lost.
                let _ = nix::unistd::write(to, &packet[..bytes]);
            }
        }
    }
}
