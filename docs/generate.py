"""Writes the reference pages of docs/ from the registries, the Python functions of the importers, and the output that
README.md shows from a run: `make docs`;
with `--check` says whether they are stale.

A page is prose with parts between `<!-- generated: NAME -->` and `<!-- end -->`; only those parts are written here.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import of_doctor
from layout import code, table

import tcpknee
from tcpknee import _core
from tcpknee.cli import conform
from tcpknee.datasets.dataset import OF_TRACES
from tcpknee.evidence.metrics import METRICS, SIZES, TOTALS
from tcpknee.fleet import connections as fleet
from tcpknee.imports import IMPORTERS, Kind, Option
from tcpknee.live.prometheus import catalogue
from tcpknee.runs import columns as known
from tcpknee.runs import output, tables
from tcpknee.validation.claims import checks
from tcpknee.validation.claims.catalogue import ARTICLES, CLAIMS
from tcpknee.validation.claims.claim import ENGINES, Claim
from tcpknee.validation.references import beside, reference

DOCS = Path(__file__).resolve().parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def sentence(text: str) -> str:
    """The text with a capital first letter and nothing else changed."""
    return text[:1].upper() + text[1:]


def keys() -> str:
    """Every key of a scenario file, a table per section."""
    sections: dict[str, list[list[str]]] = {}
    for key in _core.keys():  # noqa: SIM118  (a function of the module, not of a dict)
        section, _, name = key["path"].rpartition(".")
        axis = "yes" if key["axis"] else ""
        row = [code(name), key["doc"], key["accepts"], key["default"], axis, key["source"]]
        sections.setdefault(section, []).append(row)
    titles = {name: f"`[[{name}]]`" for name in ("flow", "zip", "sample", "expect", "published")}
    titles[""] = "Top of the file"
    header = ["key", "meaning", "accepts", "default", "axis", "source of the default or definition"]
    parts = [f"### {titles.get(name, f'`[{name}]`')}\n\n{table(header, rows)}" for name, rows in sections.items()]
    return "\n".join(parts)


def columns() -> str:
    """Every column of every table, a section per table; which engine fills it, where not both do."""
    header = ["column", "type", "unit", "meaning", "source"]
    parts = []
    for name, listed in known.of_tables().items():
        rows = [[code(c["name"]), c["type"], c["unit"], c["doc"], c["source"]] for c in listed if "engine" not in c]
        text = f"## {name}\n\n"
        if name != "runs" and name not in tables.FROM_ENGINE["sim"]:
            text += "With `--engine kernel` only.\n\n"
        text += table(header, rows)
        further = [[code(c["name"]), c["type"], c["unit"], c["doc"], c["source"]] for c in listed if "engine" in c]
        if further:
            text += f"\nWith `--engine kernel` also:\n\n{table(header, further)}"
        parts.append(text)
    return "\n".join(parts)


HOW = {
    "sum": "sum over the flows",
    "mean": "mean over the flows",
    "min": "least of the flows",
    "percentile": "percentile of the transfers; those that are not complete are later than all that are",
    "count": "number of flows that have it",
    "pooled": "over all flows together",
}
UNITS = {
    "rate": "bit/s",
    "time": "us",
    "pct": "%",
    "share": "share of 1",
    "per_sec": "1/s",
    "segments": "segments",
    "ns": "ns",
}


def metrics_of_runs() -> str:
    """Every metric of a group and of a cell; those of transfers of one size once, with what they may end with."""
    header = ["metric", "unit", "column", "how the flows of a repetition are combined"]
    rows = [
        [code(prefix + metric.name), UNITS.get(metric.kind, ""), code(metric.column), HOW[metric.how]]
        for prefix, listed in (("", METRICS), ("total.", TOTALS))
        for metric in listed
        if not metric.sizes
    ]
    sizes = [[code(f"_{sizes.name}"), sizes.label] for sizes in SIZES]
    return table(header, rows) + "\n" + table(["ending", "transfers of"], sizes)


def written(tables: dict[str, list[dict[str, str]]]) -> str:
    """Every column of tables that the core names."""
    header = ["column", "type", "unit", "meaning", "source"]
    parts = []
    for name, listed in tables.items():
        rows = [[code(c["name"]), c["type"], c["unit"], c["doc"], c["source"]] for c in listed]
        parts.append(f"### {name}\n\n{table(header, rows)}")
    return "\n".join(parts)


def host_counters() -> str:
    """Every counter of the table `host_costs`."""
    rows = [[code(one["name"]), one["unit"], one["doc"]] for one in _core.profile_registry()["counters"]]
    return table(["counter", "unit", "meaning"], rows)


def algorithms() -> str:
    """Every algorithm: what it is, when to use it, its parameters."""
    parts = []
    for item in _core.algorithms():
        text = f"## {item['name']}\n\n{sentence(item['summary'])} ({item['year']}).\n\n"
        text += f"Use when: {item['use_when']}.\n\nSource: {item['source']}\n"
        parts.append(text + head_of(item["name"]) + parameters(item))
    return "\n".join(parts)


def head_of(name: str) -> str:
    """What an algorithm's file says in its head: idea, equations, and where it differs from its source."""
    comment = (DOCS.parent / "cc" / f"{name}.c").read_text(encoding="utf-8").split("/*\n", 1)[1].split("*/", 1)[0]
    lines = [line.removeprefix(" *").removeprefix(" ") for line in comment.splitlines()]
    title, body = lines[0], "\n".join(lines[1:]).expandtabs(8)
    idea, rest = body.split("\nEquations", 1)
    equations, rest = rest.split("\nSource: ", 1)
    _, differs = rest.split("\nDiffers from source:\n", 1)
    text = f"\n{sentence(title.split(' - ', 1)[1])}\n{idea.rstrip()}\n\n"
    text += f"```text\nEquations{equations.rstrip()}\n```\n\n"
    return text + f"Differs from source:\n\n{textwrap.dedent(differs).rstrip()}\n"


