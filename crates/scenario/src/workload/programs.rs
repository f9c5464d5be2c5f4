//! Programs of the user's at both ends: `redis-server` and `redis-benchmark`,
//! `iperf3 -s` and `iperf3 -c`. A lab runs them, and so do two hosts of the user's.

use crate::key::Default::Words;
use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use crate::key::{key, kind};
use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;

use super::{Apps, Arrival, Commands, Counts, Example, Workload, WorkloadKind};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "programs",
    summary: "the user's own programs, in a lab or at two hosts: a server at the sender's host, a client at the receiver's",
    keys: Programs::KEYS,
    counts: Counts::Programs,
    draws: false,
    fewer: &[],
    example: Example {
        keys: "client = \"true\"",
        down_bytes: Some(0),
        up_bytes: 0,
    },
    read: |from| {
        from.needs(
            "client",
            "the command that workload \"programs\" runs",
            "Add client = \"redis-benchmark -h {server}\" or another command in [[flow]].",
        )?;
        Ok(Programs::read(from).into())
    },
};

keyed! {
    /// Commands, in which `{server}` stands for the server's address.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Programs {
        pub server: Option<String> = key(
            "server",
            kind::LINE,
            Words("none: the client needs no server, or brings its own"),
            "command of the server, at the sender's host; {server} and {client} stand for the hosts' addresses",
            "tcpknee",
        );
        pub client: String = key(
            "client",
            kind::LINE,
            Words("none"),
            "command of the client, at the receiver's host; its end ends the flow",
            "tcpknee",
        );
    }
}

impl Workload for Programs {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        None
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }

    /// They open their own.
    fn connections(
        &self,
        _from: Nanos,
        _until: Nanos,
        _stream: &dyn Fn(&str) -> Stream,
    ) -> Vec<Arrival> {
        Vec::new()
    }

    fn commands(&self) -> Option<Commands<'_>> {
        Some(Commands {
            server: self.server.as_deref(),
            client: &self.client,
        })
    }
}
