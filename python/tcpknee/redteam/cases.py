"""One scenario of the search: which knobs are set, as values and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tcpknee.runs import compose

from . import knobs
from .knobs import BY_NAME, EVERY, Choice, Number, Value

_MOST_MBIT = 1000.0
"""Of a bottleneck that is full for the whole run: some 0.1 s of computing."""

_ASKED = frozenset({"flows of its own", "other.count", "other.rtt_factor", "late.rtt_factor"})
"""Flows, without which some questions cannot be asked."""
_WHERE = ("path.rate", "path.rtt", "path.mtu")
_LIKE = {
    "flow.count": "flows of its own",
    "late.count": "flows of its own",
    "late.start_share": "",
    "other.start_share": "",
    "path.step.ce_packets": "",
    "sender.costs": "sender's processor",
    "sender.steal": "sender's processor",
    "sender.steal_slice": "sender's processor",
    "receiver.costs": "receiver's processor",
    "receiver.steal": "receiver's processor",
    "receiver.steal_slice": "receiver's processor",
}
"""Of a cause: knobs that say the same, or (empty) only by how much."""

COLUMNS = (
    "bytes_read",
    "bytes_sent",
    "notsent_bytes",
    "unacked",
    "snd_wnd_bytes",
    "pacing_rate_bits_per_sec",
    "srtt_us",
    "rto_us",
)
"""Of `samples`, which judges of a case read."""


@dataclass(frozen=True)
class Case:
    """The knobs that are set, in the order of `knobs.EVERY`. Compared, hashed and written alike in every process."""

    values: tuple[tuple[str, Value], ...] = ()

    @staticmethod
    def of(values: dict[str, Value]) -> Case:
        """Without what means nothing beside the rest."""
        kept: dict[str, Value] = {}
        for knob in EVERY:
            if knob.name in values and _has_meaning(knob, kept, values):
                kept[knob.name] = values[knob.name]
        return Case(tuple(kept.items()))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.values)

    def __contains__(self, name: str) -> bool:
        return any(name == one for one, _ in self.values)

    def get(self, name: str) -> Value | None:
        return next((value for one, value in self.values if one == name), None)

    def number(self, name: str, default: float = 0.0) -> float:
        """As it is set, or its neutral value, or this one."""
        value, knob = self.get(name), BY_NAME[name]
        if value is None:
            return default if knob.neutral is None else knob.neutral
        assert isinstance(value, float)
        return value

    def with_(self, name: str, value: Value) -> Case:
        return Case.of({**dict(self.values), name: value})

    def without(self, name: str) -> Case:
        """What needs it goes too."""
        return Case.of({one: value for one, value in self.values if one != name})

    def undone(self, name: str) -> Case:
        """As if that one were not set."""
        return self.with_(name, knobs.UNDONE[name]) if name in knobs.UNDONE else self.without(name)

    @property
    def directions(self) -> frozenset[str]:
        """What is set, and which way, where a number has a neutral value."""
        return frozenset(f"{name}{_way(name, value)}" for name, value in self.values)

    @property
    def cause(self) -> tuple[str, ...]:
        """The same without where it was seen: the path's rate and RTT; and flows of its own are such, however many and
        whenever they come."""
        plain = (_LIKE.get(name, f"{name}{_way(name, value)}") for name, value in self.values if name not in _WHERE)
        return tuple(dict.fromkeys(filter(None, plain)))

    @property
    def core(self) -> frozenset[str]:
        """Of the cause, what is not there because of what is asked."""
        return frozenset(self.cause) - _ASKED

    @property
    def settings(self) -> str:
        """What is set, with its values."""
        return ", ".join(f"{name} = {BY_NAME[name].written(value)}".replace('"', "") for name, value in self.values)

    @property
    def mtu_bytes(self) -> int:
        return int(str(self.get("path.mtu") or '"1500B"').strip('"B'))

    @property
    def has_room(self) -> bool:
        """Does a packet fit into the buffer? Of a trace, whose rate is in its file, the parser says it."""
        bdp_bytes = self.number("path.rate") * self.number("path.rtt") * 1e3 / 8
        return "path.trace" in self or bdp_bytes * self.number("path.buffer") >= self.mtu_bytes

    # Times, all in ms.

    @property
    def duration(self) -> float:
        """Long enough for many round trips, short enough to be one of thousands."""
        longest = self.number("path.rtt") * max(
            self.number("late.rtt_factor", 1), self.number("other.rtt_factor", 1), self.number("path.rtt_change", 1)
        )
        length = min(max(150 * longest, 6_000), 30_000)
        if "path.trace" not in self:
            length = min(length, max(_MOST_MBIT / self.number("path.rate") * 1e3, 1_000, 30 * longest))
        return float(round(length / 500) * 500)

    @property
    def starts(self) -> tuple[float, float]:
        """When the late flows start, and those it meets."""
        late, other = (round(self.number(f"{one}.start_share") * self.duration, 0) for one in ("late", "other"))
        return late, other

    @property
    def warmup(self) -> float:
        """All flows are there, and had a fifth of the time that is left."""
        begin = max(self.starts)
        return float(round(begin + (self.duration - begin) / 5))

    @property
    def interval(self) -> float:
        return max(min(self.number("path.rtt") / 2, 20.0), self.duration / 3_000, 1.0)

    def text(
        self,
        algorithm: str,
        other: str,
        seed: int,
        *,
        alone: bool = False,
        axes: Sequence[str] = (),
        undone: str | None = None,
        sampled: bool = True,
    ) -> str:
        """As a scenario. `alone`: only the flows that it meets. `axes`: algorithms in a list, instead of `algorithm`;
        `undone`: a knob that is an axis, set and not."""
        lines = [f'duration = "{_ms(self.duration)}"', f'warmup = "{_ms(self.warmup)}"', f"seed = {seed}"]
        if sampled:
            lines += [f"samples = {list(COLUMNS)}".replace("'", '"'), f'sample_interval = "{_ms(self.interval)}"']
        sections: dict[str, list[str]] = {"": lines, "path": [], "sender": [], "receiver": [], "flow": []}
        for name, written in self._keys(undone):
            table, _, key = name.rpartition(".") if "." not in name else name.partition(".")
            sections[table].append(f"{key} = {written}")
        for table in ("path", "sender", "receiver"):
            if sections[table]:
                lines += ["", f"[{table}]", *sections[table]]
        named = compose.quoted(algorithm) if not axes else f"[{', '.join(map(compose.quoted, axes))}]"
        if not alone:
            lines += ["", "[[flow]]", f"algorithm = {named}", 'name = "first"', *sections["flow"]]
            if "late.count" in self:
                lines += ["", "[[flow]]", f"algorithm = {named}", 'name = "late"']
                lines += self._further("late", self.starts[0])
        if "other.count" in self:
            lines += ["", "[[flow]]", f"algorithm = {compose.quoted(other)}", 'name = "other"']
            lines += self._further("other", self.starts[1])
        if axes and "late.count" in self:
            lines += ["", "[[zip]]", 'keys = ["flow.0.algorithm", "flow.1.algorithm"]']
        return "\n".join(lines) + "\n"

    def _further(self, name: str, start: float) -> list[str]:
        lines = []
        if self.number(f"{name}.count") > 1:
            lines.append(f"count = {self.number(f'{name}.count'):.0f}")
        if start:
            lines.append(f'start = "{_ms(start)}"')
        if f"{name}.rtt_factor" in self:
            lines.append(f'rtt = "{_ms(self.number("path.rtt") * self.number(f"{name}.rtt_factor"))}"')
        return lines

    def _keys(self, undone: str | None) -> Iterator[tuple[str, str]]:
        """Names and values as a scenario has them."""
        workload = self.get("flow.workload")
        for knob in EVERY:
            name, value = knob.name, self.get(knob.name)
            if value is None and knob.neutral is not None:
                value = knob.neutral
            if name in knobs.ALWAYS_SET and value is None and knob.needs and workload in knob.needs[1]:
                value = knobs.ALWAYS_SET[name]
            if value is None or name.startswith(("late.", "other.")) or name == "path.loss_burst":
                continue
            if name == "path.rate" and "path.trace" in self:
                continue
            written = _SPECIAL[name](self, value) if name in _SPECIAL else (name, knob.written(value))
            if name == undone and (other := _not_set(name)) is not None:
                written = (written[0], f"[{written[1]}, {other}]")
            yield written


def _has_meaning(knob: knobs.Knob, kept: dict[str, Value], values: dict[str, Value]) -> bool:
    if knob.needs is None:
        return True
    other, options = knob.needs
    return other in kept and (not options or values[other] in options)


def _way(name: str, value: Value) -> str:
    knob = BY_NAME[name]
    if isinstance(knob, Choice):
        return f"={value}"
    return "" if knob.neutral is None or not isinstance(value, float) else "+" if value > knob.neutral else "-"


def _not_set(name: str) -> str | None:
    """What a file says where a knob is not set, if there is a value for that."""
    if name in knobs.UNDONE:
        return knobs.UNDONE[name]
    return _OFF.get(name)


_OFF = {
    "path.loss": '"0%"',
    "path.ack_loss": '"0%"',
    "path.jitter": '"0s"',
    "path.aggregate": '"0s"',
    "path.ack_rate": '"unlimited"',
    "path.queue": '"fifo"',
    "sender.steal": '"0%"',
    "receiver.steal": '"0%"',
    "sender.steal_slice": '"5ms"',
    "receiver.steal_slice": '"5ms"',
    "sender.noise": '"0s"',
    "receiver.noise": '"0s"',
    "receiver.rx_coalesce": '"20us"',
    "receiver.quickack": "false",
    "sender.hz": "250",
    "sender.pacing": '"internal"',
    "sender.tcp_slow_start_after_idle": "true",
    "sender.initcwnd": "10",
    "sender.tcp_ecn": "2",
    "kernel": '"6.18"',
}
"""What each key's default is."""


