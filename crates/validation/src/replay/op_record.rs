//! One op of a live flow, as `struct record` of `bpf/record.h` has it.

use knee_cc::{CcIn, CcOut, Op};

/// What one op was shown and what the kernel's own algorithm made of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpRecord {
    /// Number of the connection within the recording, from 1.
    pub flow: u64,
    /// Number of the op within its flow, from 0; a gap is a record that was lost.
    pub number: u32,
    /// Number of the op; see [`OpRecord::op`].
    pub raw_op: u32,
    /// What the stack showed the op.
    pub input: CcIn,
    /// What the kernel's algorithm left behind.
    pub out: CcOut,
    /// cubic: the kernel's K after the op, 2^-10 s; else 0.
    pub kernel_k: u32,
    pub(super) unused: u32,
}

const HEAD_BYTES: usize = 16;
/// What follows the head, in words of 32 bits; the last one is not used.
pub(super) const WORDS: usize = (size_of::<OpRecord>() - HEAD_BYTES) / 4 - 1;
/// Where in them `out` begins.
pub(super) const OUT_AT: usize = size_of::<CcIn>() / 4;

impl OpRecord {
    /// The op, if it is one of ours.
    pub fn op(&self) -> Option<Op> {
        Op::ALL.get(self.raw_op as usize).copied()
    }

    /// Is this an ACK's decision on the window?
    pub fn is_ack(&self) -> bool {
        matches!(self.op(), Some(Op::CongAvoid | Op::CongControl))
    }

    /// `out` as it was before the op: what the connection had.
    pub fn out_before(&self) -> CcOut {
        CcOut {
            pacing_rate: self.input.pacing_rate,
            pacing_status: self.input.pacing_status,
            snd_cwnd: self.input.snd_cwnd,
            snd_cwnd_cnt: self.input.snd_cwnd_cnt,
            snd_ssthresh: self.input.snd_ssthresh,
            app_limited: self.input.app_limited,
            ecn_echo: self.input.ack_state & knee_cc::ACK_STATE_ECHO,
            ..CcOut::default()
        }
    }

    /// From the bytes that the BPF program wrote; none when there are fewer or more.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; size_of::<OpRecord>()] = bytes.try_into().ok()?;
        // SAFETY: OpRecord holds integers alone and no padding, so that all bytes are a value of it.
        Some(unsafe { std::mem::transmute_copy(bytes) })
    }

    /// The record without its head, as words.
    pub(super) fn words(&self) -> [u32; WORDS] {
        // SAFETY: as in from_bytes; the words follow the head and end before the record does.
        unsafe {
            std::ptr::from_ref(self)
                .cast::<u8>()
                .add(HEAD_BYTES)
                .cast::<[u32; WORDS]>()
                .read()
        }
    }

    /// The inverse of [`OpRecord::words`].
    pub(super) fn from_words(flow: u64, number: u32, raw_op: u32, words: &[u32; WORDS]) -> Self {
        let mut record = OpRecord {
            flow,
            number,
            raw_op,
            ..OpRecord::default()
        };
        // SAFETY: as in words.
        unsafe {
            std::ptr::from_mut(&mut record)
                .cast::<u8>()
                .add(HEAD_BYTES)
                .cast::<[u32; WORDS]>()
                .write(*words);
        }
        record
    }
}
