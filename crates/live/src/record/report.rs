//! What a recording says of itself.

use std::path::PathBuf;

use serde::Serialize;

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    pub user_us: i64,
    pub system_us: i64,
}

impl Cpu {
    pub fn since(self, earlier: Cpu) -> Cpu {
        Cpu {
            user_us: self.user_us - earlier.user_us,
            system_us: self.system_us - earlier.system_us,
        }
    }

    pub fn plus(self, other: Cpu) -> Cpu {
        Cpu {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
        }
    }
}

/// A recording so far, or at its end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Why it ended: "duration", "stopped".
    pub ended: &'static str,
    pub elapsed_us: i64,
    /// Dumps taken.
    pub samples: u64,
    /// Dumps left out because the one before took longer than the interval.
    pub missed: u64,
    /// Dumps that the kernel refused or cut short after the first one.
    pub failed: u64,
    /// Sockets of the last dump, and the most of any.
    pub sockets: u64,
    pub sockets_max: u64,
    /// Rows of `sockets`.
    pub rows: u64,
    /// Of those: sockets being destroyed.
    pub final_rows: u64,
    /// Destroyed sockets left out because the filters ask for what an event does
    /// not tell and no dump had told before.
    pub final_left_out: u64,
    /// Destroy events that the kernel dropped; null: events are not available, or not counted.
    pub events_lost: Option<u64>,
    /// Times that it said so.
    pub event_overruns: u64,
    /// When destroy events could no longer be listened to, after the beginning; null: they could until the end, or never.
    pub events_ended_us: Option<i64>,
    /// Of the thread that listens to them, once it is over.
    #[serde(skip)]
    pub event_cpu: Cpu,
    /// Dumps that the kernel called interrupted.
    pub interrupted: u64,
    /// Answers that were no socket.
    pub not_understood: u64,
    /// Of both threads: dumps, writing, everything.
    pub cpu: Cpu,
    /// Of those: asking for the dumps and making rows and files of them.
    pub dump_cpu: Cpu,
    pub peak_rss_bytes: u64,
    /// Whole files of this recording that still exist.
    pub files: Vec<PathBuf>,
    pub bytes: u64,
    /// What could not be read, each once.
    pub notes: Vec<String>,
}
