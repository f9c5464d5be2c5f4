"""Simulated connections as `knee record` and `knee assign` would have written them, a folder for each host."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tcpknee import _core, writing
from tcpknee.datasets.columns import schema

from .mix import Mix
from .plan import Row, seed_of
from .simulate import SAMPLES, Simulated

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


Numbers = npt.NDArray[np.int64]

BEGIN_UNIX_NS = 1_600_000_000 * 1_000_000_000
"""When every synthetic fleet begins, so that equal seeds give equal bytes: 2020-09-13 12:26:40 UTC."""

_UPTIME_NS = 86_400 * 1_000_000_000
"""How long its hosts have been up then."""

_MSS_BYTES = 1448
"""Of the default MTU with timestamps (docs/scenario.md)."""


class Host:
    """Its name and ids, which the seed settles."""

    def __init__(self, mix: Mix, number: int) -> None:
        self.name = f"host-{number + 1:02}"
        # A mix with other arms is another world: its hosts are not to be taken for the same.
        world = (mix.seed, mix.design, [(arm.name, arm.share) for arm in mix.arms], number)
        self.host_id = _hex("host", *world)
        boot = _hex("boot", *world)
        self.boot_id = "-".join((boot[:8], boot[8:12], boot[12:16], boot[16:20], boot[20:]))


def _hex(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


class Recording:
    """The files of all hosts, which have their names when the block ends well."""

    def __init__(self, mix: Mix, folder: Path) -> None:
        self.mix, self.folder = mix, folder
        self.hosts = [Host(mix, number) for number in range(mix.hosts)]
        self._interval_ns = _core.duration_ns("sample_interval", mix.sample_interval)
        # The last sample of a period is taken at its end, and is not to be of the next one.
        least_ns = _core.duration_ns("duration", mix.duration) + self._interval_ns
        self._period_ns = max(least_ns, _core.duration_ns("every", mix.every))
        self._stack = ExitStack()
        self._sockets: list[pq.ParquetWriter] = []
        self._assignments: list[pq.ParquetWriter] = []

    def __enter__(self) -> Recording:
        self._stack.__enter__()
        for host in self.hosts:
            self._sockets.append(self._writer(host, "sockets", _schema("sockets")))
            self._assignments.append(self._writer(host, "assignments", _schema("assignments")))
            self._writer(host, "settings", _schema("settings")).write_table(self._settings(host))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def _writer(self, host: Host, table: str, schema: pa.Schema) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        path = self.folder / host.name / f"{table}-000001.parquet"
        file = self._stack.enter_context(writing.replacing(path, make=True))
        return self._stack.enter_context(pq.ParquetWriter(file, schema, compression="zstd"))

    def _settings(self, host: Host) -> pa.Table:
        values = {
            "t_unix_ns": BEGIN_UNIX_NS,
            "t_mono_ns": _UPTIME_NS,
            "host": host.name,
            "boot_id": host.boot_id,
            "host_id": host.host_id,
            "cause": "start",
            "kind": "sysctl",
            "name": "kernel.osrelease",
            "value": self.mix.kernel,
        }
        return _table(_schema("settings"), {name: [value] for name, value in values.items()}, 1)

    def write(self, found: Sequence[Simulated]) -> int:
        """Adds the rows of a matrix to their hosts' files; returns how many connections they have."""
        import pyarrow as pa

        parts = [self._of(one) for one in found]
        for number in range(len(self.hosts)):
            sockets = [tables[number][0] for tables in parts]
            self._sockets[number].write_table(pa.concat_tables(sockets))
            log = [tables[number][1] for tables in parts]
            self._assignments[number].write_table(pa.concat_tables(log))
        return sum(one.flows.num_rows for one in found)

    def _of(self, one: Simulated) -> list[tuple[pa.Table, pa.Table]]:
        """The tables `sockets` and `assignments` of each host."""
        flows = _Flows(self.mix, one, len(self.hosts))
        samples = one.samples
        flow = samples["flow"].to_numpy()
        host_of_rows = flows.host[flow]
        found = []
        for number, host in enumerate(self.hosts):
            chosen = np.flatnonzero(host_of_rows == number)
            sockets = self._sockets_of(host, one.row, flows, samples.take(chosen), flow[chosen])
            found.append((sockets, self._log_of(host, number, one.row, flows)))
        return found

    def _sockets_of(self, host: Host, row: Row, flows: _Flows, samples: pa.Table, flow: Numbers) -> pa.Table:
        t_ns = samples["t_ns"].to_numpy() + row.period * self._period_ns
        same = len(flow)
        values: dict[str, Any] = {name: samples[name] for name in SAMPLES}
        values |= {
            "t_unix_ns": BEGIN_UNIX_NS + t_ns,
            "t_mono_ns": _UPTIME_NS + t_ns,
            "sample": t_ns // self._interval_ns,
            "host": [host.name] * same,
            "boot_id": [host.boot_id] * same,
            "final": flows.is_last(samples["t_ns"].to_numpy(), flow),
            "state": ["ESTABLISHED"] * same,
            "local_addr": ["192.0.2.1"] * same,
            "local_port": np.full(same, 443),
            "remote_addr": flows.address[flow],
            "remote_port": flows.port[flow],
            "cookie": flows.cookie[flow],
            "algorithm": flows.algorithm[flow],
            "snd_mss_bytes": np.full(same, _MSS_BYTES),
        }
        return _table(_schema("sockets"), values, same)

    def _log_of(self, host: Host, number: int, row: Row, flows: _Flows) -> pa.Table:
        """Designs that draw each connection its arm have a row for each; a prefix has one, and a period of the host."""
        by_connection = len(row.arms) > 1
        by_host = self.mix.design == "switchback"
        if by_connection:
            chosen, arms = np.flatnonzero(flows.host == number), flows.arm[flows.host == number]
        else:
            # All prefixes alternate together.
            count = 0 if by_host and row.prefix.number else 1
            chosen, arms = np.zeros(count, dtype=np.int64), np.full(count, row.arms[0][0])
        share = dict(row.arms) if by_connection else {at: arm.share for at, arm in enumerate(self.mix.arms)}
        rows = len(chosen)
        begin = BEGIN_UNIX_NS + row.period * self._period_ns
        values: dict[str, Any] = {
            "t_unix_ns": begin + (flows.start_ns[chosen] if by_connection else np.zeros(rows, dtype=np.int64)),
            "host_id": [host.host_id] * rows,
            "boot_id": [host.boot_id] * rows,
            "unit": flows.cookie[chosen].astype(str)
            if by_connection
            else ["host" if by_host else row.prefix.text] * rows,
            "arm": [self.mix.arms[arm].name for arm in arms],
            "algorithm": [self.mix.arms[arm].algorithm for arm in arms],
            "design": [self.mix.design] * rows,
            "allocation_pct": [100 * share[arm] for arm in arms],
            "seed": np.full(rows, self.mix.seed, dtype=np.uint64),
        }
        if by_connection:
            values["cookie"] = flows.cookie[chosen]
        if by_host:
            values["period"] = np.full(rows, row.period)
        if row.prefix.link is not None:
            values["link"] = [row.prefix.link] * rows
        return _table(_schema("assignments"), values, rows)


