"""`knee import`: a subcommand per format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kneepoint import human, say

from .options import foreign

if TYPE_CHECKING:
    from kneepoint.observe.imports import Progress

Command = TypeVar("Command", bound=Callable[..., Any])
Importer = Callable[[Any, "Progress | None"], dict[str, Any]]

_PATH = click.Path(path_type=Path)
_WORDS_SHOWN = 10
# What a report's counts, where they are not 0, mean for the tables. Those of captures are why their figures may not be
# what they seem.
_DOUBTS = {
    "rows_without_time": "{:,} rows have no time: neither a line before their dump nor the file's name says one.",
    "other_protocols": "{:,} sockets of other protocols than TCP were left out.",
    "documents_without_end": (
        "{:,} tests have no end: iperf3 was stopped, or is not done, and their sums are not known."
    ),
    "at_receiver": "{:,} connections were captured at the receiver of their data: rtt_us is that host's own there.",
    "in_the_middle": "{:,} connections were captured between their ends: rtt_us is a part of the round trip there.",
    "one_way": "{:,} connections have packets of one direction only: no RTT, no inflight.",
    "dropped_by_capture": "{:,} packets were dropped by the capture, as it says.",
    "bytes_not_captured": "{:,} bytes were acknowledged and not captured: the capture dropped packets.",
    "options_cut": "{:,} packets have their TCP options cut off; capture 128 bytes or more of each.",
    "captured_again": "{:,} packets were captured again at another interface, and left out.",
    "fragments": "{:,} fragments of IP packets were left out: they do not tell their segment's length.",
    "unknown_links": "{:,} packets have a link type that is not read: {}.",
    "left": "{:,} connections were ended to make room for others: more than 65,536 were open.",
    "forgotten": "memory for what was outstanding ran out: some ACKs have no RTT.",
}


@click.group("import", short_help="Import what other tools wrote: ss, nginx, captures, tcp-info, iperf3, flent.")
def group() -> None:
    """Import what other tools wrote about connections, as Parquet, for `knee sql`."""


def importing(command: Command) -> Command:
    """Arguments and options of every format."""
    for decorate in (
        click.option("--quiet", "-q", is_flag=True, help="Nothing on stderr."),
        click.option("--json", is_flag=True, help="Print one JSON object instead of text."),
        click.option(
            "--anonymize", metavar="HOW", help="truncate[:V4BITS/V6BITS] or hash[:KEY], before the disk is touched."
        ),
        click.option("--dry-run", is_flag=True, help="Read all, say what is not understood, write nothing."),
        foreign,
        click.option("--strict", is_flag=True, help="Import nothing when something is not understood; exit code 1."),
        click.option(
            "--out",
            metavar="DIR",
            type=_PATH,
            help="Folder for the files, which may hold others; by default the next free runs/import-N.",
        ),
        click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_PATH),
    ):
        command = decorate(command)
    return command


@group.command("ss", short_help="Dumps of ss, of any iproute2 since 3.10.")
@click.option("--host", metavar="NAME", help="Fills the column host.")
@click.option("--zone", metavar="+HH:MM", help="Of times that do not say theirs.  [default: UTC]")
@importing
def _ss(**given: Any) -> int:
    """Import dumps of ss: a row of the table `sockets` for each TCP socket.

    Any mix of -t -i -e -m -o -n -p -O, plain, gzip or zstd. The time of a dump is that of a line that `date` printed
    before it, or of the file's name.
    """
    from kneepoint.observe import imports

    return run("ss", imports.ss, imports.SsAsked, **given)


@group.command("nginx", short_help="Access logs of nginx, of any log_format.")
@click.option(
    "--format",
    default="combined",
    show_default=True,
    metavar="TEXT|NAME",
    help="The log_format, or the name of one in --conf.",
)
@click.option("--conf", metavar="FILE", type=_PATH, help="A configuration of nginx, for its log_format.")
@click.option(
    "--escape", default="default", show_default=True, metavar="WORD", help="Of --format: default, json, none."
)
@importing
def _nginx(**given: Any) -> int:
    """Import access logs of nginx: a row of the table `requests` for each line.

    Variables whose meaning is known become typed columns with units, such as $tcpinfo_rtt, the column srtt_us; others
    are text. Plain, gzip or zstd.
    """
    from kneepoint.observe import imports

    return run("nginx", imports.nginx, imports.NginxAsked, **given)


@group.command("iperf3", short_help="Output of iperf3 -J or --json-stream, 3.1 and later.")
@importing
def _iperf3(**given: Any) -> int:
    """Import output of iperf3: a row of the table `iperf3_intervals` for each interval and stream, and one of
    `iperf3_streams` for each stream.

    -J or --json-stream, of client and server, TCP, UDP and SCTP, several tests in one file; plain, gzip or zstd. A test
    of which iperf3 tells an error is not understood in full: its intervals are imported, its error is shown.
    """
    from kneepoint.observe import imports

    return run("iperf3", imports.iperf3, imports.Asked, **given)


@group.command("flent", short_help="Data files of flent, .flent and .flent.gz.")
@importing
def _flent(**given: Any) -> int:
    """Import data files of flent: a row of the table `flent_tests` for each, one of `flent_points` for each value of
    its series at equal steps, and one of `flent_samples` for each measurement at its own time.
    """
    from kneepoint.observe import imports

    return run("flent", imports.flent, imports.Asked, **given)


@group.command("tcp-info", short_help="M-Lab's tcp-info files.")
@click.option("--host", metavar="NAME", help="Fills the column host.  [default: as the file's metadata says]")
@importing
def _tcp_info(**given: Any) -> int:
    """Import files of M-Lab's tcp-info: a row of the table `sockets` for each snapshot, as `knee record` writes them.

    JSONL of ArchivalRecord, plain, gzip or zstd.
    """
    from kneepoint.observe import imports

    return run("tcp-info", imports.tcp_info, imports.TcpInfoAsked, **given)


@group.command("pcap", short_help="Packet captures: RTTs, retransmissions, inflight.")
@click.option("--every", metavar="TIME", help="A row per interval, such as 100ms, instead of per ACK.")
@click.option("--host", metavar="NAME", help="Fills the columns host.")
@importing
def _pcap(**given: Any) -> int:
    """Import packet captures: a row of the table `capture_connections` for each TCP connection, and one of
    `capture_acks` for each ACK.

    pcap or pcapng of Ethernet, raw IP, Linux cooked and loopback, plain, gzip or zstd; headers are enough (dumpcap -s
    128). Files of one capture go in the order of their times. Round-trip times are the sender's where it was captured
    there.
    """
    from kneepoint.observe import imports

    return run("pcap", imports.pcap, imports.PcapAsked, **given)


def run(
    name: str,
    importer: Importer,
    asked: Callable[..., Any],
    *,
    out: Path | None,
    json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Imports, and says what came of it."""
    from kneepoint.folder import next_free
    from kneepoint.observe import imports

    folder = out or next_free(Path("runs"), "import")
    is_shown = say.shows_progress(quiet=quiet)
    refused = False
    try:
        report = importer(asked(out=folder, **given), _progress if is_shown else None)
    except imports.NotUnderstood as error:
        report, refused = error.report, True
    finally:
        if is_shown:
            say.progress_ends()
    if json:
        say.json({"schema": 1, "imported": not refused, "folder": str(folder), **report})
    elif not refused:
        say.lines(_told(report, folder))
    if not quiet:
        for line in _doubts(report):
            say.warn(f"knee import {name}: {line}")
    if refused:
        say.warn(f"knee import {name}: --strict: nothing was imported.")
    return 1 if refused else 0


