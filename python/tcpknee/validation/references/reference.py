"""Results that were measured elsewhere, a CSV file of them: settings in the words of a scenario, and what came of them.

    # tcpknee reference 1
    # kernel = 6.12.117
    # hz = 250
    # set sender.gro = false
    suite,group,run,flow,duration,path.rate,flow.algorithm,goodput_bits_per_sec,srtt_us_p50,retransmit_pct
    algorithms,reno,1,0,30s,20Mbit/s,reno,19294000,64100,0.31

A row is one flow of one run. Flows 0, 1, … of a run stand in rows one after the other. Rows with the same settings
and different run numbers are runs of one cell. `# set` holds for every row. docs/results.md describes the format.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.errors import MOST_LISTED, ScenarioError, TcpkneeError
from tcpknee.human import suggest
from tcpknee.runs import compose
from tcpknee.say import printable
from tcpknee.writing import replacing

MAGIC = "tcpknee reference"
VERSION = 1

METRICS = ("goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct")
"""What is measured of a flow: payload per second after the warm-up; the median of the smoothed RTT after it; segments
sent again, of all that were sent in the whole run."""

LABELS = ("suite", "group", "run", "flow", "date", "scripts")
"""Columns that are neither a setting nor a metric."""

FACTS = ("kernel", "hz", "clock")
"""What a file must say of the host that it was measured on."""

OF_CELL = ("duration", "warmup", "kernel")
TABLES = ("path.", "sender.", "receiver.", "flow.")
"""Keys of a scenario that may be set."""

MOST_BYTES = 16 << 20


class ReferenceError(TcpkneeError):
    """A file of reference results that cannot be read."""


@dataclass(frozen=True)
class Row:
    """One flow of one run; `line` is the file's, 0 of a row that was not read."""

    labels: Mapping[str, str]
    settings: Mapping[str, str]
    metrics: Mapping[str, float | None]
    line: int = 0

    @property
    def flow(self) -> int:
        return int(self.labels["flow"])

    @property
    def run(self) -> int:
        return int(self.labels["run"])


@dataclass
class Cell:
    """Settings that were measured, with the rows of each run in the order of its flows."""

    suite: str
    group: str
    settings: dict[str, str]
    flows: tuple[dict[str, str], ...]
    runs: dict[int, list[Row]] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """Where the file has it first."""
        return min(row.line for rows in self.runs.values() for row in rows)

    @property
    def key(self) -> tuple[Any, ...]:
        return key_of(self.suite, self.settings, self.flows)


def key_of(suite: str, settings: Mapping[str, str], flows: Sequence[Mapping[str, str]]) -> tuple[Any, ...]:
    """What makes two cells the same."""
    return suite, tuple(sorted(settings.items())), tuple(tuple(sorted(flow.items())) for flow in flows)


@dataclass(frozen=True)
class Reference:
    """A file: what it says of its host, settings of every cell, and its rows."""

    file: str
    facts: dict[str, str]
    settings: dict[str, str]
    rows: list[Row]

    def cells(self) -> list[Cell]:
        """The rows by what was set, in the order of the file. Raises `ReferenceError`."""
        found: dict[tuple[Any, ...], Cell] = {}
        for rows in _of_runs(self.file, self.rows):
            shared = _shared(rows[0])
            flows = tuple({key: row.settings[key] for key in row.settings if key.startswith("flow.")} for row in rows)
            for row in rows[1:]:
                mine = _shared(row)
                other = next((key for key in {**shared, **mine} if mine.get(key) != shared.get(key)), None)
                if other is not None:
                    got, expected = (f'"{printable(of[other])}"' if other in of else "nothing" for of in (mine, shared))
                    raise ReferenceError(
                        f"{self.file}:{row.line}: {other}: got {got}; expected {expected}, as in line {rows[0].line}: "
                        "flows of a run share path and hosts."
                    )
            suite, group = rows[0].labels["suite"], rows[0].labels["group"]
            cell = Cell(suite, group, shared, flows)
            cell = found.setdefault(cell.key, cell)
            run = rows[0].run
            if run in cell.runs:
                raise ReferenceError(
                    f"{self.file}:{rows[0].line}: got run {run} of a cell a second time; expected another number, or "
                    f"other settings than those of line {cell.runs[run][0].line}."
                )
            cell.runs[run] = rows
        return list(found.values())

    def scenario(self, cell: Cell, *, repeat: int) -> str:
        """Writes the cell as a scenario of the simulator. A row overrides `# set`."""
        hz = self.facts["hz"]
        settings = {"sender.hz": hz, "receiver.hz": hz}
        settings |= {key: value for key, value in self.settings.items() if not key.startswith("flow.")}
        of_flows = {key: value for key, value in self.settings.items() if key.startswith("flow.")}
        return scenario({**settings, **cell.settings}, [{**of_flows, **flow} for flow in cell.flows], repeat=repeat)

    def parsed(self, cell: Cell, *, repeat: int = 1) -> _core.Scenario:
        """Parses that scenario. Raises `ReferenceError` that names the line of the file."""
        try:
            found = _core.parse(self.scenario(cell, repeat=repeat), "cell")
        except ScenarioError as error:
            said = "\n".join(f"{self.file}:{cell.line}: {key}: {text}" for _, key, text in error.mistakes)
            raise ReferenceError(said) from None
        if len(found.cells) != 1:
            raise ReferenceError(f"{self.file}:{cell.line}: got a list; expected one value for each setting.")
        return found


