"""A plan: what is asked of `knee assign`, checked, and what the kernel's part of it is told."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.errors import UsageError

from . import arms
from .arms import Arm
from .designs import CONNECTION, DESIGNS, PREFIX, Design, Phase, Timing

V4_BITS, V6_BITS = 24, 48
PERIOD_NS_MIN = 1_000_000_000


@dataclass(frozen=True)
class Link:
    """Connections that have shares of their own."""

    name: str
    share_pct: float
    netns: Path | None = None
    local: tuple[str, int] | None = None
    interface: str | None = None


@dataclass(frozen=True)
class Plan:
    """What is assigned, to whom and when. The same plan on two hosts gives a prefix the same arm on both."""

    arms: tuple[Arm, ...]
    design: Design
    unit: str
    timing: Timing
    bits: tuple[int, int] = (V4_BITS, V6_BITS)
    """Of a prefix of IPv4 and of IPv6."""
    links: tuple[Link, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    netns: Path | None = None
    ours: bool = False
    """Our builds, also where the kernel has its own?"""

    def phase(self, now_unix_ns: int) -> Phase:
        """What holds at that time."""
        return self.design.phase(self.arms, self.timing, now_unix_ns)

    @cached_property
    def told(self) -> str:
        """What `_core.Assigner` is told."""
        links: list[dict[str, Any]] = [
            {"name": link.name, "netns": _text(link.netns), "local": link.local, "interface": link.interface}
            for link in self.links
        ] or [{"name": None, "netns": None, "local": None, "interface": None}]
        return json.dumps(
            {
                "design": self.design.name,
                "seed": self.timing.seed,
                "unit": self.unit,
                "v4_bits": self.bits[0],
                "v6_bits": self.bits[1],
                "arms": [{"name": arm.name, "algorithm": arm.algorithm} for arm in self.arms],
                "links": links,
                "ports": self.ports,
                "netns": _text(self.netns),
                "ours": self.ours,
            }
        )

    def arms_of(self, clients: Sequence[str], now_unix_ns: int) -> list[str]:
        """Which arm clients of these addresses get at that time. Raises UsageError where it is not theirs to say."""
        if self.unit != PREFIX or self.links:
            raise UsageError(
                f"which: got it with --design {self.design.name} and --unit {self.unit}; expected prefixes as units "
                "and no links: otherwise the client's address does not decide."
            )
        addresses = [_address(client, self.bits) for client in clients]
        found = _core.arms_of(self.told, told(self.phase(now_unix_ns)), addresses)
        # Every prefix has an arm: the shares are 100 % together.
        return [self.arms[number].name for number in found if number is not None]


def told(phase: Phase) -> str:
    """What `_core.Assigner` is told of the shares that hold."""
    return json.dumps({"period": phase.period, "shares_pct": phase.shares_pct})


def make(
    texts: Sequence[str],
    *,
    seed: int,
    now_unix_ns: int,
    design: str = "cluster",
    unit: str | None = None,
    prefix: str | None = None,
    period: str | None = None,
    steps: str | None = None,
    links: Sequence[str] = (),
    begin_unix_ns: int | None = None,
    ports: Sequence[str] = (),
    netns: str | None = None,
    ours: bool = False,
) -> Plan:
    """The plan of what a command line says. Raises UsageError."""
    from tcpknee.live import which

    chosen = DESIGNS[design]
    given = {"period": period is not None, "steps": steps is not None, "link": bool(links)}
    for option, is_given in given.items():
        if is_given and option not in chosen.needs:
            raise UsageError(
                f"{option}: is not for --design {design}. `knee assign --help` says which design it is of."
            )
        if not is_given and option in chosen.needs:
            raise UsageError(f"{option}: is missing; --design {design} needs it.")
    if chosen.arms_max is not None and (shared := next((text for text in texts if "=" in text), None)):
        raise UsageError(
            f'ARMS: got "{shared}"; expected arms without shares: those of --design {design} stand in '
            f"--{chosen.needs[-1]}."
        )
    parsed = tuple(_link(link) for link in links)
    made = Plan(
        arms=arms.parse(texts),
        design=chosen,
        unit=_unit(unit, chosen),
        timing=Timing(
            seed=seed,
            begin_unix_ns=now_unix_ns if begin_unix_ns is None else begin_unix_ns,
            period_ns=None if period is None else _period(period),
            steps_pct=() if steps is None else tuple(arms.percent("steps", step) for step in steps.split(",")),
            links_pct=tuple(link.share_pct for link in parsed),
        ),
        bits=(V4_BITS, V6_BITS) if prefix is None else _bits(prefix),
        links=parsed,
        ports=tuple(_ports(text) for text in ports),
        netns=None if netns is None else _namespace("netns", netns, which.namespace_path(netns)),
        ours=ours,
    )
    if prefix is not None and made.unit != PREFIX:
        raise UsageError(f"prefix: is for --unit prefix, and the unit is {made.unit}.")
    chosen.check(made.arms, made.timing)
    return made


def is_biased(plan: Plan) -> bool:
    """Do the arms share bottlenecks by design?"""
    return plan.unit == CONNECTION


def instant(text: str) -> int:
    """Nanoseconds since 1970 of a time such as `2026-03-01T12:00Z`. Raises UsageError."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise UsageError(f'begin: got "{text}"; expected a time with its zone, such as 2026-03-01T12:00Z.')
    return int(found.timestamp()) * 1_000_000_000


