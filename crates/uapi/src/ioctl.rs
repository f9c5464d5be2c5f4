//! Questions to a device's driver by the ioctl of ethtool, which every kernel has and which changes settings too.
//! Source: Linux 6.18, include/uapi/linux/ethtool.h.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::groups::{GROUPS, Group};
use crate::netlink::number;

/// An offload that is on or off as one number, by the commands that ask and set.
#[derive(Clone, Copy, Debug)]
pub struct Offload {
    get: u32,
    set: u32,
}

pub const TSO: Offload = Offload {
    get: 0x1e,
    set: 0x1f,
};
pub const GRO: Offload = Offload {
    get: 0x2b,
    set: 0x2c,
};

/// A feature of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// As the kernel names it: `tx-tcp-segmentation`; empty: its bit has none.
    pub name: String,
    pub is_changeable: bool,
    pub is_wanted: bool,
    pub is_active: bool,
}

/// Passes a command to the driver of a device, which leaves its answer there.
pub trait Drivers {
    /// # Errors
    /// The driver refuses, or has no such thing.
    fn ask(&self, device: &OsStr, command: &mut [u8]) -> io::Result<()>;
}

/// The drivers of this thread's network namespace.
pub struct Kernel;

nix::ioctl_write_ptr_bad!(siocethtool, libc::SIOCETHTOOL, libc::ifreq);

