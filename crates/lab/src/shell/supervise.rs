//! The first process of the shell's lab: builds it, starts the command, and
//! ends when the command does.

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};
use std::{fs, process};

use knee_clock::monotonic_ns;
use knee_collect::KernelError;
use knee_link::{DirectionReport, FlowReport, Report};
use knee_loader::Variant;
use knee_scenario::Cell;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, pipe2, read, write};

use super::command::{self, Identity};
use super::names::Names;
use super::porter::Porter;
use super::relay::{self, Relay};
use super::{Carried, Outcome, Request, User, leave_terminal, routes};
use crate::netlink::Netlink;
use crate::{Child, DEVICE, Lab, reap_orphans, spawn};

/// What the link may take to report once it is told to stop.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// Builds the lab of `cell` around this process, which `lab::enter` has made
/// its first, and runs the command in it.
pub fn run(
    user: User,
    cell: &Cell,
    request: &Request,
    porter: Porter,
    signals: &UnixDatagram,
) -> Result<Outcome, KernelError> {
    // From before the first child, so that no end is missed.
    let ends = SigSet::from_iter([Signal::SIGCHLD]);
    ends.thread_block()
        .map_err(KernelError::system("block SIGCHLD"))?;
    let ends = SignalFd::with_flags(&ends, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(KernelError::system("watch the lab's processes"))?;
    let congestion = |name: &str| match request.algorithms.get(name) {
        Some(known) => known.clone(),
        None => name.to_owned(),
    };
    let mut lab = Lab::build(cell, &congestion)?;
    let far_end = lab.addresses[0].sender;
    let names = Names::of_host(far_end);
    lay_routes(&lab, cell, &congestion(&cell.receiver.algorithm))?;
    let (stop, mut link) = start_link(&mut lab, cell)?;
    let far = relay::Config {
        device: DEVICE.to_owned(),
        address: far_end,
        resolver: names.resolver,
        algorithm: congestion(&Variant::of_flow(&cell.flows[0]).to_string()),
    };
    let mut relay = start_relay(&lab, far, porter)?;
    names
        .put()
        .map_err(|(what, source)| KernelError::System { what, source })?;
    let (exit_code, warnings) = match start_command(&lab, user, request) {
        Ok(mut command) => {
            let watched = &mut [&mut link, &mut relay];
            (attend(&mut command, watched, &ends, signals)?, Vec::new())
        }
        Err((code, why)) => (code, vec![why]),
    };
    stop.write(1)
        .map_err(KernelError::system("stop the link"))?;
    let report: Report = link.finish(Instant::now() + REPORT_TIME)?;
    Ok(outcome(exit_code, warnings, &report))
}

/// Leaves this process in the far end's network.
fn lay_routes(lab: &Lab, cell: &Cell, algorithm: &str) -> Result<(), KernelError> {
    lab.receiver.enter()?;
    // The command may not have the rights of the lab's root, whose group its own is there.
    let pings = "/proc/sys/net/ipv4/ping_group_range";
    fs::write(pings, "0 0").map_err(KernelError::system(format!("set {pings} in the lab")))?;
    let initcwnd = cell.receiver.initcwnd;
    let own = lab.addresses[0].receiver;
    routes::lead_everything_over(&mut Netlink::new()?, DEVICE, own, algorithm, initcwnd)?;
    lab.sender.enter()?;
    routes::own_every_address(&mut Netlink::new()?)
}

/// The link ends when the descriptor is written to.
fn start_link(lab: &mut Lab, cell: &Cell) -> Result<(EventFd, Child), KernelError> {
    let config = lab.link_config(cell, cell.seed, 0);
    let joint = lab.joint.take().expect("the lab was just built");
    let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC)
        .map_err(KernelError::system("make the link's stop"))?;
    let link = spawn("link", || {
        leave_terminal("link")?;
        joint.carry(&config, monotonic_ns(), stop.as_fd())
    })?;
    Ok((stop, link))
}

