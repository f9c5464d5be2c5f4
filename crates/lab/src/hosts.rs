//! A repetition between two hosts of the user's: what their helpers said, as the rows of a run.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use knee_capture::Captured;
use knee_collect::KernelError;
use knee_collect::cpu::processors_of;
use knee_collect::sock_diag::{Diag, MESSAGE_BYTES};
use knee_scenario::{Cell, Pacing};
use knee_tables::CpuSamples;
use knee_traffic::{EndReport, Shared};
use serde::Deserialize;

use crate::packets;
use crate::repetition::Output;
use crate::rows::{self, Reports};
use crate::run::{cpu, output_name, refuse_buffers};
use crate::sampler::{Book, Ends};

/// In the place of a flow's number: the samples of the warm-up end here.
const WARM: u32 = u32::MAX;
/// In the same place: the processors' lines of `/proc/stat` follow.
const PROCESSORS: u32 = u32::MAX - 1;
/// Length of a record before its attributes.
const HEAD_BYTES: usize = 24;
/// Both hosts sample at the same instants, as far as their clocks are known.
const SAME_NS: u64 = 2_000_000;
/// A century.
const MOST_NS: u64 = 1 << 61;
/// A run begins here, so that no time of it is 0, which means: not yet.
const BEGAN_NS: u64 = 1_000_000_000;

/// What a helper says at the end, and its samples.
#[derive(Debug, Deserialize)]
pub struct End {
    ended_ns: u64,
    /// By flow number: bytes read, and when it was opened, established, complete and closed, since the start.
    progress: Vec<(u64, [Option<u64>; 4])>,
    reports: Vec<EndReport>,
    /// Of programs; their numbers follow those of the flows.
    connections: Vec<Connection>,
    programs: Vec<Outcome>,
    #[serde(skip)]
    pub records: Vec<u8>,
}

/// A connection that a program opened: its ends at the sender's host and at the receiver's.
#[derive(Debug, Deserialize)]
struct Connection {
    group: usize,
    ends: Ends,
}

/// What became of a program.
#[derive(Debug, Deserialize)]
struct Outcome {
    group: usize,
    role: Role,
    start_ns: i64,
    wall_us: i64,
    exit_code: Option<i64>,
    signal: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    Server,
    Client,
}

impl Outcome {
    /// `None`: the scenario has no such program.
    fn row(&self, cell: &Cell, rep: u32) -> Option<knee_tables::Program> {
        let commands = cell.flows.get(self.group)?.workload.commands()?;
        let (role, command) = match self.role {
            Role::Server => ("server", commands.server?),
            Role::Client => ("client", commands.client),
        };
        Some(knee_tables::Program {
            cell: cell.index as i32,
            rep: rep as i32,
            group: self.group as i32,
            role,
            command: command.to_owned(),
            start_ns: self.start_ns,
            wall_us: self.wall_us,
            exit_code: self.exit_code,
            signal: self.signal,
            output: output_name(cell, rep, self.group, role),
        })
    }
}

/// Refuses what cannot be asked of hosts that are not ours to set.
///
/// # Errors
/// The key, and what to do.
pub fn check(cell: &Cell) -> Result<(), KernelError> {
    let refuse = |what: String, hint: &str| {
        Err(KernelError::Unsupported {
            what,
            lacks: "is that of two hosts of yours, which this engine leaves as they are".into(),
            hint: hint.into(),
        })
    };
    refuse_buffers(cell)?;
    for (group, flow) in cell.flows.iter().enumerate() {
        if flow.blocking {
            return refuse(
                format!("flow.{group}.blocking = true"),
                "Leave it out, or take the engine sim.",
            );
        }
        if (flow.workload.commands()).is_some_and(|commands| commands.server.is_none()) {
            return refuse(
                format!("flow.{group}.workload = \"programs\" without a server"),
                "Name the server's command: connections are found by the port at which it listens.",
            );
        }
        if !flow.params.is_empty() {
            return refuse(
                format!("parameters of flow.{group}.algorithm"),
                "Leave them out: the hosts run their own kernels' algorithms.",
            );
        }
        if flow.pacing == Some(Pacing::Fq) {
            return refuse(
                format!("flow.{group}.pacing = \"fq\""),
                "Leave it out: the qdisc is the host's. pacing = \"timer\" is a socket's own.",
            );
        }
    }
    Ok(())
}

