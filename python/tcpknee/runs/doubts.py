"""Figures that are not to be trusted as they stand: the link fell behind, a program failed, a setting misleads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Doubt:
    """Why some repetitions of a cell are doubtful. `failed`: a program of the
    scenario ended badly, or its algorithm did."""

    cell: int
    reps: tuple[int, ...]
    text: str
    failed: bool = False

    @property
    def where(self) -> str:
        """`cell 0, repetitions 1 and 3`."""
        numbers = [str(rep) for rep in self.reps]
        listed = numbers[0] if len(numbers) == 1 else f"{', '.join(numbers[:-1])} and {numbers[-1]}"
        return f"cell {self.cell}, repetition{'s' if len(numbers) > 1 else ''} {listed}"

    @property
    def line(self) -> str:
        """The whole as one sentence."""
        return f"{self.where}: {'failed: ' if self.failed else ''}{self.text}"


def of_run(meta: Mapping[str, Any]) -> list[Doubt]:
    """From the `repetitions` of `run.json`; alike in several repetitions of a cell, said once."""
    found: dict[tuple[int, bool, str], list[int]] = {}
    for entry in meta.get("failed", ()):
        found.setdefault((entry["cell"], True, entry["words"]), []).append(entry["rep"])
    for entry in meta.get("repetitions", ()):
        for failed, texts in ((True, entry["failures"]), (False, entry["warnings"])):
            for text in texts:
                found.setdefault((entry["cell"], failed, text), []).append(entry["rep"])
    return [Doubt(cell, tuple(reps), text, failed) for (cell, failed, text), reps in sorted(found.items(), key=_place)]


def of_settings(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the settings of `cells` in `run.json` are warned of, said once with the cells that it holds for."""
    places: dict[str, list[str]] = {}
    for cell in found:
        for text in cell.get("cautions", ()):
            places.setdefault(text, []).append(str(cell["index"]))
    return [
        f"{text}." if len(at) == len(found) else f"cell{'s' if len(at) > 1 else ''} {', '.join(at)}: {text}."
        for text, at in places.items()
    ]


def cells(doubts: Sequence[Doubt]) -> set[int]:
    """Cells that stand under some doubt."""
    return {doubt.cell for doubt in doubts}


def _place(item: tuple[tuple[int, bool, str], list[int]]) -> tuple[int, bool, list[int]]:
    """Failures of a cell come first."""
    (cell, failed, _), reps = item
    return cell, not failed, reps
