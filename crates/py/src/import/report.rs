//! What importers found, as the report that Python gets.

use knee_observe::import::{DocumentsReport, LinesReport, iperf3, pcap, ss, tcp_info};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Writes what an importer found, besides bytes and rows, which all count.
pub trait Report {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()>;
}

impl<M: Report> Report for LinesReport<M> {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("lines", self.lines)?;
        told.set_item("lines_not_understood", self.lines_not_understood)?;
        told.set_item("first_not_understood", &self.first)?;
        self.more.tell(told)
    }
}

impl<M: Report> Report for DocumentsReport<M> {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("documents", self.documents)?;
        told.set_item("documents_not_understood", self.documents_not_understood)?;
        told.set_item("first_not_understood", &self.first)?;
        self.more.tell(told)
    }
}

impl Report for () {
    fn tell(&self, _told: &Bound<'_, PyDict>) -> PyResult<()> {
        Ok(())
    }
}

impl Report for ss::More {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("dumps", self.dumps)?;
        told.set_item("rows_without_time", self.without_time)?;
        told.set_item("other_protocols", self.other_protocols)?;
        told.set_item("unknown_words", &self.unknown_words)
    }
}

impl Report for tcp_info::More {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("rows_without_time", self.without_time)
    }
}

impl Report for iperf3::More {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("documents_without_end", self.without_end)
    }
}

impl Report for pcap::Report {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("packets", self.packets)?;
        told.set_item("tcp_packets", self.tcp_packets)?;
        told.set_item("connections", self.connections)?;
        told.set_item("ack_rows", self.ack_rows)?;
        told.set_item("other_packets", self.other_packets)?;
        told.set_item("unknown_links", &self.unknown_links)?;
        told.set_item("fragments", self.fragments)?;
        told.set_item("captured_again", self.captured_again)?;
        told.set_item("options_cut", self.options_cut)?;
        told.set_item("packets_not_understood", self.packets_not_understood)?;
        told.set_item("first_not_understood", &self.first)?;
        told.set_item("dropped_by_capture", self.dropped_by_capture)?;
        told.set_item("bytes_not_captured", self.bytes_not_captured)?;
        told.set_item("one_way", self.one_way)?;
        told.set_item("at_receiver", self.at_receiver)?;
        told.set_item("in_the_middle", self.in_the_middle)?;
        told.set_item("left", self.left)?;
        told.set_item("forgotten", self.forgotten)
    }
}
