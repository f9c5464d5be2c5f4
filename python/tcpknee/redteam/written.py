"""A find as a sentence, as a scenario file, and as JSON."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from .judging import Sides
from .objectives import BY_NAME
from .shrink import NEIGHBOURS, SEEDS, Find

_THRESHOLD = {
    "starvation": "5 % of an equal share",
    "unfairness": "harm of 30 percentage points more than by its like",
    "stuck": "15 RTOs",
    "lost-wake-up": "100 ms and two round trips",
    "standing-queue": "95 % of the time above two base RTTs and 50 ms",
    "loss": "5 % of what is sent, and three times the other's",
    "spurious-retransmission": "3 % of what is sent",
    "collapse": "half as fast, and 1.5 times as much slower as the other",
    "costly-setting": "1.15 times",
}
"""Of each objective, ours, in words."""


def sentence(find: Find, sides: Sides) -> str:
    """What was seen, the threshold, and how sure it is."""
    seen = find.words.format(other=sides.other, key=_key(find))
    where = find.asked.case.settings or "nothing but the plain path"
    return (
        f"{sides.own} {seen} (threshold of ours: {_THRESHOLD[find.asked.objective]}). It needs {where}. Shown with "
        f"{find.of_seeds} of {SEEDS} seeds, and by {find.of_nearby} of {NEIGHBOURS} scenarios nearby."
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


def as_json(find: Find, name: str, sides: Sides) -> dict[str, Any]:
    return {
        "file": name,
        "objective": find.asked.objective,
        "undone": find.asked.key or None,
        "needs": dict(find.asked.case.values),
        "score": round(find.score, 3),
        "seeds": {"shown": find.of_seeds, "of": SEEDS},
        "nearby": {"shown": find.of_nearby, "of": NEIGHBOURS},
        "text": sentence(find, sides),
    }


assert set(_THRESHOLD) == set(BY_NAME)
