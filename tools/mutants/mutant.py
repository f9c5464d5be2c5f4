"""What a mutant is: one place of one source file with another text, told by what stands there and not by its line."""

from __future__ import annotations

from dataclasses import dataclass

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
CONNECTIVES = {"&&": "||", "||": "&&"}
SUMS = {"+": "-", "-": "+", "+=": "-=", "-=": "+="}


@dataclass(frozen=True)
class Mutant:
    """`original` at `start` becomes `replacement`. Offsets are of characters."""

    file: str
    function: str
    start: int
    end: int
    original: str
    replacement: str
    line: int
    # The line of source, and which of the places in it with this text is meant.
    text: str
    nth: int
    # Whether it can be built beside others, chosen when the program starts: false for what is known while compiling.
    chosen_at_start: bool = True

    @property
    def name(self) -> str:
        """What stays when lines move: the key of results and of the list of equivalents."""
        return f"{self.file}: {self.function}: {self.text} [{self.nth}]: {self.original} -> {self.replacement}"

    @property
    def change(self) -> str:
        """On one line."""
        return " ".join(f"{self.original} -> {self.replacement}".split())

    @property
    def key(self) -> tuple[str, str, str, str]:
        """By which the list of equivalents names it."""
        return self.file, self.function, self.text, self.change

    @property
    def place(self) -> str:
        """For people."""
        return f"{self.file}:{self.line}"

    def applied(self, source: str) -> str:
        """The file with this mutant in it."""
        assert source[self.start : self.end] == self.original
        return source[: self.start] + self.replacement + source[self.end :]


class Places:
    """Turns places of one file into mutants."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.source = source
        self.found: list[Mutant] = []
        self._seen: dict[tuple[str, str, str, str], int] = {}

    def add(self, span: tuple[int, int], replacements: list[str], function: str, chosen_at_start: bool = True) -> None:
        """One place; every replacement of it is a mutant."""
        start, end = span
        original = self.source[start:end]
        line = self.source.count("\n", 0, start) + 1
        first = self.source.rfind("\n", 0, start) + 1
        last = self.source.find("\n", start)
        text = self.source[first : last if last >= 0 else None].strip()
        for replacement in replacements:
            key = (function, text, original, replacement)
            nth = self._seen[key] = self._seen.get(key, -1) + 1
            self.found.append(
                Mutant(
                    self.file, function, start, end, original,
                    replacement, line, text, nth, chosen_at_start,
                )
            )  # fmt: skip


def other_numbers(value: int) -> list[int]:
    """One more, one less, twice as much."""
    return [value + 1] + [value - 1] * (value > 0) + [2 * value] * (value > 1)
