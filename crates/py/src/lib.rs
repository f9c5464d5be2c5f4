//! `tcpknee._core`: what the Python front needs of the Rust crates.
//!
//! Conversions, Arrow export and the last words of a crash, nothing else: no default, no check and no
//! figure is decided here. `python/tcpknee/_core.pyi` tells its types.

mod algorithm;
mod arrow;
mod assign;
mod crash;
mod errors;
mod export;
mod folder;
mod host;
mod host_state;
mod import;
mod json;
mod kernel;
mod learn;
mod loader;
mod parts;
mod pcapng;
mod record;
mod registry;
mod run;
mod scenario;
mod segment;
mod shell;
mod trace;
mod units;

#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use crate::algorithm::{Algorithm, play_call};
    #[pymodule_export]
    use crate::arrow::{ArrowBatches, ArrowTable};
    #[pymodule_export]
    use crate::assign::{Assigned, Assigner, arms_of};
    #[pymodule_export]
    use crate::crash::{guard_process, read_call};
    #[pymodule_export]
    use crate::export::export;
    #[pymodule_export]
    use crate::folder::{
        Folder, Lock, Unfinished, allow_foreign_folders, check_readable, open_readable, unfinished,
    };
    #[pymodule_export]
    use crate::host::{HostSession, profile_registry};
    #[pymodule_export]
    use crate::host_state::{
        ethtool_features, ethtool_numbers, host_state, secret_sysctls, set_ethtool_features,
        set_ethtool_numbers,
    };
    #[pymodule_export]
    use crate::import::{client_output, import_files, importers, recognise_import};
    #[pymodule_export]
    use crate::kernel::{LabOutput, enter_lab, load_module};
    #[pymodule_export]
    use crate::learn::{Learner, learner_registry};
    #[pymodule_export]
    use crate::loader::{
        LoadedAlgorithms, add_object, in_kernel, load, load_for_run, pinned, unload,
    };
    #[pymodule_export]
    use crate::parts::{Part, compose};
    #[pymodule_export]
    use crate::record::{exclusions, give_back_memory, record, sockets};
    #[pymodule_export]
    use crate::registry::{
        algorithms, cost_profile, cost_profiles, costs, impairments, kernel_rules, keys,
        load_algorithm, losses, queues, sizes, table_docs, tables, version, workloads,
    };
    #[pymodule_export]
    use crate::run::{Cancel, Output, write_packets};
    #[pymodule_export]
    use crate::scenario::{Cells, LoneCell, Scenario, parse, read_cell};
    #[pymodule_export]
    use crate::segment::SegmentWriter;
    #[pymodule_export]
    use crate::shell::{ShellOutcome, shell};
    #[pymodule_export]
    use crate::trace::{TraceBatch, devices, root_qdiscs, trace_qdisc, trace_tcp};
    #[pymodule_export]
    use crate::units::duration_ns;
}
