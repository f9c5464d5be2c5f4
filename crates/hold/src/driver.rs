//! Features of a device, by the ioctl of ethtool. Source: Linux 6.18, include/uapi/linux/ethtool.h.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::netlink::word;

const GSTRINGS: u32 = 0x1b;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const SS_FEATURES: u32 = 4;
const STRING_BYTES: usize = 32;

nix::ioctl_write_ptr_bad!(siocethtool, libc::SIOCETHTOOL, libc::ifreq);

/// A feature of a device.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    /// As the kernel names it: `tx-tcp-segmentation`; empty: its bit has none.
    pub name: String,
    pub is_changeable: bool,
    pub is_wanted: bool,
}

/// `command` has room for all that the kernel writes: its callers see to that.
fn ask(device: &str, command: &mut [u8]) -> io::Result<()> {
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
    // SAFETY: the request and the command that it points to outlive the call; the command has the room that its head
    // tells the kernel of.
    unsafe { siocethtool(socket.as_raw_fd(), &request) }?;
    Ok(())
}

fn command(words: &[u32], room_bytes: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(bytes.len() + room_bytes, 0);
    bytes
}

fn names(device: &str) -> io::Result<Vec<String>> {
    // The mask of 64 bits is at the third word.
    let mut info = command(&[GSSET_INFO, 0, 1 << SS_FEATURES, 0], 4);
    ask(device, &mut info)?;
    // A kernel has the same features for every device: their number does not change meanwhile.
    let count = word(&info, 16) as usize;
    let mut answer = command(&[GSTRINGS, SS_FEATURES, count as u32], count * STRING_BYTES);
    ask(device, &mut answer)?;
    let text = |bytes: &[u8]| {
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    Ok(answer[12..].chunks(STRING_BYTES).map(text).collect())
}

/// Every feature, by bit.
pub fn features(device: &str) -> io::Result<Vec<Feature>> {
    let names = names(device)?;
    let blocks = names.len().div_ceil(32);
    let mut answer = command(&[GFEATURES, blocks as u32], 16 * blocks);
    ask(device, &mut answer)?;
    let feature = |(bit, name): (usize, String)| {
        // A block: can be changed, is wanted, is active, never changes.
        let is = |which: usize| word(&answer, 8 + bit / 32 * 16 + which * 4) >> (bit % 32) & 1 == 1;
        Feature {
            name,
            is_changeable: is(0) && !is(3),
            is_wanted: is(1),
        }
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// Wants features to be on or off, by name; the others stay.
pub fn set_features(device: &str, wanted: impl Fn(&str) -> Option<bool>) -> io::Result<()> {
    let names = names(device)?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + 2 * blocks];
    (words[0], words[1]) = (SFEATURES, blocks as u32);
    for (bit, name) in names.iter().enumerate() {
        if let Some(on) = wanted(name) {
            words[2 + bit / 32 * 2] |= 1 << (bit % 32);
            words[3 + bit / 32 * 2] |= u32::from(on) << (bit % 32);
        }
    }
    ask(device, &mut command(&words, 0))
}