/// The rows of a repetition. `captured`: the packets of the sender and of the receiver, as their helpers wrote them.
pub fn output(
    cell: &Cell,
    rep: u32,
    sender: &End,
    receiver: &End,
    captured: Option<[&[u8]; 2]>,
) -> Result<Output, KernelError> {
    let flows = knee_traffic::flows(cell, rep);
    let shared = Shared::new(flows.len())
        .map_err(KernelError::system("make room for a repetition's flows"))?;
    let mut book = Book::new(cell, rep, &flows, shared, Vec::new());
    let mut numbers = HashMap::new();
    for connection in &sender.connections {
        if cell.flows.get(connection.group).is_none() {
            return Err(KernelError::Child {
                role: "sender".into(),
                message: "it tells of connections that the scenario does not have".into(),
            });
        }
        let index = book.add_external(connection.group, connection.ends);
        numbers.insert(connection.ends, index);
    }
    let of_receiver = |there: &Record<'_>| match there.index(flows.len()) {
        Some(index) => Some(index),
        None => {
            let further = (there.number as usize).checked_sub(flows.len())?;
            let connection = receiver.connections.get(further)?;
            numbers.get(&connection.ends).copied()
        }
    };
    let mut far = records(&receiver.records).peekable();
    let mut body = vec![0; MESSAGE_BYTES];
    for record in records(&sender.records) {
        while let Some(there) =
            far.next_if(|there| there.t_ns <= record.t_ns.saturating_add(SAME_NS))
        {
            if let Some(index) = of_receiver(&there) {
                if index < flows.len() {
                    let read = &shared.get(there.number).bytes_read;
                    read.fetch_max(there.read_bytes, Ordering::Relaxed);
                }
                there.decoded(&mut body, |diag| book.receiver_was(index, diag));
            }
        }
        match record.index(flows.len() + sender.connections.len()) {
            Some(index) => record.decoded(&mut body, |diag| {
                book.sender_was(index, record.t_ns, diag);
            }),
            None if record.number == WARM => book.start_measuring(record.t_ns),
            None => {}
        }
    }
    for flow in &flows {
        let told = |end: &End| end.progress.get(flow.number as usize).copied();
        let (_, of_sender) = told(sender).unwrap_or_default();
        let (read_bytes, of_receiver) = told(receiver).unwrap_or_default();
        let opener = match flow.receiver_opens {
            true => of_receiver,
            false => of_sender,
        };
        let progress = shared.get(flow.number);
        let last = [
            (&progress.opened_ns, opener[0]),
            (&progress.established_ns, opener[1]),
            (&progress.completed_ns, of_receiver[2]),
            (&progress.closed_ns, of_sender[3]),
        ];
        for (slot, at_ns) in last {
            slot.store(at_ns.map_or(0, |ns| BEGAN_NS + ns), Ordering::Relaxed);
        }
        // What was read by the last sample; of a transfer that is over, all.
        let all_read = of_receiver[2].is_some();
        let read = &progress.bytes_read;
        read.fetch_max(if all_read { read_bytes } else { 0 }, Ordering::Relaxed);
    }
    let reports = Reports {
        link: None,
        sender: &sender.reports,
        receiver: &receiver.reports,
        start_ns: BEGAN_NS,
        ended_ns: sender.ended_ns,
    };
    let mut output = Output::default();
    rows::fill(book, reports, &mut output);
    for (role, end) in [("sender", sender), ("receiver", receiver)] {
        let rows = &mut output.cpu;
        let warning = fill_processors(cell, rep, role, end, rows);
        output.warnings.extend(warning);
    }
    for outcome in sender.programs.iter().chain(&receiver.programs) {
        if let Some(row) = outcome.row(cell, rep) {
            output.programs.push(row);
        }
    }
    if let Some(captured) = captured {
        let captured = [read(captured[0], "sender")?, read(captured[1], "receiver")?];
        let into = (&mut output.packets, &mut output.warnings);
        packets::add(cell, rep, captured, sender.ended_ns, into);
    }
    Ok(output)
}

