"""The reference pages: made from the registries by `make docs`, and kept nowhere in the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import commands
from layout import code, sentence, table

from tcpknee import _core, algorithms
from tcpknee.cli import registries
from tcpknee.doctor.measure import comparison
from tcpknee.doctor.render import manual
from tcpknee.doctor.rules import GROUPS, RULES
from tcpknee.doctor.rules.rule import Rule
from tcpknee.doctor.snapshot.tables import TABLES as OF_SNAPSHOTS
from tcpknee.imports import IMPORTERS, Kind
from tcpknee.pages import palette
from tcpknee.runs import tables
from tcpknee.validation.conformance.text import value
from tcpknee.validation.references import beside, reference

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Page:
    """A page of `reference/`. `links` of it are written as from docs/."""

    title: str
    text: str


def pages() -> dict[str, Page]:
    """Every reference page by its name, which is its path below `reference/` without the ending."""
    found = {"commands": Page("Commands", commands.index())}
    found |= {name: Page(title, text) for name, (title, text) in commands.pages().items()}
    found |= {
        "keys": Page("Keys of a scenario file", sections()),
        "losses": Page("Losses", kinds(_core.losses())),
        "impairments": Page("Impairments", impairments()),
        "workloads": Page("Workloads", kinds(_core.workloads())),
        "sizes": Page("Distributions of sizes", kinds(_core.sizes())),
        "queues": Page("Queues", queues()),
        "metrics": Page("Metrics of a run", metrics()),
        "counters": Page("Counters of `knee profile`", counters()),
        "prometheus": Page("Metrics for Prometheus", prometheus()),
        "rules": Page("Rules of the doctor", rules()),
    }
    found |= {
        f"against-linux/{name}": Page(title, suite(file, of_file)) for name, (file, of_file, title) in SUITES.items()
    }
    found |= {f"keys/{_file(name)}": Page(_section(name), keys(name, listed)) for name, listed in _sections().items()}
    found |= {f"queues/{one['name']}": Page(one["name"], queue(one)) for one in _core.queues()}
    found |= {f"rules/{one.name}": Page(one.name, rule(one)) for one in RULES}
    for verb, title in TITLES.items():
        listed = registries.tables()[verb]
        found[f"tables/{verb}"] = Page(title, tables_of(verb, listed))
        found |= {f"tables/{verb}/{name}": Page(f"Table {name}", columns(verb, name, listed[name])) for name in listed}
    found["against-linux/by-version"] = Page("Cells within, by version of Linux", by_version())
    found |= {f"algorithms/{one['name']}": Page(one["name"], algorithm(one)) for one in _core.algorithms()}
    return found | {
        f"imports/{kind.name}": Page(f"knee import {kind.name}", importer(kind)) for kind in IMPORTERS.values()
    }


TITLES = {
    "run": "Tables of a run",
    "record": "Tables of `knee record`",
    "import": "Tables of `knee import`",
    "trace": "Tables of `knee trace`",
    "profile": "Tables of `knee profile`",
    "fleet": "Tables of `knee fleet`",
    "snapshot": "Tables of `knee snapshot`",
}


Key = Mapping[str, Any]


def _sections() -> dict[str, list[Key]]:
    """The keys of each section of a scenario file, in its order; "" is the top of the file."""
    found: dict[str, list[Key]] = {}
    for key in _core.keys():  # noqa: SIM118  (a function of the module, not of a dict)
        found.setdefault(key["path"].rpartition(".")[0], []).append(key)
    return found


LISTS = ("flow", "zip", "sample", "expect", "published")
"""Sections that a file may have several of."""


def _section(name: str) -> str:
    return f"Section {name}" if name else "Top of the file"


def _file(section: str) -> str:
    """The name of a section's page."""
    return section or "top"


def sections() -> str:
    """Every section of a scenario file, with the names of its keys."""
    rows = [
        [
            f"[{code(_file(name))}](reference/keys/{_file(name)}.md)",
            ", ".join(code(key["path"].rpartition(".")[2]) for key in listed),
        ]
        for name, listed in _sections().items()
    ]
    return table(["section", "keys"], rows)


