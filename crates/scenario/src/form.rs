//! A cell by itself: a form that another process can run, and a hash that tells whether two are alike.
//!
//! The form is the scenario with one value in the place of each list, and the files that those values name. So whoever
//! reads it checks it as any scenario, and a key needs no line here. The hash is that of the cell resolved: whatever an
//! engine is given is in it, however the file writes it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::key::names::Names;
use knee_units::files::ReadFile;
use knee_units::parse::quoted;
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::keys::Section;
use crate::matrix::Point;
use crate::{Scenario, parse, resolve};

/// Cells of other versions may mean something else: a default may have changed.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the form has the version that wrote it.
const MARK: &str = "tcpknee_cell";

/// The form, as JSON has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    tcpknee_cell: String,
    hash: String,
    index: u32,
    axes: Vec<(String, String)>,
    /// The scenario's file without its folder; what has no title is called after it.
    file: String,
    scenario: String,
    files: BTreeMap<String, String>,
}

impl Scenario {
    /// The cell as JSON, with the files that it needs; [`read_cell`] reads it. `None`: there are fewer cells.
    pub fn write_cell(&self, index: usize) -> Option<String> {
        let cell = self.cell(index)?;
        let point = self.source.matrix.point(index)?;
        let (scenario, files) = text(&point);
        let form = Form {
            tcpknee_cell: VERSION.into(),
            hash: cell.hash(),
            index: cell.index,
            axes: cell.axes,
            file: format!("{}.toml", resolve::stem(&self.source.file)),
            scenario,
            files,
        };
        Some(serde_json::to_string(&form).expect("texts and numbers have a JSON form"))
    }
}

/// The scenario of that cell alone, and its files.
fn text(point: &Point<'_>) -> (String, BTreeMap<String, String>) {
    let (mut text, mut files, mut table) = (String::new(), BTreeMap::new(), None);
    for (setting, entry) in point.set() {
        let section = setting.section;
        if matches!(section, Section::Expect(_) | Section::Published(_)) {
            continue;
        }
        if table.replace(section) != Some(section)
            && let Some(header) = section.header()
        {
            let _ = writeln!(text, "{header}");
        }
        let all = section.path_of("");
        let key = setting.path.strip_prefix(&all).expect("it is the table's");
        let _ = writeln!(text, "{key} = {}", entry.written);
        let named = entry.files.iter();
        files.extend(named.map(|(name, text)| (name.clone(), text.to_string())));
    }
    (text, files)
}

/// Reads what [`Scenario::write_cell`] wrote; `file` stands in errors.
///
/// # Errors
///
/// It is no such form, or has been changed, or is of another version.
pub fn read_cell(text: &str, file: &str, names: &Names) -> Result<Cell, CellError> {
    let no_cell = |line: usize, why: String| CellError::NoCell {
        file: file.into(),
        line,
        why,
    };
    let json = |error: serde_json::Error| {
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        no_cell(error.line().max(1), why.into())
    };
    // The version comes first: what else a form of another version has is its own affair.
    let value: serde_json::Value = serde_json::from_str(text).map_err(json)?;
    let version = value.get(MARK).and_then(serde_json::Value::as_str);
    let version = version.ok_or_else(|| no_cell(1, format!("it has no \"{MARK}\"")))?;
    if version != VERSION {
        return Err(CellError::Version {
            file: file.into(),
            got: quoted(version),
        });
    }
    let form: Form = serde_json::from_str(text).map_err(json)?;
    let names = Names {
        read_file: Some(ReadFile::of(form.files)),
        ..names.clone()
    };
    let changed = |why: String| CellError::Changed {
        file: file.into(),
        why,
    };
    let scenario = parse(&form.scenario, &form.file, &names)
        .map_err(|errors| changed(errors.list[0].to_string()))?;
    let cell = Cell {
        index: form.index,
        axes: form.axes,
        ..scenario.cell(0).expect("a matrix has a cell")
    };
    if scenario.n_cells() != 1 || cell.hash() != form.hash {
        let why = format!(
            "its hash would be {}, and it says {}",
            cell.hash(),
            quoted(&form.hash)
        );
        return Err(changed(why));
    }
    Ok(cell)
}

/// Why a text is no cell that can be run here.
///
/// Displays as one paragraph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    #[error("{file}:{line}: not a cell that tcpknee wrote: {why}. Make it anew from its scenario.")]
    NoCell {
        file: String,
        line: usize,
        why: String,
    },
    #[error(
        "{file}:1: got a cell of tcpknee {got}; expected one of {VERSION}, which this is. Run it with the version that \
         wrote it, or make it anew from its scenario."
    )]
    Version { file: String, got: String },
    #[error(
        "{file}:1: the cell is not as tcpknee wrote it: {why}. Make it anew from its scenario."
    )]
    Changed { file: String, why: String },
}

impl Cell {
    /// BLAKE3 of what an engine is given, in hexadecimal. Two cells of one version have the same exactly when that is the
    /// same: titles, comments, names of files and the other cells are not in it, the content of files is.
    pub fn hash(&self) -> String {
        let bytes = serde_json::to_vec(self).expect("numbers and texts have a JSON form");
        blake3::hash(&bytes).to_hex().to_string()
    }
}
