//! Imports of what other tools wrote.

mod bring;
mod report;

use knee_observe::import::{Lines as _, flent, iperf3, nginx, pcap, ss, tcp_info};
use knee_observe::tables::{
    CaptureAcks, CaptureConnections, FlentPoints, FlentSamples, FlentTests, Iperf3Intervals,
    Iperf3Streams,
};
use knee_observe::{Sockets, Table, table};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use self::bring::{Asked, Described, bring};
use crate::arrow::ArrowBatches;
use crate::{asked, errors};

#[derive(Deserialize)]
struct AskedSs {
    #[serde(flatten)]
    asked: Asked,
    zone_s: Option<i32>,
    host: Option<String>,
}

#[derive(Deserialize)]
struct AskedNginx {
    #[serde(flatten)]
    asked: Asked,
    /// A `log_format`, or the name of one within `conf`.
    format: String,
    /// The text of a configuration.
    conf: Option<String>,
    escape: Option<String>,
}

#[derive(Deserialize)]
struct AskedTcpInfo {
    #[serde(flatten)]
    asked: Asked,
    host: Option<String>,
}

#[derive(Deserialize)]
struct AskedPcap {
    #[serde(flatten)]
    asked: Asked,
    host: Option<String>,
    /// A row per interval; `None`: per ACK.
    every_ns: Option<i64>,
}

/// The report, and the rows of each table where no folder was given.
type Imported<'py, Rows> = (Bound<'py, PyDict>, Option<Rows>);

/// Reads dumps of ss; the report, whose `files` are those written, and the rows
/// where no folder was given. `asked` is a JSON object. With `strict`, lines not
/// understood leave nothing behind. `progress` gets bytes read and sockets so far.
#[pyfunction]
pub fn import_ss<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, ArrowBatches>> {
    let AskedSs {
        asked,
        zone_s,
        host,
    } = asked::parse(asked)?;
    let parser = ss::Parser::new(ss::Options {
        anonymiser: asked.anonymiser(py)?,
        zone_s,
        host,
    });
    let tables = [described::<Sockets>()];
    let (told, rows) = bring(py, &asked, parser, &tables, progress.as_ref())?;
    Ok((told, rows.map(|[rows]| rows)))
}

/// Reads access logs of nginx, as [`import_ss`] reads dumps of ss.
#[pyfunction]
pub fn import_nginx<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, ArrowBatches>> {
    let asked: AskedNginx = asked::parse(asked)?;
    let usage = |error: String| errors::usage(py, &error);
    let word = asked.escape.as_deref().unwrap_or("default");
    let escape = nginx::Escape::parse(word).ok_or_else(|| {
        usage(format!(
            "escape: got {word:?}; expected default, json or none."
        ))
    })?;
    let (text, escape) = match &asked.conf {
        // nginx has this one without a directive, and refuses another of its name.
        Some(conf) if asked.format != "combined" => nginx::log_format(conf, &asked.format)
            .map_err(|error| usage(format!("conf: {error}.")))?,
        _ => (asked.format, escape),
    };
    let format = nginx::Format::compile(&text, escape)
        .map_err(|error| usage(format!("log_format: {error}.")))?;
    let asked = asked.asked;
    let parser = nginx::Parser::new(nginx::Options {
        format,
        anonymiser: asked.anonymiser(py)?,
    });
    let tables = [(nginx::Parser::TABLE, parser.schema())];
    let (told, rows) = bring(py, &asked, parser, &tables, progress.as_ref())?;
    Ok((told, rows.map(|[rows]| rows)))
}

/// Reads files of M-Lab's tcp-info, as [`import_ss`] reads dumps of ss.
#[pyfunction]
pub fn import_tcp_info<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, ArrowBatches>> {
    let AskedTcpInfo { asked, host } = asked::parse(asked)?;
    let parser = tcp_info::Parser::new(tcp_info::Options {
        anonymiser: asked.anonymiser(py)?,
        host,
    });
    let tables = [described::<Sockets>()];
    let (told, rows) = bring(py, &asked, parser, &tables, progress.as_ref())?;
    Ok((told, rows.map(|[rows]| rows)))
}

/// Reads packet captures, as [`import_ss`] reads dumps of ss, into two tables.
#[pyfunction]
pub fn import_pcap<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, (ArrowBatches, ArrowBatches)>> {
    let AskedPcap {
        asked,
        host,
        every_ns,
    } = asked::parse(asked)?;
    let analyser = pcap::Analyser::new(pcap::Options {
        anonymiser: asked.anonymiser(py)?,
        host,
        every_ns,
        ..pcap::Options::default()
    });
    let tables = [
        described::<CaptureAcks>(),
        described::<CaptureConnections>(),
    ];
    let (told, rows) = bring(py, &asked, analyser, &tables, progress.as_ref())?;
    Ok((told, rows.map(Into::into)))
}

/// Reads output of iperf3, as [`import_ss`] reads dumps of ss, into two tables.
#[pyfunction]
pub fn import_iperf3<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, (ArrowBatches, ArrowBatches)>> {
    let asked: Asked = asked::parse(asked)?;
    let importer = iperf3::Importer::new(asked.anonymiser(py)?);
    let tables = [described::<Iperf3Intervals>(), described::<Iperf3Streams>()];
    let (told, rows) = bring(py, &asked, importer, &tables, progress.as_ref())?;
    Ok((told, rows.map(Into::into)))
}

/// Reads data files of flent, as [`import_ss`] reads dumps of ss, into three tables.
#[pyfunction]
pub fn import_flent<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py, (ArrowBatches, ArrowBatches, ArrowBatches)>> {
    let asked: Asked = asked::parse(asked)?;
    let importer = flent::Importer::new(asked.anonymiser(py)?);
    let tables = [
        described::<FlentTests>(),
        described::<FlentPoints>(),
        described::<FlentSamples>(),
    ];
    let (told, rows) = bring(py, &asked, importer, &tables, progress.as_ref())?;
    Ok((told, rows.map(Into::into)))
}

fn described<T: Table>() -> Described {
    (T::NAME, table::schema::<T>())
}
