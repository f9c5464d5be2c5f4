"""Files through an importer: into memory, or into a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import _core, provenance
from tcpknee.datasets import manifest
from tcpknee.errors import UsageError
from tcpknee.writing import replacing

from . import text
from .kinds import IMPORTERS, Kind

if TYPE_CHECKING:
    import pyarrow

Files = Sequence[Path | str] | Path | str
Progress = Callable[[int, int], object]
"""Gets the bytes read and the rows so far."""


class NotUnderstood(UsageError):
    """Lines, packets or documents that an importer, told to be strict, does not understand; `report` has the first."""

    def __init__(self, kind: Kind, report: Mapping[str, Any]) -> None:
        self.report = dict(report)
        super().__init__(
            f"{text.shown(kind, report)[0]}: {text.not_understood(kind, report)}, and with strict nothing is "
            "imported then. Mend or remove them, or import without strict."
        )


def read(
    name: str, files: Files, *, strict: bool = False, anonymize: str | None = None, **options: Any
) -> list[pyarrow.Table]:
    """The tables of an importer, for what fits in memory; `import_NAME` is the same with its options typed.

    `files` may be plain, gzip or zstd. What is not understood is left out, and counted in the JSON text that the
    schemas' metadata has under `import`; with `strict` it raises NotUnderstood. `anonymize` is `"truncate"`,
    `"truncate:V4BITS/V6BITS"`, `"hash"` or `"hash:KEY"`.
    Raises UsageError (no such file, no row in it, an option that is not as it should be).
    """
    import pyarrow

    report, rows = _imported(name, files, None, options, strict=strict, anonymize=anonymize)
    found = json.dumps(report).encode()
    tables = [pyarrow.table(part) for part in rows or ()]
    return [table.replace_schema_metadata({**(table.schema.metadata or {}), b"import": found}) for table in tables]


def write(
    name: str,
    files: Files,
    out: Path | str,
    *,
    strict: bool = False,
    anonymize: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Writes what files hold as segments `TABLE-NNNNNN.parquet` beside what the folder `out` holds; the report, which
    `docs/imports.md` tells.

    Memory does not depend on the files' sizes. All segments appear when they are complete, or none; beside them is
    `import-SEGMENT.json`, which says what they were made of. With `dry_run` all
    is read and nothing written. `files`, `strict`, `anonymize` and what is raised are those of `read`; RunFolderError:
    the folder cannot be written.
    """
    asked = {"strict": strict, "anonymize": anonymize, "dry_run": dry_run}
    report = _imported(name, files, out, options, progress, **asked)[0]
    if report["files"]:
        _describe(name, files, anonymize, report)
    return report


def recognised(files: Files) -> Kind:
    """The importer whose own all the files look like, by their first bytes and without any option.

    Raises UsageError: a file cannot be read, looks like no importer's or several importers', or two files differ.
    """
    found: dict[str, Path] = {}
    for path in _readable(files):
        try:
            names = _core.recognise_import(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        if len(names) != 1:
            like = f"several importers' ({', '.join(names)})" if names else "no importer's"
            raise UsageError(
                f"{path}: looks like {like}; expected a file of one of {', '.join(IMPORTERS)}. "
                "Say which: knee import NAME FILE."
            )
        found.setdefault(names[0], path)
    if len(found) > 1:
        (name, path), (other, differs) = list(found.items())[:2]
        raise UsageError(
            f"{differs}: looks like {other}'s, and {path} like {name}'s; expected files of one importer. "
            "Import them one kind at a time."
        )
    return IMPORTERS[next(iter(found))]


def _describe(name: str, files: Files, anonymize: str | None, report: Mapping[str, Any]) -> None:
    """Notes beside the segments what they come from, which their rows do not tell. Names of files stand without their
    folders, and not at all where addresses are anonymised; nor does the key of an anonymisation."""
    written = [Path(path) for path in report["files"]]
    about = {
        "schema": manifest.SCHEMA,
        "importer": name,
        "imported": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "engine_version": provenance.engine_version(),
        "from": None if anonymize else [path.name for path in _paths(files)],
        "anonymize": anonymize.partition(":")[0] if anonymize else None,
        "files": [path.name for path in written],
        "rows": report["rows"],
    }
    with replacing(manifest.of_import(written[0])) as file:
        file.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))


def _imported(
    name: str,
    files: Files,
    out: Path | str | None,
    options: Mapping[str, Any],
    progress: Progress | None = None,
    **asked: Any,
) -> tuple[dict[str, Any], Any]:
    """The report, and the rows where no folder is asked for."""
    kind = IMPORTERS.get(name)
    if kind is None:
        raise UsageError(f'got the importer "{name}"; expected {", ".join(IMPORTERS)}.')
    paths = [str(file) for file in _readable(files)]
    given = {
        "files": paths,
        "out": None if out is None else str(out),
        "dry_run": False,
        **asked,
        "options": {option: str(value) if isinstance(value, Path) else value for option, value in options.items()},
    }
    try:
        found, rows = _core.import_files(name, json.dumps(given), progress)
    except OSError as error:
        raise _unreadable(error.filename or _named(error, paths), error) from None
    report = _plain(found)
    if given["strict"] and text.not_understood(kind, report):
        raise NotUnderstood(kind, report)
    if not report["rows"]:
        raise UsageError(text.nothing(kind, paths, report))
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


def _readable(files: Files) -> list[Path]:
    """The files. All can be opened, so that nothing begins that cannot end, and none is there twice."""
    paths = _paths(files)
    if not paths:
        raise UsageError("import: got no file; expected one or more.")
    named: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                about = os.fstat(file.fileno())
        except OSError as error:
            raise _unreadable(path, error) from None
        first = named.setdefault((about.st_dev, about.st_ino), path)
        if first is not path:
            same = "named twice" if first == path else f"the same file as {first}"
            raise UsageError(f"{path}: is {same}; expected each file once, because its rows would count twice.")
    return paths


def _paths(files: Files) -> list[Path]:
    return [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]


def _unreadable(path: Path | str, error: OSError) -> UsageError:
    why = error.strerror or str(error).removeprefix(f"{path}: ")
    return UsageError(f"{path}: cannot be read: {why}. Give files, plain, gzip or zstd.")


def _named(error: OSError, files: Sequence[str]) -> str:
    """The file that an error without a number names."""
    return next((file for file in files if str(error).startswith(f"{file}: ")), files[0])
