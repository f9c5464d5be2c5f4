"""The rooms of python/tcpknee import in one direction (docs/architecture.md, "The rooms of the front")."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from sources import files, read

FRONT = Path("python/tcpknee")

ALLOWED: dict[str, set[str]] = {
    "evidence": set(),
    "datasets": set(),
    "imports": {"datasets"},
    "runs": {"datasets", "evidence"},
    "live": {"datasets", "evidence"},
    "fleet": {"datasets", "evidence", "live", "runs"},
    "whatif": {"datasets", "runs"},
    "doctor": {"calibration", "evidence", "live", "runs"},
    "pages": {"datasets", "doctor", "evidence", "fleet", "live", "runs"},
    "calibration": {"runs"},
    "validation": {"doctor", "evidence", "fleet", "imports", "live", "pages", "runs"},
    "cli": {
        "calibration",
        "datasets",
        "doctor",
        "evidence",
        "fleet",
        "imports",
        "live",
        "pages",
        "runs",
        "validation",
        "whatif",
    },
}
"""The rooms that each room may import from. Every room may import the modules beside the rooms."""

DOORS = {"__init__.py", "__main__.py"}
"""Modules beside the rooms that lead into them; the others serve every room, and import none."""

CIRCLES = (
    "cli.against cli.conform",
    "datasets.dataset datasets.sql",
    "doctor.changes",
    "fleet.cohorts.comparison fleet.cohorts.told",
    "live.watch.app live.watch.pages",
    "pages.binned pages.cohorts",
    "pages.run pages.series",
    "runs.differences runs.differences_told",
    "runs.engines runs.host_settings runs.kernel",
    "runs.folder runs.store",
    "runs.output runs.results",
)
"""Modules that still import each other, also lazily or for types; no more may. A folder stands for its modules."""

READERS = {
    "runs.groups",
    "runs.results",
    "runs.summary",
    "runs.api",
    "runs.differences",
    "runs.differences_text",
    "live.profile",
    "live.trace",
}
"""What pages may read a run, a profile or a trace with: never what runs or takes one."""


@cache
def sources() -> list[Path]:
    """Modules of the front, from its folder."""
    return [path.relative_to(FRONT) for path in files() if path.is_relative_to(FRONT) and path.suffix == ".py"]


@cache
def rooms() -> frozenset[str]:
    return frozenset(path.parts[0] for path in sources() if len(path.parts) > 1)


def room_of(names: list[str]) -> str:
    """The room of a dotted name below `tcpknee`; "" for a module beside the rooms."""
    return names[0] if names and names[0] in rooms() else ""


def imported(path: Path) -> set[str]:
    """Dotted names below `tcpknee` that a module imports, wherever in it."""
    package = list(path.parent.parts)
    found = set()
    for node in ast.walk(ast.parse(read(FRONT / path))):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[2] for name in node.names if name.name.split(".")[0] == "tcpknee"}
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            if node.level:
                base = [*package[: len(package) + 1 - node.level], *base]
            elif base[:1] == ["tcpknee"]:
                base = base[1:]
            else:
                continue
            found |= {".".join([*base, name.name]) for name in node.names}
    return found


def graph() -> dict[str, set[str]]:
    """Each room, and the other rooms that its modules import."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sources():
        if len(path.parts) > 1:
            others = {room_of(name.split(".")) for name in imported(path)} - {"", path.parts[0]}
            found[path.parts[0]] |= others
    return found


def test_every_room_imports_what_it_may_and_no_more() -> None:
    assert graph() == ALLOWED


def test_there_is_no_circle_between_rooms() -> None:
    order = list(TopologicalSorter(graph()).static_order())
    assert set(order) == rooms()


def modules() -> dict[str, set[str]]:
    """Each module, and the others of the front that it imports, lazily and for types too."""
    known = {".".join(path.with_suffix("").parts): path for path in sources()}

    def module(name: str) -> str | None:
        parts = name.split(".")
        heads = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
        return next((each for head in heads for each in (head, f"{head}.__init__") if each in known), None)

    return {name: {found for each in imported(path) if (found := module(each))} for name, path in known.items()}


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """What can be reached from a module by one import or more."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found


def test_modules_import_each_other_only_where_listed() -> None:
    imports = modules()
    beyond = {name: reached(imports, name) for name in imports}
    circles = {frozenset(other for other in beyond[name] if name in beyond[other]) for name in imports} - {frozenset()}
    unlisted = [
        sorted(circle)
        for circle in circles
        if not any(all(name.startswith(tuple(listed.split())) for name in circle) for listed in CIRCLES)
    ]
    assert not unlisted


def test_what_stands_beside_the_rooms_imports_none() -> None:
    beside = [path for path in sources() if len(path.parts) == 1 and path.name not in DOORS]
    assert beside
    found = {f"{path}: {name}" for path in beside for name in imported(path) if room_of(name.split("."))}
    assert not found


def test_pages_read_what_was_run_and_run_nothing() -> None:
    names = {(str(path), name) for path in sources() if path.parts[0] == "pages" for name in imported(path)}
    reached = {(path, name) for path, name in names if room_of(name.split(".")) in {"runs", "live"}}
    assert reached
    assert not {(path, name) for path, name in reached if ".".join(name.split(".")[:2]) not in READERS}


def test_the_imports_of_a_module_are_understood() -> None:
    assert "evidence.metrics.LIMITS" in imported(Path("live/watch/sample.py"))
    assert "runs.pool" in imported(Path("runs/phase.py"))
    assert "human" in imported(Path("evidence/written.py"))
