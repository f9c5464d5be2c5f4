//! From a scenario's text to its cells, and from a cell to its tables: all that a run takes, without Python, kernel,
//! thread, file or clock. The native module simulates through here, as do the tests and a web page.
//!
//! ```
//! use knee_engine::{Options, Run, parse};
//! use knee_units::Nanos;
//!
//! let text = "duration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n[[flow]]\nalgorithm = [\"cubic\", \"bbr1\"]\n";
//! let scenario = parse(text, "example.toml", None).unwrap();
//! let mut run = Run::new(scenario.cell(1).unwrap(), 0, &Options::default()).unwrap();
//! while run.step(run.now() + Nanos::from_ms(100)) {}
//! assert_eq!(run.finish().flows.algorithm, ["bbr1"]);
//! ```

mod csv;
pub mod learn;

use std::collections::BTreeMap;
use std::sync::Arc;

use knee_cc::UnderWay;
pub use knee_scenario::{AlgorithmFile, Cell, CellError, Names, Scenario, ScenarioErrors};
use knee_scenario::{AlgorithmInfo, ParamInfo};
use knee_sim::World;
pub use knee_sim::{
    Answer, CapturedPacket, Decisions, FourTuple, Options, Output, Progress, Rows, SimError,
    Steered, cautions,
};
use knee_units::Nanos;
use knee_units::files::ReadFile;

pub use csv::csv;

/// Rows from which on who takes those of a [`Run::to_end`] should: fewer are dear, and more only take memory.
pub const BATCH_ROWS: usize = 1 << 14;

/// Reads a scenario that may name every algorithm of `cc/`. `file` stands in errors; `read_file` reads the files that the
/// scenario names.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn parse(
    text: &str,
    file: &str,
    read_file: Option<ReadFile>,
) -> Result<Scenario, ScenarioErrors> {
    knee_scenario::parse(text, file, &names(read_file))
}

/// Reads what [`Scenario::write_cell`] wrote; `file` stands in errors.
///
/// # Errors
/// It is no cell, or not of this version.
pub fn read_cell(text: &str, file: &str, names: &Names) -> Result<Cell, CellError> {
    knee_scenario::read_cell(text, file, names)
}

/// What scenarios may name.
pub fn names(read_file: Option<ReadFile>) -> Names {
    Names {
        algorithms: knee_cc::algorithms().iter().map(algorithm_info).collect(),
        algorithm_files: Vec::new(),
        kernels: BTreeMap::new(),
        read_file,
    }
}

/// An algorithm as a scenario names it.
pub fn algorithm_info(algorithm: &knee_cc::Algorithm) -> AlgorithmInfo {
    AlgorithmInfo {
        name: algorithm.name().to_owned(),
        linux_name: algorithm.linux_name().to_owned(),
        params: algorithm.params().iter().map(algorithm_param).collect(),
    }
}

/// A parameter of an algorithm as a scenario writes it.
pub fn algorithm_param(param: &knee_cc::Param) -> ParamInfo {
    ParamInfo::of_algorithm(param.name, param.unit, param.default, param.min, param.max)
}

/// One repetition of one cell, under way.
pub struct Run {
    world: World,
}

impl Run {
    /// Before its first packet.
    ///
    /// # Errors
    /// The simulator cannot run the cell.
    pub fn new(cell: Cell, rep: u32, options: &Options) -> Result<Run, SimError> {
        let world = World::new(Arc::new(cell), rep, options)?;
        Ok(Run { world })
    }

    /// Runs on to `until` after the start, or to the run's end where that is earlier; false: it is over. However a run is
    /// cut into steps, its tables are the same.
    pub fn step(&mut self, until: Nanos) -> bool {
        self.world.step(until)
    }

    /// What the algorithms are doing, for one who tells of a crash.
    pub fn under_way(&self) -> Arc<UnderWay> {
        self.world.under_way()
    }

    /// What the hosts' clocks read at the start, ns: algorithms are shown these.
    pub fn boot_ns(&self) -> u64 {
        self.world.boot_ns()
    }

    /// The time reached, after the start.
    pub fn now(&self) -> Nanos {
        self.world.now()
    }

    /// Runs on until the agent of [`Options::agent`] has to decide for its connection; false: that, or the run, ended
    /// before.
    pub fn next_decision(&mut self) -> bool {
        self.world.next_decision()
    }

    /// Decides, now.
    pub fn decide(&mut self, answer: Answer) {
        self.world.decide(answer);
    }

    /// The rows that nobody took, which may be taken.
    pub fn rows(&mut self) -> &mut Rows {
        self.world.rows()
    }

    /// Runs to the end, or until `progress` says so, which is told the time reached now and then and may take the rows
    /// gathered since it last did. A run whose rows are taken holds few of them, however long it is.
    pub fn to_end(self, progress: &mut Progress) -> Output {
        self.world.run(progress)
    }

    /// The rows that nobody took, as far as it got.
    pub fn finish(self) -> Output {
        self.world.finish()
    }
}
