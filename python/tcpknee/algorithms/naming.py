"""What the algorithms of files are called in a scenario that names them by path.

Each has the name that its file gives it. Where that is one of ours, of Linux's, of a key or of another file, the file's
name comes behind it: `reno` of `./mine.c` is `reno_mine`, of `./reno_new.c` it is `reno_new`. Where the file is called
as the algorithm is, its folder's name does: `reno` of `old/reno.c` is `reno_old`, and of `./reno.c` it is `reno_file`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import _core, say
from tcpknee.reading import ReadFile

if TYPE_CHECKING:
    from .building import Built


MOST_KERNEL_NAME = 15
"""Characters of a congestion control's name: TCP_CA_NAME_MAX less its end."""


@dataclass(frozen=True)
class Named:
    """An algorithm of a file, and what it is called beside the others."""

    built: Built
    name: str

    @property
    def words(self) -> str:
        """Which it is."""
        own = "" if self.name == self.built.name else f" {self.built.name}"
        return f"{self.name} is the algorithm{own} of {self.built.path}"

    def facts(self) -> dict[str, Any]:
        """What `run.json` says of it, and another host needs of it."""
        built = self.built
        return {
            "path": built.path,
            "name": self.name,
            "kind": built.kind,
            "sha256": built.digest,
            "sources": built.sources,
        }

    @staticmethod
    def of_facts(facts: Mapping[str, Any]) -> Named:
        """The same, compiled here and loaded. Raises `UsageError`."""
        from .building import of_sources

        return load(Named(of_sources(facts["path"], facts["sources"]), facts["name"]))

    def request(self) -> dict[str, str]:
        """What another process of this host needs of it."""
        return {
            "path": self.built.path,
            "name": self.name,
            "digest": self.built.digest,
            "object": str(self.built.so_path),
            **({"prototype": next(iter(self.built.sources.values()))} if self.built.kind == "prototype" else {}),
        }

    @property
    def for_core(self) -> tuple[str, str, str]:
        """As `_core.parse` takes it."""
        return self.built.path, self.name, self.built.digest


def is_path(text: str) -> bool:
    """Does it stand for a file, where names of algorithms stand?"""
    return "/" in text or text.endswith((".c", ".py"))


_NO_PATH = re.compile(r"""#[^"'\n]*$|\b[0-9.]+ ?[kKMGT]?i?(?:bit|B)?/s\b""", re.MULTILINE)
"""What has a slash in most scenarios that name no file: comments, and rates."""


def of_scenario(text: str, file: str, read: ReadFile, *, in_guests_alone: bool = False) -> list[Named]:
    """The algorithms that a scenario of that file names by path, compiled and loaded, as `building.build` does. Raises
    `UsageError`."""
    if not re.search(r"/|\.c|\.py|\\", _NO_PATH.sub("", text)):
        return []
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        scenario = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        # The parser says where.
        return []
    paths = list(dict.fromkeys(filter(is_path, _algorithms(scenario))))
    folder = "" if file.startswith("<") else file[: file.rfind("/") + 1]
    if not paths:
        return []
    from .building import build

    at = {path: path if path.startswith("/") else f"{folder}{path}" for path in paths}
    return named(build(path, read=read, at=at[path], in_guests_alone=in_guests_alone) for path in paths)


def _algorithms(scenario: Mapping[str, Any]) -> Iterator[str]:
    flows = scenario.get("flow")
    for table in [*(flows if isinstance(flows, list) else [flows]), scenario.get("receiver")]:
        value = table.get("algorithm") if isinstance(table, dict) else None
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))


_known: dict[tuple[str, str, str], Named] = {}
"""By path, name and digest: what this process has loaded."""


def named(files: Iterable[Built], beside: Iterable[Named] = ()) -> list[Named]:
    """Names for the algorithms of files, which are loaded under these. None has the name of one of `beside`."""
    found: list[Named] = []
    taken = {*reserved(), *(one.name for one in beside)}
    for built in files:
        longer = _longer(built.name, Path(built.path))
        further = (f"{longer}_{number}" for number in range(2, 1000))
        name = next(name for name in (built.name, longer, *further) if name not in taken)
        taken.add(name)
        found.append(load(Named(built, name)))
    return found


def _longer(name: str, path: Path) -> str:
    """What tells it from others of its name."""
    stem, folder = (re.sub(r"\W", "_", part, flags=re.ASCII) for part in (path.stem, path.parent.name))
    if stem.startswith(f"{name}_"):
        return stem
    return f"{name}_{stem}" if stem != name else f"{name}_{folder.strip('_') or 'file'}"


def load(one: Named) -> Named:
    """Loads it, if it is not there yet."""
    _core.load_algorithm(one.built.so_path, one.built.digest, one.name)
    key = one.built.path, one.name, one.built.digest
    _known.pop(key, None)
    _known[key] = one
    return one


def chosen(what: str, words: Sequence[str], beside: Iterable[Named] = ()) -> tuple[tuple[str, ...], list[Named]]:
    """The algorithms that a user named, by name or by path, and those of them that are of files. A command asks once,
    for all: names of two calls may be the same. `beside`: files that have their names. Raises `UsageError`, which
    begins with `what` where no such algorithm is."""
    from . import chosen as of_ours
    from .building import build

    files = {word: build(word) for word in words if is_path(word)}
    of_files = dict(zip(files, named(files.values(), beside), strict=True))
    plain = [word for word in words if word not in files]
    ours = iter(of_ours(what, plain)) if plain or not files else iter(())
    return tuple(of_files[word].name if word in files else next(ours) for word in words), [*of_files.values()]


def loaded(names: Iterable[str]) -> list[Named]:
    """Those of these names that are of files, the last that was loaded of each."""
    by_name = {one.name: one for one in _known.values()}
    return [by_name[name] for name in dict.fromkeys(names) if name in by_name]


def used_by(scenario: _core.Scenario) -> list[Named]:
    """Those that a scenario names."""
    return [_known[file] for file in scenario.algorithm_files]


def note(files: Sequence[Named]) -> None:
    """Says on stderr what algorithms of files are called."""
    for one in files:
        say.warn(f"Note: {one.words}.")


@cache
def reserved() -> frozenset[str]:
    """Names that mean something else in a `[[flow]]`."""
    ours = (name for entry in _core.algorithms() for name in (entry["name"], entry["linux_name"]))
    known = _core.keys()
    keys = (key["path"].rsplit(".", 1)[-1] for key in known)
    return frozenset((*ours, *keys))
