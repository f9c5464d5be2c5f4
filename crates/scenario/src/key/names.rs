//! What a scenario may name.

use std::collections::BTreeMap;

use knee_units::files::ReadFile;

use crate::key::settings::ParamInfo;
use crate::release::Release;

/// What a scenario may name but the reader of scenarios does not know.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub algorithms: Vec<AlgorithmInfo>,
    /// What kernels that were built call themselves, by their names.
    pub kernels: BTreeMap<String, String>,
    /// How the files are read that a scenario names; `None`: it may name none.
    pub read_file: Option<ReadFile>,
}

impl Names {
    /// The algorithm of that name, ours or Linux's.
    pub fn algorithm(&self, name: &str) -> Option<&AlgorithmInfo> {
        self.algorithms
            .iter()
            .find(|algorithm| algorithm.name == name || algorithm.linux_name == name)
    }

    /// The kernel of that name: one that was built, or a release whose rules are known.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        let release = match self.kernels.get(name) {
            Some(release) => Release::of(release),
            None => Release::of(name).filter(|release| {
                release.to_string() == name && (Release::OLDEST..=Release::NEWEST).contains(release)
            }),
        };
        release.map(|release| Kernel {
            name: name.into(),
            release,
        })
    }
}

/// A kernel that a scenario names.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// As the scenario has it.
    pub name: String,
    pub release: Release,
}

/// A congestion control that flows may use.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmInfo {
    pub name: String,
    /// What Linux itself calls it.
    pub linux_name: String,
    pub params: Vec<ParamInfo>,
}
