"""Where the rows of a folder come from: hosts and their boots, kernels, what wrote them, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from tcpknee import _core

if TYPE_CHECKING:
    from .partitions import Partitions

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_CAPTURED = "capture_connections"
_OSRELEASE = "kernel.osrelease"


@dataclass(frozen=True)
class Provenance:
    """Several of a thing, as after a reboot, stand in the order of their names; empty where a folder does not know."""

    hosts: tuple[str, ...] = ()
    """That the rows are from."""
    boot_ids: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """Of tcpknee, which wrote the tables."""
    began: datetime | None = None
    """The start of the run or trace, or the time of the first row."""
    importers: tuple[str, ...] = ()
    """Of an import: which it went through."""

    @property
    def host(self) -> str | None:
        """The one host; None where there are several, or the folder does not know."""
        return _only(self.hosts)

    @property
    def boot_id(self) -> str | None:
        """Likewise."""
        return _only(self.boot_ids)

    @property
    def kernel(self) -> str | None:
        """Likewise."""
        return _only(self.kernels)

    @property
    def version(self) -> str | None:
        """Likewise."""
        return _only(self.versions)

    def facts(self) -> list[tuple[str, str]]:
        """What is known, in words."""
        told = [
            ("host", self.hosts),
            ("boot", self.boot_ids),
            ("kernel", self.kernels),
            ("imported by", self.importers),
            ("tcpknee", self.versions),
            ("began", [self.began.isoformat(sep=" ", timespec="seconds")] if self.began else []),
        ]
        return [(name, ", ".join(values)) for name, values in told if values]


def of_manifest(found: Mapping[str, Any]) -> Provenance:
    """Of `run.json`, `trace.json` or `profile.json`."""
    host = found.get("host")
    told = [host] if isinstance(host, dict) else []
    if found.get("engine") == "hosts":
        told = [
            {"name": lab[role].get("host"), "boot_id": lab[role].get("boot"), "kernel": f"Linux {lab[role]['kernel']}"}
            for lab in found.get("labs", ())
            for role in ("sender", "receiver")
        ]
    guests = [f"Linux {guest['release']}" for guest in found.get("guests", ())]
    sessions = found.get("sessions") or [{}]
    return Provenance(
        hosts=_known(one.get("name") for one in told),
        boot_ids=_known(one.get("boot_id") for one in told),
        kernels=_known(guests or (one.get("kernel") for one in told)),
        versions=_known([found.get("engine_version")]),
        began=_time(found.get("began") or sessions[0].get("started")),
    )


def of_import(rows: Provenance, told: Sequence[Mapping[str, Any]]) -> Provenance:
    """What the rows tell, and besides which importers wrote them."""
    return replace(rows, importers=_known(one.get("importer") for one in told))


def of_rows(tables: Mapping[str, Partitions]) -> Provenance:
    """Of a recording or an import: what its rows and the footers of its files tell. A column with one value in a group
    of rows is told by the footer, and not read."""
    found: dict[str, list[Any]] = {"host": [], "boot_id": [], "t_unix_ns": []}
    writers = []
    # `host` of other tables is none that rows are from: of requests it is HTTP's.
    ours = {*_core.tables("recording"), _CAPTURED}
    for name, table in tables.items():
        names = [column for column in found if name in ours and column in table.schema.names]
        for part in table.fragments:
            writers.append(str(part.metadata.created_by).removeprefix("tcpknee "))
            for column in names:
                found[column] += _extremes(part, column)
    times = [time for time in found["t_unix_ns"] if time is not None]
    return Provenance(
        hosts=_known(found["host"]),
        boot_ids=_known(found["boot_id"]),
        kernels=_kernels(tables),
        versions=_known(writers),
        began=_EPOCH + timedelta(microseconds=min(times) // 1000) if times else None,
    )


def _extremes(part: Any, column: str) -> list[Any]:
    """Least and greatest value of each group of rows; of texts all of them, as two may have others between."""
    import pyarrow.compute as pc

    found: list[Any] = []
    for group in part.split_by_row_group():
        statistics = group.row_groups[0].statistics or {}
        ends = statistics.get(column)
        if ends and (ends["min"] == ends["max"] or not isinstance(ends["min"], str)):
            found += [ends["min"], ends["max"]]
        else:
            values = group.to_table(columns=[column])[column]
            found += pc.unique(values).to_pylist()
    return found


def _kernels(tables: Mapping[str, Partitions]) -> tuple[str, ...]:
    """Releases that `settings` tells, as `uname` does."""
    if "settings" not in tables:
        return ()
    rows = tables["settings"].read(["name", "value"])
    pairs = zip(rows["name"].to_pylist(), rows["value"].to_pylist(), strict=True)
    return _known(f"Linux {value}" for name, value in pairs if name == _OSRELEASE and value)


def _known(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values if value is not None}))


def _only(values: Sequence[str]) -> str | None:
    return values[0] if len(values) == 1 else None


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
