//! Threads that keep to processors.

use knee_units::cpus::Cpus;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// As the kernel takes them; `None`: any.
pub fn affinity(cpus: &Cpus) -> nix::Result<Option<CpuSet>> {
    if cpus.numbers().is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for &cpu in cpus.numbers() {
        set.set(cpu as usize)?;
    }
    Ok(Some(set))
}

/// Keeps the calling thread, and what it starts from here on, to these processors.
pub fn pin(set: Option<CpuSet>) -> nix::Result<()> {
    set.map_or(Ok(()), |set| sched_setaffinity(Pid::from_raw(0), &set))
}