def parameters(item: dict[str, Any]) -> str:
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
    """Every queue: what it does, and its parameters."""
    parts = []
    for item in _core.queues():
        text = f"## {item['name']}\n\n{sentence(item['summary'])}.\n\nSource: {item['source']}\n"
        parts.append(text + parameters(item))
    return "\n".join(parts)


def impairments() -> str:
    """Every impairment: what it does, to which packets, its keys, and whether netem carries it."""
    rows = []
    for item in _core.impairments():
        packets = "data and ACKs" if item["both_ways"] else "data"
        keys = ", ".join(code(key) for key in item["keys"])
        rows.append(
            [code(item["name"]), item["summary"], packets, keys, code(item["netem"] or "") or "no", item["source"]]
        )
    return table(["name", "what it does", "to", "keys", "netem", "source"], rows)


def metrics() -> str:
    """Every metric of `knee export --prometheus`."""
    parts = (
        ("counter", "`algorithm`", (*catalogue.TCP_COUNTERS, catalogue.TCP_CLOSED)),
        ("counter", "`algorithm`, `limit`", (catalogue.TCP_LIMITED,)),
        ("gauge", "`algorithm`", (catalogue.TCP_CONNECTIONS,)),
        ("histogram", "`algorithm`", catalogue.TCP_HISTOGRAMS),
        ("counter", "", catalogue.HOST_COUNTERS),
        ("gauge", "", catalogue.HOST_GAUGES),
        ("counter", "`device`, `kind`", catalogue.QDISC_COUNTERS),
        ("gauge", "`device`, `kind`", catalogue.QDISC_GAUGES),
        ("counter", "", catalogue.SAMPLING_COUNTERS),
        ("gauge", "", catalogue.SAMPLING_GAUGES),
        ("counter", "`mode`", (catalogue.SAMPLING_CPU,)),
        ("gauge", "`version`, `kernel`", (catalogue.BUILD_INFO,)),
    )
    rows = [
        [code(metric.name + ("_total" if kind == "counter" else "")), kind, labels, metric.help]
        for kind, labels, listed in parts
        for metric in listed
    ]
    return table(["metric", "type", "labels", "meaning"], rows)


