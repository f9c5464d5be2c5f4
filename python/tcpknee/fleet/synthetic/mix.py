"""The mix that a fleet is made from: which clients there are, how many, and who gets which algorithm."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tcpknee import human
from tcpknee.errors import UsageError
from tcpknee.fleet.statistics import SEED_MAX

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DESIGNS = ("ab", "cluster", "switchback", "paired-link")

_DISTRIBUTIONS = ("uniform ", "loguniform ", "lognormal ")
_FOLDER = Path(__file__).parents[2] / "gallery" / "fleets"
_MOST_PREFIXES = 65_536
"""As many /24 networks as 10.0.0.0/8 has."""


@dataclass(frozen=True)
class Arm:
    """An arm of the experiment; `share` is of connections, prefixes or periods, by the design."""

    name: str
    algorithm: str
    share: float


@dataclass(frozen=True)
class Clients:
    """Clients of one kind: `settings` are keys of a scenario by their dotted names, each with its value, or with the
    distribution over prefixes that it is drawn from (`drawn`). Keys of `cross.` are those of a flow that other sites
    send to the same clients."""

    name: str
    share: float
    settings: Mapping[str, Any]
    drawn: Mapping[str, str]

    @property
    def has_cross(self) -> bool:
        """Does other traffic share their bottlenecks?"""
        return any(key.startswith("cross.") for key in (*self.settings, *self.drawn))


@dataclass(frozen=True)
class Mix:
    """`text` is the file; `duration` the length of each of `periods`, of which one begins `every` so often; `prefixes`
    are bottlenecks, each with many connections."""

    title: str
    file: str
    text: str
    seed: int
    prefixes: int
    periods: int
    duration: str
    every: str
    sample_interval: str
    hosts: int
    kernel: str
    design: str
    arms: Sequence[Arm]
    clients: Sequence[Clients]

    def changed(
        self,
        *,
        seed: int | None = None,
        prefixes: int | None = None,
        design: str | None = None,
        arms: Sequence[str] = (),
    ) -> Mix:
        """The same with other values. `arms`: ALGORITHM=SHARE each. Raises UsageError."""
        found = replace(
            self,
            seed=self.seed if seed is None else seed,
            prefixes=self.prefixes if prefixes is None else prefixes,
            design=self.design if design is None else design,
            arms=[_given_arm(text) for text in arms] if arms else self.arms,
        )
        _check(found)
        return found


def shipped() -> dict[str, Path]:
    """The mixes that come with tcpknee, by their names."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def read(mix: Path | str) -> Mix:
    """A mix by its name or its file. Raises UsageError."""
    path = shipped().get(str(mix), Path(mix))
    try:
        text = path.read_text(encoding="utf-8")
        return _read(tomllib.loads(text), str(path), text)
    except FileNotFoundError:
        said = human.suggest(str(mix), list(shipped()), "expected a file, or one of")
        raise UsageError(f"{path}: there is no such mix; {said}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"{path}: has tables or lists nested too deeply; expected a mix, which needs three.") from None


_KEYS: dict[str, tuple[type, Any]] = {
    "title": (str, ""),
    "seed": (int, 1),
    "prefixes": (int, None),
    "periods": (int, 1),
    "duration": (str, None),
    "every": (str, "0s"),
    "sample_interval": (str, "500ms"),
    "hosts": (int, 1),
    "kernel": (str, "6.18.0"),
    "design": (str, "cluster"),
    "arm": (list, None),
    "clients": (list, None),
}
"""Type and default of each key of the file; None: it is required."""


def _read(given: Mapping[str, Any], file: str, text: str) -> Mix:
    unknown = next((key for key in given if key not in _KEYS), None)
    if unknown is not None:
        raise UsageError(f'{file}: got the key "{unknown}"; {human.suggest(unknown, list(_KEYS), "expected one of")}')
    values: dict[str, Any] = {}
    for key, (kind, default) in _KEYS.items():
        value = given.get(key, default)
        if type(value) is not kind:
            got = "nothing" if value is None else repr(value)
            raise UsageError(f"{file}: {key}: got {got}; expected {_EXPECTED[kind]}.")
        values[key] = value
    for key in ("arm", "clients"):
        if not all(isinstance(entry, Mapping) for entry in values[key]):
            raise UsageError(f"{file}: {key}: got {values[key]!r}; expected {_EXPECTED[list]}.")
    arms = [_arm(entry, f"{file}: arm.{at}") for at, entry in enumerate(values.pop("arm"))]
    clients = [_clients(entry, f"{file}: clients.{at}") for at, entry in enumerate(values.pop("clients"))]
    found = Mix(file=file, text=text, arms=arms, clients=clients, **values)
    _check(found)
    return found


_EXPECTED = {str: "a text", int: "a whole number", list: "at least one [[table]] of that name"}


def _arm(entry: Mapping[str, Any], where: str) -> Arm:
    algorithm = entry.get("algorithm")
    if not isinstance(algorithm, str) or set(entry) - {"name", "algorithm", "share"}:
        raise UsageError(f'{where}: got {dict(entry)}; expected algorithm = "NAME", share = "50%", and maybe a name.')
    return Arm(str(entry.get("name", algorithm)), algorithm, _share(entry.get("share"), where))


def _given_arm(text: str) -> Arm:
    algorithm, _, share = text.partition("=")
    if not algorithm or not share:
        raise UsageError(f'--arm: got "{text}"; expected ALGORITHM=SHARE, as in bbr1=50%.')
    return Arm(algorithm, algorithm, _share(share, "--arm"))


def _clients(entry: Mapping[str, Any], where: str) -> Clients:
    name = entry.get("name")
    if not isinstance(name, str):
        raise UsageError(f"{where}: name: got {name!r}; expected a text.")
    flat = dict(_flat({key: value for key, value in entry.items() if key not in ("name", "share")}))
    if wrong := next((key for key in flat if "." not in key or key.partition(".")[0] in _KEYS), None):
        raise UsageError(
            f'{where}: got the key "{wrong}"; expected keys of a path and its flows, such as path.rate and flow.load. '
            "What holds for the whole fleet, such as duration, stands above the first [[table]]."
        )
    drawn = {
        key: value
        for key, value in flat.items()
        # Sizes are a distribution within each prefix and not over prefixes.
        if isinstance(value, str) and value.startswith(_DISTRIBUTIONS) and not key.endswith(".sizes")
    }
    settings = {key: value for key, value in flat.items() if key not in drawn}
    if "flow.load" not in flat:
        raise UsageError(f'{where}: flow.load: got nothing; expected what its connections ask for, as in "4Mbit/s".')
    if "cross.algorithm" not in flat and any(key.startswith("cross.") for key in flat):
        raise UsageError(f'{where}: cross.algorithm: got nothing; expected that of other traffic, as in "cubic".')
    return Clients(name, _share(entry.get("share"), where), settings, drawn)


def _flat(table: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in table.items():
        path = f"{above}{key}"
        found += _flat(value, f"{path}.") if isinstance(value, Mapping) else [(path, value)]
    return found


def _share(text: object, where: str) -> float:
    try:
        assert isinstance(text, str) and text.endswith("%")
        share = float(text[:-1]) / 100
        assert 0 < share <= 1
    except (AssertionError, ValueError):
        raise UsageError(f'{where}: share: got {text!r}; expected a share such as "25%", above 0 % to 100 %.') from None
    return share


def _check(mix: Mix) -> None:
    """Raises UsageError where values do not fit each other."""
    for what, shares in (("arm", mix.arms), ("clients", mix.clients)):
        total = sum(entry.share for entry in shares)
        if abs(total - 1) > 1e-6:
            raise UsageError(f"{mix.file}: {what}: got shares of {100 * total:g} % together; expected 100 %.")
        names = [entry.name for entry in shares]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(f'{mix.file}: {what}: got the name "{twice}" twice; expected another one.')
    if mix.design not in DESIGNS:
        said = human.suggest(mix.design, DESIGNS, "expected one of")
        raise UsageError(f'{mix.file}: design: got "{mix.design}"; {said}')
    for key, value, least, most in (
        ("seed", mix.seed, 0, SEED_MAX),
        ("prefixes", mix.prefixes, 1, _MOST_PREFIXES),
        ("periods", mix.periods, 1, 1_000_000),
        ("hosts", mix.hosts, 1, 10_000),
    ):
        if not least <= value <= most:
            raise UsageError(f"{mix.file}: {key}: got {value}; expected {least} to {most:,}.")
    if mix.design == "paired-link" and len(mix.arms) != 2:
        raise UsageError(f"{mix.file}: design: got paired-link and {len(mix.arms)} arms; expected two of them.")
    if mix.design == "switchback" and mix.periods < len(mix.arms):
        raise UsageError(
            f"{mix.file}: periods: got {mix.periods} with switchback and {len(mix.arms)} arms; expected no fewer."
        )
    if mix.design == "paired-link" and mix.prefixes % 2:
        raise UsageError(f"{mix.file}: prefixes: got {mix.prefixes} with paired-link; expected an even number.")
