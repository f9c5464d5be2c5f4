//! The matrix: lists of the file are axes, their combinations are cells.
//!
//! No combination is kept. A cell's number says which value of each axis it has, and where some combinations are no cells,
//! a list says which are.

use crate::key::error::{Mistakes, Problem};
use crate::key::names::Kernel;

use std::collections::{HashMap, HashSet};

use crate::axes::{MAX_CELLS, Sample};
use crate::besides::{Expect, Published};
use crate::key::profile;
use crate::keys::Section;
use crate::read::{Content, Entry, Setting, Target};
use crate::release::Release;
use crate::rules;
use crate::zip;

/// Most cells × `[[flow]]` tables: what is looked through before the first cell runs.
const MAX_CELL_FLOWS: u64 = 1_000_000;

/// Settings and the axes among them.
pub(super) struct Matrix {
    settings: Vec<Setting>,
    /// In the order of the file.
    axes: Vec<Axis>,
    by_key: HashMap<(Section, &'static str), usize>,
    /// Indexes of parameters of algorithms and queues, in the order of the file.
    params: HashMap<Section, Vec<usize>>,
    samples: Vec<Sample>,
    cells: Cells,
    pub(super) n_hops: usize,
    pub(super) flow_lines: Vec<u32>,
    n_expects: usize,
    n_published: usize,
    /// Keys whose values are no good, which the file's reader has told.
    spoilt: HashSet<(Section, &'static str)>,
}

/// What the cells differ in.
struct Axis {
    /// Indexes of the settings that take their values of it, each its first one together.
    settings: Vec<usize>,
    /// How many values each of them has.
    len: usize,
    /// Index of the sample whose rows these are.
    sample: Option<usize>,
}

/// Which combinations are cells. They are counted with the last axis fastest.
enum Cells {
    /// So many, which are all.
    Every(usize),
    /// These.
    Some(Vec<u32>),
}

/// One combination: an entry chosen of every setting.
pub(super) struct Point<'a> {
    matrix: &'a Matrix,
    chosen: Vec<usize>,
    /// That of the kernel, whose rules are the hosts' defaults.
    pub(super) release: Option<Release>,
}

impl Matrix {
    /// `None`: it is too large to be looked through.
    pub(super) fn new(content: Content, mistakes: &Mistakes<'_>) -> Option<Matrix> {
        let Content {
            settings,
            n_hops,
            flow_lines,
            n_expects,
            n_published,
            zips,
            samples,
            spoilt,
        } = content;
        let mut by_key = HashMap::new();
        let mut params: HashMap<Section, Vec<usize>> = HashMap::new();
        for (i, setting) in settings.iter().enumerate() {
            match (&setting.target, setting.section) {
                (Target::Key(key), section) => {
                    by_key.insert((section, key.name), i);
                }
                (Target::Param { .. }, section) => params.entry(section).or_default().push(i),
            }
        }
        let mut taken = HashSet::new();
        let zipped = zips.iter();
        let mut groups: Vec<Vec<usize>> = zipped
            .map(|zip| zip::settings(zip, &settings, &mut taken, mistakes))
            .collect();
        groups.extend((0..samples.len()).map(|sample| {
            let of_sample = |i: &usize| settings[*i].sample == Some(sample);
            (0..settings.len()).filter(of_sample).collect()
        }));
        let alone = |i: &usize| {
            let setting = &settings[*i];
            setting.is_axis && setting.sample.is_none() && !taken.contains(i)
        };
        groups.extend((0..settings.len()).filter(alone).map(|i| vec![i]));
        groups.retain(|group| !group.is_empty());
        let offset = |i: &usize| settings[*i].offset;
        groups.sort_by_key(|group| group.iter().map(offset).min());
        let axis = |group: Vec<usize>| Axis {
            // Lists of different lengths have been refused.
            len: (group.iter().map(|i| settings[*i].entries.len()).min()).unwrap_or(1),
            sample: settings[group[0]].sample,
            settings: group,
        };
        let axes = groups.into_iter().map(axis).collect();
        let mut matrix = Matrix {
            settings,
            axes,
            by_key,
            params,
            samples,
            cells: Cells::Every(1),
            n_hops,
            flow_lines,
            n_expects,
            n_published,
            spoilt,
        };
        matrix.check_applicable(mistakes);
        let combinations = matrix.check_size(mistakes)?;
        matrix.cells = matrix.cells_of(combinations);
        Some(matrix)
    }

