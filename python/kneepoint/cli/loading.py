"""`knee load`, `knee unload`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kneepoint import _core, say
from kneepoint.errors import EngineError, KernelUnsupported, UsageError
from kneepoint.progress import Phase
from kneepoint.terms import suggest

_SHOWN = 3
"""Sockets that are named when an algorithm is unloaded."""


def load(algorithms: Sequence[str], default_in: str | None, *, json: bool, quiet: bool) -> int:
    """`knee load`."""
    _check("load", algorithms)
    if default_in is not None and len(algorithms) > 1:
        raise UsageError(
            "knee load --default-in: got several algorithms; expected one, as a namespace has one default."
        )
    done: dict[str, str] = {}
    try:
        for name in algorithms:
            with Phase(f"Loading {name} into the kernel", quiet=quiet):
                done[name] = _core.load(name, default_in=default_in)
            if not json:
                where = f"; new sockets of {default_in} get it" if default_in else ""
                say.line(f"{name} is loaded: sockets can choose {done[name]} until `knee unload {name}`{where}")
    except KernelUnsupported as error:
        so_far = f" Loaded before it: {', '.join(done)}." if done else ""
        raise KernelUnsupported(f"knee load: {error}.{so_far}".replace("..", ".")) from None
    if json:
        say.json({"schema": 1, "loaded": done})
    return 0


def unload(algorithms: Sequence[str], *, every: bool, json: bool) -> int:
    """`knee unload`."""
    if every == bool(algorithms):
        raise UsageError("knee unload: expected names of algorithms or --all, and not both.")
    if every:
        algorithms = [name for name, status in _core.in_kernel().items() if status["loaded"]]
    _check("unload", algorithms)
    done: dict[str, list[dict[str, str]]] = {}
    failed: list[str] = []
    for name in algorithms:
        try:
            done[name] = _core.unload(name)
        except EngineError as error:
            # One that a run holds is no reason to keep the others.
            failed.append(str(error))
            continue
        if not json:
            say.line(f"{name} is unloaded{_still_used(done[name])}")
    if json:
        say.json({"schema": 1, "unloaded": done})
    elif not algorithms:
        say.line("nothing is loaded")
    if failed:
        raise EngineError("knee unload: " + "; ".join(failed))
    return 0


def _check(command: str, algorithms: Sequence[str]) -> None:
    known = [entry["name"] for entry in _core.algorithms()]
    unknown = next((name for name in algorithms if name not in known), None)
    if unknown is not None:
        raise UsageError(f'knee {command}: got "{unknown}"; ' + suggest(unknown, known, "expected one of"))


def _still_used(users: Sequence[Mapping[str, str]]) -> str:
    if not users:
        return ""
    named = ", ".join(
        f"{user['source']} to {user['destination']}" + (f" in {user['namespace']}" if user["namespace"] else "")
        for user in users[:_SHOWN]
    )
    more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
    sockets = "socket runs" if len(users) == 1 else "sockets run"
    return f"; {len(users)} {sockets} it until closed: {named}{more}"
