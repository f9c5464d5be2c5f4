"""A find as a sentence, as a scenario file, and as JSON."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path
from typing import Any

from .judging import Sides
from .objectives import BY_NAME
from .shrink import NEIGHBOURS, SEEDS, Find


def sentence(find: Find, sides: Sides) -> str:
    """What was seen, the threshold, and how sure it is."""
    seen = find.words.format(other=sides.other, key=_key(find))
    where = find.asked.case.settings or "nothing but the plain path"
    shown = f"Shown with {find.of_seeds} of {SEEDS} further seeds"
    seeds = shown if find.seed_matters else "No seed changes it"
    threshold = BY_NAME[find.asked.objective].threshold
    return (
        f"{sides.own} {seen} (threshold of ours: {threshold}). It needs {where}. {seeds}, "
        f"and it is shown by {find.of_nearby} of {NEIGHBOURS} scenarios nearby."
    )


def _key(find: Find) -> str:
    value = find.asked.case.get(find.asked.key)
    return f"{find.asked.key} = {value}" if isinstance(value, str) else find.asked.key


def file_name(find: Find, sides: Sides, taken: Container[str]) -> str:
    stem = f"{sides.own}-{find.asked.objective}"
    return next(name for number in range(1, 1000) if (name := f"{stem}-{number}.toml") not in taken)


def scenario(find: Find, sides: Sides, seed: int) -> str:
    """The file: with both algorithms where the find compares them, and the setting undone where it is about one."""
    asked = find.asked
    compared = asked.objective in ("unfairness", "loss", "collapse")
    text = asked.case.text(
        sides.own_path,
        sides.other_path,
        seed,
        axes=(sides.own_path, sides.other_path) if compared else (),
        undone=asked.key or None,
        sampled=False,
    )
    about = [f"# {line}" for line in _lines(sentence(find, sides))]
    title = f'title = "{sides.own}: {asked.objective}"'
    return "\n".join([*about, title, text])


def _lines(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 118)


def beside_finds(sides: Sides) -> tuple[Sides, dict[str, str]]:
    """The same sides by paths below the folder of the finds, which scenarios in it can name, and the sources that lie
    there. A file's folder keeps its name, as it can be part of the algorithm's."""
    sources: dict[str, str] = {}
    paths = {}
    for one in sides.of_files:
        path = Path(one.built.path)
        folder = Path(path.parent.name.strip("."))
        if any(sources.get(str(folder / name), text) != text for name, text in one.built.sources.items()):
            folder = Path("against", folder.name or "file")
        sources |= {str(folder / name): text for name, text in one.built.sources.items()}
        paths[one.built.path] = f"./{folder / path.name}"
    own, other = (paths.get(path, path) for path in (sides.own_path, sides.other_path))
    return replace(sides, own_path=own, other_path=other), sources


def as_json(find: Find, name: str, sides: Sides) -> dict[str, Any]:
    return {
        "file": name,
        "objective": find.asked.objective,
        "undone": find.asked.key or None,
        "needs": dict(find.asked.case.values),
        "score": round(find.score, 3),
        "seeds": {"shown": find.of_seeds, "of": SEEDS, "change_it": find.seed_matters},
        "nearby": {"shown": find.of_nearby, "of": NEIGHBOURS},
        "text": sentence(find, sides),
    }
