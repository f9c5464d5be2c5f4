//! What a scenario may name.

use std::collections::BTreeMap;

use knee_units::files::ReadFile;

use crate::key::settings::ParamInfo;
use crate::release::Release;

/// What a scenario may name but the reader of scenarios does not know.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub algorithms: Vec<AlgorithmInfo>,
    /// Algorithms of files, which a scenario names by their path.
    pub algorithm_files: Vec<AlgorithmFile>,
    /// What kernels that were built call themselves, by their names.
    pub kernels: BTreeMap<String, String>,
    /// How the files are read that a scenario names; `None`: it may name none.
    pub read_file: Option<ReadFile>,
}

impl Names {
    /// The algorithm of that name, ours or Linux's; or of the file of that path.
    pub fn algorithm(&self, name: &str) -> Option<&AlgorithmInfo> {
        let of_file = |file: &&AlgorithmFile| file.path == name || file.info.name == name;
        self.algorithms
            .iter()
            .find(|algorithm| algorithm.name == name || algorithm.linux_name == name)
            .or_else(|| Some(&self.algorithm_files.iter().find(of_file)?.info))
    }

    /// The digest of the file whose algorithm is called so; `None`: it is built in.
    pub fn digest_of(&self, algorithm: &str) -> Option<&str> {
        let mut files = self.algorithm_files.iter();
        let found = files.find(|file| file.info.name == algorithm);
        found.map(|file| &*file.digest)
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

/// A congestion control that somebody's file has.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmFile {
    /// As the scenario has it: `./mine.c`.
    pub path: String,
    /// Of all that it was made of.
    pub digest: String,
    pub info: AlgorithmInfo,
}

/// A congestion control that flows may use.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmInfo {
    pub name: String,
    /// What Linux itself calls it.
    pub linux_name: String,
    pub params: Vec<ParamInfo>,
}
