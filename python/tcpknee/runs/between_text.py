"""What the text of a run says of the two hosts that it ran between: who they are, and the path as it was found."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcpknee import human

_OFF_PCT = 20.0
"""A path this far from what the scenario expects is worth a warning."""

_CALENDAR_OFF_MS = 10_000
"""A time of day this far from ours is worth a warning: who looks for a run in the logs of a host does not find it."""

PACKETS_OF_PAYLOAD = 1500 / 1448
"""The rate of IP packets over that of their payload: a scenario says the one, and a path is measured by the other."""


def lines(meta: Mapping[str, Any]) -> Iterator[str]:
    """Of `run.json`; none where nothing was run yet."""
    yield from path(meta)
    yield from (f"Warning: {warning}" for warning in warnings(meta))


def base_rtt_us(meta: Mapping[str, Any], cell: int) -> float | None:
    """The round trip without load: the median over repetitions of the least that was measured before each; of all
    cells, which have one path, unless netem makes each cell's."""
    of_cell = [row for row in meta.get("repetitions", ()) if row["cell"] == cell]
    found = _measured({"repetitions": of_cell} if meta["hosts"]["netem"] else meta, "path_rtt_us_least")
    return statistics.median(found) if found else None


def path(meta: Mapping[str, Any]) -> Iterator[str]:
    """The line of who the hosts are, and the path as it was found."""
    if not meta.get("repetitions"):
        return
    said = [f"Between {meta['hosts']['sender']} and {meta['hosts']['receiver']}"]
    if found := _measured(meta, "path_rtt_us_least"):
        middle, spread = statistics.median(found), " to ".join(human.quantity("time", f(found)) for f in (min, max))
        said.append(f"round trip without load {human.quantity('time', middle)} ({spread})")
    if rates := _measured(meta, "path_rate_bits_per_sec"):
        rate = f"rate {human.quantity('rate', statistics.median(rates))} of payload alone"
        again = _measured(meta, "path_retransmit_pct")
        said.append(f"{rate}, {human.digits(statistics.median(again), 2)} % sent again" if again else rate)
    uncertain = [of for role in ("sender", "receiver") for of in _measured(meta, f"{role}_clock_uncertainty_us")]
    said.append(f"clocks compared to within {human.quantity('time', max(uncertain))}")
    yield " · ".join(said)


def warnings(meta: Mapping[str, Any]) -> Iterator[str]:
    """Where the hosts or the path between them are other than expected."""
    if not meta.get("repetitions"):
        return
    addresses = [lab["addresses"] for lab in meta.get("labs", ()) if "addresses" in lab]
    if any(one["sender"] == one["receiver"] for one in addresses):
        yield (
            f"sender {meta['hosts']['sender']} and receiver {meta['hosts']['receiver']} are one machine, by one "
            "address: no network is between them, and both ends share its processors."
        )
    yield from _calendars(meta["hosts"], [row["measured"] for row in meta["repetitions"]])
    if meta["hosts"]["netem"]:
        yield from _made(meta)
        return
    if rtts := _measured(meta, "path_rtt_us_least"):
        rtt_us = statistics.median(rtts)
        yield from _others("its round trip without load takes", "path.rtt", "time", rtt_us, _each(meta, "rtt_ns", 1e-3))
    if rates := _measured(meta, "path_rate_bits_per_sec"):
        rate = statistics.median(rates) * PACKETS_OF_PAYLOAD
        yield from _others("its rate is", "path.rate", "rate", rate, _each(meta, "rate_bits_per_sec", 1.0))


def _measured(meta: Mapping[str, Any], name: str) -> list[float]:
    """Of each repetition that has it."""
    every = (row["measured"] for row in meta.get("repetitions", ()))
    return [float(measured[name]) for measured in every if name in measured]


def _calendars(hosts: Mapping[str, Any], every: Sequence[Mapping[str, float]]) -> Iterator[str]:
    """Of hosts whose time of day is another than here."""
    for role in ("sender", "receiver"):
        off_ms = max((measured[f"{role}_calendar_off_ms"] for measured in every), key=abs)
        if abs(off_ms) > _CALENDAR_OFF_MS:
            yield (
                f"{role} {hosts[role]}: its time of day is {human.duration(round(abs(off_ms) * 1e6))} "
                f"{'ahead of' if off_ms > 0 else 'behind'} this machine's. The figures go by other clocks; what the "
                "host writes into logs goes by that one."
            )


def _each(meta: Mapping[str, Any], name: str, factor: float) -> list[float]:
    """What cells expect."""
    return sorted({cell[name] * factor for cell in meta["cells"] if cell[name]})


def _made(meta: Mapping[str, Any]) -> Iterator[str]:
    """Where a path that the hosts make is another than the scenario's, value by value: each has cells of its own."""
    rtts = _by_value(meta, meta["cells"], "rtt_ns", 1e-3, "path_rtt_us_least")
    own_us = max(0.0, min((found - value for value, found in rtts.items()), default=0.0))
    least_us = min(filter(None, rtts), default=0.0)
    if least_us and own_us > least_us * _OFF_PCT / 100:
        yield (
            f"the round trip between the hosts takes {human.quantity('time', own_us)} by itself, to which netem adds "
            f"the scenario's: where path.rtt = {human.quantity('time', least_us)}, it takes "
            f"{human.quantity('time', rtts[least_us])} without load."
        )
    for value, found in rtts.items():
        if _is_off(found, value + own_us):
            yield _made_otherwise("its round trip without load takes", "path.rtt", "time", found, value)
    # Where packets are lost, the burst that measures the rate does not reach it.
    lossless = [cell for cell in meta["cells"] if any(tuple(one[:2]) == _NO_LOSS for one in cell["describe"])]
    for value, found in _by_value(meta, lossless, "rate_bits_per_sec", 1.0, "path_rate_bits_per_sec").items():
        if value and _is_off(rate := found * PACKETS_OF_PAYLOAD, value):
            yield _made_otherwise("its rate is", "path.rate", "rate", rate, value)


_NO_LOSS = ("path.loss", "0%")


def _by_value(
    meta: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], name: str, factor: float, measured: str
) -> dict[float, float]:
    """The median of what was measured in those cells, for each value that they have."""
    values = {cell["index"]: (cell[name] or 0) * factor for cell in cells}
    found: dict[float, list[float]] = {}
    for row in meta["repetitions"]:
        if row["cell"] in values and measured in row["measured"]:
            found.setdefault(values[row["cell"]], []).append(row["measured"][measured])
    return {value: statistics.median(every) for value, every in sorted(found.items())}


def _made_otherwise(what: str, key: str, kind: str, found: float, value: float) -> str:
    return (
        f"the path that netem makes is another than expected: {what} {human.quantity(kind, found)} where {key} = "
        f"{human.quantity(kind, value)}. The figures are those of the path as it was."
    )


def _is_off(found: float, expected: float) -> bool:
    return abs(found - expected) > expected * _OFF_PCT / 100


def _others(what: str, key: str, kind: str, found: float, expected: list[float]) -> Iterator[str]:
    for value in expected:
        if _is_off(found, value):
            yield (
                f"the path is another than expected: {what} {human.quantity(kind, found)}, and {key} = "
                f"{human.quantity(kind, value)}. The figures are those of the path; what the scenario says of it is "
                "not applied."
            )