impl Drivers for Kernel {
    fn ask(&self, device: &OsStr, command: &mut [u8]) -> io::Result<()> {
        // The kernel writes no further than the struct of a command, or than the counts in its head say; a command
        // that is shorter than both is not passed on.
        if command.len() < least_bytes(command) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // Any socket leads to the devices; a service may have this family alone.
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        // SAFETY: an all-zero ifreq is valid, its fields are integers and bytes.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last one stays the 0 that ends the name.
        let most = request.ifr_name.len() - 1;
        for (to, &from) in request.ifr_name[..most].iter_mut().zip(device.as_bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: the request and the command that it points to outlive the call, which writes no further than
        // `least_bytes`, as was checked.
        unsafe { siocethtool(socket.as_raw_fd(), &request) }?;
        Ok(())
    }
}

const GDRVINFO: u32 = 0x03;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const GRXFHINDIR: u32 = 0x38;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const SS_STATS: u32 = 1;
const SS_FEATURES: u32 = 4;
const STRING_BYTES: usize = 32;
/// Names and counters are written as many as the driver has by then, whatever the head says: they get room for more
/// than it said it has, as queues may come meanwhile.
const SPARE: usize = 4_096;
/// `struct ethtool_drvinfo`: command, driver, version, firmware, then bus and numbers of statistics.
const DRVINFO_BYTES: usize = 4 + 5 * STRING_BYTES + 12 + 5 * 4;

/// How many bytes the kernel may write for a command. Those that fill an array write as many as its head has room for.
fn least_bytes(command: &[u8]) -> usize {
    let word = |at: usize| number(command, 4 * at, 4).unwrap_or(u64::MAX) as usize;
    let array =
        |head: usize, count: usize, bytes: usize| count.saturating_mul(bytes).saturating_add(head);
    let code = number(command, 0, 4).unwrap_or(u64::MAX) as u32;
    if let Some(group) = GROUPS
        .iter()
        .find(|group| [group.get, group.set].contains(&code))
    {
        return 4 + 4 * group.words;
    }
    match code {
        GDRVINFO => DRVINFO_BYTES,
        GSTRINGS => array(12, word(2).saturating_add(SPARE), STRING_BYTES),
        GSTATS => array(8, word(1).saturating_add(SPARE), 8),
        GSSET_INFO => 20,
        GRXFHINDIR => array(8, word(1), 4),
        GFEATURES => array(8, word(1), 16),
        SFEATURES => array(8, word(1), 8),
        code if [TSO, GRO]
            .iter()
            .any(|offload| [offload.get, offload.set].contains(&code)) =>
        {
            8
        }
        _ => usize::MAX,
    }
}

fn command(words: &[u32], room_bytes: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(bytes.len() + room_bytes, 0);
    bytes
}

fn word(answer: &[u8], at: usize) -> u32 {
    number(answer, 4 * at, 4).unwrap_or(0) as u32
}

/// Name, version and firmware of a device's driver; empty where it does not say.
///
/// # Errors
/// It has none, or has gone.
pub fn driver(drivers: &impl Drivers, device: &OsStr) -> io::Result<[String; 3]> {
    let mut answer = command(&[GDRVINFO], DRVINFO_BYTES - 4);
    drivers.ask(device, &mut answer)?;
    Ok([0, 1, 2].map(|at| text(&answer[4 + at * STRING_BYTES..][..STRING_BYTES])))
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into()
}

/// Whether an offload is on.
///
/// # Errors
/// The driver refuses.
pub fn is_on(drivers: &impl Drivers, device: &OsStr, offload: Offload) -> io::Result<bool> {
    let mut answer = command(&[offload.get, 0], 0);
    drivers.ask(device, &mut answer)?;
    Ok(word(&answer, 1) != 0)
}

/// Turns an offload on or off.
///
/// # Errors
/// The driver refuses.
pub fn turn(drivers: &impl Drivers, device: &OsStr, offload: Offload, on: bool) -> io::Result<()> {
    drivers.ask(device, &mut command(&[offload.set, on.into()], 0))
}

/// The numbers of a group, with their names.
///
/// # Errors
/// The driver has no such thing.
pub fn numbers(
    drivers: &impl Drivers,
    device: &OsStr,
    group: &Group,
) -> io::Result<Vec<(&'static str, u32)>> {
    let mut answer = command(&[group.get], 4 * group.words);
    drivers.ask(device, &mut answer)?;
    let named = |at: usize| Some((group.name_of(at)?, word(&answer, 1 + at)));
    Ok((0..group.words).filter_map(named).collect())
}

/// Gives the numbers of a group to the driver; those without a value are 0.
///
/// # Errors
/// The driver refuses.
pub fn set_numbers(
    drivers: &impl Drivers,
    device: &OsStr,
    group: &Group,
    value: impl Fn(&str) -> Option<u32>,
) -> io::Result<()> {
    let mut words = vec![group.set];
    words.extend((0..group.words).map(|at| group.name_of(at).and_then(&value).unwrap_or(0)));
    drivers.ask(device, &mut command(&words, 0))
}

fn names(drivers: &impl Drivers, device: &OsStr, set: u32) -> io::Result<Vec<String>> {
    // The mask of 64 bits is at the third word.
    let mut info = command(&[GSSET_INFO, 0], 0);
    info.extend((1u64 << set).to_ne_bytes());
    info.extend([0; 4]);
    drivers.ask(device, &mut info)?;
    let count = word(&info, 4) as usize;
    let mut answer = command(
        &[GSTRINGS, set, count as u32],
        (count + SPARE) * STRING_BYTES,
    );
    drivers.ask(device, &mut answer)?;
    Ok(answer[12..]
        .chunks(STRING_BYTES)
        .take(count)
        .map(text)
        .collect())
}

/// Every feature, by bit.
///
/// # Errors
/// The driver refuses.
pub fn features(drivers: &impl Drivers, device: &OsStr) -> io::Result<Vec<Feature>> {
    let names = names(drivers, device, SS_FEATURES)?;
    let blocks = names.len().div_ceil(32);
    let mut answer = command(&[GFEATURES, blocks as u32], 16 * blocks);
    drivers.ask(device, &mut answer)?;
    let feature = |(bit, name): (usize, String)| {
        // A block: can be changed, is wanted, is active, never changes.
        let is = |which: usize| word(&answer, 2 + bit / 32 * 4 + which) >> (bit % 32) & 1 == 1;
        Feature {
            name,
            is_changeable: is(0) && !is(3),
            is_wanted: is(1),
            is_active: is(2),
        }
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// Wants features to be on or off, by name; the others stay.
///
/// # Errors
/// The driver refuses.
pub fn set_features(
    drivers: &impl Drivers,
    device: &OsStr,
    wanted: impl Fn(&str) -> Option<bool>,
) -> io::Result<()> {
    let names = names(drivers, device, SS_FEATURES)?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + 2 * blocks];
    (words[0], words[1]) = (SFEATURES, blocks as u32);
    for (bit, name) in names.iter().enumerate() {
        if let Some(on) = wanted(name) {
            words[2 + bit / 32 * 2] |= 1 << (bit % 32);
            words[3 + bit / 32 * 2] |= u32::from(on) << (bit % 32);
        }
    }
    drivers.ask(device, &mut command(&words, 0))
}

/// The driver's own counters.
///
/// # Errors
/// The driver has none.
pub fn counters(drivers: &impl Drivers, device: &OsStr) -> io::Result<Vec<(String, u64)>> {
    let names = names(drivers, device, SS_STATS)?;
    let mut answer = command(&[GSTATS, names.len() as u32], 8 * (names.len() + SPARE));
    drivers.ask(device, &mut answer)?;
    let values = answer[8..].chunks_exact(8);
    let values = values.map(|bytes| number(bytes, 0, 8).unwrap_or(0));
    Ok(names.into_iter().zip(values).collect())
}

/// Receive queues that the table of RSS leads to.
///
/// # Errors
/// The driver has no such table.
pub fn rss_queues(drivers: &impl Drivers, device: &OsStr) -> io::Result<BTreeSet<u32>> {
    let mut size = command(&[GRXFHINDIR, 0], 0);
    drivers.ask(device, &mut size)?;
    let count = word(&size, 1);
    let mut answer = command(&[GRXFHINDIR, count], 4 * count as usize);
    drivers.ask(device, &mut answer)?;
    Ok((0..count as usize)
        .map(|at| word(&answer, 2 + at))
        .collect())
}
