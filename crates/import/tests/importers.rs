//! Walks the list of importers: what each must have, so that the command line, the
//! Python functions, the page and the search for bytes that break it follow from
//! its `Kind`.

use std::collections::HashSet;

use knee_import::{AnyImport, IMPORTERS, Kind, Report, Takes, Value, find, recognise};
use knee_store::Anonymiser;
use knee_store::arrow::data_type;
use serde_json::{Map, Value as Json, json};

fn built(kind: &Kind, options: &Map<String, Json>) -> Result<Box<dyn AnyImport>, String> {
    (kind.build)(&kind.given(Anonymiser::Keep, options)?)
}

fn options(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(map) => map,
        other => panic!("{other}"),
    }
}

/// Rows of each table of an importer's sample, and its report.
fn imported(kind: &Kind) -> (Vec<(&'static str, u64)>, Report<Vec<Value>>) {
    let mut importer = built(kind, &Map::new()).unwrap();
    let (path, bytes) = kind.sample.read();
    let mut rows: Vec<_> = importer
        .tables()
        .iter()
        .map(|(name, _)| (*name, 0))
        .collect();
    let mut count = |name: &str, more: usize| {
        let table = rows.iter_mut().find(|(table, _)| *table == name);
        table.expect("the table is declared").1 += more as u64;
    };
    importer
        .read_input(&path, &mut &bytes[..], &mut |_, filled| {
            filled
                .iter()
                .for_each(|(name, batch)| count(name, batch.num_rows()));
            Ok(())
        })
        .unwrap();
    for (name, batch) in importer.rest() {
        count(name, batch.num_rows());
    }
    (rows, importer.found())
}

#[test]
fn every_sample_fills_every_table_and_is_understood() {
    for kind in IMPORTERS {
        let (rows, found) = imported(kind);
        assert_eq!(
            (found.not_understood, &found.first[..]),
            (0, &[][..]),
            "{}",
            kind.name
        );
        assert!(found.units > 0 && found.bytes > 0, "{}", kind.name);
        assert_eq!(found.rows, rows.iter().map(|(_, rows)| rows).sum::<u64>());
        for (table, rows) in rows {
            assert!(rows > 0, "{}: no row of {table}", kind.name);
        }
        assert_eq!(found.more.len(), kind.counts.len(), "{}", kind.name);
    }
}

#[test]
fn every_sample_looks_like_its_own_importers_alone() {
    for kind in IMPORTERS {
        let looks_like = recognise(&kind.sample.read().0).unwrap();
        let names: Vec<_> = looks_like.iter().map(|kind| kind.name).collect();
        assert_eq!(names, [kind.name]);
    }
}

#[test]
fn every_importer_says_what_it_is() {
    let mut names = HashSet::new();
    for kind in IMPORTERS {
        let name = kind.name;
        assert!(names.insert(name), "{name} is listed twice");
        assert!(std::ptr::eq(find(name).unwrap(), *kind));
        for text in [kind.summary, kind.about, kind.page, kind.row, kind.expected] {
            assert!(!text.is_empty(), "{name}");
        }
        assert!(
            !kind.summary.contains('\n') && kind.summary.ends_with('.'),
            "{name}"
        );
        assert!(kind.about.starts_with("Import "), "{name}");
        assert!(
            ["lines", "packets", "documents"].contains(&kind.unit),
            "{name}"
        );
        let command = format!("knee import {name} ");
        assert!(
            kind.examples.iter().any(|line| line.starts_with(&command)),
            "{name}"
        );
        for count in kind.counts {
            assert!(!count.doc.is_empty(), "{name}: {}", count.name);
        }
        // What is told first names counts that the report has.
        let counts = kind.counts.iter().map(|count| count.name);
        let known: HashSet<_> = counts.chain(["rows", kind.unit]).collect();
        for part in kind.told.split('{').skip(1) {
            let (count, noun) = part.split_once(':').expect("{COUNT:noun}");
            assert!(
                known.contains(count) && noun.contains('}'),
                "{name}: {part}"
            );
        }
    }
}

#[test]
fn every_column_is_described_and_every_table_named() {
    for kind in IMPORTERS {
        let declared: Vec<_> = kind.tables.iter().map(|table| table.name).collect();
        let given = built(kind, &Map::new()).unwrap().tables();
        assert_eq!(
            given.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            declared
        );
        for (table, (_, schema)) in kind.tables.iter().zip(&given) {
            assert!(
                !table.short.is_empty() && !table.rows.is_empty(),
                "{}",
                table.name
            );
            let columns = table.columns.described();
            for about in &columns {
                let place = format!("{}.{}", table.name, about.name);
                assert!(!about.doc.is_empty() && !about.source.is_empty(), "{place}");
            }
            for field in schema.fields() {
                let known = columns.iter().find(|one| one.name == field.name());
                // A log's own variables are text of their names.
                let own = || field.metadata()["doc"] == "as in the log";
                assert!(known.map_or_else(own, |one| data_type(one.kind) == *field.data_type()));
            }
        }
    }
}

#[test]
fn every_option_has_help_and_is_checked() {
    for kind in IMPORTERS {
        for option in kind.options {
            let (kind_name, name) = (kind.name, option.name);
            assert!(option.help.ends_with('.'), "{kind_name} --{name}");
            let refused = |value: Json| {
                let said = kind.given(Anonymiser::Keep, &options(json!({ name: value })));
                said.err()
                    .unwrap_or_else(|| panic!("{kind_name} {name}: taken"))
            };
            assert!(refused(json!(7)).starts_with(&format!("{name}: got 7; expected")));
            match option.takes {
                Takes::Text(_) | Takes::Flag => {}
                Takes::Choice(words) => {
                    assert!(words.contains(&option.default));
                    assert!(refused(json!("xml")).contains("got \"xml\"; expected "));
                }
                Takes::Time => {
                    assert!(refused(json!("5")).starts_with(&format!("{name}: ")));
                    assert!(refused(json!("0s")).contains("expected more than nothing"));
                }
                Takes::File(_) => {
                    let said = refused(json!("/nowhere/at/all"));
                    assert!(said.starts_with("/nowhere/at/all: cannot be read: No such file"));
                }
            }
        }
        let unknown = kind.given(Anonymiser::Keep, &options(json!({"nope": "x"})));
        assert!(unknown.err().unwrap().starts_with("nope: "));
        // Null is as if it were not there.
        let none = kind
            .options
            .iter()
            .map(|option| (option.name.to_owned(), Json::Null));
        assert!(built(kind, &none.collect()).is_ok(), "{}", kind.name);
    }
}
