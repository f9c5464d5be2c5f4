"""A path as the simulator takes it, the load on it, and what a recorder would have seen of a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from tcpknee import _core
from tcpknee.algorithms import naming
from tcpknee.runs import compose
from tcpknee.runs.tables import as_table

from .observation import COUNTERS, GAUGES, LEAST_SEGMENTS, Observed, from_begin
from .series import Series, Starved

_COLUMNS = (*GAUGES, *COUNTERS, "delivery_rate_app_limited")
_LEAD_RTTS = 40
_LEAD_US = 2e6
"""How long a connection whose begin was not seen runs before it counts, if it had been busy for so long: this, or as
long as the recording if that is longer."""
LEAST_BUFFER_BYTES = 3_000
_MOST_LEAD_US = 120e6
_MOST_INTERVAL_US = 3.6e9
_MOST_PAUSE_US = 10e6
_MOST_ANSWER_BYTES = 2**30
_MOST_TRANSFER_BYTES = 1e12
_MOST_RTT_US = 60e6
_MOST_BUFFER_BYTES = 2**40
_MOST_BURST_BYTES = 2**30
_MOST_AGGREGATE_US = 1e6
_MOST_LOSS_PCT = 90
_MOST_BITS_PER_SEC = 1e13
_LEAST_BITS_PER_SEC = 1.0
"""What a scenario takes: a search may wander beyond, where more or less makes no difference."""
HOST_NOISES_US = (100.0, 200.0, 20.0, 50.0)
"""How late hosts send, in the mean, by the seed in turn: as long as nothing is known of it (`host_noise.py`). 20 to
200 us fit kernels on a busy machine best (docs/simulator.md, The noise of hosts)."""


@dataclass(frozen=True)
class Path:
    """What the simulator is told of a path. Rates count IP packets."""

    rate_bits_per_sec: float
    rtt_us: float
    buffer_bytes: float
    loss_pct: float = 0.0
    policer_rate_bits_per_sec: float | None = None
    policer_burst_bytes: float = 0.0
    aggregate_us: float = 0.0
    hidden_load_bits_per_sec: float = 0.0
    """Of short transfers by others that share the bottleneck and react to it."""
    hidden_median_bytes: float | None = None
    """Half of these transfers are smaller. None: each goes on for as long as others are seen to take a part."""
    loss_burst_pkts: float = 1.0
    """Packets that are lost together, in the mean."""
    lost: tuple[int, ...] = ()
    """Instead of `loss_pct`: the numbers of the packets that are lost, from 1."""
    transfers: tuple[tuple[float, float], ...] = ()
    """Instead of transfers drawn for `hidden_load_bits_per_sec`: the start in us and the bytes of each."""
    trace: str | None = None
    """Instead of a rate: the milliseconds at which packets may leave, in mahimahi's format."""

    def __str__(self) -> str:
        lines = [
            f'rate = "trace {_TRACE}"' if self.trace else f'rate = "{_rate(self.rate_bits_per_sec)}"',
            f'rtt = "{min(max(self.rtt_us, 10), _MOST_RTT_US):.0f}us"',
            f'buffer = "{min(max(self.buffer_bytes, LEAST_BUFFER_BYTES), _MOST_BUFFER_BYTES):.0f}B"',
        ]
        if self.lost:
            lines.append(f'loss = "trace {_LOSSES}"')
        elif self.loss_pct > 0:
            lines.append(f'loss = "{self.loss}"')
        if self.policer_rate_bits_per_sec is not None:
            burst_bytes = min(max(self.policer_burst_bytes, LEAST_BUFFER_BYTES), _MOST_BURST_BYTES)
            lines.append(f'policer_rate = "{_rate(self.policer_rate_bits_per_sec)}"')
            lines.append(f'policer_burst = "{burst_bytes:.0f}B"')
        if self.aggregate_us > 0:
            lines.append(f'aggregate = "{min(self.aggregate_us, _MOST_AGGREGATE_US):.0f}us"')
        return "\n".join(lines)

    @property
    def loss(self) -> str:
        """Random losses, as a scenario says them."""
        share = f"{min(self.loss_pct, _MOST_LOSS_PCT):.4f}%"
        return share if self.loss_burst_pkts <= 1 else f"gilbert {share} burst {self.loss_burst_pkts:.2f}"

    @property
    def buffer_us(self) -> float:
        """How long a full buffer takes to drain."""
        return self.buffer_bytes * 8e6 / self.rate_bits_per_sec

    def faster(self, times: float) -> Path:
        """At a multiple of the rate, with a buffer that takes as long to drain."""
        return replace(self, rate_bits_per_sec=times * self.rate_bits_per_sec, buffer_bytes=times * self.buffer_bytes)

    def deeper(self, times: float) -> Path:
        """With a multiple of the buffer."""
        return replace(self, buffer_bytes=times * self.buffer_bytes)

    @property
    def files(self) -> dict[str, str]:
        """The files that the scenario names, and their text."""
        found = {_TRACE: self.trace} if self.trace else {}
        return {**found, _LOSSES: "\n".join(map(str, self.lost))} if self.lost else found


