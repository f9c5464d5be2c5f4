//! The helper on a host of the user's: makes traffic and samples, and says what the host is.
//!
//! It is copied there over ssh, told what to do in lines of JSON on its standard input (`asked`), and answers on its
//! standard output (`said`). It runs as the ordinary user, leaves no file, and ends when its standard input does, or
//! when nothing was heard on it for [`SILENCE`]: ssh sends something every few seconds, and a network that is gone says
//! nothing.
//!
//! `crates/hold` holds settings, and has the lock that lets one test run at a time.
//!
//! Root's captures packets (`capture`), where a run asks for it.
//!
//! `host` says what the host is and has counted; `path` answers and measures the path; `side` is one end of a
//! repetition, `sampler` its samples; `programs` are those of the user's, `connections` what they open, and
//! `guard` ends them where the helper cannot.

mod asked;
mod capture;
mod connections;
mod guard;
mod host;
mod path;
mod programs;
mod said;
mod sampler;
mod side;

use std::io::BufRead;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use knee_clock::monotonic_ns;
use knee_hold::lock;
use knee_hold::recorded::Recorded;

use asked::Asked;
use capture::Capture;
use said::Said;
use side::Side;

/// How long nobody may say anything.
const SILENCE: Duration = Duration::from_secs(30);

/// When something was last heard.
static HEARD_NS: AtomicU64 = AtomicU64::new(0);

/// The first word is the folder that the helper was copied into, if it was: it goes at once, and the program stays in
/// memory. So nothing is left, however this process ends. The word `hold`: this one is root's, and holds settings;
/// `guard`: this one ends what a helper leaves.
fn main() {
    for word in std::env::args_os().skip(1) {
        if word == "guard" {
            return guard::watch(std::io::stdin().lock());
        }
        if word == "hold" {
            std::process::exit(knee_hold::hold(std::io::stdin(), std::io::stdout()));
        }
        leave_nothing(Path::new(&word));
    }
    end_in_silence();
    let (mut side, mut capture) = (Side::default(), Capture::default());
    for line in heard() {
        match serde_json::from_str(&line) {
            Ok(asked) => answer(asked, &mut side, &mut capture),
            Err(error) => said::tell(&Said::Error(format!(
                "the helper does not understand an order: {error}"
            ))),
        }
    }
    // The threads of a repetition end with the process, and their sockets with them.
    std::process::exit(0);
}

fn leave_nothing(folder: &Path) {
    if let Ok(own) = std::fs::read_link("/proc/self/exe")
        && own.parent() == Some(folder)
    {
        let _ = nix::unistd::unlink(&own);
        let _ = nix::unistd::unlinkat(
            nix::fcntl::AT_FDCWD,
            folder,
            nix::unistd::UnlinkatFlags::RemoveDir,
        );
    }
}

/// The lines of the standard input. They are read in a thread of their own, since what is said about one may take long to
/// deliver, and meanwhile it is heard that somebody is there.
fn heard() -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            HEARD_NS.store(monotonic_ns(), Ordering::Relaxed);
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn end_in_silence() {
    HEARD_NS.store(monotonic_ns(), Ordering::Relaxed);
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let silent_ns = monotonic_ns().saturating_sub(HEARD_NS.load(Ordering::Relaxed));
            if silent_ns > SILENCE.as_nanos() as u64 {
                std::process::exit(1);
            }
        }
    });
}

fn answer(asked: Asked, side: &mut Side, capture: &mut Capture) {
    let told = match asked {
        Asked::Hello => Ok(Said::Hello(host::Facts::here())),
        Asked::Ping { n } => Ok(Said::pong(n)),
        Asked::Counters => Ok(Said::Counters(host::counters())),
        Asked::Lock { who } => lock::take(&who).map(Said::Locked),
        Asked::Settings { towards } => Ok(Said::Settings(knee_hold::text::text(towards))),
        Asked::Recorded => Ok(Said::Recorded(Recorded::here())),
        Asked::Capture(asked) => capture.start(asked).map(Said::Capture),
        Asked::Captured { at_ns } => capture.finish(at_ns).map(Said::Captured),
        Asked::Prepare(prepare) => side.prepare(*prepare).map(Said::Listening),
        Asked::Path(asked) => side.measure(&asked).map(Said::Path),
        Asked::Start(start) => match side.start(start) {
            Ok(()) => return,
            Err(error) => Err(error),
        },
        Asked::Stop => {
            side.stop();
            return;
        }
    };
    said::tell(&told.unwrap_or_else(Said::Error));
}
