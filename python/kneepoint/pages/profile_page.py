"""A profile as a page: what was counted, and a flame graph of what the processors were doing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kneepoint.errors import UsageError
from kneepoint.live.profile import Profile

from . import export, html, palette, profile_told

_HELD = 20_000
"""Stacks that the page holds; those with fewest samples are left to the table."""


def save(found: Profile, path: Path, against: Profile | None = None) -> Path:
    """Writes the page, which needs no network; `against` is laid beside it."""
    if path.suffix.lower() != ".html":
        raise UsageError(f"{path}: got the ending {path.suffix or 'of no kind'!r}; expected .html.")
    export.write_file(path, page(found, against).encode("utf-8"))
    return path


def page(found: Profile, against: Profile | None = None) -> str:
    """The profile as a page."""
    about = found.about
    warnings = list(profile_told.warnings(found))
    if against is not None:
        warnings += [f"{against.folder}: {line}" for line in profile_told.warnings(against)]
    return html.flame_page(
        "profile.html.j2",
        data(found, against),
        title=f"What the network costs this host, {about['seconds']:.3g} s from {about['began']}",
        answer=profile_told.answer(found),
        against=_named(against) if against is not None else None,
        warnings=warnings,
        tables=_tables(found, against),
        caption=_caption(against),
        has_stacks=bool(found.classes),
        command=about.get("command"),
        facts=[*profile_told.cost(found), *_host(about)],
    )


def data(found: Profile, against: Profile | None = None) -> dict[str, Any]:
    """What flame.js draws: stacks with their samples, and those of the other profile as if it had lasted as long."""
    scale = found.about["seconds"] / against.about["seconds"] if against is not None else 1.0
    return {
        "classes": palette.CLASSES,
        "stacks": _stacks(found),
        "against": _stacks(against, scale) if against is not None else None,
    }


def _stacks(found: Profile, scale: float = 1.0) -> list[tuple[str, float, str]]:
    rows = sorted(found.rows("stacks"), key=lambda row: -row["samples"])
    return [(row["stack"], row["samples"] * scale, row["class"]) for row in rows[:_HELD]]


def _tables(found: Profile, against: Profile | None) -> list[dict[str, Any]]:
    """Those above the flame graph, and the two below it."""
    beside = profile_told.beside(against, found) if against is not None else []
    told = [
        ("beside", "Beside the other", profile_told.BESIDE_HEADS, beside),
        ("classes", "Processor time", profile_told.CLASS_HEADS, profile_told.classes(found)),
        ("counts", "Counted", profile_told.COUNT_HEADS, profile_told.counts(found)),
        ("sizes", "Sizes", profile_told.SIZE_HEADS, profile_told.sizes(found)),
    ]
    return [dict(zip(("name", "title", "heads", "rows"), one, strict=True)) for one in told]


def _named(against: Profile) -> str:
    return f"{against.folder}, {against.about['seconds']:.3g} s from {against.about['began']}"


def _caption(against: Profile | None) -> str:
    how = (
        "Each box is a function, as wide as its share of the busy samples; what it called stands above it. A click on "
        "a box widens it to the whole figure, a click on the lowest box goes back."
    )
    if against is None:
        return f"{how} The colour is the class of the work."
    return f"{how} Red: more time than in the other profile; blue: less; the darker, the greater the change."


def _host(about: dict[str, Any]) -> list[tuple[str, str]]:
    host = {"kneepoint": about["engine_version"], **about["host"]}
    return [(name, str(value)) for name, value in host.items()]
