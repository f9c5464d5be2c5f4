"""What is simulated: a path for each prefix, and for each of its periods the arms that its connections are in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcpknee import _core
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.runs import api, compose

from .mix import Arm, Clients, Mix


@dataclass(frozen=True)
class Prefix:
    """A network of clients behind one bottleneck. `link`: of two alike links in a pair, which one it has."""

    number: int
    clients: Clients
    path: Mapping[str, str]
    link: str | None = None

    @property
    def text(self) -> str:
        """Its /24 network."""
        return f"{self.base}.0/24"

    @property
    def base(self) -> str:
        """The first three bytes of its addresses."""
        return f"10.{self.number >> 8}.{self.number & 255}"


@dataclass(frozen=True)
class Row:
    """A period of a prefix, which is simulated by itself: its connections begin on an empty link. `number` is the
    row's own among all."""

    number: int
    prefix: Prefix
    period: int
    arms: Sequence[tuple[int, float]]
    """Which arms of the mix its connections are in, and the share of each."""


def seed_of(*words: object) -> int:
    """63 bits that are settled by those words."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8], "big") >> 1


def prefixes(mix: Mix) -> list[Prefix]:
    """All of a mix, kinds of clients in turn by their shares. Raises UsageError where a key or value is no good, or an
    arm's algorithm."""
    for arm in mix.arms:
        for clients in mix.clients:
            _drawn(mix, clients, 1, 0, arm)
    pairs = mix.design == "paired-link"
    paths = mix.prefixes // 2 if pairs else mix.prefixes
    kinds = np.random.default_rng(seed_of(mix.seed, "clients")).permutation(_counts(mix, paths))
    drawn = {
        index: iter(_paths(mix, clients, int(np.sum(kinds == index)), seed_of(mix.seed, clients.name)))
        for index, clients in enumerate(mix.clients)
    }
    found: list[Prefix] = []
    for kind in kinds:
        path = next(drawn[int(kind)])
        for link in ("1", "2") if pairs else (None,):
            found.append(Prefix(len(found), mix.clients[int(kind)], path, link))
    return found


def _counts(mix: Mix, paths: int) -> list[int]:
    """The kind of each path, as many of each as its share says, by largest remainder."""
    exact = [clients.share * paths for clients in mix.clients]
    counts = [int(value) for value in exact]
    for index in sorted(range(len(exact)), key=lambda at: counts[at] - exact[at])[: paths - sum(counts)]:
        counts[index] += 1
    return [index for index, count in enumerate(counts) for _ in range(count)]


def _paths(mix: Mix, clients: Clients, count: int, seed: int) -> list[dict[str, str]]:
    """Draws of what the kind leaves open: the value of each such key of the mix, one dictionary per path."""
    if not count:
        return []
    scenario = _drawn(mix, clients, count, seed, mix.arms[0])
    if not clients.drawn:
        return [{}] * count
    names = {_drawn_as(key): key for key in clients.drawn}
    return [{names[key]: value for key, value in cell["axes"] if key in names} for cell in scenario.cells]


def refused(mix: Mix, clients: Clients, error: ScenarioError) -> UsageError:
    """The first mistake, by the key that the mix has."""
    _, key, said = error.mistakes[0]
    name = key.removeprefix("sample.0.").replace("flow.0.", "flow.").replace("flow.1.", "cross.")
    return UsageError(f"{mix.file}: clients {clients.name}: {name}: {said}")


def _drawn(mix: Mix, clients: Clients, count: int, seed: int, arm: Arm) -> _core.Scenario:
    """A scenario whose cells are paths of that kind, each with a flow of that arm. Raises UsageError."""
    found = scenario_of(mix, clients, [arm.algorithm])
    drawn = {_drawn_as(key): value for key, value in clients.drawn.items()}
    if drawn:
        found["sample"] = [{"count": count, "seed": seed, **drawn}]
    try:
        return api.parse(compose.toml(found), mix.file)
    except ScenarioError as error:
        _, key, said = error.mistakes[0]
        if key == "flow.0.algorithm":
            raise UsageError(f"{mix.file}: arm {arm.name}: {said}") from None
        raise refused(mix, clients, error) from None


def scenario_of(mix: Mix, clients: Clients, algorithms: Sequence[str]) -> dict[str, Any]:
    """Nested keys that all prefixes of a kind share, with a flow for each algorithm, and behind them one of other
    traffic where there is such."""
    found: dict[str, Any] = {"duration": mix.duration, "sample_interval": mix.sample_interval}
    flow: dict[str, Any] = {"workload": "web"}
    cross: dict[str, Any] = {"workload": "web"}
    rooms = {"flow": flow, "cross": cross}
    for key, value in clients.settings.items():
        room, _, name = key.partition(".")
        (rooms[room] if room in rooms else found.setdefault(room, {}))[name] = value
    found["flow"] = [{"name": f"arm_{at}", "algorithm": algorithm, **flow} for at, algorithm in enumerate(algorithms)]
    if clients.has_cross:
        found["flow"].append({"name": "cross", **cross})
    return found


def _drawn_as(key: str) -> str:
    """The name of a mix's key in the scenario that paths are drawn by, which has one arm."""
    (name,) = in_scenario(key, arms=1)
    return name


def in_scenario(key: str, *, arms: int) -> list[str]:
    """The names of a mix's key in a scenario of that many arms: of every arm's flow, or of the other traffic's behind
    them."""
    room, _, name = key.partition(".")
    flows = {"flow": range(arms), "cross": (arms,)}
    return [f"flow.{at}.{name}" for at in flows[room]] if room in flows else [key]


def rows(mix: Mix, found: Sequence[Prefix]) -> Iterator[Row]:
    """Each period of each prefix, with its arms by the mix's design."""
    by_prefix = _arms_of_prefixes(mix, len(found))
    order = _alternation(mix)
    for prefix in found:
        for period in range(mix.periods):
            if mix.design == "cluster":
                arms = [(by_prefix[prefix.number], 1.0)]
            elif mix.design == "switchback":
                arms = [(order[period], 1.0)]
            elif mix.design == "paired-link" and prefix.link == "2":
                arms = [
                    (at, share)
                    for (at, _), share in zip(_all(mix.arms), [a.share for a in mix.arms][::-1], strict=True)
                ]
            else:
                arms = _all(mix.arms)
            yield Row(prefix.number * mix.periods + period, prefix, period, arms)


def _all(arms: Sequence[Arm]) -> list[tuple[int, float]]:
    return [(at, arm.share) for at, arm in enumerate(arms)]


def _arms_of_prefixes(mix: Mix, count: int) -> list[int]:
    """Which arm each prefix is in, in a design by cluster: by its share, independently of the others."""
    random = np.random.default_rng(seed_of(mix.seed, "arms"))
    return [int(arm) for arm in random.choice(len(mix.arms), count, p=[arm.share for arm in mix.arms])]


def _alternation(mix: Mix) -> list[int]:
    """The arm of each period, which all prefixes share: of as many periods as there are arms each one, in random
    order."""
    random = np.random.default_rng(seed_of(mix.seed, "periods"))
    turns = -(-mix.periods // len(mix.arms))
    return [int(arm) for _ in range(turns) for arm in random.permutation(len(mix.arms))]
