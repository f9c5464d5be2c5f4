"""The algorithms that a gate is asked of: by name, by a file, or by a file of a git revision, `./mine.c@HEAD~1`.

Scenarios name files by paths below their own folder, where their sources are written before any row runs, so that the
folder runs by itself anywhere.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tcpknee import algorithms, reading
from tcpknee.algorithms import building, naming
from tcpknee.errors import UsageError
from tcpknee.runs import compose
from tcpknee.writing import replacing


@dataclass(frozen=True)
class Candidate:
    """`word` is what the user wrote, `label` what reports call it; `text` stands in scenarios, as TOML has it;
    `of_file` is what was compiled, None of a name; `sha256` that of the sources."""

    word: str
    label: str
    text: str
    of_file: naming.Named | None = None
    sha256: str = ""

    def write_sources(self, folder: Path) -> None:
        """Into the folder of the scenarios that name them."""
        if self.of_file:
            built = self.of_file.built
            for name, text in built.sources.items():
                with replacing(folder / Path(built.path).parts[0] / name, make=True) as file:
                    file.write(text.encode())

    @property
    def words(self) -> str:
        """Which it is."""
        return f"{self.label} ({self.word}, sha256 {self.sha256[:12]})" if self.of_file else self.label


def of(option: str, new: str, base: str, *, in_guests_alone: bool = False) -> tuple[Candidate, Candidate]:
    """Both; files are below `new` and `base`. `in_guests_alone`: no other engine runs them, and files of the kernel may
    use what the simulator does not have. Raises `UsageError`, which begins with what `option` it was given by."""
    words = {"new": new, "base": base}
    files = {role: _read(word, role) for role, word in words.items() if _is_file(word)}
    built = (building.of_sources(*one, in_guests_alone=in_guests_alone) for one in files.values())
    named = dict(zip(files, naming.named(built), strict=True))
    found = []
    for role, word in words.items():
        if one := named.get(role):
            quoted, digest = compose.quoted(one.built.path), one.built.digest
            found.append(Candidate(word, one.built.name, quoted, one, digest))
        else:
            (name,) = algorithms.chosen(option if role == "new" else "--against", [word])
            found.append(Candidate(word, name, compose.quoted(name)))
    if found[0].label == found[1].label and new != base:
        found = [replace(one, label=f"{one.label} ({role})") for one, role in zip(found, words, strict=True)]
    return found[0], found[1]


def path_of(word: str) -> str:
    """The path in `./mine.c@HEAD~1`; all of it where there is such a file."""
    path, at, _ = word.rpartition("@")
    return path if at and naming.is_path(path) and not Path(word).exists() else word


def _is_file(word: str) -> bool:
    return naming.is_path(path_of(word))


def _read(word: str, role: str) -> tuple[str, Mapping[str, str]]:
    """The file with what it includes: its path for scenarios, and the texts by their names."""
    path = path_of(word)
    revision = word[len(path) + 1 :]
    read = _of_revision(word, revision) if revision else reading.program
    if revision == "" and path != word:
        raise UsageError(f"{word}: got no revision behind the @; expected one that git knows, as in {path}@HEAD~1.")
    sources, _ = building.gather(word, path if "/" in path else f"./{path}", read)
    return f"{role}/{next(iter(sources))}", sources


def _of_revision(word: str, revision: str) -> reading.ReadFile:
    """Reads files as a revision of git has them; nothing is checked out."""

    def read(path: str) -> tuple[str, bool]:
        place = Path(path)
        if revision.startswith("-"):
            raise UsageError(f'{word}: got the revision "{revision}"; expected one that git knows, such as HEAD~1.')
        words = ["git", "-C", str(place.parent), "cat-file", "blob", f"{revision}:./{place.name}"]
        try:
            done = subprocess.run(words, capture_output=True, check=False)
        except FileNotFoundError:
            raise OSError("git is not installed, which knows the revision") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1].removeprefix("fatal: ")
            raise OSError(f"git says: {said.removesuffix('.')}")
        try:
            return done.stdout.decode("utf-8"), True
        except UnicodeDecodeError:
            raise OSError("it is no text in UTF-8") from None

    return read
