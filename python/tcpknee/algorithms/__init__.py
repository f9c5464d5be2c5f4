"""Algorithms: our names, those by which Linux calls some of them, and what the heads of their files say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent

from tcpknee import human, say
from tcpknee.errors import UsageError


def ours(name: str) -> str:
    """Our name of an algorithm that may be called by Linux's; a name that is neither as it is."""
    return _of_linux().get(name, name)


def chosen(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """The algorithms that a user named, by our names; those called by Linux's are noted. Raises UsageError, which
    begins with `what`."""
    known = _known()
    if not names:
        raise UsageError(f"{what}: got none; expected some of {', '.join(known)}.")
    if unknown := next((name for name in names if ours(name) not in known), None):
        raise UsageError(f'{what}: got "{unknown}"; ' + human.suggest(unknown, known, "expected one of"))
    note({name: ours(name) for name in names if ours(name) != name})
    return tuple(map(ours, names))


def note(renamed: Mapping[str, str]) -> None:
    """Says on stderr what algorithms are called here that a user called by Linux's name."""
    for linux, name in renamed.items():
        say.warn(f"Note: {linux} is Linux's name of {name}, and {name} is what it is called here.")


def manual(name: str) -> dict[str, str]:
    """The head of an algorithm's file: `title`, `idea`, `equations` (with the diagram of states, if it has one), and
    `differs`, in which it is another than its source."""
    source = (Path(__file__).parents[1] / "cc" / f"{name}.c").read_text(encoding="utf-8")
    comment = source.split("/*\n", 1)[1].split("*/", 1)[0]
    lines = (line.removeprefix(" *").removeprefix(" ") for line in comment.splitlines())
    head, body = "\n".join(lines).expandtabs(8).split("\n\n", 1)
    idea, rest = body.split("\nEquations", 1)
    equations, rest = rest.split("\nSource: ", 1)
    differs = rest.split("\nDiffers from source:\n", 1)[1]
    return {
        "title": " ".join(head.split(" - ", 1)[1].split()),
        "idea": idea.strip("\n"),
        "equations": f"Equations{equations.rstrip()}",
        "differs": dedent(differs).rstrip(),
    }


@cache
def _known() -> list[str]:
    from tcpknee import _core

    return [entry["name"] for entry in _core.algorithms()]


@cache
def _of_linux() -> dict[str, str]:
    from tcpknee import _core

    return {entry["linux_name"]: entry["name"] for entry in _core.algorithms()}
