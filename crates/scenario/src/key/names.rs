//! What a scenario may name.

use knee_units::files::ReadFile;

use crate::key::settings::ParamInfo;

/// What a scenario may name but the reader of scenarios does not know.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub algorithms: Vec<AlgorithmInfo>,
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
}

/// A congestion control that flows may use.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmInfo {
    pub name: String,
    /// What Linux itself calls it.
    pub linux_name: String,
    pub params: Vec<ParamInfo>,
}
