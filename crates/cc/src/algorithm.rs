//! The registry: every algorithm of `cc/algorithms.def`, as the C side describes it.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use crate::contract::{CcIn, CcInfo, CcOut};

/// The ops, numbered as `enum cc_op_number` in `cc/cc_algorithm.h`; names, order and meaning as in Linux'
/// `struct tcp_congestion_ops`.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Init = 0,
    Ssthresh,
    CongAvoid,
    CongControl,
    UndoCwnd,
    SetState,
    CwndEvent,
    PktsAcked,
    MinTsoSegs,
    SndbufExpand,
    InAckEvent,
    /// Exists in the simulator only: stock Linux does not tell of single packets.
    SkbMarkedLost,
}

impl Op {
    /// Every op, in the order of their numbers.
    pub const ALL: [Op; 12] = [
        Op::Init,
        Op::Ssthresh,
        Op::CongAvoid,
        Op::CongControl,
        Op::UndoCwnd,
        Op::SetState,
        Op::CwndEvent,
        Op::PktsAcked,
        Op::MinTsoSegs,
        Op::SndbufExpand,
        Op::InAckEvent,
        Op::SkbMarkedLost,
    ];

    /// As `struct tcp_congestion_ops` of Linux has it.
    pub fn name(self) -> &'static str {
        match self {
            Op::Init => "init",
            Op::Ssthresh => "ssthresh",
            Op::CongAvoid => "cong_avoid",
            Op::CongControl => "cong_control",
            Op::UndoCwnd => "undo_cwnd",
            Op::SetState => "set_state",
            Op::CwndEvent => "cwnd_event",
            Op::PktsAcked => "pkts_acked",
            Op::MinTsoSegs => "min_tso_segs",
            Op::SndbufExpand => "sndbuf_expand",
            Op::InAckEvent => "in_ack_event",
            Op::SkbMarkedLost => "skb_marked_lost",
        }
    }
}

pub(crate) type OpFn = unsafe extern "C" fn(*mut c_void, *const CcIn, *mut CcOut);
pub(crate) type GetInfoFn = unsafe extern "C" fn(*const c_void, *const CcIn, *mut CcInfo);
pub(crate) type Ops = [Option<OpFn>; Op::ALL.len()];

#[repr(C)]
struct RawParam {
    name: *const c_char,
    dflt: u32,
    min: u32,
    max: u32,
    unit: *const c_char,
    doc: *const c_char,
}

#[repr(C)]
pub(crate) struct RawAlgorithm {
    name: *const c_char,
    kernel_name: *const c_char,
    summary: *const c_char,
    source: *const c_char,
    use_when: *const c_char,
    year: u32,
    flags: u32,
    state_bytes: u32,
    n_params: u32,
    params: *const RawParam,
    ops: Ops,
    get_info: Option<GetInfoFn>,
    phases: *const *const c_char,
    n_phases: u32,
}

/// Of a file's state. `cc/cc.h` allows 2048; a source of the kernel has its socket and what it allocates there too.
const STATE_MOST_BYTES: u32 = 1 << 20;

/// Of entries in a table of a file.
const TABLE_MOST: u32 = 512;

unsafe extern "C" {
    static cc_algorithms: *const RawAlgorithm;
    static cc_n_algorithms: u32;
    static cc_n_ops: u32;
}

/// A parameter that may be set per connection.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: &'static str,
    pub default: u32,
    pub min: u32,
    pub max: u32,
    /// `""`, `"ms"`, `"1/256"` …
    pub unit: &'static str,
    /// One line: what it does, and the source of the default.
    pub doc: &'static str,
}

/// What an algorithm says of itself, and its ops.
#[derive(Debug)]
pub struct Algorithm {
    name: &'static str,
    kernel_name: &'static str,
    summary: &'static str,
    source: &'static str,
    use_when: &'static str,
    year: u32,
    flags: u32,
    state_bytes: usize,
    params: Vec<Param>,
    ops: Ops,
    get_info: Option<GetInfoFn>,
    phases: Vec<&'static str>,
    /// Of the sources of one from a file.
    digest: Option<&'static str>,
    private_bytes: Option<u32>,
}

