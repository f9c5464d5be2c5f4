"""Errors of tcpknee. Each message says what, where, what was got, what was expected and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

MOST_LISTED = 20
"""Mistakes that one refusal lists, as many as the parser of scenarios does."""


class TcpkneeError(Exception):
    """Base of every error that tcpknee raises on purpose; its text is one paragraph for the user."""


class UsageError(TcpkneeError):
    """An invalid argument of a command or of an API call."""


class ScenarioError(TcpkneeError):
    """A scenario that cannot be read: a line `FILE:LINE: KEY: …` for each mistake in it.

    `mistakes` has the line, the key ("" where there is none) and the sentence of each. `expects` and `published` are
    those of the file, as of `_core.Scenario`, that nobody has read yet; "" where there is no text.
    """

    def __init__(
        self,
        message: str,
        mistakes: Sequence[tuple[int, str, str]] = (),
        expects: Sequence[tuple[str, int]] = (),
        published: Sequence[tuple[str, str, str, int]] = (),
    ) -> None:
        super().__init__(message)
        self.mistakes, self.expects, self.published = list(mistakes), expects, published

    @staticmethod
    def of(file: str, mistakes: Sequence[tuple[int, str, str]]) -> ScenarioError:
        """The mistakes of a file, in the order of its lines, the first 20 of them."""
        listed = sorted(mistakes)[:MOST_LISTED]
        lines = [f"{file}:{line}: {f'{key}: ' if key else ''}{said}" for line, key, said in listed]
        if len(mistakes) > len(listed):
            lines.append(
                f"{file}:{listed[-1][0]}: only the first {MOST_LISTED} mistakes are listed. Correct these, then run it "
                "again."
            )
        return ScenarioError("\n".join(lines), listed)

    def renamed(self, who: str, name: Callable[[str], str]) -> ScenarioError:
        """The same of a scenario that `who` composed: each key by the name that its value was given under."""
        lines = (f"{who}: {f'{name(key)}: ' if key else ''}{said}" for _, key, said in self.mistakes)
        return ScenarioError("\n".join(lines), self.mistakes)


class EngineError(TcpkneeError):
    """An engine that cannot run a cell, or stopped while running one."""


class AlgorithmFailed(EngineError):
    """An algorithm from a file did what none may, which ended its repetition. `call` is the call that did it, as a
    reproducer holds it."""

    def __init__(self, message: str, call: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.call = dict(call or {})


class KernelUnsupported(EngineError):
    """A thing asked of the kernel that this kernel does not offer."""


class ClusterError(TcpkneeError):
    """A cluster that was lost, or whose workers cannot run this."""


class WorkerLost(TcpkneeError):
    """A process of this host that worked for a command is gone."""


class RunFolderError(TcpkneeError):
    """A run folder that cannot be read, written or taken up again."""


class MissingTable(RunFolderError):
    """A table asked of a run that does not hold it."""


class MissingColumn(RunFolderError):
    """A column asked of a table that does not hold it."""


class Cancelled(TcpkneeError):
    """A repetition stopped by its `Cancel` before its end; nothing of it is kept."""
