"""Reading and computing the expressions of scenarios: a recursive-descent parser, and quantities with dimensions.

assertion  = chain { "and" chain }
chain      = sum OP sum [ OP sum ]            OP: <  <=  >  >=  ==
sum        = product { (+|-) product }
product    = factor { (*|/) factor }
factor     = NUMBER [UNIT] | "(" sum ")" | "-" factor | term
term       = NAME [ "[" AXIS "=" VALUE { "," AXIS "=" VALUE } "]" ] "." METRIC
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from . import metrics, stats

Floats = npt.NDArray[np.float64]


class Problem(Exception):
    """What is wrong with an assertion, without file and line."""


@dataclass(frozen=True)
class Quantity:
    """A value per unit of evidence (or one for all) in base units, with its dimension as powers of bit and second.

    `percent` marks what was written or is named as a percentage: a bare number beside it is refused, as 3 could mean
    3 or 300 %. `measured` is what comes of a run, `quotient` one measured quantity over another of its kind, or that
    times a number. `bounds` is what a metric can be.
    """

    values: Floats
    bits: int = 0
    seconds: int = 0
    percent: bool = False
    bare: bool = False
    measured: bool = False
    quotient: bool = False
    bounds: tuple[float, float] = stats.UNBOUNDED

    @staticmethod
    def of_metric(kind: str, values: Floats) -> Quantity:
        """A metric's values, from the unit of its column."""
        bounds = (0.0, 1.0 if kind in ("pct", "share", "index") else float("inf"))
        found = Quantity(values, measured=True, bounds=bounds)
        if kind == "rate":
            return replace(found, bits=1, seconds=-1)
        if kind == "time":
            return replace(found, values=values / 1e6, seconds=1)
        if kind == "per_sec":
            return replace(found, seconds=-1)
        if kind == "pct":
            return replace(found, values=values / 100, percent=True)
        return found

    @property
    def is_ratio(self) -> bool:
        """Is it written as verdicts are? A percentage is averaged like a ratio, and written as a percentage."""
        return self.quotient and not self.percent and stats.ratio(self.values) is not None

    def estimate(self) -> stats.Estimate | None:
        """The quantity over the units, as verdicts have it: a quotient as `stats.ratio`."""
        return (stats.ratio(self.values) if self.quotient else None) or stats.estimate(self.values, self.bounds)

    def display(self) -> tuple[str, float]:
        """The kind of `human.scale` and the factor to its base unit; ("", 1) for plain numbers."""
        if self.percent:
            return "pct", 100.0
        kinds = {(1, -1): ("rate", 1.0), (0, 1): ("time", 1e6), (1, 0): ("bytes", 0.125), (0, -1): ("per_sec", 1.0)}
        return kinds.get((self.bits, self.seconds), ("", 1.0))

    @property
    def _never_below_0(self) -> bool:
        return bool(self.bounds[0] >= 0 if self.measured else np.all(self.values >= 0))

    def _bounds_with(self, other: Quantity) -> tuple[float, float]:
        """What a sum, a product or a quotient with it can be."""
        return (0.0, float("inf")) if self._never_below_0 and other._never_below_0 else stats.UNBOUNDED

    def minus(self, other: Quantity) -> Quantity:
        return self._alike(other, self.values - other.values, "compared with")

    def plus(self, other: Quantity, sign: int) -> Quantity:
        word = "added to" if sign > 0 else "subtracted with"
        found = self._alike(other, self.values + sign * other.values, word)
        return replace(found, bounds=self._bounds_with(other)) if sign > 0 else found

    def times(self, other: Quantity) -> Quantity:
        return Quantity(
            self.values * other.values,
            self.bits + other.bits,
            self.seconds + other.seconds,
            percent=(self.percent and other.bare) or (other.percent and self.bare),
            bare=self.bare and other.bare,
            measured=self.measured or other.measured,
            quotient=(self.quotient and not other.measured) or (other.quotient and not self.measured),
            bounds=self._bounds_with(other),
        )

    def over(self, other: Quantity) -> Quantity:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.values / other.values
        # x / 0 has no value in that unit.
        ratio = np.where(np.isfinite(ratio), ratio, np.nan)
        bounds = self._bounds_with(other)
        return Quantity(
            ratio,
            self.bits - other.bits,
            self.seconds - other.seconds,
            percent=self.percent and other.bare,
            bare=self.bare and other.bare,
            measured=self.measured or other.measured,
            # Of what may be below 0, as a difference may, logarithms have no mean.
            quotient=bounds[0] >= 0
            and (
                (self.measured and other.measured and (self.bits, self.seconds) == (other.bits, other.seconds))
                or (self.quotient and not other.measured)
                or (other.quotient and not self.measured)
            ),
            bounds=bounds,
        )

    def negative(self) -> Quantity:
        return replace(self, values=-self.values, quotient=False, bounds=(-self.bounds[1], -self.bounds[0]))

    def _alike(self, other: Quantity, values: Floats, word: str) -> Quantity:
        zero = any(side.bare and not np.any(side.values) for side in (self, other))
        if (self.bits, self.seconds) != (other.bits, other.seconds) and not zero:
            raise Problem(f"{self.unit()} cannot be {word} {other.unit()}; write the unit (50Mbit/s, 20ms, 1.5%, 1MB)")
        if not zero and ((self.percent and other.bare) or (other.percent and self.bare)):
            raise Problem(f"a percentage cannot be {word} a bare number; write the sign (1.5%)")
        larger = other if zero and self.bare else self
        percent = self.percent or (other.percent and (self.bits, self.seconds) == (0, 0))
        measured = self.measured or other.measured
        return Quantity(values, larger.bits, larger.seconds, percent, self.bare and other.bare, measured)

    def unit(self) -> str:
        """For messages."""
        names = {
            (1, -1): "a rate",
            (0, 1): "a time",
            (1, 0): "an amount of data",
            (0, -1): "a number per second",
            (0, 0): "a percentage" if self.percent else "a bare number" if self.bare else "a number",
        }
        return names.get((self.bits, self.seconds), f"bit^{self.bits} s^{self.seconds}")