    /// Was the key's value in the file no good, so that another stands in its place?
    pub(super) fn is_spoilt(&self, section: Section, name: &str) -> bool {
        // Nearly always the set is empty, and keys are looked at by the million.
        !self.spoilt.is_empty()
            && (section.keys())
                .any(|key| key.name == name && self.spoilt.contains(&(section, key.name)))
    }

    /// How many cells there are.
    pub(super) fn n_cells(&self) -> usize {
        match &self.cells {
            Cells::Every(n) => *n,
            Cells::Some(numbers) => numbers.len(),
        }
    }

    /// The point of a cell; `None`: there are fewer.
    pub(super) fn point(&self, cell: usize) -> Option<Point<'_>> {
        let number = match &self.cells {
            Cells::Every(n) => (cell < *n).then_some(cell)?,
            Cells::Some(numbers) => *numbers.get(cell)? as usize,
        };
        Some(self.combination(number))
    }

    fn combination(&self, number: usize) -> Point<'_> {
        let mut chosen = vec![0; self.settings.len()];
        let mut rest = number;
        for axis in self.axes.iter().rev() {
            for setting in &axis.settings {
                chosen[*setting] = rest % axis.len;
            }
            rest /= axis.len;
        }
        let mut point = Point {
            matrix: self,
            chosen,
            release: None,
        };
        let kernel = point.get(Section::Top, "kernel");
        point.release = kernel.map(|(_, entry)| entry.value.expect::<Kernel>().release);
        point
    }

    /// Which of so many combinations are cells.
    ///
    /// An axis that does not act in a combination (a parameter of bbr1 where
    /// the flow is cubic) does not multiply it: such cells would be alike.
    fn cells_of(&self, combinations: u32) -> Cells {
        let always_acts = |i: &usize| match &self.settings[*i].target {
            Target::Key(key) => key.workloads.is_empty(),
            Target::Param { .. } => false,
        };
        if (self.axes.iter()).all(|axis| axis.settings.iter().any(always_acts)) {
            return Cells::Every(combinations as usize);
        }
        let is_cell = |number: &u32| {
            let point = self.combination(*number as usize);
            let acts = |i: &usize| point.chosen[*i] == 0 || point.applies(&self.settings[*i]);
            (self.axes.iter()).all(|axis| axis.settings.iter().any(acts))
        };
        Cells::Some((0..combinations).filter(is_cell).collect())
    }

    /// Files that any value names, and tables of samples: the name in the scenario, and the text.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.settings.iter().flat_map(|setting| &setting.entries);
        let named = entries.flat_map(|entry| &entry.files);
        let tables = self
            .samples
            .iter()
            .filter_map(|sample| sample.file.as_ref());
        named.chain(tables).map(|(name, text)| (&**name, &**text))
    }

    /// Algorithms that the file calls by Linux's name: that, and ours.
    pub(super) fn renamed(&self) -> impl Iterator<Item = (String, String)> {
        let is_algorithm =
            |target: &Target| matches!(target, Target::Key(key) if key.name == "algorithm");
        let settings = self
            .settings
            .iter()
            .filter(move |setting| !setting.is_default && is_algorithm(&setting.target));
        let entries = settings.flat_map(|setting| &setting.entries);
        let names = entries.map(|entry| (entry.written.trim_matches(['"', '\'']), &entry.label));
        names
            .filter(|(written, label)| written != label)
            .map(|(written, label)| (written.into(), label.clone()))
    }

    pub(super) fn expects(&self) -> Vec<Expect> {
        let one = |i| {
            let (assert, line) = self.text(Section::Expect(i), "assert");
            Expect { assert, line }
        };
        (0..self.n_expects).map(one).collect()
    }

    pub(super) fn published(&self) -> Vec<Published> {
        let one = |i| {
            let section = Section::Published(i);
            let (value, line) = self.text(section, "value");
            Published {
                value,
                figure: self.text(section, "figure").0,
                source: self.text(section, "source").0,
                line,
            }
        };
        (0..self.n_published).map(one).collect()
    }

    /// The text of a key that is no axis, and its line; empty where it is no good.
    fn text(&self, section: Section, name: &str) -> (String, u32) {
        let setting = self.setting(section, name);
        let entry = &setting.expect("the registry requires it").entries[0];
        let text = entry
            .value
            .text()
            .filter(|_| !self.is_spoilt(section, name));
        (text.unwrap_or_default().into(), entry.line)
    }

    fn setting(&self, section: Section, name: &str) -> Option<&Setting> {
        // The map's keys are 'static; a lookup by a shorter borrow goes through the registry's own name.
        let key = section.keys().find(|key| key.name == name)?;
        self.by_key
            .get(&(section, key.name))
            .map(|i| &self.settings[*i])
    }

    /// Refuses what no cell would use: parameters of an algorithm that the flow never runs, keys of a workload that it
    /// never has, and keys of the host model where hosts never have a cost.
    fn check_applicable(&self, mistakes: &Mistakes<'_>) {
        for setting in self.settings.iter().filter(|setting| !setting.is_default) {
            let used = |name: &str| {
                let entries = self
                    .setting(setting.section, name)
                    .map_or(&[][..], |s| &s.entries);
                entries
                    .iter()
                    .filter_map(|entry| entry.value.text())
                    .collect::<Vec<_>>()
            };
            match &setting.target {
                Target::Param { key, .. } if self.is_spoilt(setting.section, key) => {}
                Target::Param { key, owner, .. } if !used(key).contains(&owner.as_str()) => {
                    let problem = Problem::Value {
                        key: setting.path.clone(),
                        got: format!("a parameter of {owner}"),
                        expected: format!("parameters of {}", used(key).join(" or ")),
                        next: format!("Remove it, or set {key} = \"{owner}\"."),
                    };
                    mistakes.add(setting.line, problem);
                }
                Target::Key(_) if self.is_spoilt(setting.section, "workload") => {}
                Target::Key(key) if !key.workloads.is_empty() => {
                    let (workloads, own) = (key.workloads, used("workload"));
                    if !workloads.iter().any(|name| own.contains(name)) {
                        let problem = Problem::Value {
                            key: setting.path.clone(),
                            got: format!("a key of workload {}", workloads.join(" or ")),
                            expected: format!("keys of workload {}", own.join(" or ")),
                            next: format!("Remove it, or set workload = \"{}\".", workloads[0]),
                        };
                        mistakes.add(setting.line, problem);
                    }
                }
                Target::Key(key)
                    if key.engines.is_model() && !self.sets(setting.section, profile::KEY) =>
                {
                    let costs = setting.section.path_of(profile::KEY);
                    let problem = Problem::Value {
                        key: setting.path.clone(),
                        got: format!("a key of the host model, which is without {costs}"),
                        expected: "keys that have an effect in some engine".into(),
                        next: format!("Remove it, or set {costs} = \"published\"."),
                    };
                    mistakes.add(setting.line, problem);
                }
                _ => {}
            }
        }
    }

    /// Does the file set that key, to whatever?
    fn sets(&self, section: Section, name: &str) -> bool {
        let setting = self.setting(section, name);
        setting.is_some_and(|setting| !setting.is_default)
    }

    /// Counts the combinations; `None`: there are too many.
    fn check_size(&self, mistakes: &Mistakes<'_>) -> Option<u32> {
        let lengths = self.axes.iter().map(|axis| axis.len as u128);
        let n_cells = lengths.fold(1u128, u128::saturating_mul);
        let flows = self.flow_lines.len() as u64;
        let limit = MAX_CELLS.min(MAX_CELL_FLOWS / flows.max(1));
        if n_cells > limit as u128 {
            let last = self
                .axes
                .last()
                .expect("a matrix of several cells has an axis");
            let setting = &self.settings[last.settings[0]];
            let problem = Problem::MatrixTooLarge {
                key: setting.path.clone(),
                cells: n_cells,
                limit,
            };
            mistakes.add(setting.line, problem);
            return None;
        }
        Some(n_cells as u32)
    }
}