def keys(section: str, listed: Iterable[Key]) -> str:
    """Every key of a section, below its line in the file."""
    head = f"```toml\n{f'[[{section}]]' if section in LISTS else f'[{section}]'}\n```\n\n" if section else ""
    rows = [
        [
            code(key["path"].rpartition(".")[2]),
            key["doc"],
            key["accepts"],
            key["default"],
            "yes" if key["axis"] else "",
            key["engines"],
            key["source"],
        ]
        for key in listed
    ]
    columns = ["key", "meaning", "accepts", "default", "axis", "engines", "source of the default or definition"]
    return head + table(columns, rows)


def tables_of(verb: str, listed: Mapping[str, Iterable[Mapping[str, str]]]) -> str:
    """Every table that a verb writes, with the names of its columns."""
    rows = [
        [f"[`{name}`](reference/tables/{verb}/{name}.md)", ", ".join(code(one["name"]) for one in columns)]
        for name, columns in listed.items()
    ]
    return table(["table", "columns"], rows)


def columns(verb: str, name: str, listed: Iterable[Mapping[str, str]]) -> str:
    """Every column of a table. Those that only a kernel fills stand apart."""
    header = ["column", "type", "unit", "meaning", "source"]
    if verb == "snapshot":
        # All columns of a table have one source, which stands above them.
        header.remove("source")

    def rows(of_kernel: bool) -> list[list[str]]:
        return [
            [code(one["name"]), one["type"], one["unit"], one["doc"], one["source"]][: len(header)]
            for one in listed
            if ("engine" in one) == of_kernel
        ]

    text = ""
    if verb == "snapshot":
        text = f"{OF_SNAPSHOTS[name].doc} From: {OF_SNAPSHOTS[name].source}.\n\n"
    if verb == "run" and name != "runs" and name not in tables.FROM_ENGINE["sim"]:
        text = "With `--engine kernel` only.\n\n"
    text += table(header, rows(of_kernel=False))
    further = rows(of_kernel=True)
    return text + (f"\nWith `--engine kernel` also:\n\n{table(header, further)}" if further else "")


def metrics() -> str:
    """Every metric of a group and of a cell; those of transfers of one size once, with what they may end with."""
    rows = [[code(one["name"]), one["unit"], one["summary"]] for one in registries.metrics()]
    return table(["metric", "unit", "how the flows of a repetition are combined, and of which column"], rows)


def counters() -> str:
    """Every counter of the table `host_costs`."""
    rows = [[code(one["name"]), one["unit"], one["summary"]] for one in registries.counters()]
    return table(["counter", "unit", "meaning"], rows)


def prometheus() -> str:
    """Every metric of `knee export --prometheus`."""
    rows = [
        [code(one["name"]), one["type"], ", ".join(map(code, one["labels"])), one["summary"]]
        for one in registries.prometheus()
    ]
    return table(["metric", "type", "labels", "meaning"], rows)


def algorithm(item: Mapping[str, Any]) -> str:
    """An algorithm: what it is, when to use it, its parameters."""
    text = f"{sentence(item['summary'])} ({item['year']}).\n\n"
    text += f"Use when: {item['use_when']}.\n\nSource: {item['source']}\n\n"
    kind, family = look(item["name"])
    text += f'Family: <span class="family {kind}">{family}</span>\n\n'
    text += f"File: [cc/{item['name']}.c](../cc/{item['name']}.c)\n"
    manual = algorithms.manual(item["name"])
    text += f"\n{sentence(manual['title'])}\n\n{manual['idea']}\n\n```text\n{manual['equations']}\n```\n\n"
    return text + f"Differs from source:\n\n{manual['differs']}\n" + parameters(item)


def look(name: str) -> tuple[str, str]:
    """The class of an algorithm's family in the style sheet of the site, and what its family is called."""
    family = palette.KNOWN[name] % len(palette.COLOURS)
    return f"family-{family}", list(palette.FAMILIES)[family]