@dataclass(frozen=True)
class Term:
    """`NAME[AXIS="VALUE"].METRIC`."""

    name: str
    index: tuple[tuple[str, str], ...]
    metric: str

    def __str__(self) -> str:
        index = ", ".join(f'{key}="{value}"' for key, value in self.index)
        return f"{self.name}[{index}].{self.metric}" if index else f"{self.name}.{self.metric}"

    def value(self, values: Mapping[Term, Quantity]) -> Quantity:
        return values[self]


Place = Mapping[str, str]
"""A value for each axis that terms leave open."""


class Meanings(Protocol):
    """What terms mean: the groups of flows in a run's cells, or the cohorts of a fleet. Its methods raise `Problem`."""

    @property
    def unit(self) -> stats.Unit:
        """What a term has a value in each of."""

    def places(self, terms: Sequence[Term]) -> Sequence[Place]:
        """Every combination of the values of axes that some term leaves open."""

    def find(self, term: Term, place: Place) -> Hashable:
        """Which group a term means there."""

    def values(self, term: Term, place: Place) -> Quantity:
        """The term's value there in each unit, NaN where it has none."""


@dataclass(frozen=True)
class Number:
    """A number with its unit."""

    quantity: Quantity = field(compare=False)

    def value(self, values: Mapping[Term, Quantity]) -> Quantity:
        return self.quantity


@dataclass(frozen=True)
class Operation:
    """Two operands and + - * /, or one and a minus sign."""

    operator: str
    left: Node
    right: Node | None

    def value(self, values: Mapping[Term, Quantity]) -> Quantity:
        left = self.left.value(values)
        if self.right is None:
            return left.negative()
        right = self.right.value(values)
        if self.operator in "+-":
            return left.plus(right, 1 if self.operator == "+" else -1)
        return left.times(right) if self.operator == "*" else left.over(right)


Node = Term | Number | Operation


@dataclass(frozen=True)
class Chain:
    """One comparison."""

    left: Node
    operator: str
    right: Node

    def right_is_constant(self) -> bool:
        """Is it the left side that is a plain number, so that the right side is what is shown?"""
        return not terms_in(self.left) and bool(terms_in(self.right))


