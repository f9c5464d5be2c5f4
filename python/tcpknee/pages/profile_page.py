"""A profile as a page: what was counted, and a flame graph of what the processors were doing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tcpknee.errors import UsageError
from tcpknee.live.profile import Profile

from . import export, flames, functions, html, profile_text


def save(found: Profile, path: Path, against: Profile | None = None, function: str | None = None) -> Path:
    """Writes the page, which needs no network; `against` is laid beside it, and who calls `function` is told.

    Raises UsageError: no stack has the function.
    """
    if path.suffix.lower() != ".html":
        raise UsageError(f"{path}: got the ending {path.suffix or 'of no kind'!r}; expected .html.")
    export.write_file(path, page(found, against, function).encode("utf-8"))
    return path


def page(found: Profile, against: Profile | None = None, function: str | None = None) -> str:
    """The profile as a page."""
    about = found.about
    warnings = list(profile_text.warnings(found))
    if against is not None:
        warnings += [f"{against.folder}: {line}" for line in profile_text.warnings(against)]
    return html.flame_page(
        "profile.html.j2",
        {"flame": data(found, against)},
        title=_title(found),
        answer=profile_text.answer(found),
        against=_named(against) if against is not None else None,
        warnings=warnings,
        above=_named_tables(_above(found, against, function)),
        below=_named_tables(_below(found, against)),
        caption=_caption(against),
        has_stacks=bool(found.classes),
        command=about.get("command"),
        facts=[*profile_text.never(found), *profile_text.cost(found), *_host(about)],
    )


def data(found: Profile, against: Profile | None = None) -> dict[str, Any]:
    """What flame.js draws: stacks with their samples, and those of the other profile as if it had lasted as long; of
    imported ones as if as many had been taken."""
    graphs = [{"label": "this profile", "stacks": _stacks(found)}]
    if against is None:
        return flames.drawn(graphs, None)
    if found.is_taken and against.is_taken:
        scale = found.about["seconds"] / against.about["seconds"]
    else:
        scale = sum(found.classes.values()) / max(1, sum(against.classes.values()))
    return flames.drawn([*graphs, {"label": "the other", "stacks": _stacks(against, scale)}], 1)


def _stacks(found: Profile, scale: float = 1.0) -> flames.Stacks:
    rows = found.rows("stacks")
    return flames.largest([(row["stack"], row["samples"] * scale, row["class"]) for row in rows])


def _named_tables(tables: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(("name", "title", "heads", "rows"), one, strict=True)) for one in tables]


def _above(found: Profile, against: Profile | None, function: str | None) -> Iterator[tuple[Any, ...]]:
    """The tables above the flame graph."""
    beside = profile_text.beside(against, found) if against is not None else []
    yield "beside", "Beside the other", profile_text.BESIDE_HEADS, beside
    yield "classes", "Processor time", profile_text.CLASS_HEADS, profile_text.classes(found)
    if function is not None:
        heads, rows = functions.callers(function, found.stacks, against.stacks if against else None)
        yield "callers", f"Who calls {function}, as shares of the busy samples", heads, rows


def _below(found: Profile, against: Profile | None) -> Iterator[tuple[Any, ...]]:
    """Those below it."""
    rows = profile_text.functions_of(found, against, functions.SHOWN_ON_PAGE)
    yield "functions", "Functions, as shares of the busy samples", profile_text.function_heads(against), rows
    yield "processors", "Each processor", profile_text.PROCESSOR_HEADS, profile_text.processors(found)
    yield "counts", "Counted", profile_text.COUNT_HEADS, profile_text.counts(found)
    yield "sizes", "Sizes", profile_text.SIZE_HEADS, profile_text.sizes(found)


def _title(found: Profile) -> str:
    about = found.about
    if not found.is_taken:
        return f"Call stacks of {found.folder.resolve().name}"
    began = datetime.fromisoformat(about["began"]).isoformat(sep=" ", timespec="seconds")
    return f"What the network costs this host, {about['seconds']:.3g} s from {began.replace('+00:00', ' UTC')}"


def _named(against: Profile) -> str:
    if not against.is_taken:
        return f"{against.folder}, imported"
    return f"{against.folder}, {against.about['seconds']:.3g} s from {against.about['began']}"


def _caption(against: Profile | None) -> str:
    return f"{flames.HOW} {flames.BESIDE if against is not None else 'The colour is the class of the work.'}"


def _host(about: dict[str, Any]) -> list[tuple[str, str]]:
    host = {"tcpknee": about["engine_version"], **about["host"]}
    return [(name, str(value)) for name, value in host.items()]
