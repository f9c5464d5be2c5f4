//! Which sockets are wanted: judged here, or by the kernel while it dumps.
//!
//! The kernel runs a small program over each socket (`struct inet_diag_bc_op`):
//! an operation that holds goes on `yes` bytes further, one that does not `no`
//! bytes. Who arrives at the program's end is told of, who jumps four bytes
//! beyond it is not. There are no jumps backwards.
//! Source: Linux 6.18, net/ipv4/inet_diag.c, inet_diag_bc_run() and _audit().

use std::net::IpAddr;

use super::Diag;

// enum INET_DIAG_BC_*, include/uapi/linux/inet_diag.h.
const NOP: u8 = 0;
const JMP: u8 = 1;
const S_GE: u8 = 2;
const S_LE: u8 = 3;
const D_GE: u8 = 4;
const D_LE: u8 = 5;
const S_COND: u8 = 7;
const D_COND: u8 = 8;
const MARK_COND: u8 = 10;
const CGROUP_COND: u8 = 13;

/// Bytes of an operation without what it compares with.
const OP_BYTES: usize = 4;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Local,
    Remote,
    Either,
}

/// A condition on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them; holds when there are none.
    All(Vec<Filter>),
    /// One of them at least; does not hold when there are none.
    Any(Vec<Filter>),
    Not(Box<Filter>),
    /// A port from `low` to `high`, both included.
    Port {
        end: End,
        low: u16,
        high: u16,
    },
    /// An address whose first bits are these. IPv4 prefixes hold for v4-mapped
    /// IPv6 addresses too.
    Prefix {
        end: End,
        address: IpAddr,
        bits: u8,
    },
    /// The bits of SO_MARK in `mask`. The kernel tells marks to CAP_NET_ADMIN only.
    Mark {
        value: u32,
        mask: u32,
    },
    /// The cgroup v2 by its id.
    Cgroup(u64),
}

/// The program would need jumps longer than an operation can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filter makes a program of {bytes} bytes, and the kernel takes 65528 at most")]
pub struct TooLong {
    pub bytes: usize,
}

impl Filter {
    /// Does it ask for a mark anywhere?
    pub fn has_mark(&self) -> bool {
        match self {
            Filter::All(filters) | Filter::Any(filters) => filters.iter().any(Filter::has_mark),
            Filter::Not(filter) => filter.has_mark(),
            Filter::Mark { .. } => true,
            Filter::Port { .. } | Filter::Prefix { .. } | Filter::Cgroup(_) => false,
        }
    }

    /// Does it hold? What the kernel did not tell of a socket (its mark, its
    /// cgroup) matches nothing.
    pub fn matches(&self, diag: &Diag<'_>) -> bool {
        let ends = |end: End| {
            let both = [(End::Local, diag.source), (End::Remote, diag.destination)];
            both.into_iter()
                .filter(move |&(which, _)| end == End::Either || end == which)
                .map(|(_, found)| found)
        };
        match *self {
            Filter::All(ref parts) => parts.iter().all(|part| part.matches(diag)),
            Filter::Any(ref parts) => parts.iter().any(|part| part.matches(diag)),
            Filter::Not(ref part) => !part.matches(diag),
            Filter::Port { end, low, high } => {
                ends(end).any(|(_, port)| (low..=high).contains(&port))
            }
            Filter::Prefix { end, address, bits } => {
                ends(end).any(|(found, _)| has_prefix(found, address, bits))
            }
            Filter::Mark { value, mask } => {
                diag.mark.is_some_and(|mark| mark & mask == value & mask)
            }
            Filter::Cgroup(id) => diag.cgroup_id == Some(id),
        }
    }

    /// Does it ask for what destroy events do not tell?
    pub fn asks_for_mark_or_cgroup(&self) -> bool {
        match self {
            Filter::All(parts) | Filter::Any(parts) => {
                parts.iter().any(Filter::asks_for_mark_or_cgroup)
            }
            Filter::Not(part) => part.asks_for_mark_or_cgroup(),
            Filter::Mark { .. } | Filter::Cgroup(_) => true,
            Filter::Port { .. } | Filter::Prefix { .. } => false,
        }
    }

    /// The condition as the kernel's program; empty: it holds for all.
    ///
    /// # Errors
    /// [`TooLong`]: thousands of conditions; [`matches`](Filter::matches) takes any number.
    pub fn compile(&self) -> Result<Vec<u8>, TooLong> {
        if *self == Filter::All(Vec::new()) {
            return Ok(Vec::new());
        }
        let program = self.program();
        let bytes = length(&program);
        // A jump past the end has to fit in 16 bits, and so has the attribute.
        if bytes + 2 * OP_BYTES > usize::from(u16::MAX) {
            return Err(TooLong { bytes });
        }
        let mut code = Vec::with_capacity(bytes);
        for op in &program {
            let no = u16::try_from(op.no).expect("no jump is longer than the program and four");
            let yes = (OP_BYTES + op.operand.len()) as u8;
            code.extend_from_slice(&[op.code, yes]);
            code.extend_from_slice(&no.to_ne_bytes());
            code.extend_from_slice(&op.operand);
        }
        Ok(code)
    }

