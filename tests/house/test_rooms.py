"""The rooms of python/tcpknee import in one direction (docs/architecture.md, "The rooms of the front")."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from rust_uses import circles
from sources import files, read

FRONT = Path("python/tcpknee")

ALLOWED: dict[str, set[str]] = {
    "algorithms": set(),
    "evidence": set(),
    "datasets": set(),
    "imports": {"datasets"},
    "kernels": {"algorithms"},
    "remote": set(),
    "runs": {"algorithms", "datasets", "evidence", "kernels", "remote"},
    "live": {"datasets", "evidence"},
    "fleet": {"algorithms", "datasets", "evidence", "live", "runs"},
    "gate": {"algorithms", "evidence", "kernels", "runs"},
    "gym": {"runs"},
    "whatif": {"algorithms", "datasets", "runs"},
    "redteam": {"algorithms", "runs"},
    "measured": {"algorithms", "datasets", "evidence", "imports", "runs", "whatif"},
    "doctor": {"algorithms", "calibration", "evidence", "live", "runs"},
    "pages": {"datasets", "doctor", "evidence", "fleet", "live", "runs"},
    "calibration": {"runs"},
    "validation": {"algorithms", "doctor", "evidence", "fleet", "imports", "live", "pages", "runs"},
    "cli": {
        "algorithms",
        "calibration",
        "datasets",
        "doctor",
        "evidence",
        "fleet",
        "gate",
        "imports",
        "kernels",
        "live",
        "measured",
        "pages",
        "redteam",
        "runs",
        "validation",
        "whatif",
    },
}
"""The rooms that each room may import from. Every room may import the modules beside the rooms."""

DOORS = {"__init__.py", "__main__.py"}
"""Modules beside the rooms that lead into them; the others serve every room, and import none."""

READERS = {
    "runs.beside",
    "runs.between_text",
    "runs.drift",
    "runs.engines_text",
    "runs.hosts_text",
    "runs.ending",
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


def imported(path: Path, *, types: bool = True) -> set[str]:
    """Dotted names below `tcpknee` that a module imports, wherever in it; without `types`, when it runs."""
    package = list(path.parent.parts)
    tree = _tree(path)
    found, typing = set(), set() if types else _for_types(tree)
    for node in ast.walk(tree):
        if node in typing:
            continue
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


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(read(FRONT / path))


def _for_types(tree: ast.Module) -> set[ast.AST]:
    """What stands below `if TYPE_CHECKING`."""
    of_types = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    return {inner for node in of_types for one in node.body for inner in ast.walk(one)}


def uses() -> dict[Path, set[Path]]:
    """Each module of the front, and those that it imports when it runs."""
    modules = {_dotted(path): path for path in sources()}

    def module(name: str) -> Path | None:
        """That of a name, or of what has the name in it."""
        return modules.get(name) or modules.get(name.rpartition(".")[0])

    return {
        path: {found for name in imported(path, types=False) if (found := module(name)) not in (None, path)}
        for path in modules.values()
    }


def _dotted(path: Path) -> str:
    names = path.with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


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


def test_no_module_imports_another_that_imports_it() -> None:
    """Directly or by others, at its head or in a function: who reads or tests one needs no other then."""
    assert not [sorted(map(str, circle)) for circle in circles(uses())]


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
    assert "runs.results.Run" in imported(Path("runs/output.py"))
    assert "runs.results.Run" not in imported(Path("runs/output.py"), types=False)
    assert "human" in imported(Path("evidence/written.py"))