def scenario(settings: Mapping[str, str], flows: Iterable[Mapping[str, str]], *, repeat: int = 1) -> str:
    """Writes a scenario from dotted keys."""
    nested: dict[str, Any] = {"repeat": repeat}
    for key, value in settings.items():
        head, _, rest = key.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = _value(value)
        else:
            nested[head] = _value(value)
    nested["flow"] = [
        {"name": f"flow_{i}", **{key.removeprefix("flow."): _value(value) for key, value in flow.items()}}
        for i, flow in enumerate(flows)
    ]
    return compose.toml(nested)


def _value(text: str) -> str | int | bool:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isascii() and text.isdecimal() else text


def _shared(row: Row) -> dict[str, str]:
    """Selects settings that are not the flow's own."""
    return {key: value for key, value in row.settings.items() if not key.startswith("flow.")}


def _of_runs(file: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Groups rows by run: each begins with flow 0."""
    runs: list[list[Row]] = []
    for row in rows:
        if row.flow == 0:
            runs.append([row])
        elif not runs or row.flow != len(runs[-1]) or row.run != runs[-1][0].run:
            raise ReferenceError(
                f"{file}:{row.line}: got flow {row.flow} of run {row.run}; expected the flows of a run in rows one "
                "after the other, from flow 0 on."
            )
        else:
            runs[-1].append(row)
    return runs


def read(path: Path) -> Reference:
    """Reads a file of reference results. Raises `ReferenceError`."""
    name = printable(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ReferenceError(f"{name}: got more than {MOST_BYTES >> 20} MiB; expected a file of reference results.")
        data = path.read_bytes()
    except OSError as error:
        raise ReferenceError(f"{name}: {error.strerror}. Expected a CSV file, as reference/ has them.") from None
    try:
        return parse(data.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ReferenceError(
            f"{name}:{line}: got the byte {data[error.start]:#04x}, which is not UTF-8; expected a CSV file in UTF-8."
        ) from None


def parse(text: str, file: str) -> Reference:
    """Parses the text of such a file. Raises `ReferenceError` with the line of each mistake."""
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if not lines[0].startswith(f"# {MAGIC} "):
        got = f'"{printable(lines[0][:60])}"' if text else "an empty file"
        raise ReferenceError(f'{file}:1: got {got}; expected "# {MAGIC} {VERSION}" (docs/results.md).')
    version = lines[0].removeprefix(f"# {MAGIC} ").strip()
    if version != str(VERSION):
        raise ReferenceError(
            f'{file}:1: got version "{printable(version[:20])}" of the format; expected {VERSION}. '
            "A newer tcpknee may read it."
        )
    head = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    facts, settings = _comments(lines[:head], file)
    if head == len(lines):
        raise ReferenceError(f"{file}:{head}: got no table; expected a line of column names and a row for each flow.")
    reader = csv.reader(io.StringIO("\n".join(lines[head:]) + "\n"), strict=True)
    mistakes: list[tuple[int, str]] = []
    rows: list[Row] = []
    try:
        names = _names(next(reader), f"{file}:{head + 1}")
        for fields in reader:
            line = head + reader.line_num
            if fields:
                try:
                    rows.append(_row(names, fields, line))
                except ValueError as error:
                    mistakes.append((line, str(error)))
    except csv.Error as error:
        mistakes.append((head + reader.line_num, f"got no CSV: {error}; expected fields with commas between them."))
    if not rows and not mistakes:
        mistakes.append((len(lines), "got no row; expected one for each flow of each run."))
    if mistakes:
        told = [f"{file}:{line}: {said}" for line, said in mistakes[:MOST_LISTED]]
        if len(mistakes) > len(told):
            told.append(f"{file}: only the first {MOST_LISTED} of {len(mistakes)} mistakes are listed.")
        raise ReferenceError("\n".join(told))
    return Reference(file, facts, settings, rows)


def _comments(lines: Sequence[str], file: str) -> tuple[dict[str, str], dict[str, str]]:
    """Reads `# NAME = VALUE` and `# set KEY = VALUE`; other comments are for people."""
    facts: dict[str, str] = {}
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, sign, value = (part.strip() for part in line.lstrip("#").partition("="))
        if not sign:
            continue
        into = settings if name.startswith("set ") else facts
        name = name.removeprefix("set ").strip()
        if name in into:
            raise ReferenceError(f"{file}:{number}: got {printable(name)} a second time; expected it once.")
        into[name] = value
    for name in FACTS:
        if not facts.get(name):
            raise ReferenceError(f'{file}:1: got no {name}; expected a line "# {name} = …" in the head of the file.')
    if facts["hz"] not in ("100", "250", "300", "1000"):
        raise ReferenceError(f'{file}:1: got hz "{printable(facts["hz"])}"; expected 100, 250, 300 or 1000.')
    return facts, settings


def _names(names: list[str], where: str) -> list[str]:
    """Reads the names of the columns. Each must be known and unique."""
    keys = {key["path"] for key in _core.keys()}  # noqa: SIM118  (a function of the module, not of a dict)
    known = [*LABELS, *METRICS, *sorted(key for key in keys if key.startswith(TABLES) or key in OF_CELL)]
    for name in names:
        # A parameter of an algorithm or a queue is no key of its own; the scenario's parser knows it.
        if name not in known and not name.startswith(("path.", "flow.")):
            said = suggest(name, known, "expected", [*LABELS, *METRICS, "or a key of a scenario such as path.rtt"])
            raise ReferenceError(f'{where}: got the column "{printable(name)}"; {said}')
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ReferenceError(f'{where}: got the column "{printable(twice)}" twice; expected it once.')
    missing = [name for name in (*METRICS, "flow.algorithm") if name not in names]
    if missing:
        raise ReferenceError(f"{where}: got no column {', '.join(missing)}; expected it beside the others.")
    return names


def _row(names: Sequence[str], fields: Sequence[str], line: int) -> Row:
    """Raises `ValueError` with a sentence."""
    if len(fields) != len(names):
        raise ValueError(f"got {len(fields)} fields; expected {len(names)}, one for each column.")
    given = {name: value.strip() for name, value in zip(names, fields, strict=True)}
    labels = {"suite": "results", "group": given["flow.algorithm"], "run": "1", "flow": "0"}
    labels |= {name: given[name] for name in LABELS if given.get(name)}
    for name in ("run", "flow"):
        if not (labels[name].isascii() and labels[name].isdecimal() and len(labels[name]) < 10):
            raise ValueError(f'{name}: got "{printable(labels[name])}"; expected a whole number.')
    settings = {name: value for name, value in given.items() if name not in (*LABELS, *METRICS) and value}
    return Row(labels, settings, {name: _metric(name, given[name]) for name in METRICS}, line)


def _metric(name: str, text: str) -> float | None:
    """Reads a number; None for an empty field. Raises `ValueError`."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (name == "retransmit_pct" and value > 100):
        raise ValueError(f'{name}: got "{printable(text)}"; expected a number that is not negative, or nothing.')
    return value


def text_of(reference: Reference) -> str:
    """Writes the text of a file, which `parse` reads back."""
    used = {key for row in reference.rows for key in row.settings}
    columns = sorted(used, key=_place)
    labels = [name for name in LABELS if any(name in row.labels for row in reference.rows)]
    out = io.StringIO()
    out.write(f"# {MAGIC} {VERSION}\n")
    for name, value in reference.facts.items():
        out.write(f"# {name} = {value}\n")
    for name, value in reference.settings.items():
        out.write(f"# set {name} = {value}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*labels, *columns, *METRICS])
    for row in reference.rows:
        writer.writerow(
            [
                *(row.labels.get(name, "") for name in labels),
                *(row.settings.get(name, "") for name in columns),
                *("" if row.metrics[name] is None else f"{row.metrics[name]:.6g}" for name in METRICS),
            ]
        )
    return out.getvalue()


_FIRST = ("duration", "warmup", "path.rate", "path.rtt", "path.buffer", "path.loss", "path.queue")


def _place(name: str) -> tuple[int, str]:
    """Orders columns for readers: the path, then hosts, then flows."""
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST) + name.startswith("flow."), name)


def write(reference: Reference, path: Path) -> None:
    """Replaces the file at once, so that no reader sees half of it."""
    with replacing(path, public=True) as part:
        part.write(text_of(reference).encode("utf-8"))
