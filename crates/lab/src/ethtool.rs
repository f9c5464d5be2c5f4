//! Offloads of a device, as `ethtool -K` sets them.

use knee_collect::KernelError;
use knee_collect::ethtool::ask;

/// Commands of linux/ethtool.h that turn an offload on or off, and that ask.
pub const TSO: u32 = 0x1f;
pub const GRO: u32 = 0x2c;
pub const ASK_TSO: u32 = 0x1e;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Turns an offload of a device of this thread's network namespace on or off.
pub fn set(device: &str, command: u32, on: bool) -> Result<(), KernelError> {
    exchange(device, command, u32::from(on))
        .map(drop)
        .map_err(KernelError::system(format!(
            "set the offload {command:#x} of {device}"
        )))
}

/// Is an offload of a device of this thread's network namespace on?
pub fn is_on(device: &str, command: u32) -> Result<bool, KernelError> {
    exchange(device, command, 0)
        .map(|data| data != 0)
        .map_err(KernelError::system(format!(
            "read the offload {command:#x} of {device}"
        )))
}

/// What the value holds after the command.
fn exchange(device: &str, command: u32, data: u32) -> nix::Result<u32> {
    let mut value = Value { command, data };
    // SAFETY: the commands above have a struct ethtool_value.
    unsafe { ask(device, &mut value) }?;
    // SAFETY: the kernel wrote there; the compiler does not see it behind the pointer.
    Ok(unsafe { (&raw const value.data).read_volatile() })
}