@dataclass(frozen=True)
class Figure:
    """A quantity that somebody printed: its number as printed, and one of the unit it was printed in."""

    number: str
    unit: str
    one: Quantity

    @property
    def quantity(self) -> Quantity:
        return replace(self.one, values=self.one.values * float(self.number))


def parse(assertion: str) -> list[Chain]:
    """The comparisons of an assertion, all of which must hold. Raises `Problem`."""
    reader = _Reader(assertion)
    chains = reader.assertion()
    if not terms_of(chains):
        raise Problem(
            f'got "{assertion}", which names no flow; expected something like bbr1.goodput >= 2 * cubic.goodput'
        )
    return chains


def parse_value(text: str) -> Node:
    """One side of a comparison by itself. Raises `Problem`."""
    reader = _Reader(text)
    node = reader.value()
    if not terms_in(node):
        raise Problem(f'got "{text}", which names no flow; expected something like bbr1.goodput / cubic.goodput')
    return node


def parse_figure(text: str) -> Figure:
    """A number with its unit, or a bare ratio, as the parser of scenarios has let it pass."""
    match = _FIGURE.fullmatch(text)
    if match is None or match["unit"] not in ("", *_UNITS):
        raise Problem(f'got the figure "{text}"; expected a number with one of the units {", ".join(_UNITS)}')
    one = _UNITS.get(match["unit"], Quantity(np.ones(1), bare=True))
    return Figure(match["number"], match["unit"], one)


def terms_of(chains: Sequence[Chain]) -> list[Term]:
    """Every term, once."""
    found = [term for chain in chains for side in (chain.left, chain.right) for term in _terms(side)]
    return list(dict.fromkeys(found))


def terms_in(node: Node) -> list[Term]:
    """Every term of an expression, once."""
    return list(dict.fromkeys(_terms(node)))


def _terms(node: Node | None) -> Iterator[Term]:
    if isinstance(node, Term):
        yield node
    elif isinstance(node, Operation):
        yield from _terms(node.left)
        yield from _terms(node.right)


def check_dimensions(chains: Sequence[Chain]) -> None:
    """Computes once with ones, which refuses rates compared with times before anything runs. Raises `Problem`."""
    for chain in chains:
        dimension(chain.left).minus(dimension(chain.right))


def dimension(node: Node) -> Quantity:
    """The expression computed with ones for its terms, whose metrics are known ones. Raises `Problem`."""
    return node.value({term: Quantity.of_metric(kind_of(term), np.ones(1)) for term in terms_in(node)})


def kind_of(term: Term) -> str:
    """The kind of the term's metric, which is a known one; shares of time have no metric of their own."""
    name = metrics.ALIASES.get(term.metric, term.metric)
    return metrics.BY_NAME[name].kind if name in metrics.BY_NAME else "share"


_UNITS: dict[str, Quantity] = {
    **{
        f"{prefix}bit/s": Quantity(np.array([factor]), bits=1, seconds=-1)
        for prefix, factor in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
    },
    **{
        unit: Quantity(np.array([factor]), seconds=1)
        for unit, factor in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0))
    },
    **{
        unit: Quantity(np.array([8.0 * factor]), bits=1)
        for unit, factor in (
            ("B", 1),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        )
    },
    "/s": Quantity(np.array([1.0]), seconds=-1),
    "%": Quantity(np.array([0.01]), percent=True),
}

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<unit>[kMGT]?bit/s\b|[A-Za-z]+\b|%|/s\b)?"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    r'|"(?P<text>[^"]*)"'
    r"|(?P<mark><=|>=|==|[<>+\-*/()\[\].,=])"
    r"|(?P<end>$))"
)

_FIGURE = re.compile(r"(?P<number>\d+(?:\.\d+)?) *(?P<unit>\D*)")

_DOTTED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)")

_COMPARISONS = ("<", "<=", ">", ">=", "==")