    fn program(&self) -> Vec<Op> {
        match *self {
            Filter::All(ref parts) if parts.is_empty() => vec![Op::new(NOP, Vec::new())],
            Filter::All(ref parts) => all(parts.iter().map(Filter::program).collect()),
            Filter::Any(ref parts) => any(parts.iter().map(Filter::program).collect()),
            Filter::Not(ref part) => not(part.program()),
            Filter::Port { end, low, high } => sides(end, |local| {
                let (at_least, at_most) = if local { (S_GE, S_LE) } else { (D_GE, D_LE) };
                // The port stands where another operation has its jump.
                let port = |code, port: u16| {
                    let [low, high] = port.to_ne_bytes();
                    vec![Op::new(code, vec![0, 0, low, high])]
                };
                all(vec![port(at_least, low), port(at_most, high)])
            }),
            Filter::Prefix { end, address, bits } => sides(end, |local| {
                vec![Op::new(
                    if local { S_COND } else { D_COND },
                    host_condition(address, bits),
                )]
            }),
            Filter::Mark { value, mask } => {
                let operand = [(value & mask).to_ne_bytes(), mask.to_ne_bytes()].concat();
                vec![Op::new(MARK_COND, operand)]
            }
            Filter::Cgroup(id) => vec![Op::new(CGROUP_COND, id.to_ne_bytes().to_vec())],
        }
    }
}

fn has_prefix(found: IpAddr, prefix: IpAddr, bits: u8) -> bool {
    let same = |one: u128, other: u128, width: u8| {
        let unlike = width.saturating_sub(bits);
        // A shift by the whole width is none: the prefix of no bits.
        one.checked_shr(unlike.into()).unwrap_or(0) == other.checked_shr(unlike.into()).unwrap_or(0)
    };
    match (found, prefix) {
        (IpAddr::V4(found), IpAddr::V4(prefix)) => {
            same(u32::from(found).into(), u32::from(prefix).into(), 32)
        }
        (IpAddr::V6(found), IpAddr::V6(prefix)) => same(found.into(), prefix.into(), 128),
        (IpAddr::V6(found), IpAddr::V4(prefix)) => found
            .to_ipv4_mapped()
            .is_some_and(|found| same(u32::from(found).into(), u32::from(prefix).into(), 32)),
        (IpAddr::V4(_), IpAddr::V6(_)) => false,
    }
}

/// `struct inet_diag_hostcond`, with any port.
fn host_condition(address: IpAddr, bits: u8) -> Vec<u8> {
    const ANY_PORT: i32 = -1;
    let (family, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    let mut operand = vec![family as u8, bits, 0, 0];
    operand.extend_from_slice(&ANY_PORT.to_ne_bytes());
    operand.extend_from_slice(&octets);
    operand
}

/// An operation; a jump of `no` bytes counts from its beginning.
struct Op {
    code: u8,
    no: usize,
    operand: Vec<u8>,
}

impl Op {
    /// Goes on when it holds, refuses when it does not.
    fn new(code: u8, operand: Vec<u8>) -> Op {
        let no = OP_BYTES + operand.len() + OP_BYTES;
        Op { code, no, operand }
    }

    fn jump(no: usize) -> Op {
        Op {
            code: JMP,
            no,
            operand: Vec::new(),
        }
    }
}

fn length(program: &[Op]) -> usize {
    program.iter().map(|op| OP_BYTES + op.operand.len()).sum()
}

/// One after the other; who is refused by one jumps over the rest.
fn all(parts: Vec<Vec<Op>>) -> Vec<Op> {
    let mut rest: usize = parts.iter().map(|part| length(part)).sum();
    let mut program = Vec::new();
    for mut part in parts {
        let own = length(&part);
        rest -= own;
        let mut at = 0;
        for op in &mut part {
            if at + op.no == own + OP_BYTES {
                op.no += rest;
            }
            at += OP_BYTES + op.operand.len();
        }
        program.append(&mut part);
    }
    program
}

/// Each but the last is followed by a jump to the end, which who is refused passes over.
fn any(parts: Vec<Vec<Op>>) -> Vec<Op> {
    let mut program = Vec::new();
    for mut part in parts.into_iter().rev() {
        if !program.is_empty() {
            part.push(Op::jump(OP_BYTES + length(&program)));
        }
        part.append(&mut program);
        program = part;
    }
    match program.is_empty() {
        true => vec![Op::jump(2 * OP_BYTES)],
        false => program,
    }
}

/// Who gets through meets a jump that refuses; who is refused passes over it.
fn not(mut part: Vec<Op>) -> Vec<Op> {
    part.push(Op::jump(2 * OP_BYTES));
    part
}

fn sides(end: End, one: impl Fn(bool) -> Vec<Op>) -> Vec<Op> {
    match end {
        End::Local => one(true),
        End::Remote => one(false),
        End::Either => any(vec![one(true), one(false)]),
    }
}