def parameters(item: Mapping[str, Any]) -> str:
    """The parameters of an algorithm or a queue, as a scenario writes them."""
    if not item["params"]:
        return ""
    header = ["parameter", "default", "least", "most", "meaning"]
    rows = []
    for param in item["params"]:
        counted = f" (counted in {param['unit']})" if param["unit"] else ""
        meaning = "; ".join(text for text in (param["doc"] + counted, param["source"]) if text)
        written = [code(param[field]) for field in ("default", "min", "max")]
        rows.append([code(f"{item['name']}.{param['name']}"), *written, meaning])
    return "\n" + table(header, rows)


def queues() -> str:
    """Every queue, with the names of its parameters."""
    rows = [
        [
            f"[`{one['name']}`](reference/queues/{one['name']}.md)",
            one["summary"],
            ", ".join(code(p["name"]) for p in one["params"]),
        ]
        for one in _core.queues()
    ]
    return table(["queue", "what it does", "parameters"], rows)


def queue(item: Mapping[str, Any]) -> str:
    """A queue: what it does, and its parameters."""
    return f"{sentence(item['summary'])}.\n\nSource: {item['source']}\n{parameters(item)}"


def impairments() -> str:
    """Every impairment: what it does, to which packets, its keys, and whether netem carries it."""
    rows = []
    for item in _core.impairments():
        packets = "data and ACKs" if item["both_ways"] else "data"
        written = ", ".join(code(key) for key in item["keys"])
        rows.append(
            [code(item["name"]), item["summary"], packets, written, code(item["netem"] or "") or "no", item["source"]]
        )
    return table(["name", "what it does", "to", "keys", "netem", "source"], rows)


def kinds(items: list[dict[str, Any]]) -> str:
    """What a registry lists: each with its source, or with its keys."""
    last = "source" if "source" in items[0] else "keys"
    rows = []
    for item in items:
        end = ", ".join(code(key) for key in item["keys"]) if last == "keys" else str(item["source"])
        rows.append([code(item["name"]), str(item["summary"]), end])
    return table(["name", "what it does", last], rows)


def rules() -> str:
    """Every rule of the doctor, a section per group."""
    parts = []
    for group, title in GROUPS.items():
        rows = [[f"[`{one.name}`](reference/rules/{one.name}.md)", one.summary] for one in RULES if one.group == group]
        parts.append(f"## {title}\n\n{table(['rule', 'what is wrong'], rows)}")
    return "\n".join(parts)


def rule(one: Rule) -> str:
    """A rule's manual, what `--measure` compares for it, and its source."""
    parts = [f"{sentence(one.summary)}.", *(f"**{name}**: {text}" for name, text in manual(one).items())]
    return (
        "\n\n".join([*parts, f"**What `--measure` compares**: {comparison(one.name)}", f"Source: {one.source}"]) + "\n"
    )


def importer(kind: Kind) -> str:
    """What an importer reads, by which options, into which tables, and what its report counts."""
    tables = [[code(one.name), one.rows] for one in kind.tables]
    parts = [
        kind.summary,
        "```\n" + "\n".join(kind.examples) + "\n```",
        kind.page.strip(),
        table(["table", "rows"], tables).rstrip(),
    ]
    if kind.options:
        rows = [[code(f"--{one.name} {one.metavar}".rstrip()), one.help, code(one.default)] for one in kind.options]
        parts.append(table(["option", "meaning", "default"], rows).rstrip())
    ours = [[code(one.name), one.doc] for one in kind.counts]
    if ours:
        parts.append("Its report counts besides:\n\n" + table(["count", "what is counted"], ours).rstrip())
    short = ", ".join(code(one.short) for one in kind.tables)
    gives = f"a tuple of `pyarrow.Table`s: {short}" if len(kind.tables) > 1 else "a `pyarrow.Table`"
    parts.append("Columns: [tables of `knee import`](reference/tables/import.md).")
    parts.append(f"From Python: `tcpknee.{kind.function}(files)` returns {gives}.")
    return "\n\n".join(parts) + "\n"


