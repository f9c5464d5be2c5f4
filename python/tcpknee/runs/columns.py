"""Columns that the front fills itself: the `runs` table, and what programs printed; the engines know the others."""

from __future__ import annotations

RUNS: tuple[tuple[str, str, str, str], ...] = (
    ("cell", "int32", "", "cell of the matrix"),
    ("rep", "int32", "", "repetition, from 0"),
    ("title", "string", "", "title of the scenario"),
    ("claim", "string", "", "published claim that the scenario reproduces; null: none"),
    ("scenario_sha256", "string", "", "SHA-256 of the scenario's text"),
    ("seed", "uint64", "", "seed of the cell; with the repetition it settles every random draw"),
    ("engine", "string", "", "what ran the cell"),
    ("engine_version", "string", "", "version of tcpknee"),
    ("axes", "string", "", "what tells this cell from the others, as a JSON object"),
    ("algorithms", "string", "", "algorithms of the cell's flows with their counts, as in cubic:1,bbr1:2"),
    ("duration_ns", "int64", "ns", "length of the run"),
    ("warmup_ns", "int64", "ns", "left out of steady-state metrics"),
    ("rate_bits_per_sec", "int64", "bit/s", "rate of the bottleneck; null: unlimited"),
    ("rtt_ns", "int64", "ns", "base round-trip time of the path"),
    ("bdp_bytes", "int64", "bytes", "rate x base RTT, rounded down; null: unlimited rate"),
    ("buffer_bytes", "int64", "bytes", "bytes the bottleneck's queue holds; null: not limited in bytes"),
    ("buffer_pkts", "int64", "packets", "packets the bottleneck's queue holds; null: not limited in packets"),
    ("data_packets", "int64", "packets", "data packets that entered the path: the work done"),
)
"""Name, Arrow type, unit and meaning of each."""


PROGRAMS: tuple[tuple[str, str, str, str], ...] = (
    ("requests_per_sec", "float64", "1/s", "requests answered per second; null: it did not print them"),
    ("latency_us_p50", "float64", "us", "median latency of a request; null: as above"),
    ("latency_us_p95", "float64", "us", "95th percentile of it; null: as above"),
    ("latency_us_p99", "float64", "us", "99th percentile of it; null: as above"),
    ("goodput_bits_per_sec", "float64", "bit/s", "payload received; null: as above"),
)
"""The same of the columns that a client's own output fills. Of several tests one after the other: requests per second
over all of them, and the means of their percentiles."""


def of_runs() -> list[dict[str, str]]:
    """In the form of `_core.tables()`."""
    return _listed(RUNS, "tcpknee")


def of_programs() -> list[dict[str, str]]:
    """In the form of `_core.tables()`."""
    return _listed(PROGRAMS, "what the client printed")


def of_tables() -> dict[str, list[dict[str, str]]]:
    """Columns of every table that a run may have, `runs` first."""
    from tcpknee import _core

    found = {name: list(columns) for name, columns in _core.tables().items()}
    further = found.pop("tcp_info")
    found["samples"] += [{**column, "engine": "kernel"} for column in further]
    found["programs"] += of_programs()
    return {"runs": of_runs(), **found}


def _listed(columns: tuple[tuple[str, str, str, str], ...], source: str) -> list[dict[str, str]]:
    return [
        {"name": name, "type": type_, "unit": unit, "doc": doc, "source": source} for name, type_, unit, doc in columns
    ]