/// Returns when the relay takes connections.
fn start_relay(lab: &Lab, far: relay::Config, porter: Porter) -> Result<Child, KernelError> {
    let (ready, say) = pipe2(OFlag::O_CLOEXEC).map_err(KernelError::system("make a pipe"))?;
    let mut relay = spawn("relay", || {
        leave_terminal("relay")?;
        lab.sender.enter()?;
        let relay = Relay::open(far, porter)?;
        write(&say, b"r").map_err(KernelError::system("say that the relay is ready"))?;
        relay.run()
    })?;
    drop(say);
    match read(&ready, &mut [0]) {
        Ok(1) => Ok(relay),
        _ => Err(relay.died()),
    }
}

/// The command, or the exit code that stands for it and why.
fn start_command(
    lab: &Lab,
    user: User,
    request: &Request,
) -> Result<process::Child, (i32, String)> {
    let identity = if user.uid.is_root() {
        Identity::Same
    } else {
        Identity::User(user.uid, user.gid)
    };
    let network = lab.receiver.as_fd();
    command::start(&request.command, network, identity).map_err(|(code, error)| {
        let name = request.command[0].to_string_lossy();
        (code, format!("{name}: {error}"))
    })
}

/// Passes signals on until the command ends; returns its exit code.
///
/// # Errors
/// A process of the lab's own ended before.
fn attend(
    command: &mut process::Child,
    own: &mut [&mut Child],
    ends: &SignalFd,
    signals: &UnixDatagram,
) -> Result<i32, KernelError> {
    let pid = Pid::from_raw(command.id() as i32);
    loop {
        let waited = command
            .try_wait()
            .map_err(KernelError::system("wait for the command"))?;
        if let Some(status) = waited {
            return Ok(command::exit_code(status));
        }
        if let Some(child) = own.iter_mut().find_map(|child| child.poll().map(|_| child)) {
            return Err(child.died());
        }
        reap_orphans(|ended| ended == pid || own.iter().any(|child| child.pid == ended))?;
        let mut fds = [
            PollFd::new(ends.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(KernelError::system("wait for the command")(error)),
        }
        let [_, signalled] = fds.map(|fd| fd.any().unwrap_or(false));
        while let Ok(Some(_)) = ends.read_signal() {}
        if signalled {
            pass_on(signals, pid)?;
        }
    }
}

fn pass_on(signals: &UnixDatagram, command: Pid) -> Result<(), KernelError> {
    let mut number = [0];
    let count = signals
        .recv(&mut number)
        .map_err(KernelError::system("take a signal for the command"))?;
    if count == 1
        && let Ok(signal) = Signal::try_from(i32::from(number[0]))
    {
        // It may have ended meanwhile.
        let _ = kill(command, signal);
    }
    Ok(())
}

fn outcome(exit_code: i32, mut warnings: Vec<String>, report: &Report) -> Outcome {
    let [data, back] = &report.directions;
    // netem does not tell flows apart.
    let flows = Some(&report.flows).filter(|flows| !flows.is_empty());
    let sum = |count: fn(&FlowReport) -> u64| flows.map(|flows| flows.iter().map(count).sum());
    let links = [
        Carried {
            lost_pkts: sum(|flow| flow.path_lost_pkts),
            dropped_pkts: sum(|flow| flow.queue_dropped_pkts),
            ..carried(data)
        },
        carried(back),
    ];
    for (name, direction) in [("to the command", data), ("from the command", back)] {
        if !direction.kept_up {
            warnings.push(format!(
                "the link did not keep up in the direction {name}: the path was slower or later than asked for"
            ));
        }
    }
    Outcome {
        exit_code,
        links,
        warnings,
    }
}

fn carried(direction: &DirectionReport) -> Carried {
    let late_us = direction.added_delay_us.quantile(0.99);
    Carried {
        forwarded_pkts: direction.forwarded_pkts,
        forwarded_bytes: direction.forwarded_bytes,
        lost_pkts: None,
        dropped_pkts: None,
        achieved_rate_bits_per_sec: direction.achieved_rate_bits_per_sec,
        added_delay_us_p99: late_us,
    }
}
