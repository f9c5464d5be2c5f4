//! One connection's copy of an algorithm.

use std::sync::Arc;

use crate::algorithm::{Algorithm, GetInfoFn, Op, OpFn};
use crate::contract::{CcIn, CcInfo, CcOut};
use crate::under_way::UnderWay;
use crate::watched::{self, MARGIN};

/// Why an override of a parameter was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    #[error("{algorithm}: unknown parameter \"{name}\"; known: {known}")]
    Unknown {
        algorithm: &'static str,
        name: String,
        known: String,
    },
    #[error("{algorithm}.{name}: got {got}, expected {min} to {max}{unit}")]
    OutOfRange {
        algorithm: &'static str,
        name: &'static str,
        got: u32,
        min: u32,
        max: u32,
        /// With a leading space, or empty.
        unit: String,
    },
}

/// An algorithm's model of the path, as `ss` prints it for BBR (`tcp_bbr_info` of linux/inet_diag.h), and its phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Bandwidth estimate in use, bytes/s; none before the first sample.
    pub bw_bytes_per_sec: Option<u64>,
    /// RTT of the path without queue, µs; none before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Pacing rate over bandwidth.
    pub pacing_gain: f64,
    /// Window over bandwidth-delay product.
    pub cwnd_gain: f64,
    /// One of [`Algorithm::phases`].
    pub phase: &'static str,
}

/// An algorithm with the state of one connection.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The state; of an algorithm from a file with margins around it.
    memory: Box<[u64]>,
    algorithm: &'static Algorithm,
    /// Shared with its clones.
    under_way: Arc<UnderWay>,
}

