"""What a scenario's `[sender]` and `[receiver]` ask of two real hosts: as settings that `crates/hold` can hold, and as
differences from what the hosts are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee import reading
from tcpknee.errors import UsageError

Setting = dict[str, Any]
"""As `crates/hold/src/setting.rs` reads it."""

SIDES = ("sender", "receiver")

_SYSCTLS = {
    **{
        name: f"net.ipv4.{name}"
        for name in (
            "tcp_window_scaling",
            "tcp_sack",
            "tcp_timestamps",
            "tcp_moderate_rcvbuf",
            "tcp_limit_output_bytes",
            "tcp_slow_start_after_idle",
            "tcp_comp_sack_nr",
            "tcp_comp_sack_rtt_percent",
            "tcp_syn_linear_timeouts",
            "tcp_pacing_ss_ratio",
            "tcp_pacing_ca_ratio",
            "tcp_ecn",
            "tcp_tso_rtt_log",
        )
    },
    "tcp_comp_sack_delay": "net.ipv4.tcp_comp_sack_delay_ns",
    "tcp_rto_min": "net.ipv4.tcp_rto_min_us",
    "tcp_rcvbuf_low_rtt": "net.ipv4.tcp_rcvbuf_low_rtt",
    **{
        name: f"net.core.{name}"
        for name in ("wmem_max", "rmem_max", "netdev_max_backlog", "netdev_budget", "netdev_budget_usecs")
    },
}
"""Keys that are a sysctl of their own."""

_TRIPLES = {
    f"{name}_{part}": (f"net.ipv4.{name}", at)
    for name in ("tcp_wmem", "tcp_rmem")
    for at, part in enumerate(("min", "default", "max"))
}
"""Keys that are one of a sysctl's three numbers."""

_NS = {
    "net.ipv4.tcp_comp_sack_delay_ns": 1,
    "net.ipv4.tcp_rto_min_us": 1_000,
    "net.ipv4.tcp_rcvbuf_low_rtt": 1_000,
}
"""Nanoseconds of a sysctl's unit, where it is a time."""

_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class Given:
    """What a scenario's file says of one host: values of keys as the reports show them."""

    side: str
    values: Mapping[str, str]


def given(cells: Sequence[Mapping[str, Any]], texts: Sequence[str], file: str) -> dict[str, Given]:
    """What the file says of each host; `texts`: each cell, as `write_cell` gives it. Raises UsageError where cells say
    different things: a host is set once for a run."""
    found: dict[str, dict[str, str]] = {side: {} for side in SIDES}
    for cell, text in zip(cells, texts, strict=True):
        shown = {name: value for name, value, *_ in cell["describe"]}
        parsed = reading.toml(json.loads(text)["scenario"])
        for side in SIDES:
            for key in parsed.get(side, {}):
                value = shown.get(f"{side}.{key}")
                if value is None:
                    continue
                if found[side].setdefault(key, value) != value:
                    raise UsageError(
                        f"{file}: {side}.{key}: got {found[side][key]} and {value}; expected one value with the engine "
                        "hosts, as a host is set once for a run. Run the file once for each value."
                    )
    return {side: Given(side, values) for side, values in found.items()}


def wanted(one: Given, there: str, towards: str) -> tuple[list[Setting], list[str]]:
    """Settings of a host, whose settings now are the text `there`, each once; and keys that a host of one's own is not
    given."""
    sysctls, left = dict[str, str](), []
    settings: list[Setting] = []
    now = sysctls_of(there)
    for key, value in one.values.items():
        if key == "algorithm":
            # Of sockets, or of a route where programs open them.
            continue
        if key in _SYSCTLS:
            sysctls[_SYSCTLS[key]] = _number(value, _NS.get(_SYSCTLS[key]))
        elif key in _TRIPLES:
            name, at = _TRIPLES[key]
            parts = sysctls.get(name, now.get(name, "")).split()
            if len(parts) != len(SIDES) + 1:
                left.append(key)
                continue
            parts[at] = _number(value, None)
            sysctls[name] = " ".join(parts)
        elif key == "initcwnd":
            settings.append({"kind": "route", "towards": towards, "initcwnd": int(value)})
        elif key in {"gro", "tso"}:
            settings.append({"kind": "offload", "towards": towards, "feature": key, "on": value == "true"})
        elif key == "gso_max" and value == "0B":
            settings.append({"kind": "offload", "towards": towards, "feature": "tso", "on": False})
        elif key == "qdisc" and value != "default":
            settings.append({"kind": "qdisc", "towards": towards, "qdisc": value})
        elif key == "pacing" and value == "fq":
            settings.append({"kind": "qdisc", "towards": towards, "qdisc": "fq"})
        else:
            left.append(key)
    first = [{"kind": "sysctl", "name": name, "value": value} for name, value in sysctls.items()]
    # Two keys may ask for one: `qdisc = "fq"` and `pacing = "fq"`.
    once = [setting for at, setting in enumerate(settings) if setting not in settings[:at]]
    return first + once, left


def _number(value: str, ns: int | None) -> str:
    """A value of a report as the sysctl has it."""
    if value in {"true", "false"}:
        return str(int(value == "true"))
    if ns is not None:
        unit = value.lstrip("0123456789.")
        return str(round(float(value.removesuffix(unit)) * _TIMES[unit] / ns))
    return value.removesuffix("B")