/// The time of a host's processors, as rows; what is doubtful of it.
fn fill_processors(
    cell: &Cell,
    rep: u32,
    role: &str,
    end: &End,
    rows: &mut CpuSamples,
) -> Option<String> {
    let told = records(&end.records).filter(|record| record.number == PROCESSORS);
    let read = |record: Record<'_>| {
        let text = String::from_utf8_lossy(record.attributes).into_owned();
        (record.t_ns, processors_of(&text))
    };
    let mut told = told.map(read).peekable();
    let (first_ns, first) = told.peek()?.clone();
    let mut last = (first_ns, first.clone());
    for (t_ns, now) in told {
        let place = (cell.index as i32, rep as i32, t_ns as i64);
        cpu::rows_of(place, &format!("{role}/"), &now, &first).for_each(|row| rows.push(row));
        last = (t_ns, now);
    }
    let span_ns = last.0.saturating_sub(first_ns);
    let warning = cpu::warn_of_saturation(&last.1, &first, span_ns.max(1));
    warning.map(|warning| format!("{role}: {warning}"))
}

/// The packets that a helper captured. It may be anybody's, and say anything.
fn read(bytes: &[u8], role: &str) -> Result<Captured, KernelError> {
    let found: Option<Captured> = postcard::from_bytes(bytes).ok();
    let is_one = |captured: &Captured| {
        let times = captured.packets.iter().map(|packet| packet.t_ns);
        times.clone().is_sorted() && times.max().is_none_or(|last| last < MOST_NS)
    };
    found.filter(is_one).ok_or_else(|| KernelError::Child {
        role: role.into(),
        message: "what it says that it captured cannot be read".into(),
    })
}

/// One sample of a socket.
struct Record<'a> {
    t_ns: u64,
    number: u32,
    read_bytes: u64,
    attributes: &'a [u8],
}

impl Record<'_> {
    fn index(&self, flows: usize) -> Option<usize> {
        Some(self.number as usize).filter(|&index| index < flows)
    }

    /// As an answer of sock_diag is decoded. `body` is a message's head without addresses, and room.
    fn decoded(&self, body: &mut Vec<u8>, take: impl FnOnce(&Diag<'_>)) {
        body.truncate(MESSAGE_BYTES);
        body.extend_from_slice(self.attributes);
        if let Some(diag) = Diag::decode(body) {
            take(&diag);
        }
    }
}