class _Reader:
    """Recursive descent over tokens; every refusal shows where it stood."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.token = self._next()

    def assertion(self) -> list[Chain]:
        chains = self._chain()
        while self._is("name", "and"):
            self._step()
            chains += self._chain()
        if self.token["end"] is None:
            raise self._refuse("an operator or the end")
        return chains

    def value(self) -> Node:
        node = self._sum()
        if self.token["end"] is None:
            raise self._refuse("an arithmetic sign (+ - * /) or the end")
        return node

    def _chain(self) -> list[Chain]:
        sides, operators = [self._sum()], []
        while (self.token["mark"] or "") in _COMPARISONS:
            operators.append(self._step()["mark"] or "")
            sides.append(self._sum())
        if not operators:
            raise self._refuse("a comparison (< <= > >= ==)")
        return [Chain(sides[i], operator, sides[i + 1]) for i, operator in enumerate(operators)]

    def _sum(self) -> Node:
        node = self._product()
        while self._is("mark", "+") or self._is("mark", "-"):
            node = Operation(self._step()["mark"] or "", node, self._product())
        return node

    def _product(self) -> Node:
        node = self._factor()
        while self._is("mark", "*") or self._is("mark", "/"):
            node = Operation(self._step()["mark"] or "", node, self._factor())
        return node

    def _factor(self) -> Node:
        self.depth += 1
        if self.depth > 50:
            raise Problem("nested more than 50 deep; write it with fewer parentheses")
        try:
            if self.token["number"]:
                return self._number()
            if self._is("mark", "-"):
                self._step()
                return Operation("-", self._factor(), None)
            if self._is("mark", "("):
                self._step()
                node = self._sum()
                self._take(")")
                return node
            if self.token["name"] and self.token["name"] != "and":
                return self._term()
            raise self._refuse("a number, a flow's metric or a parenthesis")
        finally:
            self.depth -= 1

    def _number(self) -> Number:
        token = self._step()
        value, unit = float(token["number"] or 0), token["unit"]
        if not unit:
            return Number(Quantity(np.array([value]), bare=True))
        if unit not in _UNITS:
            raise Problem(f'got the unit "{unit}" in {token["number"]}{unit}; expected one of {", ".join(_UNITS)}')
        one = _UNITS[unit]
        return Number(Quantity(one.values * value, one.bits, one.seconds, one.percent))

    def _term(self) -> Term:
        name = self._step()["name"] or ""
        index: list[tuple[str, str]] = []
        if self._is("mark", "["):
            self._step()
            while True:
                index.append(self._axis())
                if not self._is("mark", ","):
                    break
                self._step()
            self._take("]")
        self._take(".")
        return Term(name, tuple(index), self._dotted("a metric, as in bbr1.goodput"))

    def _axis(self) -> tuple[str, str]:
        key = self._dotted('an axis, as in [path.loss="1.5%"]')
        self._take("=")
        if self.token["text"] is None:
            raise self._refuse('a value in quotes, as in [path.loss="1.5%"]')
        return key, self._step()["text"] or ""

    def _dotted(self, expected: str) -> str:
        """Names joined by dots, read from the text itself: `flow.0.algorithm` is no number."""
        match = _DOTTED.match(self.text, self.start)
        if match is None:
            raise self._refuse(expected)
        self.place = match.end()
        self.token = self._next()
        return match[1]

    def _is(self, kind: str, text: str) -> bool:
        return self.token[kind] == text

    def _take(self, mark: str) -> None:
        if not self._is("mark", mark):
            raise self._refuse(f'"{mark}"')
        self._step()

    def _step(self) -> dict[str, str | None]:
        token, self.token = self.token, self._next()
        return token

    def _next(self) -> dict[str, str | None]:
        self.start = self.place
        match = _TOKEN.match(self.text, self.place)
        if match is None:
            raise Problem(
                f'got "{self.text[self.place :].strip()[:20]}" in "{self.text}"; expected a name, a number or a sign'
            )
        self.place = match.end()
        return match.groupdict()

    def _refuse(self, expected: str) -> Problem:
        rest = self.text[self.start :].strip()
        got = f'"{rest[:20]}"' if rest else "the end"
        return Problem(f'got {got} in "{self.text}"; expected {expected}')