impl<'a> Point<'a> {
    /// The chosen entry of a key and its setting; `None` when neither the file nor a default sets it.
    pub(super) fn get(&self, section: Section, name: &str) -> Option<(&'a Setting, &'a Entry)> {
        let key = section.keys().find(|key| key.name == name);
        let key = key.unwrap_or_else(|| panic!("{} is in the registry", section.path_of(name)));
        let i = *self.matrix.by_key.get(&(section, key.name))?;
        let setting = &self.matrix.settings[i];
        let of_kernel = rules::default(
            section,
            key.name,
            self.release.filter(|_| setting.is_default),
        );
        let entry = of_kernel.unwrap_or_else(|| &setting.entries[self.chosen[i]]);
        Some((setting, entry))
    }

    /// Parameters that the file sets for what `key` names here: the flow's algorithm, a queue of the path.
    pub(super) fn params(&self, section: Section, key: &str) -> Vec<(String, f64)> {
        let indexes = self.matrix.params.get(&section).into_iter().flatten();
        let chosen = indexes.map(|i| (&self.matrix.settings[*i], self.chosen[*i]));
        chosen
            .filter(|(setting, _)| self.applies(setting))
            .filter_map(|(setting, entry)| match &setting.target {
                Target::Param { key: of, name, .. } if *of == key => {
                    Some((name.clone(), *setting.entries[entry].value.expect()))
                }
                _ => None,
            })
            .collect()
    }