/// As `crates/remote/src/sampler.rs` writes them; one that is cut off ends them.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let number = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight"));
        let length = (number(12) as usize).checked_sub(8)?;
        let (attributes, further) = rest.split_at_checked(length)?;
        bytes = further;
        Some(Record {
            t_ns: long(0),
            number: number(8),
            read_bytes: long(16),
            attributes,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(further: &str) -> Cell {
        crate::testing::cell(&format!(
            "duration = \"1s\"\nwarmup = \"0.5s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n{further}[[flow]]\nalgorithm = \"reno\"\n"
        ))
    }

    /// A record with this much acknowledged, as the helper writes it.
    fn record(t_ms: u64, number: u32, read_bytes: u64, acked_bytes: u64) -> Vec<u8> {
        let mut info = [0_u8; 232];
        info[0] = 1;
        info[120..128].copy_from_slice(&acked_bytes.to_ne_bytes());
        let attributes = match number {
            WARM => Vec::new(),
            _ => [
                &(4 + info.len() as u16).to_ne_bytes()[..],
                &2_u16.to_ne_bytes(),
                &info,
            ]
            .concat(),
        };
        [
            &(t_ms * 1_000_000).to_ne_bytes()[..],
            &number.to_ne_bytes(),
            &(8 + attributes.len() as u32).to_ne_bytes(),
            &read_bytes.to_ne_bytes(),
            &attributes,
        ]
        .concat()
    }

    fn end(records: Vec<Vec<u8>>) -> End {
        End {
            ended_ns: 1_000_000_000,
            progress: vec![(999_999, [Some(1_000), Some(2_000), None, None])],
            reports: vec![EndReport::default()],
            connections: Vec::new(),
            programs: Vec::new(),
            records: records.concat(),
        }
    }

    fn both() -> (End, End) {
        let sender = [
            record(100, 0, 0, 50_000),
            record(500, 0, 0, 400_000),
            record(500, WARM, 0, 0),
            record(1_000, 0, 0, 900_000),
        ];
        let receiver = [
            record(101, 0, 40_000, 0),
            record(500, 0, 380_000, 0),
            record(1_000, 0, 880_000, 0),
        ];
        (end(sender.to_vec()), end(receiver.to_vec()))
    }

    #[test]
    fn what_was_read_after_the_warm_up_is_the_goodput() {
        let (sender, receiver) = both();
        let output = output(&cell(""), 3, &sender, &receiver, None).unwrap();
        let flows = &output.flows;
        assert_eq!((flows.rep[0], flows.start_ns[0]), (3, 1_000));
        assert_eq!(flows.bytes_read[0], 880_000);
        assert_eq!(flows.goodput_bits_per_sec[0], 8_000_000.0);
        assert_eq!(flows.bytes_acked.get(0), Some(900_000));
        assert_eq!(output.samples.bytes_read, [40_000, 380_000, 880_000]);
    }

    #[test]
    fn records_that_are_cut_off_or_of_no_flow_end_or_are_left_out() {
        let (mut sender, receiver) = both();
        let foreign = record(300, 7, 0, 1);
        sender.records = [foreign, sender.records].concat();
        let whole = sender.records.clone();
        for length in 0..whole.len() {
            sender.records = whole[..length].to_vec();
            output(&cell(""), 0, &sender, &receiver, None).unwrap();
        }
        sender.records = whole;
        let output = output(&cell(""), 0, &sender, &receiver, None).unwrap();
        assert_eq!(output.samples.bytes_read.len(), 3);
    }

    #[test]
    fn connections_of_programs_are_flows_behind_the_scenarios_own() {
        let text = "[[flow]]\nalgorithm = \"reno\"\nworkload = \"programs\"\nserver = \"s\"\nclient = \"c\"\n";
        let cell = crate::testing::cell(&format!(
            "duration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n[[flow]]\nalgorithm = \"reno\"\n{text}"
        ));
        let connection = |port| Connection {
            group: 1,
            ends: [
                ("10.0.0.1".parse().unwrap(), 6399),
                ("fd00::2".parse().unwrap(), port),
            ],
        };
        let (mut sender, mut receiver) = both();
        sender.connections = vec![connection(40_000), connection(40_001)];
        // The receiver saw them the other way round, and one that the sender did not see.
        receiver.connections = vec![connection(40_001), connection(40_000), connection(9)];
        sender.records = [
            record(100, 0, 0, 1_000),
            record(100, 1, 0, 5_000),
            record(100, 2, 0, 7_000),
            record(900, 2, 0, 107_000),
            record(950, 3, 0, 1),
        ]
        .concat();
        receiver.records = [record(100, 1, 0, 0), record(100, 3, 0, 0)].concat();
        receiver.programs = serde_json::from_str(
            r#"[{"group": 1, "role": "client", "start_ns": 5, "wall_us": 7, "exit_code": 3, "signal": null, "printed": ""},
                {"group": 0, "role": "client", "start_ns": 5, "wall_us": 7, "exit_code": 3, "signal": null}]"#,
        )
        .unwrap();
        let found = output(&cell, 2, &sender, &receiver, None).unwrap();
        assert_eq!(found.flows.group, [0, 1, 1]);
        assert_eq!(found.flows.bytes_read[1..], [5_000, 107_000]);
        assert_eq!(found.flows.goodput_bits_per_sec[2], 1_070_000.0);
        assert!(found.programs.command.iter().eq(["c"]));
        assert_eq!(found.programs.exit_code.get(0), Some(3));
        assert!(
            found
                .programs
                .output
                .iter()
                .eq(["cell0-rep2-flow1-client.txt"])
        );
        sender.connections[0].group = 2;
        assert!(output(&cell, 2, &sender, &receiver, None).is_err());
    }

    #[test]
    fn processors_are_those_of_each_host_since_the_first_look() {
        let look = |t_ms: u64, user: u64, idle: u64| {
            let text = format!("cpu3 {user} 0 0 {idle} 0 0 0 0 0 0\n");
            [
                &(t_ms * 1_000_000).to_ne_bytes()[..],
                &PROCESSORS.to_ne_bytes(),
                &(8 + text.len() as u32).to_ne_bytes(),
                &0_u64.to_ne_bytes(),
                text.as_bytes(),
            ]
            .concat()
        };
        let (mut sender, mut receiver) = both();
        // In jiffies of 10 ms.
        sender
            .records
            .extend([look(0, 7, 50), look(1_000, 107, 50)].concat());
        receiver
            .records
            .extend([look(0, 7, 50), look(1_000, 57, 100)].concat());
        let found = output(&cell(""), 0, &sender, &receiver, None).unwrap();
        let [of_sender, of_receiver] = ["sender/cpu3", "receiver/cpu3"].map(|name| [name; 2]);
        assert!(found.cpu.name.iter().eq([of_sender, of_receiver].concat()));
        assert_eq!(found.cpu.run_us, [0, 1_000_000, 0, 500_000]);
        assert_eq!(found.warnings.len(), 1);
        assert!(found.warnings[0].starts_with("sender: the processors were busy for 100 %"));
        for length in 0..receiver.records.len() {
            receiver
                .records
                .truncate(receiver.records.len() - length.min(1));
            output(&cell(""), 0, &sender, &receiver, None).unwrap();
        }
    }

    #[test]
    fn packets_that_a_host_says_it_captured_are_read_as_far_as_they_are_some() {
        use knee_capture::Packet;

        let (sender, receiver) = both();
        let packet = |t_ns| Packet {
            t_ns,
            is_outbound: true,
            length_bytes: 1500,
            header: vec![1, 2],
        };
        let written = |times: &[u64], left_out| {
            let captured = Captured {
                packets: times.iter().copied().map(packet).collect(),
                left_out,
                calendar_moved_ns: 0,
            };
            postcard::to_stdvec(&captured).unwrap()
        };
        let read =
            |one: &[u8], other: &[u8]| output(&cell(""), 0, &sender, &receiver, Some([one, other]));
        let whole = written(&[7, 8], 3);
        let found = read(&written(&[5], 0), &whole).unwrap();
        assert_eq!(found.packets.t_ns, [5, 7, 8]);
        assert!(
            found
                .packets
                .host
                .iter()
                .eq(["sender", "receiver", "receiver"])
        );
        assert_eq!(found.packets.header[2], [1, 2]);
        assert!(
            found.warnings[0].starts_with("receiver: the memory for captured packets was full")
        );
        for length in 0..whole.len() {
            assert!(
                read(&whole[..length], &whole).is_err(),
                "{length} bytes of it"
            );
        }
        assert!(read(&whole, &written(&[8, 7], 0)).is_err(), "not in order");
        assert!(
            read(&whole, &written(&[u64::MAX], 0)).is_err(),
            "of no time"
        );
    }
}
