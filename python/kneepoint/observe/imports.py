"""What other tools wrote about connections, as tables: dumps of ss and M-Lab's tcp-info as `sockets`, logs of
nginx as `requests`, packet captures as `capture_acks` and `capture_connections`, output of iperf3 as `iperf3_intervals`
and `iperf3_streams`, files of flent as `flent_tests`, `flent_points` and `flent_samples`.

table = kneepoint.import_ss(["ss-20260821T120000.txt.zst"])
report = kneepoint.observe.imports.nginx(NginxAsked(["access.log"], out="imported"))
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kneepoint import _core, human
from kneepoint.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

Progress = Callable[[int, int], object]
"""Gets the bytes read and the rows so far."""

_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")


class NotUnderstood(UsageError):
    """Lines, packets or documents that an importer, told to be strict, does not understand; `report` has the first."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = dict(report)
        super().__init__(
            f"{shown(report)[0]}: {not_understood(report)}, and with strict nothing is imported then. Mend or remove "
            "them, or import without strict."
        )


@dataclass(frozen=True)
class Asked:
    """What importers have in common."""

    files: Sequence[Path | str]
    out: Path | str | None = None
    strict: bool = False
    anonymize: str | None = None
    dry_run: bool = False
    """Read all and report, and write nothing."""


@dataclass(frozen=True)
class SsAsked(Asked):
    zone: str | None = None
    """Of times that say none, such as `"+02:00"`."""
    host: str | None = None
    """What the column of that name says."""


@dataclass(frozen=True)
class NginxAsked(Asked):
    format: str = "combined"
    """A `log_format`, or the name of one in `conf`."""
    conf: Path | str | None = None
    """A configuration of nginx; the files that it includes are not followed."""
    escape: str = "default"
    """Of the format: default, json or none. One in `conf` says its own."""


@dataclass(frozen=True)
class TcpInfoAsked(Asked):
    host: str | None = None
    """What the column of that name says; None: the host in a file's metadata."""


@dataclass(frozen=True)
class PcapAsked(Asked):
    every: str | None = None
    """A row of `capture_acks` per interval, such as `"100ms"`; None: per ACK."""
    host: str | None = None
    """What the columns of that name say."""


class Captured(NamedTuple):
    """What packet captures tell."""

    acks: pyarrow.Table
    connections: pyarrow.Table


class Iperf3(NamedTuple):
    """What iperf3 measured."""

    intervals: pyarrow.Table
    streams: pyarrow.Table


class Flent(NamedTuple):
    """What flent measured."""

    tests: pyarrow.Table
    points: pyarrow.Table
    samples: pyarrow.Table


def import_ss(
    files: Sequence[Path | str] | Path | str,
    *,
    strict: bool = False,
    anonymize: str | None = None,
    zone: str | None = None,
    host: str | None = None,
) -> pyarrow.Table:
    """The sockets of dumps of ss: a row of the table `sockets` each, for what fits in memory.

    `files` may be plain, gzip or zstd. Lines not understood are left out, and counted in the JSON text that the
    schema's metadata has under `import`; with `strict` they raise NotUnderstood. `anonymize` is `"truncate"`,
    `"truncate:V4BITS/V6BITS"`, `"hash"` or `"hash:KEY"`. `zone`, such as `"+02:00"`, is that of times that say
    none, by default UTC. `host` fills the column of that name.
    Raises UsageError (no such file, no sockets in it).
    """
    return _table(_ss(SsAsked(_names(files), None, strict, anonymize, zone=zone, host=host), None))


def import_nginx(
    files: Sequence[Path | str] | Path | str,
    *,
    format: str = "combined",
    conf: Path | str | None = None,
    escape: str = "default",
    strict: bool = False,
    anonymize: str | None = None,
) -> pyarrow.Table:
    """The requests of access logs of nginx: a row of the table `requests` each, for what fits in memory.

    `format` is a `log_format`, with `escape` as there, or the name of one in the configuration `conf`. Variables whose
    meaning is known are typed columns with units, others text of their own names; `files`, `strict`, `anonymize` and
    what is raised are those of `import_ss`. Raises UsageError (a format that no line can be read back by) too.
    """
    return _table(
        _nginx(NginxAsked(_names(files), None, strict, anonymize, format=format, conf=conf, escape=escape), None)
    )


def import_pcap(
    files: Sequence[Path | str] | Path | str,
    *,
    every: str | None = None,
    strict: bool = False,
    anonymize: str | None = None,
    host: str | None = None,
) -> Captured:
    """The TCP connections of packet captures, pcap or pcapng: `connections` has a row for each, `acks` a row per ACK
    that says something new to a sender of data, or per interval `every` (`"100ms"`), for what fits in memory.

    Files of one capture stand in the order of their times; one that begins before the end of the one before it is a
    capture of its own. RTTs are the sender's where the column `vantage` says sender. `files`, `strict`, `anonymize`,
    `host` and what is raised are those of `import_ss`.
    """
    report, rows = _pcap(PcapAsked(_names(files), None, strict, anonymize, every=every, host=host), None)
    return Captured(*(_table((report, part)) for part in rows))


