//! Programs of the user's at one end of a repetition: servers at the sender's host, clients at the receiver's.

use std::ffi::CString;
use std::fs::File;
use std::net::IpAddr;
use std::time::Instant;

use knee_scenario::Cell;
use knee_traffic::{Ended, Listeners, Program, Side, Task, await_listener};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::Serialize;

use crate::guard::Guard;

/// The front gets the last so much of what a program printed; iperf3 prints 2 MB in an hour of one stream.
const MOST_TOLD_BYTES: u64 = 4 << 20;

/// The programs of a repetition. They end with the thread that started them.
pub struct Programs {
    started: Vec<Program>,
    /// Clients to start: when, after the start of the run, and of which `[[flow]]`; the last first.
    clients: Vec<(u64, usize)>,
    server: IpAddr,
    client: IpAddr,
    guard: Option<Guard>,
    is_over: bool,
}

/// What became of a program.
#[derive(Serialize)]
pub struct Outcome {
    group: usize,
    role: &'static str,
    start_ns: i64,
    wall_us: i64,
    exit_code: Option<i32>,
    signal: Option<i32>,
    printed: String,
}

impl Programs {
    /// Starts the servers of a sender and waits until they listen; the ports of each `[[flow]]`'s. `own` and `other`:
    /// the addresses of this host and of the other one.
    pub fn prepare(
        cell: &Cell,
        side: Side,
        [own, other]: [IpAddr; 2],
    ) -> Result<(Programs, Vec<Vec<u16>>), String> {
        let (server, client) = match side {
            Side::Sender => (own, other),
            Side::Receiver => (other, own),
        };
        let mut programs = Programs {
            started: Vec::new(),
            clients: Vec::new(),
            server,
            client,
            guard: None,
            is_over: false,
        };
        let mut ports = vec![Vec::new(); cell.flows.len()];
        for (group, flow) in cell.flows.iter().enumerate() {
            let Some(commands) = flow.workload.commands() else {
                continue;
            };
            match (side, commands.server) {
                (Side::Receiver, _) => programs.clients.push((flow.start.0, group)),
                (Side::Sender, Some(command)) => {
                    let before = Listeners::here();
                    let mut program = programs.start(cell, ("server", group, command))?;
                    let listens = await_listener(&mut program, &before, server);
                    programs.started.push(program);
                    ports[group] = listens.map_err(|error| error.to_string())?;
                    ports[group].sort_unstable();
                    ports[group].dedup();
                }
                (Side::Sender, None) => {}
            }
        }
        programs.clients.sort_unstable_by(|a, b| b.cmp(a));
        Ok((programs, ports))
    }

    fn start(
        &mut self,
        cell: &Cell,
        (role, group, command): (&'static str, usize, &str),
    ) -> Result<Program, String> {
        let host = match role {
            "server" => &cell.sender,
            _ => &cell.receiver,
        };
        let task = Task {
            role,
            group,
            command,
            server: self.server,
            client: self.client,
            cpus: &host.app_cpus,
            hint: String::new(),
        };
        let name = CString::new(role).expect("a plain word");
        let printed = memfd_create(name.as_c_str(), MFdFlags::MFD_CLOEXEC)
            .map_err(|error| format!("cannot make memory for what a program prints: {error}"))?;
        let unguarded = |error| format!("cannot see to the end of programs: {error}");
        let guard = match &mut self.guard {
            Some(guard) => guard,
            none => none.insert(Guard::start().map_err(unguarded)?),
        };
        let mut program = Program::start(&task, File::from(printed), |_| {})
            .map_err(|error| error.to_string())?;
        if let Err(error) = guard.add(program.pid) {
            program.stop();
            return Err(unguarded(error));
        }
        Ok(program)
    }

    /// Starts the clients whose time has come, and looks after all.
    pub fn look(&mut self, cell: &Cell, since_start_ns: u64) -> Result<(), String> {
        while let Some(&(start_ns, group)) = self.clients.last()
            && start_ns <= since_start_ns
        {
            self.clients.pop();
            let commands = cell.flows[group].workload.commands();
            let client = commands
                .expect("only flows with commands have clients")
                .client;
            let program = self.start(cell, ("client", group, client))?;
            self.started.push(program);
        }
        let checked = self.started.iter_mut().try_for_each(Program::check);
        checked.map_err(|error| error.to_string())
    }

    /// When the next client starts, after the start of the run.
    pub fn next_start_ns(&self) -> Option<u64> {
        self.clients.last().map(|(start_ns, _)| *start_ns)
    }

    /// Has every client started and ended, and is there no server? `None`: there is no program here.
    pub fn are_done(&mut self) -> Option<bool> {
        if self.started.is_empty() && self.clients.is_empty() {
            return None;
        }
        let is_over = |program: &mut Program| program.role == "client" && program.poll().is_some();
        Some(self.clients.is_empty() && self.started.iter_mut().all(is_over))
    }

    /// Ends them all.
    pub fn stop(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        for program in &mut self.started {
            program.stop();
            if let Some(guard) = &mut self.guard {
                guard.remove(program.pid);
            }
        }
    }

    /// What became of each, in a run that started so long ago.
    pub fn outcomes(&self, since_start_ns: u64) -> Vec<Outcome> {
        let outcome = |program: &Program| {
            let (exit_code, signal) = match program.ended {
                Some((Ended::Exited(code), _)) => (Some(code), None),
                Some((Ended::Killed(signal), _)) => (None, Some(signal)),
                None => (None, None),
            };
            let until = program.ended.map_or_else(Instant::now, |(_, at)| at);
            Outcome {
                group: program.group,
                role: program.role,
                start_ns: since_start_ns as i64 - program.started.elapsed().as_nanos() as i64,
                wall_us: (until - program.started).as_micros() as i64,
                exit_code,
                signal,
                printed: program.printed(MOST_TOLD_BYTES),
            }
        };
        self.started.iter().map(outcome).collect()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.stop();
    }
}
