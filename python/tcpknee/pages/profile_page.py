"""A profile as a page: what was counted, and a flame graph of what the processors were doing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcpknee.errors import UsageError
from tcpknee.live.profile import Profile

from . import export, flames, html, profile_text


def save(found: Profile, path: Path, against: Profile | None = None) -> Path:
    """Writes the page, which needs no network; `against` is laid beside it."""
    if path.suffix.lower() != ".html":
        raise UsageError(f"{path}: got the ending {path.suffix or 'of no kind'!r}; expected .html.")
    export.write_file(path, page(found, against).encode("utf-8"))
    return path


def page(found: Profile, against: Profile | None = None) -> str:
    """The profile as a page."""
    about = found.about
    warnings = list(profile_text.warnings(found))
    if against is not None:
        warnings += [f"{against.folder}: {line}" for line in profile_text.warnings(against)]
    return html.flame_page(
        "profile.html.j2",
        {"flame": data(found, against)},
        title=f"What the network costs this host, {about['seconds']:.3g} s from {about['began']}",
        answer=profile_text.answer(found),
        against=_named(against) if against is not None else None,
        warnings=warnings,
        tables=_tables(found, against),
        caption=_caption(against),
        has_stacks=bool(found.classes),
        command=about.get("command"),
        facts=[*profile_text.cost(found), *_host(about)],
    )


def data(found: Profile, against: Profile | None = None) -> dict[str, Any]:
    """What flame.js draws: stacks with their samples, and those of the other profile as if it had lasted as long."""
    graphs = [{"label": "this profile", "stacks": _stacks(found)}]
    if against is None:
        return flames.drawn(graphs, None)
    scale = found.about["seconds"] / against.about["seconds"]
    return flames.drawn([*graphs, {"label": "the other", "stacks": _stacks(against, scale)}], 1)


def _stacks(found: Profile, scale: float = 1.0) -> flames.Stacks:
    rows = found.rows("stacks")
    return flames.largest([(row["stack"], row["samples"] * scale, row["class"]) for row in rows])


def _tables(found: Profile, against: Profile | None) -> list[dict[str, Any]]:
    """Those above the flame graph, and the two below it."""
    beside = profile_text.beside(against, found) if against is not None else []
    told = [
        ("beside", "Beside the other", profile_text.BESIDE_HEADS, beside),
        ("classes", "Processor time", profile_text.CLASS_HEADS, profile_text.classes(found)),
        ("counts", "Counted", profile_text.COUNT_HEADS, profile_text.counts(found)),
        ("sizes", "Sizes", profile_text.SIZE_HEADS, profile_text.sizes(found)),
    ]
    return [dict(zip(("name", "title", "heads", "rows"), one, strict=True)) for one in told]


def _named(against: Profile) -> str:
    return f"{against.folder}, {against.about['seconds']:.3g} s from {against.about['began']}"


def _caption(against: Profile | None) -> str:
    return f"{flames.HOW} {flames.BESIDE if against is not None else 'The colour is the class of the work.'}"


def _host(about: dict[str, Any]) -> list[tuple[str, str]]:
    host = {"tcpknee": about["engine_version"], **about["host"]}
    return [(name, str(value)) for name, value in host.items()]
