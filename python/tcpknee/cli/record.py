"""`knee record`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say

from .options import PATH, filter_options, foreign, json_option

if TYPE_CHECKING:
    from tcpknee.live.record import Report


@click.command("record", short_help="Record every TCP socket of this host.")
@click.option("--out", required=True, metavar="DIR", type=PATH, help="Folder for the files, which may hold others.")
@click.option("--every", default="1s", show_default=True, metavar="TIME", help="Between two samples.")
@click.option("--for", "for_", metavar="TIME", help="End after this time; by default at Ctrl-C or SIGTERM.")
@click.option("--keep", metavar="BYTES", help="Delete the oldest files beyond this much: 10GB.")
@click.option("--rotate", metavar="BYTES|TIME", help="Begin new files at this size or age.  [default: 256MiB and 1h]")
@filter_options
@click.option("--processes", is_flag=True, help="Name and PID of who holds a socket; up to 5 % of a processor.")
@click.option("--anonymize", metavar="HOW", help="truncate[:V4BITS/V6BITS] or hash[:KEY], before the disk is touched.")
@click.option(
    "--no-host", is_flag=True, help="No counters of the host, its processors, devices and queues, and no settings."
)
@foreign
@json_option
@click.option("--quiet", "-q", is_flag=True, help="Nothing on stderr.")
def command(json: bool, quiet: bool, for_: str | None, no_host: bool, **given: Any) -> int:
    """Record every TCP socket of this host at intervals, and the last state of each that closes, into Parquet.

    An ordinary user may do it; what only root can be told (marks, processes of others) is then missing and named.

    Example: knee record --every 1s --for 1h --out rec
    """
    from tcpknee.live import exclusions
    from tcpknee.live.record import record

    asked = {
        "out": str(given.pop("out").absolute()),
        "for": for_,
        "host": not no_host,
        "ports": given.pop("port"),
        "addresses": given.pop("address"),
        "algorithms": given.pop("algorithm"),
        "states": given.pop("state"),
        **given,
    }
    shown = say.shows_progress(quiet=quiet)
    report = record(asked, progress=_progress if shown else None)
    if shown:
        say.progress_ends()
    if json:
        say.json({"schema": 1, **report})
        return 0
    if report["rows"] == 0:
        say.line(exclusions.text(report["left_out"], asked))
    say.lines(_told(report, asked["out"]))
    if not quiet:
        for line in _doubts(report):
            say.warn(f"knee record: {line}")
    return 0


def _progress(sockets: int, rows: int) -> None:
    """One line that is written over."""
    say.progress(f"{sockets:,} sockets, {rows:,} rows so far; Ctrl-C ends")


def _told(report: Report, out: str) -> list[str]:
    """What was recorded, where it is and what it cost."""
    cpu, elapsed_us = report["cpu"], report["elapsed_us"]
    used_us = cpu["user_us"] + cpu["system_us"]
    share = 100 * used_us / elapsed_us if elapsed_us else 0.0
    used, elapsed = human.quantity("time", used_us), human.quantity("time", elapsed_us)
    files = len(report["files"])
    return [
        f"{human.counted(report['rows'], 'row')} in {human.counted(report['samples'], 'sample')} of up to "
        f"{human.counted(report['sockets_max'], 'socket')}; "
        f"{report['final_rows']:,} of them when a socket was destroyed",
        f"{human.counted(files, 'file')}, {human.quantity('bytes', report['bytes'])} in {out}",
        f"cost: {share:.2f} % of a processor ({used} in {elapsed}, "
        f"of that {human.quantity('time', cpu['system_us'])} in the kernel), "
        f"at most {human.quantity('bytes', report['peak_rss_bytes'])} of memory",
    ]


def _doubts(report: Report) -> list[str]:
    """What is missing from the recording."""
    counts: tuple[tuple[str, Callable[[int], str]], ...] = (
        (
            "missed",
            lambda n: (
                f"{human.counted(n, 'sample')} left out: one took longer than the interval. Choose a longer --every."
            ),
        ),
        ("failed", lambda n: f"{human.counted(n, 'sample')} could not be taken."),
        (
            "events_lost",
            lambda n: (
                f"{human.counted(n, 'socket')} destroyed faster than events could be taken: the final rows are missing."
            ),
        ),
        (
            "final_left_out",
            lambda n: (
                f"{human.counted(n, 'socket')} destroyed before a sample told what the filters ask for: no final row."
            ),
        ),
        (
            "interrupted",
            lambda n: f"in {human.counted(n, 'sample')} the kernel's table changed: a socket may be missing or twice.",
        ),
        ("not_understood", lambda n: f"{human.counted(n, 'answer')} of the kernel not understood as a socket."),
    )
    lines = [words(report[key]) for key, words in counts if report.get(key)]
    return lines + [f"{text}." for text in report["notes"]]
