//! Keys that no table has: what is known there, and what is probably meant.

use crate::key::Key;
use crate::key::error::{Problem, nearest};
use knee_path::queue;

use super::{ACK, Reader};
use crate::keys::{Section, TABLES};

impl Reader<'_> {
    pub(super) fn unknown_key(&self, section: Section, name: &str, path: String) -> Problem {
        let of_hop = |key: &Key| key.name == name || queue::find(name).is_some();
        if section == Section::Whole && Section::Hop(0).keys().any(of_hop) {
            let whole: Vec<&str> = section.keys().map(|key| key.name).collect();
            return Problem::Value {
                key: path,
                got: "a key of one hop, where [[hop]] tables make the path".into(),
                expected: format!(
                    "in [path] only {}, which hold for all hops",
                    whole.join(", ")
                ),
                next: "Move it into the [[hop]] tables.".into(),
            };
        }
        let tables = if section == Section::Top { TABLES } else { &[] };
        let owners: Vec<String> = match section {
            Section::Flow(_) => self
                .names
                .algorithms
                .iter()
                .map(|a| a.name.clone())
                .collect(),
            Section::Path | Section::Hop(_) => queue::QUEUES
                .iter()
                .flat_map(|kind| [kind.name.into(), format!("{ACK}{}", kind.name)])
                .collect(),
            _ => Vec::new(),
        };
        let here: Vec<&str> = section
            .keys()
            .map(|key| key.name)
            .chain(tables.iter().copied())
            .collect();
        let elsewhere = [
            Section::Top,
            Section::Path,
            Section::Sender,
            Section::Flow(0),
            Section::Receiver,
        ]
        .into_iter()
        .find(|other| other.keys().any(|key| key.name == name));
        let suggestion = match elsewhere {
            Some(other) => Some(format!("{}{name}", other.doc_prefix())),
            None => nearest(
                name,
                here.iter()
                    .copied()
                    .chain(owners.iter().map(String::as_str)),
            ),
        };
        if TABLES.contains(&name) {
            self.meant.borrow_mut().insert(name.into());
        }
        if let Some(suggestion) = &suggestion {
            let path = match elsewhere {
                Some(_) => suggestion.clone(),
                None => section.path_of(suggestion),
            };
            self.meant.borrow_mut().insert(path);
        }
        Problem::UnknownKey {
            key: path,
            known: here.into_iter().map(String::from).collect(),
            suggestion,
        }
    }
}