impl Algorithm {
    /// The name used in scenarios.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the kernel calls our build: `knee_` and the name, if that is short enough.
    pub fn kernel_name(&self) -> &'static str {
        self.kernel_name
    }

    /// One line: what it does.
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// RFC, draft or paper, with revision and section.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// One line: where it is the right choice.
    pub fn use_when(&self) -> &'static str {
        self.use_when
    }

    /// Year in which the algorithm was first published.
    pub fn year(&self) -> u32 {
        self.year
    }

    /// Does the algorithm need ECN negotiated (Linux: TCP_CONG_NEEDS_ECN)?
    pub fn needs_ecn(&self) -> bool {
        self.flags & 0x2 != 0
    }

    /// Does the algorithm need Accurate ECN (Linux: TCP_CONG_NEEDS_ACCECN)?
    pub fn needs_accurate_ecn(&self) -> bool {
        self.flags & 0x4 != 0
    }

    /// Is what it sends ECT(1) rather than ECT(0) (Linux: TCP_CONG_ECT_1_NEGOTIATION)?
    pub fn sends_ect_1(&self) -> bool {
        self.flags & 0x8 != 0
    }

    /// Memory per connection, bytes.
    pub fn state_bytes(&self) -> usize {
        self.state_bytes
    }

    /// The parameters, in the order in which they open the state.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Does the algorithm provide this op?
    #[inline]
    pub fn has(&self, op: Op) -> bool {
        self.ops[op as usize].is_some()
    }

    /// Names of the phases that [`Info::phase`](crate::Info) may tell; empty for an algorithm without a model of
    /// the path.
    pub fn phases(&self) -> &[&'static str] {
        &self.phases
    }

    /// What Linux calls its own build of it, if it has one.
    pub fn linux_name(&self) -> &'static str {
        match self.name {
            "bbr1" => "bbr",
            name => name,
        }
    }

    /// Of the sources, where they are a user's file; `None`: it is built in.
    pub fn digest(&self) -> Option<&'static str> {
        self.digest
    }

    /// What a source of the kernel asks the kernel for, of each connection; `None`: it is none.
    pub fn private_bytes(&self) -> Option<u32> {
        self.private_bytes
    }

    pub(crate) fn get_info(&self) -> &Option<GetInfoFn> {
        &self.get_info
    }

    /// Is it from a file? Then its calls are looked at.
    #[inline]
    pub(crate) fn is_from_file(&self) -> bool {
        self.digest.is_some()
    }

    #[inline]
    pub(crate) fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The name of the function whose entry of this description that is.
    pub(crate) fn function_at(&self, entry: *const ()) -> Option<&'static str> {
        let has = |op: &Op| ptr::from_ref(&self.ops[*op as usize]).cast() == entry;
        let op = || Op::ALL.into_iter().find(has).map(Op::name);
        match ptr::from_ref(&self.get_info).cast() == entry {
            true => Some("get_info"),
            false => op(),
        }
    }

    /// # Safety
    /// `raw` comes from the C registry: its strings and tables are static.
    unsafe fn from_raw(raw: &RawAlgorithm) -> Self {
        let phases: &[*const c_char] = if raw.n_phases == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(raw.phases, raw.n_phases as usize) }
        };
        let params = unsafe { std::slice::from_raw_parts(raw.params, raw.n_params as usize) };
        Algorithm {
            name: text(raw.name),
            kernel_name: text(raw.kernel_name),
            summary: text(raw.summary),
            source: text(raw.source),
            use_when: text(raw.use_when),
            year: raw.year,
            flags: raw.flags,
            state_bytes: raw.state_bytes as usize,
            params: params
                .iter()
                .map(|p| Param {
                    name: text(p.name),
                    default: p.dflt,
                    min: p.min,
                    max: p.max,
                    unit: text(p.unit),
                    doc: text(p.doc),
                })
                .collect(),
            ops: raw.ops,
            get_info: raw.get_info,
            phases: phases.iter().map(|&name| text(name)).collect(),
            digest: None,
            private_bytes: None,
        }
    }

    /// The algorithm of a user's file, which says itself what is wrong with it.
    ///
    /// # Safety
    /// `raw` is of the layout of `cc_native.h`, and each string and table of it that is not null is static.
    pub(crate) unsafe fn of_file(
        raw: &RawAlgorithm,
        name: Option<&str>,
        digest: &str,
        private_bytes: Option<u32>,
    ) -> Result<Self, String> {
        let said = [
            (raw.name, "name"),
            (raw.kernel_name, "name for the kernel"),
            (raw.summary, ".summary"),
            (raw.source, ".source"),
            (raw.use_when, ".use_when"),
        ];
        if let Some((_, what)) = said.iter().find(|(text, _)| text.is_null()) {
            return Err(format!(
                "CC_ALGORITHM(…) says no {what}; expected a line of text for it"
            ));
        }
        if raw.state_bytes > STATE_MOST_BYTES {
            return Err(format!(
                "its state has {} bytes; expected {STATE_MOST_BYTES} at most",
                raw.state_bytes
            ));
        }
        if u64::from(raw.n_params) * 4 > u64::from(raw.state_bytes) {
            return Err(
                "its state has no room for its parameters; expected CC_PARAM_FIELDS(…) at the state's beginning"
                    .into(),
            );
        }
        // SAFETY: as asked of the caller; it is as long as the description says, which is bounded.
        let params = unsafe { table(raw.params, raw.n_params, "parameters") }?;
        let is_whole = |p: &RawParam| ![p.name, p.unit, p.doc].iter().any(|text| text.is_null());
        if let Some(place) = params.iter().position(|param| !is_whole(param)) {
            return Err(format!(
                "its parameter {} lacks a text; expected a name, a unit (\"\" is one) and a line on it",
                place + 1
            ));
        }
        // SAFETY: as asked of the caller; bounded by the table's own look.
        let phases = unsafe { table(raw.phases, raw.n_phases, "phases") }?;
        if phases.iter().any(|text| text.is_null()) {
            return Err("a phase of it has no name; expected a text for each".into());
        }
        let has = |op: Op| raw.ops[op as usize].is_some();
        for op in [Op::Ssthresh, Op::UndoCwnd] {
            if !has(op) {
                return Err(format!(
                    "its list of ops has no {}; expected it, as Linux asks for it of every algorithm",
                    op.name()
                ));
            }
        }
        if !has(Op::CongAvoid) && !has(Op::CongControl) {
            return Err(
                "its list of ops has neither cong_avoid nor cong_control; expected one of them, which sets the window"
                    .into(),
            );
        }
        // SAFETY: as asked of the caller.
        let algorithm = unsafe { Algorithm::from_raw(raw) };
        for param in &algorithm.params {
            let Param {
                name,
                default,
                min,
                max,
                ..
            } = param;
            if !(min..=max).contains(&default) {
                return Err(format!(
                    "its parameter {name} is {default} by default; expected {min} to {max}, which it says itself"
                ));
            }
        }
        Ok(Algorithm {
            name: name.map_or(algorithm.name, |name| String::from(name).leak()),
            digest: Some(String::from(digest).leak()),
            private_bytes,
            ..algorithm
        })
    }
}

