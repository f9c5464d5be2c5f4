"""Which file of a crate uses which, by its paths (`use`, and names written out)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, read

Module = tuple[str, ...]
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(pub(\([^)]*\))?\s+)?mod \w+ \{")
ONE_OF_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(pub(\([^)]*\))?\s+)?(mod|use) [^;]*;")
USE = re.compile(r"(?<!\w)use ([^;]+);")
SHOWN_USE = re.compile(r"\bpub(?:\([^)]*\))? use ([^;]+);")
WRITTEN_OUT = re.compile(r"(?<![\w:])((?:crate|super)(?:::\w+)+|[a-z_]+(?:::\w+)+)")


def uses(crate: str) -> dict[Path, set[Path]]:
    """Each file of a crate and those that it uses, tests aside; what one shows of another is the other's."""
    modules = _modules(ROOT / "crates" / crate / "src")
    texts = {module: _without_tests(read(path.relative_to(ROOT))) for module, path in modules.items()}
    shown = {module: dict(_shown(text)) for module, text in texts.items()}

    def absolute(here: Module, path: str) -> Module | None:
        first, *rest = path.split("::")
        if first == "crate":
            return tuple(rest)
        if first == "self":
            return here + tuple(rest)
        if first == "super":
            base = here[:-1]
            while rest and rest[0] == "super":
                base, rest = base[:-1], rest[1:]
            return base + tuple(rest)
        return (*here, first, *rest) if (*here, first) in modules else None

    def owner(path: Module, hops: int = 0) -> Module:
        length = next(n for n in range(len(path), -1, -1) if path[:n] in modules)
        module, rest = path[:length], path[length:]
        if rest and hops < 8 and (further := shown[module].get(rest[0])):
            beyond = absolute(module, further)
            if beyond is not None:
                return owner(beyond + rest[1:], hops + 1)
        return module

    found: dict[Path, set[Path]] = {}
    for module, text in texts.items():
        paths = [path for tree in USE.findall(text) for path in _paths(tree)]
        paths += WRITTEN_OUT.findall(USE.sub("", text))
        targets = {owner(place) for path in paths if (place := absolute(module, path)) is not None}
        found[modules[module]] = {modules[target] for target in targets if target != module}
    return found


def circles(uses: dict[Path, set[Path]]) -> Iterator[list[Path]]:
    """Files that lead to each other, sorted."""
    reach = {file: _reached(uses, file) for file in uses}
    seen: set[Path] = set()
    for file in sorted(uses):
        if file not in seen and file in reach[file]:
            circle = sorted(other for other in reach[file] if file in reach[other])
            seen.update(circle)
            yield circle


def without_holders(uses: dict[Path, set[Path]]) -> dict[Path, set[Path]]:
    """Without what leads from a file to one below it, or back: a list uses its kinds, and they use what all share."""
    return {
        file: {other for other in others if not _holds(file, other) and not _holds(other, file)}
        for file, others in uses.items()
    }


def _holds(file: Path, other: Path) -> bool:
    """Is the module of the second below that of the first?"""
    above, below = (
        path.parent if path.name in ("mod.rs", "lib.rs", "main.rs") else path.with_suffix("") for path in (file, other)
    )
    return above in below.parents


def are_of_one_folder(files: list[Path]) -> bool:
    """`x.rs` is of its own folder and of `x/`, whose files it holds together."""
    folders = {path.parent for path in files}
    return any(all(folder in (path.parent, path.with_suffix("")) for path in files) for folder in folders)


def _modules(source: Path) -> dict[Module, Path]:
    modules = {}
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).with_suffix("").parts
        if {"tests", "testing"} & set(parts):
            continue
        modules[parts[:-1] if parts[-1] == "mod" or parts in (("lib",), ("main",)) else parts] = path
    return modules


def _without_tests(text: str) -> str:
    text = re.sub(r"//[^\n]*", "", text)
    if tests := TESTS.search(text):
        text = text[: tests.start()]
    return ONE_OF_TESTS.sub("", text)


def _shown(text: str) -> Iterator[tuple[str, str]]:
    for tree in SHOWN_USE.findall(text):
        for path in _paths(tree):
            yield path.split("::")[-1], path


def _paths(tree: str) -> Iterator[str]:
    """`a::{b, c::d}` is `a::b` and `a::c::d`."""
    tree = tree.strip()
    whole = re.fullmatch(r"([\w:]*?)(?:::)?\{(.*)\}", tree, re.DOTALL)
    if not whole:
        yield re.sub(r"\s+as\s+\w+$", "", tree).removesuffix("::self")
        return
    prefix, inside = whole[1], whole[2]
    depth, part = 0, ""
    for char in [*inside, ","]:
        if char == "," and depth == 0:
            if part.strip():
                yield from _paths(f"{prefix}::{part.strip()}" if prefix else part)
            part = ""
            continue
        depth += (char == "{") - (char == "}")
        part += char


def _reached(uses: dict[Path, set[Path]], file: Path) -> set[Path]:
    reached: set[Path] = set()
    ahead = list(uses[file])
    while ahead:
        if (one := ahead.pop()) not in reached:
            reached.add(one)
            ahead += uses[one]
    return reached