_TRACE, _LOSSES = "rate.up", "lost.txt"


@dataclass(frozen=True)
class Flow:
    """What one recorded connection asks of the path."""

    algorithm: str
    start_us: float
    workload: str
    """Lines of a scenario."""
    seen_us: float | None = None
    """When its recording begins, if it ran before."""

    @property
    def ends(self) -> bool:
        return "transfer" in self.workload


@dataclass(frozen=True)
class Load:
    """What the connections of a path ask of it, as far as the recording tells."""

    flows: tuple[Flow, ...]
    duration_us: float
    interval_us: float
    lead_us: float
    """Simulated beforehand, because a connection was under way when the recording began."""

    def with_algorithms(self, algorithms: Sequence[str]) -> Load:
        """The same with another algorithm for each connection."""
        flows = (replace(flow, algorithm=name) for flow, name in zip(self.flows, algorithms, strict=True))
        return replace(self, flows=tuple(flows))

    def with_one_algorithm(self, name: str) -> Load:
        """The same with that algorithm for all connections."""
        return self.with_algorithms([name] * len(self.flows))


def load_of(path: Observed) -> Load:
    """A connection that always had data stays; one that ended transfers as much again; one that its application or its
    receiver held back is held to the rate that it had, and pauses as it did.

    A connection that was under way runs before for as long as it had been busy, but no longer than the lead: transfers
    come and go that are shorter."""
    rtt = max(series.least_rtt_us for series in path.connections)
    busy = max((float(series.busy_us[0]) for series in path.connections if not series.fresh), default=0.0)
    lead = min(busy, max(_LEAD_RTTS * rtt, _LEAD_US, path.horizon_us), _MOST_LEAD_US)
    flows = []
    for series in path.connections:
        first, before, seen = float(series.t_us[0]), 0.0, None
        if not series.fresh:
            # From the sample before on, none of which tells of it.
            before, seen = min(float(series.busy_us[0]), lead), first + lead - path.interval_us
        flows.append(Flow(series.algorithm, first + (lead - before), "\n".join(_workload(series, before)), seen))
    return Load(tuple(flows), path.horizon_us + lead, path.interval_us, lead)


def is_held_back(series: Series) -> bool:
    """Did its application or its receiver limit it, and not its path?"""
    return series.app_limited_share > 0.5 or series.rwnd_limited_pct > 50


def _workload(series: Series, before_us: float) -> list[str]:
    """`before_us`: how long it runs before its first sample."""
    lines = []
    if is_held_back(series):
        busy = max(series.busy_share, 0.02)
        rate = series.acked * 8e6 / max(series.elapsed_us * busy, 1.0)
        lines.append(f'max_pacing_rate = "{_rate(max(rate, 10_000))}"')
    if series.busy_share < 0.8 and not series.final:
        # Each time as much as it sent in the mean, as an answer is, and not for as long as it was busy: that is also
        # what lay in the socket's buffer when the application paused.
        pauses, pause_us = _pauses(series)
        size = min(max(series.acked / max(pauses, 1), 1.0), _MOST_ANSWER_BYTES)
        lines += ['workload = "request-response"', f'response = "{size:.0f}B"']
        lines += [f'service_time = "{min(pause_us, _MOST_PAUSE_US):.0f}us"']
    elif series.final:
        # Of what it had sent before, what went in that time.
        part = min(before_us / max(float(series.busy_us[0]), 1.0), 1.0)
        size = series.acked + part * float(series.bytes_acked[0])
        lines += ['workload = "transfer"', f'bytes = "{_bytes(size, 1)}"']
    return lines


def _pauses(series: Series) -> tuple[int, float]:
    """How often it paused, and for how long in the mean.

    Samples in a row in which it was idle for the greater part are one pause, unless there was something between: what
    it sends may be shorter than a sample."""
    steps, busy = np.diff(series.t_us), np.diff(series.busy_us)
    count = 0
    for idle, run in groupby(zip(busy < steps / 2, busy <= 0, strict=True), key=lambda step: step[0]):
        if idle:
            silent = [flag for _, flag in run]
            # The first and the last one may have what came before, and what comes after.
            count += sum(flag for flag, _ in groupby(silent)) or max(len(silent) - 1, 1)
    return count, float((steps - busy).clip(0).sum()) / max(count, 1)


