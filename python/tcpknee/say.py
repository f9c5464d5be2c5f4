"""What the command line says. Every line on stdout and stderr goes through this module.

Much of what is printed was written by others: names of files, interfaces and processes, lines of logs, values of SQL.
A terminal obeys control characters, so none of them is passed on; each is shown as an escape, `\\x1b`.
A line stays one line: a line break within it is shown as `\\n`.

When stdout cannot be written, the command ends: with `CODE_BROKEN_PIPE` and without a word when its reader has gone
(`knee ... | head`), else with exit code 2 and one line on stderr. If stderr cannot be written, messages are
lost: results and exit codes do not depend on it.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO, cast

from . import interrupts

CODE_BROKEN_PIPE = 141
"""128 + SIGPIPE: what a shell reports of a command that the signal ended."""

CODE_LOST = 2

# C0, DEL and C1; Unicode's bidirectional controls; line and paragraph separators; lone surrogates, which stand for
# bytes of a file name that are not UTF-8.
_BIDI_AND_SURROGATES = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_HARMFUL = re.compile(f"[\x00-\x1f\x7f-\x9f{_BIDI_AND_SURROGATES}]")
_HARMFUL_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI_AND_SURROGATES}]")

_ERASED = "\r\x1b[K"
"""To the line's beginning, and nothing behind."""


def printable(text: object) -> str:
    """`text` in one line, in which every harmful character is shown as an escape."""
    return _HARMFUL.sub(_shown, str(text))


def printable_text(text: str) -> str:
    """As `printable`, but line breaks and tabs stay: for text of several lines."""
    return _HARMFUL_IN_TEXT.sub(_shown, text)


def printable_json(text: str) -> str:
    """The same JSON, whose strings have escapes for their harmful characters."""
    return _HARMFUL_IN_TEXT.sub(lambda harmful: f"\\u{ord(harmful[0]):04x}", text)