impl Instance {
    /// State with the parameters at their defaults, then `overrides` by name; all else zero. Call [`Op::Init`]
    /// before any other op.
    pub fn new(
        algorithm: &'static Algorithm,
        overrides: &[(&str, u32)],
    ) -> Result<Self, ParamError> {
        let mut values: Vec<u32> = algorithm.params().iter().map(|p| p.default).collect();
        for &(name, got) in overrides {
            let Some(i) = algorithm.params().iter().position(|p| p.name == name) else {
                let known: Vec<_> = algorithm.params().iter().map(|p| p.name).collect();
                return Err(ParamError::Unknown {
                    algorithm: algorithm.name(),
                    name: name.to_owned(),
                    known: known.join(", "),
                });
            };
            let param = &algorithm.params()[i];
            if !(param.min..=param.max).contains(&got) {
                return Err(ParamError::OutOfRange {
                    algorithm: algorithm.name(),
                    name: param.name,
                    got,
                    min: param.min,
                    max: param.max,
                    unit: if param.unit.is_empty() {
                        String::new()
                    } else {
                        format!(" {}", param.unit)
                    },
                });
            }
            values[i] = got;
        }

        let words = algorithm.state_bytes().div_ceil(8);
        let memory = match algorithm.is_from_file() {
            true => watched::memory(words),
            false => vec![0u64; words].into_boxed_slice(),
        };
        let mut made = Instance {
            memory,
            algorithm,
            under_way: Arc::default(),
        };
        let state = made.state_mut().as_mut_ptr().cast::<u32>();
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: cc.h lays the parameters as the first u32 of the state, which holds at least n_params of them.
            unsafe { state.add(i).write(value) };
        }
        Ok(made)
    }

    /// The same that tells there what it is doing.
    pub fn telling(self, under_way: &Arc<UnderWay>) -> Self {
        let under_way = under_way.clone();
        Instance { under_way, ..self }
    }

    /// The algorithm this is an instance of.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.algorithm
    }

    /// Does the algorithm provide this op?
    #[inline]
    pub fn has(&self, op: Op) -> bool {
        self.algorithm.has(op)
    }

    /// Runs one op. An op that the algorithm does not provide changes nothing.
    ///
    /// Fill `out` from the connection (the same values as in `input`) before, and copy it back after.
    #[inline]
    pub fn call(&mut self, op: Op, input: &CcIn, out: &mut CcOut) {
        let entry = &self.algorithm.ops()[op as usize];
        if let Some(f) = entry {
            if self.algorithm.is_from_file() {
                return self.call_watched(entry, *f, input, out);
            }
            let state = self.memory.as_mut_ptr().cast();
            // SAFETY: the state has the size the descriptor asks for and the alignment of u64; ops are total for
            // every input and keep no pointer (cc.h).
            self.under_way
                .during(entry, input.clock_ns, || unsafe { f(state, input, out) });
        }
    }

    fn call_watched(
        &mut self,
        entry: &'static Option<OpFn>,
        f: OpFn,
        input: &CcIn,
        out: &mut CcOut,
    ) {
        // SAFETY: this thread makes the calls, one at a time.
        let call = unsafe { self.under_way.place() };
        let end = self.memory.len() - MARGIN;
        let state = &mut self.memory[MARGIN..end];
        call.take_down(input, out, state);
        let (shown, changed) = call.blocks();
        let state = state.as_mut_ptr().cast();
        // SAFETY: what the op does beside its blocks is looked for, as far as that can be.
        self.under_way.during(entry, input.clock_ns, || unsafe {
            f(state, shown, changed)
        });
        match call.result(input, &self.memory) {
            Ok(changed) => *out = changed,
            Err(what) => self.under_way.breach(entry, what),
        }
    }

    /// What the algorithm knows of the path; none for one that keeps no model of it.
    pub fn info(&self, input: &CcIn) -> Option<Info> {
        let entry = self.algorithm.get_info();
        let get_info = (*entry)?;
        let raw = match self.algorithm.is_from_file() {
            true => self.info_watched(entry, get_info, input),
            false => {
                let (state, mut raw) = (self.memory.as_ptr().cast(), CcInfo::default());
                // SAFETY: as in `call`; get_info of ours only reads the state.
                self.under_way.during(entry, input.clock_ns, || unsafe {
                    get_info(state, input, &mut raw);
                });
                raw
            }
        };
        let gain = |in_256ths: u32| f64::from(in_256ths) / 256.0;
        Some(Info {
            bw_bytes_per_sec: (raw.bw > 0).then_some(raw.bw),
            min_rtt_us: (raw.min_rtt_us < u32::MAX).then_some(raw.min_rtt_us),
            pacing_gain: gain(raw.pacing_gain),
            cwnd_gain: gain(raw.cwnd_gain),
            phase: (self.algorithm.phases().get(raw.phase as usize)).copied()?,
        })
    }

    /// What a file's `get_info` writes of the state, as a source of the kernel does of its socket, goes with a copy.
    fn info_watched(
        &self,
        entry: &'static Option<GetInfoFn>,
        get_info: GetInfoFn,
        input: &CcIn,
    ) -> CcInfo {
        let (out, mut memory) = (CcOut::default(), self.memory.clone());
        // SAFETY: as in `call_watched`.
        let call = unsafe { self.under_way.place() };
        call.take_down(input, &out, self.state());
        let (shown, told) = call.blocks_of_info();
        let state = memory[MARGIN..].as_mut_ptr().cast_const().cast();
        // SAFETY: as in `call_watched`.
        self.under_way.during(entry, input.clock_ns, || unsafe {
            get_info(state, shown, told);
        });
        match call.result_of_info(input, &memory) {
            Ok(told) => told,
            Err(what) => self.under_way.breach(entry, what),
        }
    }

    /// The state's memory, in host byte order; parameters first. For checksums and equality, not for meaning.
    pub fn state(&self) -> &[u64] {
        let margin = self.margin();
        &self.memory[margin..self.memory.len() - margin]
    }

    /// The same memory, for one who tries what an op does from another state. Ops are total for every state.
    pub fn state_mut(&mut self) -> &mut [u64] {
        let (margin, end) = (self.margin(), self.memory.len());
        &mut self.memory[margin..end - margin]
    }

    fn margin(&self) -> usize {
        if self.algorithm.is_from_file() {
            MARGIN
        } else {
            0
        }
    }
}
