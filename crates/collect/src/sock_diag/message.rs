//! The messages of sock_diag, read where they lie.

use std::io;

use super::{Diag, Dump, Family, Question};
use knee_uapi::netlink::{HEADER_BYTES, Messages, NLMSG_DONE, NLMSG_ERROR, word};

/// Message type of requests and answers of today (SOCK_DIAG_BY_FAMILY).
pub const BY_FAMILY: u16 = 20;
/// And of the form before Linux 3.3 (TCPDIAG_GETSOCK), which still is answered.
pub const GETSOCK: u16 = 18;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x010;
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// `struct inet_diag_req`.
const OLD_REQUEST_BYTES: usize = 60;
/// The attribute of a request that carries a filter (INET_DIAG_REQ_BYTECODE).
const BYTECODE: u16 = 1;

pub fn request(sequence: u32, question: &Question) -> Vec<u8> {
    let old = question.family == Family::Both;
    let (kind, length) = match old {
        true => (GETSOCK, OLD_REQUEST_BYTES),
        false => (BY_FAMILY, REQUEST_BYTES),
    };
    let mut bytes = vec![0; HEADER_BYTES + length];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = match question.family {
        Family::V4 => libc::AF_INET as u8,
        Family::V6 => libc::AF_INET6 as u8,
        Family::Both => libc::AF_UNSPEC as u8,
    };
    let states = question.states.to_ne_bytes();
    if old {
        bytes[19] = question.extensions.0;
        // After the four bytes above and `struct inet_diag_sockid`.
        bytes[68..72].copy_from_slice(&states);
    } else {
        bytes[17] = libc::IPPROTO_TCP as u8;
        bytes[18] = question.extensions.0;
        bytes[20..24].copy_from_slice(&states);
    }
    if !question.bytecode.is_empty() {
        let length = u16::try_from(question.bytecode.len() + 4)
            .expect("compile() refuses what an attribute cannot hold");
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&BYTECODE.to_ne_bytes());
        bytes.extend_from_slice(&question.bytecode);
    }
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Takes the messages of one datagram; true: it was the dump's last. Messages with
/// another sequence number than the request's are passed over.
///
/// # Errors
/// The kernel's refusal, or a message that is longer than its datagram.
pub fn answers(
    bytes: &[u8],
    sequence: u32,
    dump: &mut Dump,
    take: &mut impl FnMut(Diag<'_>),
) -> io::Result<bool> {
    for message in Messages(bytes) {
        let message = message?;
        // What an earlier dump that was broken off left behind is passed over.
        if message.sequence != sequence {
            continue;
        }
        dump.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
        match message.kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = word(message.body, 0).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            BY_FAMILY | GETSOCK => match Diag::decode(message.body) {
                Some(diag) => {
                    dump.sockets += 1;
                    take(diag);
                }
                None => dump.not_understood += 1,
            },
            _ => {}
        }
    }
    Ok(false)
}