def _unit(text: str | None, design: Design) -> str:
    if text is None:
        return design.units[0]
    if text not in design.units:
        raise UsageError(f'unit: got "{text}"; --design {design.name} assigns by {" or ".join(design.units)}.')
    return text


def _period(text: str) -> int:
    period = _core.duration_ns("period", text)
    if period < PERIOD_NS_MIN:
        raise UsageError(f'period: got "{text}"; expected at least "1s", and much more than a connection lasts.')
    return period


def _bits(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"/?(\d{1,3}),/?(\d{1,3})", text)
    if not found or int(found[1]) > 32 or int(found[2]) > 128:
        raise UsageError(f'prefix: got "{text}"; expected lengths of IPv4 and IPv6 with a comma, such as "24,48".')
    return int(found[1]), int(found[2])


def _link(text: str) -> Link:
    """`eth0=95%`, `192.0.2.0/24=95%`, `netns:blue=95%`."""
    from tcpknee.live import which

    name, equals, share = text.rpartition("=")
    if not equals or not name:
        raise UsageError(
            f'link: got "{text}"; expected a device, a prefix of local addresses or netns:NAME with the share of the '
            'first arm, such as "eth0=95%".'
        )
    share_pct = arms.percent("link", share)
    if name.startswith("netns:"):
        namespace = name.removeprefix("netns:")
        return Link(name, share_pct, netns=_namespace("link", namespace, which.namespace_path(namespace)))
    network = _network(name)
    if network is None:
        return Link(name, share_pct, interface=name)
    return Link(name, share_pct, local=(str(network.network_address), network.prefixlen))


def _namespace(option: str, text: str, path: Path) -> Path:
    if not path.exists():
        raise UsageError(
            f'{option}: got "{text}", and there is no {path}; expected a network namespace: a name that `ip netns` '
            "prints, or the number of a process in it."
        )
    return path


def _ports(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    if not (low.isdigit() and (high or low).isdigit() and 0 < int(low) <= int(high or low) < 1 << 16):
        raise UsageError(f'port: got "{text}"; expected a port such as 443 or a range such as 8000-8100.')
    return int(low), int(high or low)


def _address(text: str, bits: tuple[int, int]) -> str:
    """The first address of a prefix stands for it, which may hold no more than one unit."""
    network = _network(text)
    if network is None:
        raise UsageError(f'which: got "{text}"; expected an address without a zone, or a prefix such as 192.0.2.0/24.')
    unit = bits[network.version == 6]
    if network.prefixlen < unit:
        raise UsageError(
            f'which: got "{text}", which holds many units of /{unit}, each with an arm of its own; expected an address '
            f"or a prefix of /{unit} or longer. Ask for single ones, or make the units larger with --prefix."
        )
    return str(network.network_address)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """A prefix or one address; None: it is neither, or has a zone, as `fe80::1%eth0` does, which no prefix has."""
    try:
        return None if "%" in text else ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