def imports() -> str:
    """Every importer: what it reads, by which options, into which tables, and what its report counts."""
    return "\n".join(map(_importer, IMPORTERS.values()))


def _importer(kind: Kind) -> str:
    tables = [[code(one.name), one.rows] for one in kind.tables]
    parts = [
        f"## {kind.name}: {kind.summary.rstrip('.')}",
        "```\n" + "\n".join(kind.examples) + "\n```",
        kind.page.strip(),
        table(["table", "rows"], tables).rstrip(),
    ]
    if kind.options:
        rows = [[code(f"--{one.name} {one.metavar}".rstrip()), one.help, code(one.default)] for one in kind.options]
        parts.append(table(["option", "meaning", "default"], rows).rstrip())
    ours = [[code(one.name), one.doc] for one in kind.counts]
    if ours:
        parts.append("Its report counts besides:\n\n" + table(["count", "of what"], ours).rstrip())
    short = ", ".join(code(one.short) for one in kind.tables)
    gives = f"a tuple of `pyarrow.Table`s: {short}" if len(kind.tables) > 1 else "a `pyarrow.Table`"
    parts.append(f"From Python: `tcpknee.{kind.function}(files)` returns {gives}.")
    own = {one.name: list(one.columns) for one in kind.tables if not one.recorded}
    parts += [written(own).strip()] if own else []
    return "\n\n".join(parts) + "\n"


def functions() -> str:
    """The module of the importers' Python functions."""
    own = [_results(kind) for kind in IMPORTERS.values() if len(kind.tables) > 1]
    return "\n\n\n".join([HEAD, *own, *map(_function, IMPORTERS.values())]) + "\n"


HEAD = '''"""A function for each importer, written by docs/generate.py from crates/import/src/: change that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .reading import Files, read

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow'''


def _results(kind: Kind) -> str:
    lines = [f"    {one.short}: pyarrow.Table" for one in kind.tables]
    return "\n".join([f"class {_class(kind)}(NamedTuple):", f'    """Tables of `{kind.function}`."""', "", *lines])


def _class(kind: Kind) -> str:
    return "".join(word.capitalize() for word in kind.name.split("-"))


TYPES = {"text": "str", "file": "Path | str", "time": "str", "choice": "str", "flag": "bool"}


def _function(kind: Kind) -> str:
    gives = _class(kind) if len(kind.tables) > 1 else "pyarrow.Table"
    taken = [f"    {one.name}: {_typed(one)}," for one in kind.options]
    about = [*kind.about.split("\n\n"), *(f"`{one.name}`: {one.help}" for one in kind.options)]
    common = "`files`, `strict`, `anonymize` and what is raised are those of `tcpknee.imports.read`."
    told = "\n\n".join(textwrap.fill(text, 112, break_on_hyphens=False) for text in [*about, common])
    passed = ["strict=strict", "anonymize=anonymize", *(f"{one.name}={one.name}" for one in kind.options)]
    lines = [
        f"def {kind.function}(",
        "    files: Files,",
        "    *,",
        *taken,
        "    strict: bool = False,",
        "    anonymize: str | None = None,",
        f") -> {gives}:",
        textwrap.indent(f'"""{told}\n"""', "    "),
        "    tables = read(",
        f'        "{kind.name}",',
        "        files,",
        *(f"        {one}," for one in passed),
        "    )",
        f"    return {gives}(*tables)" if len(kind.tables) > 1 else "    return tables[0]",
    ]
    return "\n".join(lines)


def _typed(option: Option) -> str:
    if option.takes == "flag":
        return "bool = False"
    if option.default:
        return f'{TYPES[option.takes]} = "{option.default}"'
    return f"{TYPES[option.takes]} | None = None"


