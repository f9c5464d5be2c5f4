"""Writes what is generated and kept in the repository: the tables of algorithms, queues and verdicts, the output that
README.md shows from a run, and the Python functions of the importers. With `--check` says whether they are stale.

A page is prose with parts between `<!-- generated: NAME -->` and `<!-- end -->`; only those parts are written here.
Reference pages are not kept: `make docs` builds them (build.py, reference.py).
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gallery
from layout import table

import tcpknee
from tcpknee import _core
from tcpknee.imports import IMPORTERS, Kind, Option
from tcpknee.runs import compose, output
from tcpknee.validation.claims import judging, verdicts
from tcpknee.validation.claims.catalogue import ARTICLES, CLAIMS
from tcpknee.validation.claims.claim import Claim

DOCS = Path(__file__).resolve().parent
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _printed(run: tcpknee.Run) -> str:
    return f"```text\n{chr(10).join(output.lines(run))}\n```\n"


def demo() -> str:
    """What `make demo` prints of its run, which is the same on every machine."""
    run = tcpknee.run(DOCS.parent / "gallery" / "demo.toml")
    return _printed(run)


def asked() -> str:
    """What the guide's first command prints: the table and the verdicts."""
    path = {"rate": "200Mbit/s", "rtt": "100ms", "loss": "1.5%", "buffer": "1bdp"}
    run = tcpknee.run(compose.comparison(("cubic", "reno", "bbr1"), **path))
    return _printed(run)


def algorithms(built: bool) -> str:
    """A line for each algorithm."""
    rows = [
        [f"[{one['name']}]({_of_algorithm(one, built)})", str(one["year"]), one["summary"], one["use_when"]]
        for one in _core.algorithms()
    ]
    return table(["algorithm", "year", "what it is", "use it"], rows)


def _of_algorithm(one: Mapping[str, Any], built: bool) -> str:
    """Its reference page in the built pages, and its file elsewhere."""
    return f"reference/algorithms/{one['name']}.md" if built else f"../cc/{one['name']}.c"


def queues(built: bool) -> str:
    """A line for each queue."""
    rows = [
        [
            f"[{one['name']}]({_of_queue(one, built)})",
            one["summary"],
            ", ".join(f"`{p['name']}`" for p in one["params"]),
        ]
        for one in _core.queues()
    ]
    return table(["queue", "what it does", "parameters"], rows)


def _of_queue(one: Mapping[str, Any], built: bool) -> str:
    """As of an algorithm. A queue's file is a folder where it is long."""
    if built:
        return f"reference/queues/{one['name']}.md"
    folder = "../crates/path/src/queue"
    files = (f"{folder}/{one['name']}{ending}" for ending in (".rs", ""))
    return next((file for file in files if (DOCS / file).exists()), folder)


def claims(built: bool) -> str:
    """A table of the verdicts for each article. What came of each claim stands in verdicts.json."""
    results = verdicts.results()
    parts = []
    for letter, title in ARTICLES.items():
        rows = [_claim_row(claim, results[claim.id], built) for claim in CLAIMS if claim.article == letter]
        header = ["claim", "must hold", "article", "ours", "verdict"]
        why = "".join(_whys(claim, results[claim.id]) for claim in CLAIMS if claim.article == letter)
        parts.append(f"### Article {letter}: {title}\n\n{table(header, rows)}{why and chr(10) + why}")
    return "\n".join(parts)


def _claim_row(claim: Claim, results: list[dict[str, Any]], built: bool) -> list[str]:
    ours = "; ".join(f"{label} {text}" for label, text in results[0]["ours"]) if results else ""
    told = "; ".join(f"**{verdict}** ({forms})" for verdict, forms in verdicts.by_verdict(results).items())
    page = f"gallery/{claim.id}.md" if built else f"../{gallery.sources_of(claim)[0][1]}"
    return [f"[`{claim.id}`]({page})", claim.shape, claim.figure or "-", ours or "-", told or "not run yet"]


def _whys(claim: Claim, results: list[dict[str, Any]]) -> str:
    """A line for each reason of a verdict that is not "reproduced", with the forms that have it."""
    forms: dict[tuple[str, str], list[str]] = {}
    for one in results:
        why = judging.reason(claim, one["engine"], one["verdict"], one["needed"])
        if why:
            forms.setdefault((one["verdict"], why), []).append(verdicts.form(one))
    return "".join(f"- `{claim.id}`, {verdict} ({', '.join(told)}): {why}\n" for (verdict, why), told in forms.items())


def learning(kind: str) -> str:
    """A line for each thing that an environment for learners has of that kind."""
    columns = {
        "fields": {"field": "name", "unit": "unit", "meaning": "doc"},
        "controls": {"action": "name", "unit": "unit", "from": "low", "to": "high", "meaning": "doc"},
        "rewards": {"reward": "name", "formula": "formula", "source": "source"},
        "truth": {"name": "name", "unit": "unit", "meaning": "doc"},
    }[kind]

    def cell(one: Mapping[str, Any], key: str) -> str:
        value = one[key]
        return f"`{value}`" if key in ("name", "formula") else f"{value:g}" if isinstance(value, float) else str(value)

    rows = [[cell(one, key) for key in columns.values()] for one in _core.learner_registry()[kind]]
    return table(list(columns), rows)


def objectives() -> str:
    from tcpknee.redteam.objectives import EVERY

    rows = [f"| {one.name} | {one.threshold} |" for one in EVERY]
    return "\n".join(["| objective | threshold |", "|---|---|", *rows])


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


PARTS: dict[str, Callable[[bool], str]] = {
    "demo": lambda _: demo(),
    "asked": lambda _: asked(),
    "algorithms": algorithms,
    "queues": queues,
    "claims": claims,
    "fields": lambda _: learning("fields"),
    "controls": lambda _: learning("controls"),
    "rewards": lambda _: learning("rewards"),
    "truth": lambda _: learning("truth"),
    "objectives": lambda _: objectives(),
}
"""What is kept in the repository. Each may link to other places among the built pages."""


def generated(page: str, *, built: bool = False) -> str:
    """The page with its generated parts as they should be."""
    return PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]](built)}\n{part[3]}", page)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    pages: dict[Path, Callable[[str], str]]
    pages = dict.fromkeys([DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))], generated)
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