def import_tcp_info(
    files: Sequence[Path | str] | Path | str,
    *,
    strict: bool = False,
    anonymize: str | None = None,
    host: str | None = None,
) -> pyarrow.Table:
    """The sockets of files of M-Lab's tcp-info (JSONL): a row of the table `sockets` each, decoded as `sockets()` does,
    for what fits in memory. `files`, `strict`, `anonymize`, `host` and what is raised are those of `import_ss`; without
    `host` it is that of a file's metadata.
    """
    return _table(_tcp_info(TcpInfoAsked(_names(files), None, strict, anonymize, host=host), None))


def import_iperf3(
    files: Sequence[Path | str] | Path | str, *, strict: bool = False, anonymize: str | None = None
) -> Iperf3:
    """What iperf3 printed with `-J` or `--json-stream`, client and server, 3.1 and later: `intervals` has a row per
    interval and stream, `streams` one per stream of each test, for what fits in memory.

    They are joined on `file`, `test` and `stream`. Tests of which something is left out, or that tell of an error, are
    counted as documents not understood; with `strict` they raise NotUnderstood. `files`, `anonymize` and what is raised
    are those of `import_ss`.
    """
    report, rows = _iperf3(Asked(_names(files), None, strict, anonymize), None)
    return Iperf3(*(_table((report, table)) for table in rows))


def import_flent(
    files: Sequence[Path | str] | Path | str, *, strict: bool = False, anonymize: str | None = None
) -> Flent:
    """What flent measured, from its data files: `tests` has a row per file, `points` one per value of its series at
    equal steps, `samples` one per measurement at its own time.

    They are joined on `file`. `files`, `strict`, `anonymize` and what is raised are those of `import_iperf3`.
    """
    report, rows = _flent(Asked(_names(files), None, strict, anonymize), None)
    return Flent(*(_table((report, table)) for table in rows))


