"""A function for each importer, written by docs/generate.py from crates/import/src/: change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .reading import Files, read

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow


class Pcap(NamedTuple):
    """Tables of `import_pcap`."""

    acks: pyarrow.Table
    connections: pyarrow.Table


class Iperf3(NamedTuple):
    """Tables of `import_iperf3`."""

    intervals: pyarrow.Table
    streams: pyarrow.Table


class Flent(NamedTuple):
    """Tables of `import_flent`."""

    tests: pyarrow.Table
    points: pyarrow.Table
    samples: pyarrow.Table


def import_ss(
    files: Files,
    *,
    host: str | None = None,
    zone: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import dumps of ss: a row of the table `sockets` for each TCP socket.

    Any mix of -t -i -e -m -o -n -p -O, plain, gzip or zstd. The time of a dump is that of a line that `date`
    printed before it, or of the file's name.

    `host`: Fills the column host.

    `zone`: Of times that do not say theirs; by default UTC.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "ss",
        files,
        strict=strict,
        anonymize=anonymize,
        host=host,
        zone=zone,
    )
    return tables[0]


def import_nginx(
    files: Files,
    *,
    format: str = "combined",
    conf: Path | str | None = None,
    escape: str = "default",
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import access logs of nginx: a row of the table `requests` for each line.

    Variables whose meaning is known become typed columns with units, such as $tcpinfo_rtt, the column srtt_us;
    others are text. Plain, gzip or zstd.

    `format`: The log_format, or the name of one in --conf.

    `conf`: A configuration of nginx, for its log_format.

    `escape`: Of --format; one in --conf says its own.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "nginx",
        files,
        strict=strict,
        anonymize=anonymize,
        format=format,
        conf=conf,
        escape=escape,
    )
    return tables[0]


def import_pcap(
    files: Files,
    *,
    every: str | None = None,
    host: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> Pcap:
    """Import packet captures: a row of the table `capture_connections` for each TCP connection, and one of
    `capture_acks` for each ACK.

    pcap or pcapng of Ethernet, raw IP, Linux cooked and loopback, plain, gzip or zstd; headers are enough (dumpcap
    -s 128). Files of one capture go in the order of their times. Round-trip times are the sender's where it was
    captured there.

    `every`: A row per interval, such as 100ms, instead of per ACK.

    `host`: Fills the columns host.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "pcap",
        files,
        strict=strict,
        anonymize=anonymize,
        every=every,
        host=host,
    )
    return Pcap(*tables)


def import_tcp_info(
    files: Files,
    *,
    host: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import files of M-Lab's tcp-info: a row of the table `sockets` for each snapshot, as `knee record` writes them.

    JSONL of ArchivalRecord, plain, gzip or zstd.

    `host`: Fills the column host; by default as the file's metadata says.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "tcp-info",
        files,
        strict=strict,
        anonymize=anonymize,
        host=host,
    )
    return tables[0]


def import_iperf3(
    files: Files,
    *,
    strict: bool = False,
    anonymize: str | None = None,
) -> Iperf3:
    """Import output of iperf3: a row of the table `iperf3_intervals` for each interval and stream, and one of
    `iperf3_streams` for each stream.

    -J or --json-stream, of client and server, TCP, UDP and SCTP, several tests in one file; plain, gzip or zstd. A
    test of which iperf3 tells an error is not understood in full: its intervals are imported, its error is shown.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "iperf3",
        files,
        strict=strict,
        anonymize=anonymize,
    )
    return Iperf3(*tables)


def import_flent(
    files: Files,
    *,
    strict: bool = False,
    anonymize: str | None = None,
) -> Flent:
    """Import data files of flent: a row of the table `flent_tests` for each, one of `flent_points` for each value of
    its series at equal steps, and one of `flent_samples` for each measurement at its own time.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "flent",
        files,
        strict=strict,
        anonymize=anonymize,
    )
    return Flent(*tables)


def import_netperf(
    files: Files,
    *,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import output of netperf: a row of the table `program_tests` for each test.

    TCP_RR, TCP_CRR, TCP_STREAM, TCP_MAERTS, UDP_STREAM and omni, with and without headings (-P 0) and processors
    (-c -C), several tests in one file; plain, gzip or zstd.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "netperf",
        files,
        strict=strict,
        anonymize=anonymize,
    )
    return tables[0]


def import_memtier(
    files: Files,
    *,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import output of memtier_benchmark: a row of the table `program_tests` for each table of results.

    What it prints, and the files of --json-out-file; several runs in one file; plain, gzip or zstd.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "memtier",
        files,
        strict=strict,
        anonymize=anonymize,
    )
    return tables[0]


def import_perf(
    files: Files,
    *,
    event: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import output of perf script: a row of the table `stacks` for each different call stack, as `knee profile`
    writes them.

    Of perf record -g, with times and the event, as perf script prints by itself; plain, gzip or zstd. Stacks of
    idle processors are left out. `knee report` draws the folder as a flame graph.

    `event`: Event whose samples are imported, such as cpu-clock; by default one that measures time.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "perf",
        files,
        strict=strict,
        anonymize=anonymize,
        event=event,
    )
    return tables[0]


def import_mpstat(
    files: Files,
    *,
    host: str | None = None,
    zone: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import output of mpstat: a row of the table `cpu` for each processor and interval, as `knee record` writes them.

    mpstat -P ALL 5 and mpstat -P ALL -o JSON 5, several runs in one file; plain, gzip or zstd.

    `host`: Fills the column host.

    `zone`: Of times that do not say theirs; by default UTC.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "mpstat",
        files,
        strict=strict,
        anonymize=anonymize,
        host=host,
        zone=zone,
    )
    return tables[0]


def import_tc(
    files: Files,
    *,
    host: str | None = None,
    zone: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """Import dumps of tc -s qdisc: a row of the table `qdisc` for each queue, as `knee record` writes them.

    tc -s qdisc and tc -s -j qdisc of any iproute2 since 3.10, several dumps in one file; plain, gzip or zstd. The
    time of a dump is that of a line that `date` printed before it, or of the file's name.

    `host`: Fills the column host.

    `zone`: Of times that do not say theirs; by default UTC.

    `files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`.
    """
    tables = read(
        "tc",
        files,
        strict=strict,
        anonymize=anonymize,
        host=host,
        zone=zone,
    )
    return tables[0]