class _Flows:
    """The connections of a row, by flow number: host, cookie, address of the client, arm, and their times in ns since
    the period began."""

    def __init__(self, mix: Mix, one: Simulated, hosts: int) -> None:
        table, row = one.flows, one.row
        count = int(table.num_rows)
        random = np.random.default_rng(seed_of(mix.seed, "clients", row.number))
        self.host: Numbers = random.integers(0, hosts, count)
        client = random.integers(1, 255, count)
        self.address: npt.NDArray[np.object_] = np.array([f"{row.prefix.base}.{end}" for end in client], dtype=object)
        self.port: Numbers = random.integers(1024, 65536, count)
        self.cookie = np.uint64(row.number << 24) + np.arange(1, count + 1, dtype=np.uint64)
        group = table["group"].to_numpy()
        self.arm: Numbers = np.array([arm for arm, _ in row.arms])[group]
        self.algorithm: npt.NDArray[np.object_] = np.array([arm.algorithm for arm in mix.arms], dtype=object)[self.arm]
        self.start_ns: Numbers = table["start_ns"].to_numpy()
        self._ended = ~np.isnan(table["end_ns"].to_numpy().astype(np.float64))
        self._last_ns = np.zeros(count, dtype=np.int64)
        np.maximum.at(self._last_ns, one.samples["flow"].to_numpy(), one.samples["t_ns"].to_numpy())

    def is_last(self, t_ns: Numbers, flow: Numbers) -> npt.NDArray[np.bool_]:
        """Whether a sample is the one that its connection ended with."""
        found: npt.NDArray[np.bool_] = self._ended[flow] & (t_ns == self._last_ns[flow])
        return found


def _schema(table: str) -> pa.Schema:
    """Columns of a recording's table."""
    return schema(_core.tables("recording")[table])


def _table(schema: pa.Schema, values: Mapping[str, Any], rows: int) -> pa.Table:
    """Columns that have no values are null."""
    import pyarrow as pa

    def column(field: pa.Field) -> Any:
        if field.name not in values:
            return pa.nulls(rows, field.type)
        value = values[field.name]
        return value.cast(field.type) if isinstance(value, pa.ChunkedArray) else pa.array(value, field.type)

    assert set(values) <= set(schema.names)
    return pa.Table.from_arrays([column(field) for field in schema], schema=schema)


def paths_of(found: Iterator[Row] | Sequence[Row]) -> str:
    """CSV of the true paths: of each prefix its kind of clients and every value that was drawn or set."""
    prefixes = {row.prefix.number: row.prefix for row in found}
    keys = sorted({key for prefix in prefixes.values() for key in (*prefix.clients.settings, *prefix.path)})
    lines = [",".join(["prefix", "clients", "link", *keys])]
    for prefix in prefixes.values():
        values = {**prefix.clients.settings, **prefix.path}
        cells = [prefix.text, prefix.clients.name, prefix.link or "", *(str(values.get(key, "")) for key in keys)]
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"
