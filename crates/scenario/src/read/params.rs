//! Tables of parameters: of a flow's algorithm, of a hop's queues.

use std::borrow::Cow;

use crate::key::error::{Problem, nearest};
use crate::key::settings::ParamInfo;
use knee_path::queue;
use toml_edit::Item;

use super::{ACK, Reader, Setting, Target, clean, not};
use crate::keys::Section;

/// Whose parameters a table holds.
pub(super) struct Owner<'n> {
    /// The key that names it.
    pub(super) key: &'static str,
    pub(super) name: &'n str,
}

impl Reader<'_> {
    /// The algorithm or queue whose parameters stand in a table of that name, and they.
    pub(super) fn params_of<'n>(
        &'n self,
        section: Section,
        name: &'n str,
    ) -> Option<(Owner<'n>, Cow<'n, [ParamInfo]>)> {
        match section {
            Section::Flow(_) => {
                let algorithm = self.names.algorithm(name)?;
                let (key, name) = ("algorithm", &*algorithm.name);
                Some((Owner { key, name }, Cow::Borrowed(&algorithm.params)))
            }
            Section::Path | Section::Hop(_) => {
                let (key, name) = match name.strip_prefix(ACK) {
                    Some(name) => ("ack_queue", name),
                    None => ("queue", name),
                };
                let kind = queue::find(name)?;
                let params = kind.params.iter().map(ParamInfo::of_queue).collect();
                Some((Owner { key, name }, params))
            }
            _ => None,
        }
    }

    /// A table of parameters: `bbr3.drain_gain = 0.5`, `codel.target = "5ms"`, `ack_codel.target = "5ms"`.
    pub(super) fn params(
        &self,
        (section, prefix): (Section, &str),
        Owner { key, name: owner }: Owner<'_>,
        params: &[ParamInfo],
        item: &Item,
        line: u32,
        settings: &mut Vec<Setting>,
    ) {
        let of = section.path_of(prefix);
        let Some(table) = item.as_table_like() else {
            let example = params
                .first()
                .map(|p| format!("Write {prefix}.{} = {}.", p.name, p.written(p.default)));
            let example = example.unwrap_or_default();
            let problem = not(&of, item, "a table of parameters", example);
            return self.mistakes.add(line, problem);
        };
        for (name, item) in table.iter() {
            if self.mistakes.is_full() {
                return;
            }
            let place = self.place(table, name, line);
            let path = format!("{of}.{}", clean(name));
            let info = match param(params, owner, name, &path) {
                Ok(info) => info,
                Err(problem) => {
                    self.mistakes.add(place.line, problem);
                    continue;
                }
            };
            let Some(values) = self.entries(&path, place.line, item, true, info) else {
                continue;
            };
            let target = Target::Param {
                key,
                owner: owner.into(),
                name: info.name.clone(),
            };
            settings.push(place.setting(section, target, path, values));
        }
    }
}

/// The parameter of that name, which stands at `path`.
pub(super) fn param<'p>(
    params: &'p [ParamInfo],
    owner: &str,
    name: &str,
    path: &str,
) -> Result<&'p ParamInfo, Problem> {
    let found = params.iter().find(|param| param.name == name);
    found.ok_or_else(|| {
        let known: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
        if known.is_empty() {
            return Problem::Value {
                key: path.into(),
                got: format!("a parameter of {owner}"),
                expected: "none, because it has no parameters".into(),
                next: "Remove it.".into(),
            };
        }
        let suggestion = nearest(name, known.iter().map(String::as_str));
        Problem::UnknownKey {
            key: path.into(),
            known,
            suggestion,
        }
    })
}
