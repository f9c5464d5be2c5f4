"""Streams of other tools in the words of a connection's samples, as far as they tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcpknee import algorithms
from tcpknee.whatif.series import Series

_POINTS_AT_MOST = 600
"""Of a line in `run.json`."""
_MSS_BYTES = 1448.0
_MOST_MSS_BYTES = 9000.0
"""Above, it is that of a loopback device, or of segments that were not cut yet."""

Lines = dict[str, list[tuple[float, float]]]


def ours(name: str) -> str:
    """What an algorithm of a kernel's is called here; empty: it is not known."""
    return algorithms.ours(name.removeprefix("knee_")) if name else ""


def told_once(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Streams of iperf3, each with `out`: whether who was asked sent it. A client that got the server's output
    (`--get-server-output`) tells each twice; then what the sender saw stands with what the receiver got."""
    found = []
    by_client = [row for row in rows if row["side"] == "client"]
    servers: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if row["side"] == "server" and row["sender"]:
            servers.setdefault(row["file"], []).append(row)
    for row in by_client or rows:
        sender = servers[row["file"]].pop(0) if by_client and not row["sender"] and servers.get(row["file"]) else None
        told = {name: row[name] for name in ("goodput_bits_per_sec", "bytes_read", "control_mss_bytes")}
        found.append({**(sender or row), **told, "out": row["sender"]})
    return found


class OfIperf3:
    """A stream, with its intervals in the order of time."""

    def __init__(self, row: dict[str, Any], intervals: Sequence[dict[str, Any]]) -> None:
        key = ("file", "test", "stream")
        self.row = row
        self.intervals = sorted(
            (one for one in intervals if all(one[name] == row[name] for name in key) and one["bytes"] is not None),
            key=lambda one: int(one["start_ns"]),
        )
        self.counted = [one for one in self.intervals if not one["omitted"]]

    @property
    def mss_bytes(self) -> float:
        told = self.row["control_mss_bytes"] or _MSS_BYTES
        return told if told <= _MOST_MSS_BYTES else _MSS_BYTES

    @property
    def rtts_us(self) -> list[float]:
        return [float(one["srtt_us"]) for one in self.counted if one["srtt_us"]]

    @property
    def least_rtts_us(self) -> list[float]:
        """The least RTT, of what is omitted too, if any is told."""
        return sorted(float(one["srtt_us"]) for one in self.intervals if one["srtt_us"])[:1]

    @property
    def lines(self) -> Lines:
        """From its begin on, what is omitted included."""
        begin_ns = self.intervals[0]["start_ns"] if self.intervals else 0
        found: Lines = {}
        for one in self.intervals:
            values = {
                "delivery_rate_bits_per_sec": one["goodput_bits_per_sec"] or one["written_bits_per_sec"],
                "srtt_us": one["srtt_us"],
                "snd_cwnd": one["snd_cwnd_bytes"] and one["snd_cwnd_bytes"] / self.mss_bytes,
            }
            for name, value in values.items():
                if value is not None:
                    found.setdefault(name, []).append(((one["end_ns"] - begin_ns) / 1e9, float(value)))
        return {name: thinned(points) for name, points in found.items()}


def of_iperf3(members: Sequence[OfIperf3]) -> dict[str, float]:
    """The metrics of a test's streams of one direction together."""
    rates = [one.row["goodput_bits_per_sec"] or one.row["written_bits_per_sec"] for one in members]
    found = {"goodput_bits_per_sec": float(sum(rates))}
    sent = sum((one.row["bytes_written"] or 0) / one.mss_bytes for one in members)
    if sent and all(one.row["total_retrans"] is not None for one in members):
        retransmitted = float(sum(one.row["total_retrans"] for one in members))
        found["retransmit_pct"] = 100 * retransmitted / (sent + retransmitted)
    rtts = [rtt for one in members for rtt in one.rtts_us]
    if rtts:
        p50, p95 = np.percentile(rtts, [50, 95])
        found |= {"srtt_us_p50": float(p50), "srtt_us_p95": float(p95)}
    return found


def lines(series: Series) -> Lines:
    """Of a recorded connection."""
    t_sec = (series.t_us - series.t_us[0]) / 1e6
    steps = np.diff(t_sec)
    whole = steps > 0
    rates = 8 * np.diff(series.bytes_acked)[whole] / steps[whole]
    found = {
        "delivery_rate_bits_per_sec": (t_sec[1:][whole], rates),
        "srtt_us": (t_sec[series.srtt_us > 0], series.srtt_us[series.srtt_us > 0]),
        "snd_cwnd": (t_sec, series.snd_cwnd),
    }
    return {name: thinned(list(zip(t.tolist(), v.tolist(), strict=True))) for name, (t, v) in found.items()}


def of_acks(acks: Sequence[dict[str, Any]], bin_sec: float) -> Lines:
    """Of a captured connection, in bins of time."""
    if len(acks) < 2:
        return {}
    t_sec = np.array([(one["t_unix_ns"] - acks[0]["t_unix_ns"]) / 1e9 for one in acks])
    counted = np.array([float(one["delivered_bytes"] or 0) for one in acks])
    edges = np.arange(0.0, t_sec[-1] + bin_sec, bin_sec)
    rates = 8 * np.diff(np.interp(edges, t_sec, counted)) / bin_sec
    found: Lines = {"delivery_rate_bits_per_sec": thinned(list(zip(edges[1:].tolist(), rates.tolist(), strict=True)))}
    rtts = [(float(t), float(one["rtt_us"])) for t, one in zip(t_sec, acks, strict=True) if one["rtt_us"]]
    return {**found, **({"srtt_us": thinned(rtts)} if rtts else {})}


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same with the least and the greatest of each of a few hundred parts."""
    if len(points) <= _POINTS_AT_MOST:
        return points
    found: dict[tuple[float, float], None] = {}
    for part in np.array_split(np.arange(len(points)), _POINTS_AT_MOST // 2):
        own = [points[place] for place in part]
        found |= dict.fromkeys(sorted({min(own, key=lambda one: one[1]), max(own, key=lambda one: one[1])}))
    return list(found)
