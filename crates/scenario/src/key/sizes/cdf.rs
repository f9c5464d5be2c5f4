//! Distribution functions as measured: points, with straight lines between them.

use std::sync::Arc;

use knee_units::files::{FileError, lines};
use knee_units::parse::quoted;
use knee_units::rng::Stream;
use knee_units::text::TextError;
use serde::Serialize;

use super::{MOST_BYTES, SizeKind, SizeSpec};

pub(super) const WEB_SEARCH: SizeKind = SizeKind {
    name: "web-search",
    summary: "transfers between servers of a web search; mean 1.7 MB",
    source: "Alizadeh et al.: DCTCP, SIGCOMM 2010, fig. 4; points of pFabric, SIGCOMM 2013",
    example: "web-search",
    read: |rest, _| known("web-search", rest, WEB_SEARCH_POINTS),
};

pub(super) const DATA_MINING: SizeKind = SizeKind {
    name: "data-mining",
    summary: "transfers of a data-mining cluster: 80 % below 10 kB, 2 % above 100 MB; mean 12.7 MB",
    source: "Greenberg et al.: VL2, SIGCOMM 2009, fig. 2; points of pFabric, SIGCOMM 2013",
    example: "data-mining",
    read: |rest, _| known("data-mining", rest, DATA_MINING_POINTS),
};

pub(super) const FILE: SizeKind = SizeKind {
    name: "cdf",
    summary: "points of a file beside the scenario: a line each with bytes and the share of transfers that are not larger, up to 1 or 100",
    source: "the files of ns-3, HPCC and other traffic generators",
    example: "cdf FILE.txt",
    read: |name, files| {
        if name.is_empty() {
            return Err(TextError::Form);
        }
        let cdf = files.parsed(name, |path, found| {
            Cdf::read(&format!("cdf {name}"), path, &found.text)
        });
        Ok(SizeSpec::Cdf(Arc::new(cdf.map_err(TextError::File)?)))
    },
};

/// Bytes, and the share of transfers that are not larger.
type Point = (f64, f64);

const WEB_SEARCH_POINTS: &[Point] = &[
    (0.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

const DATA_MINING_POINTS: &[Point] = &[
    (0.0, 0.0),
    (180.0, 0.1),
    (216.0, 0.2),
    (560.0, 0.3),
    (900.0, 0.4),
    (1_100.0, 0.5),
    (1_870.0, 0.6),
    (3_160.0, 0.7),
    (10e3, 0.8),
    (400e3, 0.9),
    (3.16e6, 0.95),
    (100e6, 0.98),
    (1e9, 1.0),
];

/// A distribution function.
#[derive(Debug, PartialEq, Serialize)]
pub struct Cdf {
    /// As a scenario writes it.
    #[serde(skip)]
    pub name: String,
    /// Neither bytes nor shares fall; the last share is 1.
    points: Vec<Point>,
}

fn known(name: &str, rest: &str, points: &[Point]) -> Result<SizeSpec, TextError> {
    if !rest.is_empty() {
        return Err(TextError::Form);
    }
    Ok(SizeSpec::Cdf(Arc::new(Cdf {
        name: name.into(),
        points: points.to_vec(),
    })))
}

impl Cdf {
    /// Reads lines of bytes and share; `path` stands in errors.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn read(name: &str, path: &str, text: &str) -> Result<Cdf, FileError> {
        let mut points: Vec<Point> = Vec::new();
        for (line, words) in lines(text) {
            let (bytes, share) = points.last().copied().unwrap_or((0.0, 0.0));
            let numbers: Vec<f64> = words
                .split([' ', '\t', ','])
                .filter(|word| !word.is_empty())
                .filter_map(|word| word.parse().ok())
                .collect();
            let fits = |&(b, s): &Point| {
                (bytes..=MOST_BYTES as f64).contains(&b) && (share..=100.0).contains(&s)
            };
            let point = match numbers[..] {
                [bytes, share] => Some((bytes, share)).filter(fits),
                _ => None,
            };
            points.push(point.ok_or_else(|| FileError::Content {
                file: path.into(),
                line: Some(line),
                got: format!("got {} behind {bytes} and {share}", quoted(words)),
                expected: format!(
                    "bytes up to {MOST_BYTES} and a share, to 1 or 100 in the last line; neither ever falls"
                ),
            })?);
        }
        let whole = points.last().map_or(0.0, |point| point.1);
        if whole != 1.0 && whole != 100.0 || points.last().is_none_or(|point| point.0 < 1.0) {
            return Err(FileError::Content {
                file: path.into(),
                line: None,
                got: format!("the last share is {whole}"),
                expected: "lines of bytes and share, up to the share 1 or 100".into(),
            });
        }
        for point in &mut points {
            point.1 /= whole;
        }
        Ok(Cdf {
            name: name.into(),
            points,
        })
    }

    /// From each point to the next; what the first has already is that large.
    fn pieces(&self) -> impl Iterator<Item = [Point; 2]> {
        let first = self.points[0];
        let start = [(first.0, 0.0), first];
        std::iter::once(start).chain(self.points.windows(2).map(|two| [two[0], two[1]]))
    }

    pub(super) fn draw(&self, rng: &mut Stream) -> f64 {
        let share = rng.next_share();
        let mut pieces = self.pieces();
        let [from, to] = pieces
            .find(|[_, to]| share < to.1)
            .expect("the last share is 1, and no draw is");
        from.0 + (to.0 - from.0) * (share - from.1) / (to.1 - from.1)
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        self.pieces()
            .map(|[from, to]| (from.0 + to.0) / 2.0 * (to.1 - from.1))
            .sum()
    }

    pub(super) fn share_up_to(&self, bytes: f64) -> f64 {
        let mut share = 0.0;
        for [from, to] in self.pieces() {
            if bytes >= to.0 {
                share = to.1;
            } else if bytes > from.0 {
                return from.1 + (to.1 - from.1) * (bytes - from.0) / (to.0 - from.0);
            }
        }
        share
    }
}
