"""The simulator's answer for a path that was measured: the same scenario, with the measured base RTT, rate and loss in
the place of those that it expects, and by how much what was measured differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import human, reading
from tcpknee.errors import UsageError
from tcpknee.evidence import written
from tcpknee.evidence.metrics import BY_NAME, primary
from tcpknee.evidence.stats import difference_apart, ratio_apart
from tcpknee.runs import api, compose, drift
from tcpknee.runs.beside import SIMULATED, Entry, Row
from tcpknee.runs.between_text import PACKETS_OF_PAYLOAD
from tcpknee.runs.output import flow_label

if TYPE_CHECKING:
    from tcpknee.runs.results import Run
    from tcpknee.runs.summary import Group

_COMPARED = ("srtt_us_p50", "retransmit_pct")
"""Beside the metric that matters most to a flow."""


def answer(run: Run, label: str = "sim") -> Entry:
    """Raises UsageError where nothing was measured of the path, or the scenario has not one path."""
    path, told = _path(run.meta)
    if not path:
        raise UsageError(
            f"{run.folder or run.meta['title']}: nothing was measured of its path; expected a run that measures it, of "
            "--engine hosts. `--engine sim,kernel` sets the simulator beside a kernel on the scenario's own path."
        )
    # Its folder does not decide what is compiled and run here.
    blocks = len(run.meta["path_measured"])
    buffer = "Its buffer, its queue"
    if (buffer_bytes := _buffer_bytes(run.meta, path)) is not None:
        path["buffer"] = buffer_bytes
        buffer = (
            f"Its buffer is of {human.quantity('bytes', buffer_bytes)}, as on the path that is expected, since "
            "the measured one's in BDPs has no room for a packet. Its queue"
        )
    text = with_path(run.meta["scenario"], run.meta["file"], path, repeat=blocks)
    simulated = api.run_text(text, run.meta["file"], out=None, engine="sim", stored=True)
    pairs = list(_alike(run, simulated))
    rows = [Row(label, one.algorithm, "repetition", one.metrics) for _, one in pairs]
    return Entry(
        label,
        SIMULATED,
        rows,
        {
            "fitted": False,
            "rtt_us": _both(path.get("rtt")),
            "rate_bits_per_sec": _both(path.get("rate")),
            "loss_pct": _both(path.get("loss")),
            "words": f"{told}; over {human.counted(blocks, 'block')}. {buffer} and the hosts are as the scenario says, "
            "since nothing measured them.",
        },
        [_difference(measured, one) for measured, one in pairs],
    )


def _both(value: float | None) -> dict[str, float | None]:
    return {"low": value, "high": value}


def _path(meta: Mapping[str, Any]) -> tuple[dict[str, float], str]:
    """The keys of `[path]` that were measured (us, bit/s, %), medians over blocks, and all of that in words.

    What a burst has sent again bounds the path's loss from above, since a full queue loses too: only a loss of nothing
    takes the place of the scenario's."""
    names = {"rtt": "rtt_us", "rate": "rate_bits_per_sec", "loss": "loss_pct"}
    every = {key: drift.probed(meta, name) for key, name in names.items()}
    found = {key: float(np.median(values)) for key, values in every.items() if values}
    if "rate" in found:
        found["rate"] *= PACKETS_OF_PAYLOAD
    expected = "so as the scenario says"
    words = [
        f"base RTT {human.quantity('time', found['rtt'])}" if "rtt" in found else f"base RTT not measured, {expected}",
        f"rate {human.quantity('rate', found['rate'])}" if "rate" in found else f"rate not measured, {expected}",
    ]
    most = max(every["loss"], default=None)
    if most is None:
        words.append(f"loss not measured, {expected}")
    elif most > 0:
        del found["loss"]
        words.append(f"loss at most {human.digits(most, 2)} %, those of a full queue included, {expected}")
    else:
        words.append("no loss")
    return found, ", ".join(words)


def with_path(text: str, file: str, path: Mapping[str, float], repeat: int) -> str:
    """The scenario with these values in `[path]`, in us, bit/s, % and bytes, and as many repetitions. Raises
    UsageError."""
    scenario = reading.toml(text)
    own = scenario.setdefault("path", {})
    if "hop" in scenario:
        raise UsageError(f"{file}: has [[hop]]; expected one [path], whose values a measured path takes the place of.")
    for key, form in (("rtt", "{:.0f}us"), ("rate", "{:.0f}bit/s"), ("loss", "{:.6f}%"), ("buffer", "{:.0f}B")):
        if isinstance(own.get(key), list) and key != "buffer":
            raise UsageError(
                f"{file}: path.{key} is an axis; expected one value, since a measured path has one. Choose it with "
                "--set, or run the scenario once for each."
            )
        if key in path:
            own[key] = form.format(path[key])
    scenario["repeat"] = repeat
    for key in ("expect", "published", "claim"):
        scenario.pop(key, None)
    return compose.toml(scenario)


def _buffer_bytes(meta: Mapping[str, Any], path: Mapping[str, float]) -> int | None:
    """The buffer of the path that the scenario expects, where one of as many BDPs has no room for a packet on the path
    that was measured; None: it has."""
    written = reading.toml(meta["scenario"]).get("path", {}).get("buffer", "1bdp")
    cell = meta["cells"][0]
    if not isinstance(written, str) or not written.endswith("bdp") or not cell["buffer_bytes"]:
        return None
    shown = {name: value for name, value, *_ in cell["describe"]}
    packet_bytes = sum(int(shown[f"path.{key}"].removesuffix("B")) for key in ("mtu", "overhead"))
    rtt_us, rate_bits_per_sec = cell["rtt_ns"] / 1e3, cell["rate_bits_per_sec"]
    longer, faster = path.get("rtt", rtt_us) / rtt_us, path.get("rate", rate_bits_per_sec) / rate_bits_per_sec
    return cell["buffer_bytes"] if cell["buffer_bytes"] * longer * faster < packet_bytes else None


def _alike(run: Run, simulated: Run) -> Iterator[tuple[Group, Group]]:
    found = {(group.cell, group.group): group for group in simulated.summary.groups}
    for group in run.summary.groups:
        if (group.cell, group.group) in found:
            yield group, found[group.cell, group.group]


def _difference(measured: Group, simulated: Group) -> str:
    """How far what was measured is from what was simulated, as samples apart: they have not the same luck."""
    parts = []
    for name in dict.fromkeys((*primary(measured.workload), *_COMPARED)):
        if name not in measured.metrics or name not in simulated.metrics:
            continue
        metric, both = BY_NAME[name], (simulated.values[name], measured.values[name])
        if metric.kind == "pct":
            step = difference_apart(*both)
            if step is not None:
                number, bracket = written.bracketed(step)
                parts.append(f"{metric.label} {number} points {bracket}".rstrip())
        elif (times := ratio_apart(*both)) is not None:
            parts.append(" ".join((metric.label, *written.ratio(times))).rstrip())
    return f"{flow_label(measured)}, measured beside simulated: {', '.join(parts)}."
