//! The user's programs in a repetition: servers start before it, a client when its flow does.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::time::Instant;

use knee_clock::monotonic_ns;
use knee_collect::KernelError;
use knee_scenario::Cell;
use knee_scenario::workload::Commands;
use knee_store::folder::{Folder, Readers};
use knee_traffic::{Ended, Listeners, Program, Task, await_listener};
use nix::unistd::Pid;

use super::options::Options;
use super::told;
use crate::{Lab, RunAs};

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
        lab.sender.enter()?;
        let before = Listeners::here();
        let mut program = self.run(lab, ("server", group, command))?;
        if let Err(error) =
            await_listener(&mut program, &before, lab.addresses[group].sender.into())
        {
            program.stop();
            return Err(told(error));
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
            lab.receiver.enter()?;
            let program = self.run(lab, ("client", group, client))?;
            self.started.push(program);
        }
        Ok(())
    }

    /// Starts a program in the namespace that the caller is in.
    fn run(
        &self,
        lab: &Lab,
        (role, group, command): (&'static str, usize, &str),
    ) -> Result<Program, KernelError> {
        let host = match role {
            "server" => &self.cell.sender,
            _ => &self.cell.receiver,
        };
        let run_as = self.options.run_as.as_ref();
        let task = Task {
            role,
            group,
            command,
            server: lab.addresses[group].sender.into(),
            client: lab.addresses[group].receiver.into(),
            cpus: &host.app_cpus,
            hint: run_as.map_or_else(String::new, RunAs::hint),
        };
        let printed = self.output(group, role)?;
        let become_user = run_as.map(RunAs::prepare).transpose()?;
        let started = Program::start(&task, printed, |spawning| {
            if let (Some(user), Some(become_user)) = (run_as, become_user) {
                spawning.env_clear().envs(user.environment());
                // SAFETY: system calls alone, which are allowed between fork and exec.
                unsafe { spawning.pre_exec(move || become_user.now()) };
            }
        });
        started.map_err(told)
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
        self.started
            .iter_mut()
            .try_for_each(Program::check)
            .map_err(told)
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
            output: self.file_name(program.group, program.role),
        }
    }

    /// A new file for what a program prints; one of a repetition that was cut short goes.
    fn output(&self, group: usize, role: &str) -> Result<File, KernelError> {
        let path = self.options.output.join(self.file_name(group, role));
        let made = Folder::of(&path).and_then(|(folder, name)| {
            folder.remove(&name)?;
            folder.create(&name, Readers::Own)
        });
        made.map_err(KernelError::system(format!("write {}", path.display())))
    }

    fn file_name(&self, group: usize, role: &str) -> String {
        output_name(self.cell, self.rep, group, role)
    }
}

/// What the file is called that keeps what a program printed.
pub(crate) fn output_name(cell: &Cell, rep: u32, group: usize, role: &str) -> String {
    format!("cell{}-rep{rep}-flow{group}-{role}.txt", cell.index)
}