def names(module: str) -> str:
    """The package's module with the names of the importers' functions."""
    listed = sorted(kind.function for kind in IMPORTERS.values())
    module = re.sub(r'(    "import_\w+",\n)+', "".join(f'    "{name}",\n' for name in listed), module)
    return re.sub(r"(        import_\w+,\n)+", "".join(f"        {name},\n" for name in listed), module)


def kinds(items: list[dict[str, object]]) -> str:
    last = "source" if "source" in items[0] else "keys"
    rows = []
    for item in items:
        end = ", ".join(code(key) for key in item["keys"]) if last == "keys" else str(item["source"])  # type: ignore[attr-defined]
        rows.append([code(item["name"]), str(item["summary"]), end])
    return table(["name", "what it does", last], rows)


def demo() -> str:
    """What `make demo` prints of its run, which is the same on every machine."""
    run = tcpknee.run(DOCS.parent / "gallery" / "demo.toml")
    return f"```text\n{chr(10).join(output.lines(run))}\n```\n"


def claims() -> str:
    """A table of the verdicts, then a section for each claim. What came of them stands in claims.json."""
    stored = json.loads((DOCS / "claims.json").read_text(encoding="utf-8"))
    results = {claim.id: stored.get(claim.id, {"results": []})["results"] for claim in CLAIMS}
    parts = []
    for letter, title in ARTICLES.items():
        rows = [_claim_row(claim, results[claim.id]) for claim in CLAIMS if claim.article == letter]
        header = ["claim", "must hold", "article", "ours", "verdict"]
        parts.append(f"### Article {letter}: {title}\n\n{table(header, rows)}")
    parts += [_claim_section(claim, results[claim.id]) for claim in CLAIMS]
    return "\n".join(parts)


def _claim_row(claim: Claim, results: list[dict[str, Any]]) -> list[str]:
    ours = "; ".join(f"{label} {text}" for label, text in results[0]["ours"]) if results else ""
    return [
        f"[`{claim.id}`](#{claim.id.replace('.', '')})",
        claim.shape,
        claim.figure or "-",
        ours or "-",
        _verdicts(results),
    ]


def _verdicts(results: list[dict[str, Any]]) -> str:
    """`reproduced (seeds 1, 2)`, or what each run gave where they differ."""
    told: dict[str, list[str]] = {}
    for one in results:
        told.setdefault(one["verdict"], []).append(_form(one))
    return "; ".join(f"**{verdict}** ({', '.join(forms)})" for verdict, forms in told.items()) or "not run yet"


def _form(result: dict[str, Any]) -> str:
    """How it was run."""
    seed = f"seed {result['seed']}" if result["engine"] == "sim" else ENGINES["kernel"]
    return f"{seed}, short form" if result["quick"] else seed


def _claim_section(claim: Claim, results: list[dict[str, Any]]) -> str:
    lines = [f"### {claim.id}", "", f"{sentence(claim.claim)}.", ""]
    if claim.has_scenario:
        lines.append(f"- scenario: [gallery/{claim.id}.toml](../gallery/{claim.id}.toml)")
    if claim.on_kernel:
        file = f"gallery/kernel/{claim.id}.toml"
        lines.append(f"- on a kernel: [{file}](../{file})")
    if claim.check is not None:
        file = f"python/tcpknee/validation/claims/checks/{checks.file_of(claim.check).name}"
        lines.append(f"- check: [{file}](../{file})")
    lines.append(f"- runs on: {' and '.join(ENGINES[name] for name in claim.engines)}")
    lines.append(f"- must hold: {claim.shape}")
    lines.append(f"- the article: {claim.figure or 'no figure'}")
    for one in results:
        lines += ["", f"{sentence(_form(one))}: **{one['verdict']}**", ""]
        lines += [f"- ours: {label} {text}" for label, text in one["ours"]]
        lines += [f"- {said['verdict']}: {said['assert']} ({said['detail']})" for said in one["found"]]
        lines += [f"- published {beside}" for beside in one["published"]]
    if claim.limits:
        lines += ["", claim.limits]
    if claim.on_kernel and claim.on_kernel.limits:
        lines += ["", f"On a kernel: {claim.on_kernel.limits}"]
    return "\n".join(lines) + "\n"


