"""Suites: rows of scenarios with the question of each, what is measured, and what is asked of it. Data only.

    [suite]
    name   = "rfc9743"
    title  = "The criteria of RFC 9743"
    source = "RFC 9743 (BCP 133), 2025"
    date   = "2026-11-27"

    [[row]]
    name     = "loss"
    section  = "5.1.3"
    question = "Does it keep the loss that it causes low?"
    measure  = "new.goodput"
    better   = "more"
    limits   = ["new.retransmit_pct <= 5%"]
    scenario = '''
    duration = "20s"
    ...
    [[flow]]
    name = "new"
    algorithm = "NEW"
    '''

A scenario is in the ordinary language, as text or as the name of a file beside the suite; NEW stands in it for the
algorithm under test and BASE for the one that it is measured against. It runs with both, `run` "new", with BASE in the
place of NEW, "base", and where a row asks for harm also without the flows of NEW, "alone". Expressions are those of
`[[expect]]`; a term is of the run "new" unless its index picks another, as in `old[run="alone"].goodput`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpknee import reading
from tcpknee.errors import ScenarioError, UsageError
from tcpknee.evidence import expressions
from tcpknee.human import suggest
from tcpknee.runs import api

FOLDER = Path(__file__).parents[1] / "suites"

TOLERANCE = "10%"
"""How far from a single published figure ours may be, where a row says nothing else. It is ours: nobody prints one."""

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_SUITE = {"name": str, "title": str, "source": str, "date": str}
_ROW = {
    "name": str,
    "question": str,
    "section": str,
    "must": bool,
    "scenario": str,
    "measure": str,
    "better": str,
    "margin": str,
    "limits": list,
    "why": str,
    "harm": str,
    "stress": bool,
    "prose": str,
    "not_tested": str,
    "published": list,
}
_PUBLISHED = {"value": str, "figure": (str, list), "tolerance": str, "source": str, "second_hand": bool, "note": str}
_KINDS = {str: "a text in quotes", bool: "true or false", list: "a list", (str, list): "a text, or a list of two"}


@dataclass(frozen=True)
class Published:
    """A value that others printed: `figure`, or what lies between its two. Around a single one is a `tolerance`, which
    is ours. `second_hand`: read elsewhere than in the source. `note`: why ours is another, if it is."""

    value: str
    figure: tuple[str, ...]
    source: str
    tolerance: str
    second_hand: bool
    note: str
    line: int

    @property
    def assertion(self) -> str:
        """That ours is in the range."""
        if len(self.figure) == 2:
            return f"{self.figure[0]} <= {self.value} <= {self.figure[1]}"
        share = float(self.tolerance.rstrip("% ")) / 100
        return f"{1 - share:g} * {self.figure[0]} <= {self.value} <= {1 + share:g} * {self.figure[0]}"


@dataclass(frozen=True)
class Row:
    """A question of a suite. `measure` is what the two algorithms are compared in, `better` which of it ("more",
    "less"), `margin` what share of it is no difference, `limits` what must hold, `why` the reason of these thresholds,
    which are ours, `harm` the flow whose harm is told. `stress`: it never decides alone. `prose` and `not_tested` are
    reasons why no machine judges it. `line` is that of the row, `scenario_line` that of its scenario's text."""

    name: str
    question: str
    section: str
    must: bool
    scenario: str
    measure: str
    better: str
    margin: float
    limits: tuple[str, ...]
    why: str
    harm: str
    stress: bool
    prose: str
    not_tested: str
    published: tuple[Published, ...]
    line: int

    @property
    def uses_new(self) -> bool:
        """Is there an algorithm under test in it?"""
        return '"NEW"' in self.scenario


@dataclass(frozen=True)
class Suite:
    """`file` is where it was read."""

    name: str
    title: str
    source: str
    date: str
    rows: tuple[Row, ...]
    file: Path


