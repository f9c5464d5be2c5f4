//! A network namespace without a name.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use knee_collect::KernelError;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::fstat;

use super::enter::refused;

/// Name of each host's device.
pub const DEVICE: &str = "knee0";

/// Places in a namespace's own table of sockets. A dump by sock_diag walks all of
/// them, and the host's table has hundreds of thousands.
const SOCKET_TABLE_ENTRIES: u32 = 4096;

/// A network namespace; it ends with the last descriptor, process and device in it.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl Namespace {
    /// A new one, which the caller is in from here on. Namespaces made from there
    /// have a table of sockets of their own.
    pub fn new() -> Result<Namespace, KernelError> {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| refused("network namespaces", "max_net_namespaces", error))?;
        // Only speed is lost where the kernel, before 6.1, has no such setting.
        let _ = std::fs::write(
            "/proc/sys/net/ipv4/tcp_child_ehash_entries",
            SOCKET_TABLE_ENTRIES.to_string(),
        );
        // Devices of a lab have IPv4 addresses only. With IPv6 each asks for a router when it comes up, and that packet
        // would be the first one that the path counts. A kernel without IPv6 has no such setting.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        Namespace::current()
    }

    /// The one that the calling thread is in.
    pub fn current() -> Result<Namespace, KernelError> {
        let file = "/proc/thread-self/ns/net";
        let fd = File::open(file).map_err(KernelError::system(format!("open {file}")))?;
        Ok(Namespace { fd: fd.into() })
    }

    /// The same, held once more.
    pub fn again(&self) -> Result<Namespace, KernelError> {
        let fd = self.fd.try_clone();
        let fd = fd.map_err(KernelError::system("hold a lab's network namespace"))?;
        Ok(Namespace { fd })
    }

    /// By which other processes know it.
    pub fn inode(&self) -> Result<u64, KernelError> {
        let found = fstat(&self.fd).map_err(KernelError::system("look at a network namespace"))?;
        Ok(found.st_ino)
    }

    /// The calling thread goes there.
    pub fn enter(&self) -> Result<(), KernelError> {
        setns(&self.fd, CloneFlags::CLONE_NEWNET)
            .map_err(KernelError::system("enter a lab's network namespace"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