def ss(asked: SsAsked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes the sockets of dumps of ss as segments `sockets-NNNNNN.parquet` beside what the folder `asked.out` holds.

    Memory does not depend on the files' sizes. All segments appear when they are complete, or none. What is returned
    `docs/observe.md` tells. Raises UsageError, NotUnderstood, RunFolderError (the folder cannot be written).
    """
    return _ss(asked, progress)[0]


def nginx(asked: NginxAsked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes the requests of access logs as segments `requests-NNNNNN.parquet`, as `ss` does sockets."""
    return _nginx(asked, progress)[0]


def tcp_info(asked: TcpInfoAsked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes the sockets of files of M-Lab's tcp-info, as `ss` does those of dumps."""
    return _tcp_info(asked, progress)[0]


def pcap(asked: PcapAsked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes what packet captures tell as segments `capture_acks-NNNNNN.parquet` and
    `capture_connections-NNNNNN.parquet`, as `ss` does sockets."""
    return _pcap(asked, progress)[0]


def iperf3(asked: Asked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes what iperf3 measured as segments of `iperf3_intervals` and `iperf3_streams`, as `ss` does sockets."""
    return _iperf3(asked, progress)[0]


def flent(asked: Asked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes what flent measured as segments of `flent_tests`, `flent_points` and `flent_samples`, as `ss` does
    sockets."""
    return _flent(asked, progress)[0]


def shown(report: Mapping[str, Any]) -> list[str]:
    """The first that are not understood: `FILE:LINE: text`, or the packet; neither where it is of a whole document."""
    between = ": packet " if "packets" in report else ":"
    first = report["first_not_understood"]
    return [
        f"{file}{'' if number is None else f'{between}{number}'}: {text}".rstrip(" :") for file, number, text in first
    ]


def not_understood(report: Mapping[str, Any]) -> str:
    """How many were not; empty: none."""
    unit = unit_of(report)
    count = report[f"{unit}_not_understood"]
    return f"{count:,} of {report[unit]:,} {unit} are not understood" if count else ""


def unit_of(report: Mapping[str, Any]) -> str:
    """What the importer counts."""
    return next(unit for unit in ("documents", "packets", "lines") if unit in report)


def _ss(asked: SsAsked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    given = {"zone_s": _zone_s(asked.zone), "host": asked.host}
    return _imported(_core.import_ss, asked, given, progress, "TCP socket", "what `ss -tinem` prints")


def _nginx(asked: NginxAsked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    conf = None
    if asked.conf is not None:
        try:
            conf = Path(asked.conf).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{asked.conf}: cannot be read: {error}. Give a configuration of nginx.") from None
    given = {"format": asked.format, "conf": conf, "escape": asked.escape}
    try:
        return _imported(_core.import_nginx, asked, given, progress, "request", "lines of this log_format")
    except UsageError as error:
        what, _, text = str(error).partition(": ")
        if conf is not None and what in ("conf", "log_format"):
            raise UsageError(f"{asked.conf}: {text}") from None
        raise


def _tcp_info(asked: TcpInfoAsked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    given = {"host": asked.host}
    return _imported(_core.import_tcp_info, asked, given, progress, "TCP socket", "JSONL of M-Lab's tcp-info")


def _pcap(asked: PcapAsked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    every_ns = None if asked.every is None else _core.duration_ns("every", asked.every)
    if every_ns == 0:
        raise UsageError(f'every: got "{asked.every}"; expected more than nothing, such as 100ms.')
    given = {"every_ns": every_ns, "host": asked.host}
    return _imported(_core.import_pcap, asked, given, progress, "TCP connection", "packet captures, pcap or pcapng")


def _iperf3(asked: Asked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    expected = "what `iperf3 -J` or `--json-stream` prints"
    return _imported(_core.import_iperf3, asked, {}, progress, "stream of iperf3", expected)


def _flent(asked: Asked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    return _imported(
        _core.import_flent, asked, {}, progress, "test of flent", "data files of flent, .flent or .flent.gz"
    )


def _imported(
    importer: Callable[[str, Progress | None], tuple[dict[str, Any], Any]],
    asked: Asked,
    more: Mapping[str, Any],
    progress: Progress | None,
    row: str,
    expected: str,
) -> tuple[dict[str, Any], Any]:
    """The report, and the rows where no folder is asked for."""
    files = [str(file) for file in _readable(asked.files)]
    given = {
        "files": files,
        "out": None if asked.out is None else str(asked.out),
        "strict": asked.strict,
        "dry_run": asked.dry_run,
        "anonymize": asked.anonymize,
        **more,
    }
    try:
        found, rows = importer(json.dumps(given), progress)
    except OSError as error:
        raise _unreadable(error.filename or _named(error, files), error) from None
    report = _plain(found)
    if asked.strict and not_understood(report):
        raise NotUnderstood(report)
    if not report["rows"]:
        raise UsageError(_nothing(files, report, row, expected))
    return report, rows


def _names(files: Sequence[Path | str] | Path | str) -> Sequence[Path | str]:
    return [files] if isinstance(files, (str, Path)) else files


def _table(imported: tuple[dict[str, Any], Any]) -> pyarrow.Table:
    """The rows; the schema's metadata has the report under `import`."""
    import pyarrow

    report, rows = imported
    table = pyarrow.table(rows)
    metadata = {**(table.schema.metadata or {}), b"import": json.dumps(report).encode()}
    return table.replace_schema_metadata(metadata)


def _plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """The report as JSON has it."""
    report = {
        **found,
        "first_not_understood": [[str(f), line, text] for f, line, text in found["first_not_understood"]],
    }
    for name in ("files", "empty_files"):
        report[name] = [str(path) for path in found[name]]
    return report


def _readable(files: Sequence[Path | str]) -> list[Path]:
    """The files, all of which can be opened: nothing begins that cannot end."""
    if not files:
        raise UsageError("import: got no file; expected one or more.")
    for path in map(Path, files):
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise _unreadable(path, error) from None
    return [Path(file) for file in files]


def _unreadable(path: Path | str, error: OSError) -> UsageError:
    why = error.strerror or str(error).removeprefix(f"{path}: ")
    return UsageError(f"{path}: cannot be read: {why}. Give files, plain, gzip or zstd.")


def _named(error: OSError, files: Sequence[str]) -> str:
    """The file that an error without a number names."""
    return next((file for file in files if str(error).startswith(f"{file}: ")), files[0])


def _nothing(files: Sequence[str], report: Mapping[str, Any], row: str, expected: str) -> str:
    what = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    unit = unit_of(report)
    if not report[unit] and not shown(report):
        return f"{what}: empty; expected {expected}."
    found = human.counted(report[unit], unit.removesuffix("s"))
    if first := shown(report):
        found = f"{not_understood(report)}, as {first[0]}"
    elif report.get("unknown_links"):
        found = f"{found} by link types that are not read: {_link_types(report)}"
    elif report.get("other_protocols"):
        found = human.agreeing(f"{report['other_protocols']:,} sockets are of other protocols")
    return f"{what}: no {row} in it: {found}. Expected {expected}."


def _link_types(report: Mapping[str, Any]) -> str:
    return ", ".join(str(number) for number in report["unknown_links"])


def _zone_s(zone: str | None) -> int | None:
    """`+02:00` in seconds."""
    if zone is None or zone in ("UTC", "Z"):
        return None if zone is None else 0
    match = _ZONE.fullmatch(zone)
    if not match or int(match[2]) > 14 or int(match[3]) > 59:
        raise UsageError(f'zone: got "{zone}"; expected an offset from UTC such as +02:00, or UTC.')
    return (1 if match[1] == "+" else -1) * (int(match[2]) * 3600 + int(match[3]) * 60)
