"""How long a run in real time goes on: what ends it before its last repetition (that its comparisons are decided, or a
budget), and how long it pauses between blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tcpknee import _core, human
from tcpknee.errors import UsageError

_LONGEST_PAUSE_SEC = 3600.0


@dataclass(frozen=True)
class Ending:
    """What ends a run early, and its pauses. Nothing of it: it has all its repetitions, one after the other."""

    until_decided: bool = False
    budget: str = ""
    pause: str = ""

    def __bool__(self) -> bool:
        return self.until_decided or bool(self.budget) or bool(self.pause)

    @staticmethod
    def of_stored(found: Mapping[str, Any] | None) -> Ending:
        """As `run.json` has it."""
        return Ending(found["until_decided"], found["budget"], found.get("pause", "")) if found else Ending()

    def over(self, begun: Ending) -> Ending:
        """For a run that was begun with another: what is asked now, where it says something. What was to be decided
        stays so, because somebody has looked."""
        return Ending(self.until_decided or begun.until_decided, self.budget or begun.budget, self.pause or begun.pause)

    @property
    def pause_sec(self) -> float:
        """Raises `UsageError`."""
        found = _core.duration_ns("pause", self.pause) / 1e9 if self.pause else 0.0
        if found > _LONGEST_PAUSE_SEC:
            raise UsageError(f"pause: got {self.pause}; expected 1h at most.")
        return found

    @property
    def most(self) -> tuple[float | None, float | None]:
        """Seconds and bytes. Raises `UsageError`."""
        most_sec = most_bytes = None
        for part in filter(None, (part.strip() for part in self.budget.split(","))):
            size = human.bytes_of(part)
            if size is not None and most_bytes is None:
                most_bytes = size
            elif size is not None or most_sec is not None:
                raise UsageError(f'budget: got "{self.budget}"; expected a time, a size, or one of each, as 10min,5GB.')
            else:
                try:
                    most_sec = _core.duration_ns("budget", part) / 1e9
                except UsageError:
                    raise UsageError(
                        f'budget: got "{part}"; expected a time such as 10min, a size such as 5GB, or both with a '
                        "comma between."
                    ) from None
        return most_sec, most_bytes


NEVER = Ending()
"""Of a run that has all its repetitions."""

_BY = {"decided": "every comparison is decided", "time": "the budget of time", "bytes": "the budget of bytes"}


def text(meta: Mapping[str, Any]) -> str | None:
    """How a run ended early, as a sentence; None: it did not."""
    found = meta.get("ending")
    if not found or found["by"] == "repeat":
        return None
    done = f"after {human.counted(found['blocks'], 'block')} of up to {meta['repeat']:,}"
    intervals = "" if not found["until_decided"] else " Intervals of verdicts hold at 95 % whenever one looks."
    return f"Ended {done}: {_BY[found['by']]}{' is used up' if found['by'] != 'decided' else ''}.{intervals}"