def _progress(done_bytes: int, rows: int) -> None:
    """One line that is written over."""
    say.progress(f"{done_bytes >> 20:,} MiB, {rows:,} rows so far")


def _told(report: Mapping[str, Any], folder: Path) -> Iterator[str]:
    from kneepoint.observe import imports

    if "packets" in report:
        connections = human.counted(report["connections"], "connection")
        acks = f"{human.counted(report['ack_rows'], 'row')} of ACKs"
        yield f"{connections} and {acks} from {human.counted(report['packets'], 'packet')}"
    else:
        dumps = f" of {human.counted(report['dumps'], 'dump')}" if "dumps" in report else ""
        unit = imports.unit_of(report)
        units = human.counted(report[unit], unit.removesuffix("s"))
        yield f"{human.counted(report['rows'], 'row')}{dumps} from {units}"
    files = len(report["files"])
    if not files:
        yield "nothing written: --dry-run"
        return
    size = sum(Path(path).stat().st_size for path in report["files"])
    yield f"{human.counted(files, 'file')}, {human.quantity('bytes', size)} in {folder}"


def _doubts(report: Mapping[str, Any]) -> Iterator[str]:
    """What is not in the tables."""
    from kneepoint.observe import imports

    if told := imports.not_understood(report):
        yield f"{told}; the first of them:"
        yield from (f"  {line}" for line in imports.shown(report))
    if words := report.get("unknown_words"):
        often = sorted(words.items(), key=lambda item: (-item[1], item[0]))[:_WORDS_SHOWN]
        yield f"words that mean nothing to it: {', '.join(f'{word} ({count:,})' for word, count in often)}."
    for name, text in _DOUBTS.items():
        match report.get(name):
            case dict() as counts:
                yield from (human.agreeing(text.format(count, what)) for what, count in counts.items())
            case count if count:
                yield human.agreeing(text.format(count))
    yield from (f"{path}: empty." for path in report["empty_files"])