SUITES = {
    "algorithms": ("linux-6.12.csv", "algorithms", "Every algorithm beside Linux 6.12"),
    "queues": ("linux-6.12.csv", "queues", "Every queue beside Linux 6.12"),
    "two-flows": ("linux-6.12-two-flows.csv", "two-flows", "Two flows beside Linux 6.12"),
    "algorithms-7.2": ("linux-7.2.csv", "algorithms", "Every algorithm beside Linux 7.2"),
    "queues-7.2": ("linux-7.2.csv", "queues", "Every queue beside Linux 7.2"),
    "marks": ("linux-7.2-ecn.csv", "marks", "ECN, classic and accurate, beside Linux 7.2"),
    "transfers": ("linux-7.2-transfers.csv", "transfers", "Short transfers beside Linux 7.2"),
    "timeouts": ("linux-7.2-timers.csv", "timeouts", "What only a timer finds, beside Linux 7.2"),
    "windows": ("linux-7.2-timers.csv", "windows", "Small receive windows beside Linux 7.2"),
    "reordering": ("linux-7.2-impairments.csv", "reordering", "Packets that overtake others, beside Linux 7.2"),
    "bursts": ("linux-7.2-impairments.csv", "bursts", "Losses in bursts beside Linux 7.2"),
    "pairs": ("linux-7.2-pairs.csv", "pairs", "Two flows as distributions beside Linux 7.2"),
}
"""The file, the suite in it, and the title of each page."""


def suite(file: str, name: str) -> str:
    """A row for each group of a suite; then the cells that are outside."""
    chosen = [entry for entry in compared(file) if entry.suite == name]
    head, *rows = beside.table(beside.groups(chosen)[name])
    text = table(head, rows)
    outside = beside.outside(chosen)
    if outside:
        header = ["outside", "metric", "Linux", "simulator", "difference [95 %]"]
        text += "\n" + table(header, [_outside(entry) for entry in outside])
    return text


def by_version() -> str:
    """How many cells of each suite are within, by the version of the kernel that was measured."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for path in sorted((ROOT / "reference").glob("*.csv")):
        version = ".".join(reference.read(path).facts["kernel"].split(".")[:2])
        for name, groups in beside.groups(compared(path.name)).items():
            entries = [entry for group in groups.values() for entry in group]
            cells = {entry.cell for entry in entries}
            outside = {entry.cell for entry in beside.outside(entries)}
            found.setdefault(name, {})[version] = (len(cells - outside), len(cells))
    versions = sorted({version for of in found.values() for version in of}, key=lambda v: [*map(int, v.split("."))])
    rows = [
        [name, *("{} of {}".format(*of[version]) if version in of else "" for version in versions)]
        for name, of in found.items()
    ]
    return table(["suite", *versions], rows)


@cache
def compared(file: str) -> Sequence[beside.Beside]:
    """A file of reference/ beside what is kept of the simulator for it."""
    measured = reference.read(ROOT / "reference" / file)
    cells = measured.cells()
    return beside.compare(cells, beside.kept(cells, reference.read(ROOT / "reference" / "simulated" / file)))


def _outside(entry: beside.Beside) -> list[str]:
    sides = [value(entry.metric, side) for side in (entry.kernel, entry.sim)]
    # A group is often called as its only algorithm is.
    named = entry.label if entry.label.startswith(f"{entry.group} ") else f"{entry.group}: {entry.label}"
    return [named, code(entry.metric), *sides, beside.difference(entry)]


GROUPED: dict[str, Callable[[str], bool]] = {
    "Commands": lambda name: name.startswith("commands"),
    "Algorithms": lambda name: name.startswith("algorithms/"),
    "Queues": lambda name: name.startswith("queues"),
    "Scenario file": lambda name: name.startswith("keys"),
    "Scenarios": lambda name: name in ("losses", "impairments", "workloads", "sizes", "metrics"),
    "Rules of the doctor": lambda name: name.startswith("rules"),
    "Tables": lambda name: name.startswith("tables/"),
    "Live hosts": lambda name: name in ("counters", "prometheus"),
    "Importers": lambda name: name.startswith("imports/"),
    "Results": lambda name: name.startswith("against-linux/"),
}
"""Headings of the index, and the pages below each."""