def names() -> list[str]:
    """Those that come with tcpknee, sorted."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def find(word: str) -> Suite:
    """A suite by its name, or by its file. Raises `UsageError`, `ScenarioError`."""
    if "/" in word or word.endswith(".toml"):
        return load(Path(word))
    if word not in names():
        raise UsageError(f'suite: got "{word}"; ' + suggest(word, names(), "expected a file or one of"))
    return load(FOLDER / f"{word}.toml")


def load(path: Path) -> Suite:
    """Raises `ScenarioError` with all mistakes, a line for each."""
    text, file = api.read_scenario(path)
    try:
        parsed = reading.toml(text)
    except ValueError as error:
        found = re.search(r"line (\d+)", str(error))
        raise ScenarioError.of(
            file, [(int(found[1]) if found else 1, "", f"{error}. Expected a suite in TOML")]
        ) from None
    return _Reader(path, file, _lines(text)).suite(parsed)


def _lines(text: str) -> Mapping[tuple[str, int, str], int]:
    """The line of each key by its table, which of these it is, and its name; of a table itself with "". What stands in
    texts of several lines is no key."""
    found: dict[tuple[str, int, str], int] = {}
    counted: dict[str, int] = {}
    table, quote = "", ""
    for number, line in enumerate(text.split("\n"), start=1):
        rest = line
        if not quote:
            if header := _HEADER.match(line):
                table = header[2]
                counted[table] = counted.get(table, -1) + 1
                found[table, counted[table], ""] = number
            elif key := _KEY.match(line):
                found.setdefault((table, counted.get(table, 0), key[1]), number)
        # Which text of several lines is open at the end of this one?
        for mark in re.findall(r"'''|\"\"\"", rest):
            quote = "" if quote == mark else quote or mark
    return found


class _Reader:
    """Reads the tables of one file, and gathers its mistakes."""

    def __init__(self, path: Path, file: str, lines: Mapping[tuple[str, int, str], int]) -> None:
        self.path, self.file, self.lines = path, file, lines
        self.mistakes: list[tuple[int, str, str]] = []

    def suite(self, parsed: Mapping[str, Any]) -> Suite:
        for name in parsed:
            if name not in ("suite", "row"):
                at = (name, 0, "") if (name, 0, "") in self.lines else ("", 0, name)
                self._mistake(at, name, "is no key of a suite; expected the tables [suite] and [[row]]")
        about = self._table("suite", 0, parsed.get("suite"), _SUITE, needed=("name", "title", "source", "date"))
        rows, place = [], 0
        tables = parsed.get("row")
        for number, table in enumerate(tables if isinstance(tables, list) else []):
            entries = table.get("published", ()) if isinstance(table, dict) else ()
            rows.append(self._row(number, table, place))
            place += len(entries) if isinstance(entries, list) else 0
        if not rows:
            self._mistake(("row", 0, ""), "row", "got none; expected one [[row]] or more")
        seen: set[str] = set()
        for number, row in enumerate(rows):
            if row.name in seen:
                self._mistake(("row", number, "name"), "name", f'got "{row.name}" again; expected a name of its own')
            seen.add(row.name)
        if self.mistakes:
            raise ScenarioError.of(self.file, self.mistakes)
        return Suite(about["name"], about["title"], about["source"], about["date"], tuple(rows), self.path)

    def _row(self, number: int, table: Any, place: int) -> Row:
        got = self._table("row", number, table, _ROW, needed=("name", "question"))
        where = ("row", number)
        if got.get("name") and not _NAME.fullmatch(got["name"]):
            self._mistake(
                (*where, "name"), "name", f'got "{got["name"]}"; expected lower-case letters, digits, - and .'
            )
        reasons = [key for key in ("scenario", "prose", "not_tested") if key in got]
        if len(reasons) != 1:
            self._mistake(
                (*where, ""),
                f'row "{got.get("name", number + 1)}"',
                f"got {' and '.join(reasons) or 'none of them'}; expected one of scenario, prose and not_tested",
            )
        if ("measure" in got) != ("better" in got) or got.get("better", "more") not in ("more", "less"):
            self._mistake((*where, "better"), "better", 'expected "more" or "less", with the measure that it is of')
        if got.get("limits") and not got.get("why"):
            self._mistake((*where, "limits"), "why", "got none; expected the reason of the limits")
        if not all(isinstance(one, str) for one in got.get("limits", ())):
            self._mistake((*where, "limits"), "limits", "expected assertions as texts, as an [[expect]] has")
            got["limits"] = []
        for limit in got.get("limits", ()):
            self._expression((*where, "limits"), "limits", limit, expressions.parse)
        if "measure" in got:
            self._expression((*where, "measure"), "measure", got["measure"], expressions.parse_value)
        published = tuple(self._published(place + at, entry) for at, entry in enumerate(got.get("published", ())))
        return Row(
            name=got.get("name", ""),
            question=got.get("question", ""),
            section=got.get("section", ""),
            must=got.get("must", False),
            scenario=self._scenario(number, got.get("scenario", "")),
            measure=got.get("measure", ""),
            better=got.get("better", ""),
            margin=self._margin(number, got.get("margin", "5%")),
            limits=tuple(got.get("limits", ())),
            why=got.get("why", ""),
            harm=got.get("harm", ""),
            stress=got.get("stress", False),
            prose=got.get("prose", ""),
            not_tested=got.get("not_tested", ""),
            published=published,
            line=self._line((*where, "")),
        )

    def _published(self, number: int, table: Any) -> Published:
        where = ("row.published", number)
        got = self._table(*where, table, _PUBLISHED, needed=("value", "figure", "source"))
        figure = got.get("figure", "")
        figures = tuple(figure) if isinstance(figure, list) else (figure,)
        if isinstance(figure, list) and (len(figure) != 2 or not all(isinstance(one, str) for one in figure)):
            self._mistake((*where, "figure"), "figure", 'expected "10.5Mbit/s", or what is between two: ["9%", "12%"]')
        elif "figure" in got:
            read = [self._expression((*where, "figure"), "figure", one, expressions.parse_figure) for one in figures]
            sizes = [float(one.quantity.values[0]) for one in read if one is not None]
            if len(sizes) == 2 and sizes[0] > sizes[1]:
                said = f'got ["{figures[0]}", "{figures[1]}"]; expected the lower one first'
                self._mistake((*where, "figure"), "figure", said)
        if "value" in got:
            self._expression((*where, "value"), "value", got["value"], expressions.parse_value)
        if "tolerance" in got and len(figures) == 2:
            said = "got it beside two figures; expected none, as they bound the range"
            self._mistake((*where, "tolerance"), "tolerance", said)
        elif "tolerance" in got:
            self._share((*where, "tolerance"), "tolerance", got["tolerance"])
        return Published(
            value=got.get("value", ""),
            figure=figures,
            source=got.get("source", ""),
            tolerance=got.get("tolerance", TOLERANCE),
            second_hand=got.get("second_hand", False),
            note=got.get("note", ""),
            line=self._line((*where, "value")),
        )

    def _scenario(self, number: int, text: str) -> str:
        """The text itself, or that of the file beside the suite."""
        if "\n" in text or not text:
            return text
        if "/" in text or not text.endswith(".toml"):
            said = f'got "{text}"; expected the text of a scenario, or the name of a file beside the suite'
            self._mistake(("row", number, "scenario"), "scenario", said)
            return ""
        try:
            return api.read_scenario(self.path.parent / text)[0]
        except ScenarioError as error:
            self._mistake(("row", number, "scenario"), "scenario", str(error))
            return ""

    def _table(
        self, name: str, number: int, table: Any, keys: Mapping[str, Any], needed: Sequence[str]
    ) -> dict[str, Any]:
        """The keys of a table that are of their kind."""
        if not isinstance(table, dict):
            self._mistake((name, number, ""), name, f"got none; expected a table [{name}]")
            return {}
        for key, value in table.items():
            if key not in keys:
                self._mistake((name, number, key), key, "is no key of it; " + suggest(key, [*keys], "expected one of"))
            elif not isinstance(value, keys[key]):
                self._mistake((name, number, key), key, f"expected {_KINDS[keys[key]]}")
        for key in needed:
            if not table.get(key):
                self._mistake((name, number, ""), key, f"got none; expected it in each [{name}]")
        return {key: value for key, value in table.items() if key in keys and isinstance(value, keys[key])}

    def _margin(self, number: int, text: str) -> float:
        found = self._share(("row", number, "margin"), "margin", text)
        if found >= 1:
            self._mistake(("row", number, "margin"), "margin", f'got "{text}"; expected less than 100%')
        return min(found, 0.99)

    def _share(self, where: tuple[str, int, str], key: str, text: str) -> float:
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?%", text)
        if not found:
            self._mistake(where, key, f'got "{text}"; expected a percentage such as "5%"')
        return float(found[1]) / 100 if found else 0.0

    def _expression(self, where: tuple[str, int, str], key: str, text: str, parse: Any) -> Any:
        """What was read; None: it was no good."""
        try:
            return parse(text)
        except expressions.Problem as problem:
            self._mistake(where, key, str(problem))
            return None

    def _line(self, where: tuple[str, int, str]) -> int:
        table, number, _ = where
        return self.lines.get(where) or self.lines.get((table, number, "")) or 1

    def _mistake(self, where: tuple[str, int, str], key: str, said: str) -> None:
        self.mistakes.append((self._line(where), key, said if said.endswith((".", "?")) else f"{said}."))


def put(text: str, new: str, base: str) -> str:
    """The scenario with algorithms in the places of NEW and BASE, which are written as TOML has them."""
    return text.replace('"NEW"', new).replace('"BASE"', base)


def without_new(text: str) -> str:
    """The scenario without the flows of the algorithm under test, which stand behind the others."""
    return "\n".join(block for block in _blocks(text) if not (block.startswith("[[flow]]") and '"NEW"' in block))


def _blocks(text: str) -> Iterator[str]:
    """Its tables, each with its header; first what stands before them."""
    block: list[str] = []
    for line in text.split("\n"):
        if _HEADER.match(line):
            yield "\n".join(block)
            block = [line.strip()]
        else:
            block.append(line)
    yield "\n".join(block)