/// A table of a description of somebody's file. Those of a file have some entries.
///
/// # Safety
/// `first` is null, or a table of `count` entries that is static.
unsafe fn table<T>(first: *const T, count: u32, what: &str) -> Result<&'static [T], String> {
    match count {
        0 => Ok(&[]),
        1..=TABLE_MOST if !first.is_null() && first.is_aligned() => {
            // SAFETY: as asked of the caller.
            Ok(unsafe { std::slice::from_raw_parts(first, count as usize) })
        }
        _ => Err(format!(
            "its description says that there are {count} {what}, where there is no such table; expected what \
             CC_ALGORITHM(…) writes"
        )),
    }
}

fn text(s: *const c_char) -> &'static str {
    assert!(
        !s.is_null(),
        "cc/: an algorithm leaves a text of its description out"
    );
    // SAFETY: a string literal of the C registry.
    unsafe { CStr::from_ptr(s) }
        .to_str()
        .unwrap_or("(no UTF-8)")
}

/// Every algorithm there is, in the order of `cc/algorithms.def`.
pub fn algorithms() -> &'static [Algorithm] {
    static REGISTRY: OnceLock<Vec<Algorithm>> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        // SAFETY: cc_native.c lays `cc_n_algorithms` pointers to constant descriptors at `cc_algorithms`.
        unsafe {
            assert_eq!(
                cc_n_ops as usize,
                Op::ALL.len(),
                "Op does not mirror enum cc_op_number"
            );
            let raw =
                std::slice::from_raw_parts(&raw const cc_algorithms, cc_n_algorithms as usize);
            raw.iter().map(|&r| Algorithm::from_raw(&*r)).collect()
        }
    })
}

/// The algorithm of this name of ours, if there is one.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    algorithms().iter().find(|a| a.name == name)
}