def _compared(file: str) -> list[beside.Beside]:
    """A file of reference/ beside what is kept of the simulator for it."""
    measured = reference.read(DOCS.parent / "reference" / file)
    cells = measured.cells()
    return beside.compare(cells, beside.kept(cells, reference.read(DOCS.parent / "reference" / "simulated" / file)))


def against_linux(file: str, suite: str) -> str:
    """How far the simulator is from a kernel, a row for each group of a suite; then the cells that are outside."""
    compared = [entry for entry in _compared(file) if entry.suite == suite]
    head, *rows = beside.table(beside.groups(compared)[suite])
    text = table(head, rows)
    outside = beside.outside(compared)
    if outside:
        header = ["outside", "metric", "Linux", "simulator"]
        text += "\n" + table(header, [_outside(entry) for entry in outside])
    return text


def _outside(entry: beside.Beside) -> list[str]:
    sides = [conform.value(entry.metric, side) for side in (entry.kernel, entry.sim)]
    # A group is often called as its only algorithm is.
    named = entry.label if entry.label.startswith(f"{entry.group} ") else f"{entry.group}: {entry.label}"
    return [named, code(entry.metric), *sides]


def fleet_tables() -> str:
    """The tables of a fleet, with the columns of each."""
    header = ["column", "type", "unit", "meaning"]
    listed = {"connections": fleet.COLUMNS, "hosts": fleet.HOSTS, "assignments": fleet.ASSIGNMENTS}
    parts = []
    for name, columns in listed.items():
        rows = [[code(one.name), one.type.lower(), one.unit, one.doc] for one in columns]
        parts.append(f"### {name}\n\n{table(header, rows)}")
    return "\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "claims": claims,
    "doctor_rules": of_doctor.rules,
    "doctor_measured": of_doctor.measured,
    "snapshot_tables": of_doctor.snapshot_tables,
    "demo": demo,
    "keys": keys,
    "columns": columns,
    "metrics_of_runs": metrics_of_runs,
    "linux_612_algorithms": lambda: against_linux("linux-6.12.csv", "algorithms"),
    "linux_612_queues": lambda: against_linux("linux-6.12.csv", "queues"),
    "linux_612_two_flows": lambda: against_linux("linux-6.12-two-flows.csv", "two-flows"),
    "imports": imports,
    "record": lambda: written(_core.record_tables()),
    "fleet": fleet_tables,
    "trace": lambda: written({name: _core.trace_tables()[columns] for name, columns in OF_TRACES.items()}),
    "profile": lambda: written(_core.profile_registry()["tables"]),
    "host_counters": host_counters,
    "algorithms": algorithms,
    "queues": queues,
    "metrics": metrics,
    "losses": lambda: kinds(_core.losses()),
    "impairments": impairments,
    "workloads": lambda: kinds(_core.workloads()),
    "sizes": lambda: kinds(_core.sizes()),
}


def generated(page: str) -> str:
    """The page with its generated parts as they should be."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n{part[3]}", page)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    pages: dict[Path, Callable[[str], str]]
    pages = dict.fromkeys([DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], generated)
    package = DOCS.parent / "python" / "tcpknee"
    pages |= {package / "imports" / "functions.py": lambda _: functions(), package / "__init__.py": names}
    for path, make in pages.items():
        page = path.read_text(encoding="utf-8") if path.exists() else ""
        wanted = make(page)
        if page != wanted:
            stale.append(str(path.relative_to(DOCS.parent)))
            if not check:
                path.write_text(wanted, encoding="utf-8")
    if stale and check:
        print(f"stale: {', '.join(stale)}. Run `make docs`.", file=sys.stderr)
        return 1
    for name in stale:
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