    /// Does the file set that key, to whatever?
    pub(super) fn sets(&self, section: Section, name: &str) -> bool {
        self.matrix.sets(section, name)
    }

    /// What the file sets here and acts here, table by table.
    pub(super) fn set(&self) -> impl Iterator<Item = (&'a Setting, &'a Entry)> {
        let settings = self.matrix.settings.iter().zip(&self.chosen);
        settings
            .filter(|(setting, _)| !setting.is_default && self.applies(setting))
            .map(|(setting, chosen)| (setting, &setting.entries[*chosen]))
    }

    /// Axes with their chosen labels, in the order of the file; of a sample its row comes first.
    pub(super) fn axes(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for axis in &self.matrix.axes {
            if let Some(sample) = axis.sample.map(|i| &self.matrix.samples[i]) {
                let row = sample.rows[self.chosen[axis.settings[0]]];
                found.push((format!("{}.row", sample.path), row.to_string()));
            }
            let settings = axis.settings.iter();
            let chosen = settings.map(|i| (&self.matrix.settings[*i], self.chosen[*i]));
            let here = chosen.filter(|(setting, _)| self.applies(setting));
            found.extend(here.map(|(setting, entry)| {
                (setting.path.clone(), setting.entries[entry].label.clone())
            }));
        }
        found
    }

    /// The row of a sample that a value comes from: the line that sets it, what errors call the sample, and the number.
    pub(super) fn row_of(&self, section: Section, name: &str) -> Option<(u32, String, u32)> {
        let key = section.keys().find(|key| key.name == name)?;
        let i = *self.matrix.by_key.get(&(section, key.name))?;
        let setting = &self.matrix.settings[i];
        let sample = &self.matrix.samples[setting.sample?];
        Some((setting.line, sample.source(), sample.rows[self.chosen[i]]))
    }

    /// Does this setting act here?
    fn applies(&self, setting: &Setting) -> bool {
        let here = |name| {
            self.get(setting.section, name)
                .and_then(|(_, entry)| entry.value.text())
        };
        match &setting.target {
            Target::Param { key, owner, .. } => here(key) == Some(owner),
            Target::Key(key) => {
                let workloads = key.workloads;
                workloads.is_empty()
                    || here("workload").is_some_and(|workload| workloads.contains(&workload))
            }
        }
    }
}
