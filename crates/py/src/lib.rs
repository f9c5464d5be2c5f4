//! `kneepoint._core`: what the Python front needs of the Rust crates.
//!
//! Conversions and Arrow export, nothing else: no default, no check and no
//! figure is decided here. `python/kneepoint/_core.pyi` tells its types.

#[cfg_attr(
    not(feature = "python"),
    allow(dead_code, reason = "called by the Python module")
)]
mod pcapng;

#[cfg(feature = "python")]
mod arrow;
#[cfg(feature = "python")]
mod asked;
#[cfg(feature = "python")]
mod errors;
#[cfg(feature = "python")]
mod export;
#[cfg(feature = "python")]
mod folder;
#[cfg(feature = "python")]
mod import;
#[cfg(feature = "python")]
mod kernel;
#[cfg(feature = "python")]
mod loader;
#[cfg(feature = "python")]
mod record;
#[cfg(feature = "python")]
mod registry;
#[cfg(feature = "python")]
mod run;
#[cfg(feature = "python")]
mod scenario;
#[cfg(feature = "python")]
mod segment;
#[cfg(feature = "python")]
mod shell;
#[cfg(feature = "python")]
mod trace;
#[cfg(feature = "python")]
mod units;

#[cfg(feature = "python")]
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::arrow::{ArrowBatches, ArrowTable};
    #[pymodule_export]
    use crate::export::export;
    #[pymodule_export]
    use crate::folder::{
        Folder, Lock, Unfinished, allow_foreign_folders, check_readable, unfinished,
    };
    #[pymodule_export]
    use crate::import::{
        import_flent, import_iperf3, import_nginx, import_pcap, import_ss, import_tcp_info,
    };
    #[pymodule_export]
    use crate::kernel::{LabOutput, enter_lab};
    #[pymodule_export]
    use crate::loader::{LoadedAlgorithms, in_kernel, load, load_for_run, unload};
    #[pymodule_export]
    use crate::record::{give_back_memory, left_out, record, sockets};
    #[pymodule_export]
    use crate::registry::{
        algorithms, keys, losses, queues, record_tables, sizes, tables, trace_tables, version,
        workloads,
    };
    #[pymodule_export]
    use crate::run::{Cancel, Output};
    #[pymodule_export]
    use crate::scenario::{Scenario, parse};
    #[pymodule_export]
    use crate::segment::SegmentWriter;
    #[pymodule_export]
    use crate::shell::{ShellOutcome, shell};
    #[pymodule_export]
    use crate::trace::{TraceBatch, devices, trace_qdisc, trace_tcp};
    #[pymodule_export]
    use crate::units::duration_ns;
}
