//! The congestion control algorithms of `cc/`, behind a safe interface.
//!
//! The C files are the single source of every algorithm: the same text runs in the Linux kernel as BPF
//! struct_ops. Here it is compiled for the host. [`algorithms`] lists what there is, [`Instance`] is one
//! connection's copy, and [`Instance::call`] runs one op over [`CcIn`] and [`CcOut`].
//!
//! ```
//! use knee_cc::{CcIn, CcOut, Instance, Op, find};
//!
//! let mut reno = Instance::new(find("reno").unwrap(), &[]).unwrap();
//! let mut out = CcOut { snd_cwnd: 20, ..CcOut::default() };
//! reno.call(Op::Ssthresh, &CcIn::default(), &mut out);
//! assert_eq!(out.ret, 10);
//! ```

mod algorithm;
mod contract;
pub mod file;
mod instance;
mod under_way;
mod watched;

pub use algorithm::{Algorithm, Op, Param, algorithms, find};
pub use contract::{
    ACK_ECE, ACK_MAYBE_DELAYED, ACK_SLOWPATH, ACK_SND_UNA_ADVANCED, ACK_STATE_DELAYED,
    ACK_STATE_ECHO, AckPrior, CaState, CcIn, CcInfo, CcOut, EcnMode, Event, INFINITE_SSTHRESH,
    PacingStatus,
};
pub use instance::{Info, Instance, ParamError};
pub use under_way::{UnderWay, on_breach};
pub use watched::Call;
