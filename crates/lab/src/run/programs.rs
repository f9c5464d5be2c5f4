//! The user's programs in a repetition: servers start before it, a client when its flow does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use knee_clock::monotonic_ns;
use knee_collect::KernelError;
use knee_scenario::Cell;
use knee_scenario::workload::Commands;
use knee_store::folder::Folder;
use nix::unistd::Pid;

use super::options::Options;
use crate::program::Place;
use crate::{Ended, Lab, Listeners, Program};

/// How long a server program may take to listen.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

/// The programs of a repetition under way.
pub(super) struct Programs<'a> {
    cell: &'a Cell,
    rep: u32,
    options: &'a Options,
    started: Vec<Program>,
    /// Clients to start: when, after the start of the run, and of which flow; the last first.
    clients: Vec<(u64, usize)>,
}

impl<'a> Programs<'a> {
    /// Starts the servers and waits until they listen.
    pub(super) fn start_servers(
        cell: &'a Cell,
        rep: u32,
        options: &'a Options,
        lab: &Lab,
    ) -> Result<Programs<'a>, KernelError> {
        let mut programs = Programs {
            cell,
            rep,
            options,
            started: Vec::new(),
            clients: Vec::new(),
        };
        if cell
            .flows
            .iter()
            .any(|flow| flow.workload.commands().is_some())
        {
            Folder::make(&options.output).map_err(KernelError::system(format!(
                "make the folder {}",
                options.output.display()
            )))?;
        }
        for (group, flow) in cell.flows.iter().enumerate() {
            let Some(Commands { server, .. }) = flow.workload.commands() else {
                continue;
            };
            if let Some(command) = server {
                programs.start_server(lab, group, command)?;
            }
            programs.clients.push((flow.start.0, group));
        }
        programs.clients.sort_unstable_by(|a, b| b.cmp(a));
        Ok(programs)
    }

    fn start_server(&mut self, lab: &Lab, group: usize, command: &str) -> Result<(), KernelError> {
        let file = self.output_file(group, "server");
        let addresses = lab.addresses[group];
        lab.sender.enter()?;
        let before = Listeners::here();
        let place = Place {
            namespace: &lab.sender,
            addresses,
            cpus: &self.cell.sender.app_cpus,
        };
        let run_as = self.options.run_as.as_ref();
        let mut program = Program::start("server", group, command, &place, run_as, &file)?;
        let ready = crate::await_listener(&mut program, &before, addresses, SERVER_PATIENCE);
        if let Err(error) = ready {
            program.stop();
            return Err(error);
        }
        self.started.push(program);
        Ok(())
    }

    /// Starts the clients whose time has come.
    pub(super) fn start_clients(
        &mut self,
        lab: &Lab,
        since_start_ns: u64,
    ) -> Result<(), KernelError> {
        while let Some(&(start_ns, group)) = self.clients.last()
            && start_ns <= since_start_ns
        {
            self.clients.pop();
            let commands = self.cell.flows[group].workload.commands();
            let Commands { client, .. } = commands.expect("only flows with commands have clients");
            let file = self.output_file(group, "client");
            let place = Place {
                namespace: &lab.receiver,
                addresses: lab.addresses[group],
                cpus: &self.cell.receiver.app_cpus,
            };
            let run_as = self.options.run_as.as_ref();
            let program = Program::start("client", group, client, &place, run_as, &file)?;
            self.started.push(program);
        }
        Ok(())
    }

    /// When the next client starts, after the start of the run.
    pub(super) fn next_start_ns(&self) -> Option<u64> {
        self.clients.last().map(|(start_ns, _)| *start_ns)
    }

    /// Has every client started and ended?
    pub(super) fn are_done(&mut self) -> bool {
        let is_done = |program: &mut Program| program.role == "server" || program.poll().is_some();
        self.clients.is_empty() && self.started.iter_mut().all(is_done)
    }

    /// Refuses servers that have ended, and programs that print too much. Also of clients it is noted when they ended.
    pub(super) fn check(&mut self) -> Result<(), KernelError> {
        for program in &mut self.started {
            program.check_output()?;
            let ended = program.poll();
            if program.role == "server"
                && let Some(ended) = ended
            {
                return Err(KernelError::Command {
                    group: program.group,
                    role: "server",
                    command: program.command.clone(),
                    why: format!(
                        "it {} during the run{}",
                        ended.words(),
                        program.last_words()
                    ),
                });
            }
        }
        Ok(())
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> + Clone {
        self.started.iter().map(|program| program.pid)
    }

    /// Those that run, as the table `cpu` names them, by their number in the lab.
    pub(super) fn roles(&self) -> impl Iterator<Item = (String, i32)> {
        let running = self
            .started
            .iter()
            .filter(|program| program.ended.is_none());
        running.map(|program| {
            let name = format!("{}.{}", program.role, program.group);
            (name, program.pid.as_raw())
        })
    }

    pub(super) fn stop(&mut self) {
        for program in &mut self.started {
            program.stop();
        }
    }

    /// A row of each, in a run that started at `start_ns`.
    pub(super) fn rows(&self, start_ns: u64) -> knee_tables::Programs {
        let mut rows = knee_tables::Programs::default();
        for program in &self.started {
            rows.push(self.row(program, start_ns));
        }
        rows
    }

    fn row(&self, program: &Program, start_ns: u64) -> knee_tables::Program {
        let (exit_code, signal) = match program.ended {
            Some((Ended::Exited(code), _)) => (Some(i64::from(code)), None),
            Some((Ended::Killed(signal), _)) => (None, Some(i64::from(signal))),
            None => (None, None),
        };
        let until = program.ended.map_or_else(Instant::now, |(_, at)| at);
        let ago_ns = program.started.elapsed().as_nanos() as i64;
        knee_tables::Program {
            cell: self.cell.index as i32,
            rep: self.rep as i32,
            group: program.group as i32,
            role: program.role,
            command: program.command.clone(),
            start_ns: monotonic_ns() as i64 - ago_ns - start_ns as i64,
            wall_us: (until - program.started).as_micros() as i64,
            exit_code,
            signal,
            output: program
                .output
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        }
    }

    /// Where what a program prints is kept.
    fn output_file(&self, group: usize, role: &str) -> PathBuf {
        let Programs { cell, rep, .. } = self;
        let name = format!("cell{}-rep{rep}-flow{group}-{role}.txt", cell.index);
        self.options.output.join(name)
    }
}