def simulate(path: Path, load: Load, *, seed: int = 1, noise_us: float | None = None) -> list[Series | Starved]:
    """What a recorder would have seen of each connection of the load on this path.
    `noise_us`: how late hosts send; without it, by the seed in turn."""
    noise_us = HOST_NOISES_US[(seed - 1) % len(HOST_NOISES_US)] if noise_us is None else noise_us
    of_files = naming.loaded(flow.algorithm for flow in load.flows)
    text = _scenario(path, load, seed, noise_us, {one.name: one.built.path for one in of_files})
    files = [one.for_core for one in of_files]
    found = _core.parse(text, "whatif.toml", path.files, algorithms=files).run_cell(0, 0)
    table = as_table(found.samples)
    flow_of = table["flow"].to_numpy()
    # Flow after flow, each in the order of time. Flows from the load's number on are cross traffic, which nobody saw.
    order = np.argsort(flow_of, kind="stable")
    edges = np.searchsorted(flow_of[order], np.arange(len(load.flows) + 1))
    order = order[: edges[-1]]
    rows = {name: table[name].to_numpy()[order].astype(np.float64) for name in ("t_ns", *_COLUMNS)}
    ended = _ended(found) if any(flow.ends for flow in load.flows) else frozenset()
    return [
        _series(flow, {name: values[begin:end] for name, values in rows.items()}, load, final=number in ended)
        for number, (flow, begin, end) in enumerate(zip(load.flows, edges[:-1], edges[1:], strict=True))
    ]


def _ended(output: Any) -> frozenset[int]:
    """The flows that came to an end."""
    flows = as_table(output.flows)
    every = zip(*(flows[name].to_pylist() for name in ("flow", "end_ns")), strict=True)
    return frozenset(flow for flow, end_ns in every if end_ns is not None)


def _rate(bits_per_sec: float) -> str:
    return f"{min(max(bits_per_sec, _LEAST_BITS_PER_SEC), _MOST_BITS_PER_SEC):.0f}bit/s"


def _bytes(size: float, least: float) -> str:
    return f"{min(max(size, least), _MOST_TRANSFER_BYTES):.0f}B"


def _scenario(path: Path, load: Load, seed: int, noise_us: float, path_of: Mapping[str, str]) -> str:
    lines = [
        f'duration = "{load.duration_us:.0f}us"',
        f'sample_interval = "{min(max(load.interval_us, 1000), _MOST_INTERVAL_US):.0f}us"',
        f"seed = {seed}",
        f"samples = {list(_COLUMNS)}",
        *(line for end in ("sender", "receiver") for line in (f"[{end}]", f'noise = "{noise_us * 1e3:.0f}ns"')),
        "[path]",
        str(path),
    ]
    for flow in load.flows:
        algorithm = compose.quoted(path_of.get(flow.algorithm, flow.algorithm))
        lines += ["[[flow]]", f"algorithm = {algorithm}", f'start = "{flow.start_us:.0f}us"', flow.workload]
    for start_us, size_bytes in path.transfers:
        lines += ["[[flow]]", 'algorithm = "cubic"', f'start = "{max(load.lead_us + start_us, 0):.0f}us"']
        lines += ['workload = "transfer"', f'bytes = "{_bytes(size_bytes, 1000)}"']
    if path.hidden_load_bits_per_sec > 0 and not path.transfers:
        lines += ["[[flow]]", 'algorithm = "cubic"', 'name = "hidden"', 'workload = "web"']
        median = path.hidden_median_bytes or HIDDEN_MEDIAN_BYTES
        least, most = (median * times for times in HIDDEN_RANGE)
        lines += [f'load = "{_rate(path.hidden_load_bits_per_sec)}"']
        lines += [f'sizes = "lognormal median {median:.0f}B sigma {HIDDEN_SIGMA} from {least:.0f}B to {most:.0f}B"']
    return "\n".join(lines) + "\n"


HIDDEN_MEDIAN_BYTES = 50_000
"""Of transfers by others where nothing tells their sizes."""
HIDDEN_SIGMA, HIDDEN_RANGE = 1.2, (0.1, 40.0)
"""Of the logarithm of their sizes; the least and the largest, as multiples of the median."""


def _series(flow: Flow, rows: dict[str, Any], load: Load, *, final: bool) -> Series | Starved:
    """A simulated connection as recorded: without the lead, and with a sample at its begin and one at its end."""
    t_us = rows["t_ns"] / 1e3
    begin_us = flow.start_us if flow.seen_us is None else flow.seen_us
    first = int(np.searchsorted(t_us, max(load.lead_us, begin_us), side="right"))
    if len(t_us) - first < 2 or rows["data_segs_out"][-1] < LEAST_SEGMENTS:
        acked, busy_us = (rows[name].max(initial=0.0) for name in ("bytes_acked", "busy_us"))
        return Starved(8e6 * float(acked) / max(float(busy_us), load.interval_us))
    fresh = flow.seen_us is None and flow.start_us >= load.lead_us
    arrays = {name: rows[name][first:] for name in _COLUMNS}
    arrays["app_limited"] = arrays.pop("delivery_rate_app_limited")
    t_us = t_us[first:]
    if fresh:
        t_us, arrays = from_begin(flow.start_us, t_us, arrays)
    return Series(
        key="",
        algorithm=flow.algorithm,
        t_us=t_us - load.lead_us,
        fresh=fresh,
        final=final and flow.ends,
        **arrays,
    )