def sysctls_of(there: str) -> dict[str, str]:
    """The sysctls of a host's text of settings (`crates/hold/src/text.rs`)."""
    lines = (line.removeprefix("sysctl ").partition(" = ") for line in there.splitlines() if line.startswith("sysctl "))
    return {name: value for name, _, value in lines}


def differences(one: Given, there: str, towards: str) -> list[str]:
    """Where a host is not what the scenario says of it, in words."""
    found = []
    now = sysctls_of(there)
    settings, left = wanted(one, there, towards)
    for setting in settings:
        if setting["kind"] == "sysctl":
            name, value = setting["name"], setting["value"]
            if now.get(name) != value:
                found.append(f"{one.side}: {name} is {now.get(name, 'not known')}, and the scenario says {value}")
        elif setting["kind"] == "route":
            found.append(
                f"{one.side}: initcwnd = {setting['initcwnd']} of the scenario is not set; the route's own holds, by "
                "default 10"
            )
        elif setting["kind"] == "offload":
            if _is_on(there, setting["feature"]) not in (None, setting["on"]):
                words = ("off", "on")
                found.append(
                    f"{one.side}: {setting['feature']} is {words[not setting['on']]}, and the scenario says "
                    f"{words[setting['on']]}"
                )
        elif f"qdisc {setting['qdisc']} " not in there:
            found.append(f"{one.side}: the qdisc is not {setting['qdisc']}, as the scenario says")
    if left:
        found.append(f"{one.side}: {', '.join(left)} of the scenario: the host has its own")
    return found


_FEATURES = {"gro": "rx-gro", "tso": "tx-tcp-segmentation"}


def _is_on(there: str, feature: str) -> bool | None:
    for line in there.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] == _FEATURES[feature]:
            return words[2] == "on"
    return None


NETEM_LIMIT_PACKETS = 100_000
"""Of a netem without a buffer of the scenario's."""


def netem(cell: Mapping[str, Any], sender_towards: str, receiver_towards: str, file: str) -> dict[str, Setting]:
    """The path of a cell as a netem on each host's way out: half of the round-trip time on either side, rate and loss
    on the sender's. Raises UsageError for what it cannot be."""
    shown = {name: value for name, value, *_ in cell["describe"]}
    if shown.get("path.queue", "fifo") != "fifo":
        raise UsageError(f"{file}: path.queue: got {shown['path.queue']} with --netem; expected fifo, which netem is.")
    _check_made(shown, file)
    half_us = round(cell["rtt_ns"] / 2e3)
    loss = _share(shown["path.loss"], "path.loss", file)
    rate = cell["rate_bits_per_sec"]
    packets = shown.get("path.buffer_pkts", "")
    limit = NETEM_LIMIT_PACKETS
    if packets.isdigit() and rate is not None:
        # netem holds what is on its way as well as what waits.
        on_way = round(rate * half_us / 1e6 / 8 / int(shown["path.mtu"].removesuffix("B")))
        limit = min(int(packets) + on_way + 1, 10_000_000)
    sender: Setting = {"kind": "netem", "towards": sender_towards, "delay_us": half_us, "limit_packets": limit}
    if loss:
        sender["loss_ppb"] = loss
    if rate is not None:
        sender["rate_bits_per_sec"] = rate
    receiver: Setting = {
        "kind": "netem",
        "towards": receiver_towards,
        "delay_us": half_us,
        "limit_packets": NETEM_LIMIT_PACKETS,
    }
    if ack_loss := _share(shown["path.ack_loss"], "path.ack_loss", file):
        receiver["loss_ppb"] = ack_loss
    return {"sender": sender, "receiver": receiver}


_MADE = ("rate", "rtt", "loss", "ack_loss", "queue", "buffer")
"""Keys of a path that netem makes."""

_NOT_OF_PATHS = ("backend", "super_packets")
"""Of a lab's means."""

_NONE_OF_IT = {"policer_rate": "unlimited", "overhead": "0B", "mtu": "1500B"}
"""Shown of every path."""


def _check_made(shown: Mapping[str, str], file: str) -> None:
    """Raises UsageError for what a path has besides what netem makes of it."""
    expected = "expected a path of rate, rtt, loss, ack_loss and buffer, which is all that --netem makes. Leave it out"
    for name, value in shown.items():
        section, _, key = name.partition(".")
        if section == "hop":
            raise UsageError(f"{file}: {name}: got several hops with --netem; {expected}.")
        if section == "flow" and key.endswith(".rtt") and value != shown["path.rtt"]:
            raise UsageError(f"{file}: {name}: got {value} with --netem; {expected}.")
        if section != "path" or key in _NOT_OF_PATHS or _NONE_OF_IT.get(key) == value:
            continue
        is_trace = key == "rate" and not value.endswith("bit/s") and value != "unlimited"
        if is_trace or not (key in _MADE or key.startswith(("bdp_", "buffer_"))):
            raise UsageError(f"{file}: {name}: got {value} with --netem; {expected}.")


def _share(value: str, key: str, file: str) -> int:
    """In parts of a thousand million."""
    try:
        return round(float(value.removesuffix("%")) * 1e7)
    except ValueError:
        raise UsageError(f"{file}: {key}: got {value} with --netem; expected a share such as 1%.") from None


def compared(before: str, after: str) -> list[str]:
    """Lines that differ between a host's settings before and after."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
