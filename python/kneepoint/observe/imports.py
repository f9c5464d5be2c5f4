"""What other tools wrote about connections, as the table `sockets`.

table = kneepoint.import_ss(["ss-20260821T120000.txt.zst"])
report = kneepoint.observe.imports.ss(Asked(["dumps/a.txt", "dumps/b.txt"], out="imported"))
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kneepoint import _core
from kneepoint.errors import UsageError

if TYPE_CHECKING:
    import pyarrow

Progress = Callable[[int, int], object]
"""Gets the bytes read and the rows so far."""

_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)")


class NotUnderstood(UsageError):
    """Lines that mean nothing to an importer that was told to be strict; `report` has the first of them."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = dict(report)
        first = shown(report)
        super().__init__(
            f"{first[0]}: {report['lines_not_understood']:,} of {report['lines']:,} lines are not understood, and with "
            "strict nothing is imported then. Mend or remove them, or import without strict."
        )


@dataclass(frozen=True)
class Asked:
    """What importers have in common."""

    files: Sequence[Path | str]
    out: Path | str | None = None
    strict: bool = False
    anonymize: str | None = None
    zone: str | None = None
    host: str | None = None
    dry_run: bool = False
    """Read all and report, and write nothing."""


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
    import pyarrow

    names = [files] if isinstance(files, (str, Path)) else files
    report, found = _ss(Asked(names, None, strict, anonymize, zone, host), None)
    table = pyarrow.table(found)
    metadata = {**(table.schema.metadata or {}), b"import": json.dumps(report).encode()}
    return table.replace_schema_metadata(metadata)


def ss(asked: Asked, progress: Progress | None = None) -> dict[str, Any]:
    """Writes the sockets of dumps of ss as segments `sockets-NNNNNN.parquet` beside what the folder `asked.out` holds.

    Memory does not depend on the files' sizes. All segments appear when they are complete, or none. What is returned
    `docs/observe.md` tells. Raises UsageError, NotUnderstood, RunFolderError (the folder cannot be written).
    """
    return _ss(asked, progress)[0]


def shown(report: Mapping[str, Any]) -> list[str]:
    """The first lines not understood: `FILE:LINE: text`."""
    return [f"{file}:{line}: {text}".rstrip(" :") for file, line, text in report["first_not_understood"]]


def _ss(asked: Asked, progress: Progress | None) -> tuple[dict[str, Any], Any]:
    """The report, and the rows where no folder is asked for."""
    files = [str(file) for file in _readable(asked.files)]
    given = {
        "files": files,
        "out": None if asked.out is None else str(asked.out),
        "strict": asked.strict,
        "dry_run": asked.dry_run,
        "anonymize": asked.anonymize,
        "zone_s": _zone_s(asked.zone),
        "host": asked.host,
    }
    try:
        found, rows = _core.import_ss(json.dumps(given), progress)
    except OSError as error:
        raise _unreadable(error.filename or asked.files[0], error) from None
    report = _plain(found)
    if asked.strict and report["lines_not_understood"]:
        raise NotUnderstood(report)
    if not report["rows"]:
        raise UsageError(_nothing(files, report))
    return report, rows


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
    return UsageError(f"{path}: cannot be read: {error.strerror or error}. Give files, plain, gzip or zstd.")


def _nothing(files: Sequence[str], report: Mapping[str, Any]) -> str:
    what = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if not report["lines"]:
        return f"{what}: empty; expected what `ss -tinem` prints."
    if first := shown(report):
        lines = f"{report['lines_not_understood']:,} of {report['lines']:,} lines are not understood, as {first[0]}"
    elif report["other_protocols"]:
        lines = f"{report['other_protocols']:,} sockets are of other protocols"
    else:
        lines = f"{report['lines']:,} lines"
    return f"{what}: no TCP socket in it: {lines}. Expected what `ss -tinem` prints."


def _zone_s(zone: str | None) -> int | None:
    """`+02:00` in seconds."""
    if zone is None or zone in ("UTC", "Z"):
        return None if zone is None else 0
    match = _ZONE.fullmatch(zone)
    if not match or int(match[2]) > 14 or int(match[3]) > 59:
        raise UsageError(f'zone: got "{zone}"; expected an offset from UTC such as +02:00, or UTC.')
    return (1 if match[1] == "+" else -1) * (int(match[2]) * 3600 + int(match[3]) * 60)
