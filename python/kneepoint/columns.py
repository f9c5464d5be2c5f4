"""Columns of the `runs` table, which the front fills itself; the engine knows those of the others."""

from __future__ import annotations

RUNS: tuple[tuple[str, str, str, str], ...] = (
    ("cell", "int32", "", "cell of the matrix"),
    ("rep", "int32", "", "repetition, from 0"),
    ("title", "string", "", "title of the scenario"),
    ("claim", "string", "", "published claim that the scenario reproduces; null: none"),
    ("scenario_sha256", "string", "", "SHA-256 of the scenario's text"),
    ("seed", "uint64", "", "seed of the scenario; with the repetition it settles every random draw"),
    ("engine", "string", "", "what ran the cell"),
    ("engine_version", "string", "", "version of kneepoint"),
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


def of_runs() -> list[dict[str, str]]:
    """In the form of `_core.tables()`."""
    return [
        {"name": name, "type": type_, "unit": unit, "doc": doc, "source": "kneepoint"}
        for name, type_, unit, doc in RUNS
    ]