def csv_cell(text: str) -> str:
    """A text as CSV is to have it: no harmful character, and nothing that a spreadsheet takes for a formula. Ordinary
    users name devices, cgroups and processes; a `'` in front says to a spreadsheet that it is text."""
    text = printable_text(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\n")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def without_harmful(text: str) -> str:
    """`text` less its harmful characters, for a screen whose places are already given away."""
    return _HARMFUL.sub("", text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    # os.fsdecode makes U+DC80 to U+DCFF of the bytes 80 to FF.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else found[0].encode("unicode_escape").decode()


def width(text: str) -> int:
    """Columns that a terminal needs for it."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def line(text: object = "") -> None:
    """One line on stdout."""
    sys.stdout.write(f"{printable(text)}\n")


def lines(texts: Iterable[object]) -> None:
    """Each on a line of its own on stdout."""
    for text in texts:
        line(text)


def json(found: Any, *, allow_nan: bool = True) -> None:
    """One object on stdout, to be parsed again: harmful characters are escaped as JSON has it, other text stays."""
    import json as json_module

    text = json_module.dumps(found, indent=2, ensure_ascii=False, allow_nan=allow_nan)
    sys.stdout.write(printable_json(text) + "\n")


def csv(rows: Iterable[Sequence[Any]]) -> None:
    """Rows on stdout, with `csv_cell`; where a person looks at them, line breaks are escapes as well."""
    import csv as csv_module

    cell = (lambda text: csv_cell(printable(text))) if sys.stdout.isatty() else csv_cell
    rows = ([cell(value) if isinstance(value, str) else value for value in row] for row in rows)
    writer = csv_module.writer(_verbatim(sys.stdout), lineterminator="\n")
    writer.writerows(rows)


def flush() -> None:
    """Passes on what was said so far."""
    sys.stdout.flush()


def warn(text: object) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def progress(text: object) -> None:
    """One line on stderr that the next one writes over; for a terminal."""
    screen = drawing()
    screen.write(f"{_ERASED}{printable(text)}")
    screen.flush()


def progress_ends() -> None:
    """Takes the line of `progress` away."""
    screen = drawing()
    screen.write(_ERASED)
    screen.flush()


def shows_progress(*, quiet: bool = False) -> bool:
    """Whether a person looks at stderr and has not asked for silence."""
    return not quiet and sys.stderr.isatty()


def is_interactive() -> bool:
    """Whether stdin, stdout and stderr are terminals."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def confirmed(question: str) -> bool:
    """Whether who sits at the terminal says yes; no, where nobody does."""
    if not is_interactive():
        warn(f"{question} Nobody can answer here: stdin, stdout and stderr have to be a terminal, or pass --yes.")
        return False
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def drawing() -> TextIO:
    """stderr for what draws on it with control characters, as a bar does. What it draws has to be `printable`."""
    return _verbatim(sys.stderr)


class Lost(Exception):
    """Stdout takes no more."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"knee: stdout: cannot be written ({error.strerror}), so that the output is not complete; expected a file, "
            "pipe or terminal that takes it. Make room, or send the output elsewhere."
        )
        self.by_reader = error.errno == errno.EPIPE


def guarded(command: Callable[[], int]) -> int:
    """Runs `command` and returns the exit code of the process.

    Meanwhile libraries, too, write to stdout and stderr as the functions of this module do.
    """
    _occupy_closed()
    before = sys.stdout, sys.stderr
    out, err = _Stream(sys.stdout, is_needed=True), _Stream(sys.stderr, is_needed=False)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        try:
            code = _code(command)
            out.flush()
        except Lost as lost:
            code = CODE_BROKEN_PIPE if lost.by_reader else CODE_LOST
            if not lost.by_reader:
                warn(lost)
            out.give_up()
        err.give_up_if_broken()
        return code
    finally:
        sys.stdout, sys.stderr = before


def _code(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else CODE_LOST if end.code else 0


class _Stream:
    """A text stream whose `write` makes text printable, and whose failure ends the command or is passed over."""

    def __init__(self, stream: TextIO | None, *, is_needed: bool, is_verbatim: bool = False) -> None:
        self._stream, self._is_needed, self._is_verbatim = stream, is_needed, is_verbatim

    def write(self, text: str) -> int:
        """Takes all of `text`. Raises KeyboardInterrupt: no result of a command that Ctrl-C ends is said."""
        if self._is_needed:
            interrupts.check()
        shown = text if self._is_verbatim else printable_text(text)
        try:
            self._write(shown)
        except OSError as error:
            self._failed(error)
        return len(text)

    def _write(self, text: str) -> None:
        if self._stream is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        """Passes on what is in the buffer."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        if self._is_needed:
            raise Lost(error) from None

    def give_up(self) -> None:
        """Drops what is still in the buffer: at exit Python would try again, complain and change the exit code."""
        if self._stream is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def give_up_if_broken(self) -> None:
        """As `give_up`, where the last attempt fails too."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError:
            self.give_up()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def verbatim(self) -> _Stream:
        """The same stream for text that is passed on as it is."""
        return _Stream(self._stream, is_needed=self._is_needed, is_verbatim=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _verbatim(stream: TextIO) -> TextIO:
    return cast(TextIO, stream.verbatim()) if isinstance(stream, _Stream) else stream


def _occupy_closed() -> None:
    """Opens stdin, stdout and stderr where they are closed, so that no file that is opened later gets their number.

    Each is opened in the direction that it is not used in: using it fails as before.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)


def room() -> int | None:
    """How many columns a line may have: those of the terminal, or what COLUMNS says; None: any number, as in a file."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    # A terminal that does not know its width says 0.
    return (os.get_terminal_size(sys.stdout.fileno()).columns or None) if sys.stdout.isatty() else None


def aligned(
    rows: Sequence[Sequence[str]], *, left: Sequence[bool], rule: int = 1, keys: int = 1, room: int | None = None
) -> list[str]:
    """Rows of text in columns, with a rule after the first `rule` rows.

    A table wider than `room` is folded into several, one below the other; the first `keys` columns begin each."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(width(row[i]) for row in rows) for i in range(len(left))]
    lines: list[str] = []
    for part in _parts(widths, keys, room):
        lines += [""] if lines else []
        begin = len(lines)
        for row in rows:
            cells = []
            for at in part:
                space = " " * (widths[at] - width(row[at]))
                cells.append(row[at] + space if left[at] else space + row[at])
            lines.append("  ".join(cells).rstrip())
        lines.insert(begin + rule, "  ".join("-" * widths[at] for at in part))
    return lines


def _parts(widths: Sequence[int], keys: int, room: int | None) -> list[list[int]]:
    """Which columns stand in each part of a table; a part has one besides the keys, however wide that is."""
    if room is None:
        return [list(range(len(widths)))]
    parts: list[list[int]] = []
    begin = list(range(keys))
    used = 0
    for at in range(keys, len(widths)):
        if not parts or used + 2 + widths[at] > room:
            parts.append([*begin])
            used = sum(widths[:keys]) + 2 * (keys - 1)
        parts[-1].append(at)
        used += 2 + widths[at]
    return parts or [begin]