def _ms(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") + "ms"


def _mbit(value: float) -> str:
    return f'"{value:.4f}'.rstrip("0").rstrip(".") + 'Mbit/s"'


def _loss(case: Case, value: Value) -> tuple[str, str]:
    share = f"{value:g}%"
    burst = case.number("path.loss_burst")
    return "path.loss", f'"gilbert {share} burst {burst:.0f}"' if burst else f'"{share}"'


_SPECIAL: dict[str, Callable[[Case, Value], tuple[str, str]]] = {
    "path.trace": lambda case, value: ("path.rate", str(value)),
    "path.loss": _loss,
    "path.policer_share": lambda case, value: ("path.policer_rate", _mbit(case.number("path.rate") * float(value))),
    "path.outage": lambda case, value: ("path.outage", f'"{_ms(case.duration / 2)} for {_ms(float(value))}"'),
    "path.rtt_change": lambda case, value: (
        "path.rtt_change",
        f'"{_ms(case.duration / 2)} to {_ms(case.number("path.rtt") * float(value))}"',
    ),
}


def drawn(chance: Random, wanted: Sequence[str] = ()) -> Case:
    """From nothing: the path, and some of all else. `wanted`: knobs without which a question cannot be asked."""
    values: dict[str, Value] = {}
    for name in ("path.rate", "path.rtt", "path.buffer"):
        if chance.random() < 0.7:
            values[name] = BY_NAME[name].draw(chance)
    names = [*wanted, *(chance.choice(EVERY).name for _ in range(chance.randint(0, 4)))]
    for name in names:
        _set(values, name, chance)
    return Case.of(values)


def mutated(case: Case, chance: Random) -> Case:
    """With one to three knobs changed, set or not set any more."""
    values = dict(case.values)
    for _ in range(chance.randint(1, 3)):
        what = chance.random()
        if what < 0.5 and values:
            name = chance.choice(sorted(values))
            values[name] = BY_NAME[name].near(values[name], chance, 3.0)
        elif what < 0.65 and values:
            del values[chance.choice(sorted(values))]
        else:
            _set(values, chance.choice(EVERY).name, chance)
    return Case.of(values)


def _set(values: dict[str, Value], name: str, chance: Random) -> None:
    """Sets a knob, and what it needs."""
    knob = BY_NAME[name]
    if knob.needs is not None:
        other, options = knob.needs
        if options and values.get(other) not in options:
            values[other] = chance.choice(options)
        elif other not in values:
            _set(values, other, chance)
    if name == "sender.tcp_ecn" and values.get("path.queue") not in knobs.MARKING:
        # Where nothing marks, it changes nothing.
        _set(values, chance.choice(knobs.MARKED_BY), chance)
    values[name] = knob.draw(chance)


def nearby(case: Case, chance: Random) -> Case:
    """Each number, the path's too, within 20 %."""
    values = dict(case.values)
    for knob in EVERY:
        value = values.get(knob.name, knob.neutral)
        if isinstance(knob, Number) and isinstance(value, float):
            moved = value * chance.uniform(0.8, 1.2)
            values[knob.name] = float(max(round(moved), 1)) if knob.whole else knob.rounded(moved, 3)
    return Case.of(values)
