//! This host as `knee_collect` reads it, and settings of its drivers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use knee_collect::files::Roots;
use knee_collect::host_state::{Extent, HostState};
use knee_collect::sysctl;
use knee_uapi::groups::{GROUPS, Group};
use knee_uapi::ioctl;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors;

/// See `HostState::read`: its tables and what is missing, as JSON.
#[pyfunction]
pub fn host_state(
    py: Python<'_>,
    proc: PathBuf,
    sys: PathBuf,
    root: PathBuf,
    are_recorded: bool,
    counts: bool,
) -> String {
    let roots = Roots {
        proc,
        sys,
        root,
        are_recorded,
    };
    let extent = match counts {
        true => Extent::Counts,
        false => Extent::Whole,
    };
    py.detach(|| {
        let state = HostState::read(roots, extent);
        serde_json::to_string(&state).expect("names and numbers are JSON")
    })
}

/// Parts of the names of sysctls whose values stay on the host.
#[pyfunction]
pub fn secret_sysctls() -> Vec<&'static str> {
    sysctl::SECRET.to_vec()
}

/// The numbers of `ring`, `channels` or `coalesce` of an interface, by name.
#[pyfunction]
pub fn ethtool_numbers(interface: OsString, kind: &str) -> PyResult<BTreeMap<String, u32>> {
    let numbers = ioctl::numbers(&ioctl::Kernel, &interface, group(kind)?)
        .map_err(|error| errors::system(&error))?;
    let named = numbers
        .into_iter()
        .map(|(name, number)| (name.replace('-', "_"), number));
    Ok(named.collect())
}

/// Gives such numbers to the driver; those without a value are 0.
#[pyfunction]
pub fn set_ethtool_numbers(
    interface: OsString,
    kind: &str,
    numbers: BTreeMap<String, u32>,
) -> PyResult<()> {
    let value = |name: &str| numbers.get(&name.replace('-', "_")).copied();
    ioctl::set_numbers(&ioctl::Kernel, &interface, group(kind)?, value)
        .map_err(|error| errors::system(&error))
}

/// The features of an interface that have names: whether each can be changed, and whether it is wanted.
#[pyfunction]
pub fn ethtool_features(interface: OsString) -> PyResult<Vec<(String, bool, bool)>> {
    let features =
        ioctl::features(&ioctl::Kernel, &interface).map_err(|error| errors::system(&error))?;
    let named = features
        .into_iter()
        .filter(|feature| !feature.name.is_empty());
    Ok(named
        .map(|feature| (feature.name, feature.is_changeable, feature.is_wanted))
        .collect())
}

/// Wants features to be on or off.
#[pyfunction]
pub fn set_ethtool_features(interface: OsString, wanted: BTreeMap<String, bool>) -> PyResult<()> {
    ioctl::set_features(&ioctl::Kernel, &interface, |name| wanted.get(name).copied())
        .map_err(|error| errors::system(&error))
}

fn group(kind: &str) -> PyResult<&'static Group> {
    let found = GROUPS.iter().find(|group| group.kind == kind);
    found
        .copied()
        .ok_or_else(|| PyKeyError::new_err(kind.to_owned()))
}
