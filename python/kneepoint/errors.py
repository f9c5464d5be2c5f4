"""Errors of Kneepoint. Each message says what, where, what was got, what was expected and what to do next."""

from __future__ import annotations


class KneepointError(Exception):
    """Base of every error that Kneepoint raises on purpose; its text is one paragraph for the user."""


class UsageError(KneepointError):
    """An argument of a command or of an API call that cannot be meant."""


class ScenarioError(KneepointError):
    """A scenario that cannot be read; begins with `FILE:LINE:`."""


class EngineError(KneepointError):
    """An engine that cannot run a cell, or stopped while running one."""


class KernelUnsupported(EngineError):
    """A thing asked of the kernel that this kernel does not offer."""


class RunFolderError(KneepointError):
    """A run folder that cannot be read, written or taken up again."""


class MissingTable(RunFolderError):
    """A table asked of a run that does not hold it."""


class Cancelled(KneepointError):
    """A repetition stopped by its `Cancel` before its end; nothing of it is kept."""
