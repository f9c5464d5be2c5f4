"""Processes of ours: a module of this very package, and nothing of the folder that we were called in, where anybody may
have put an `ast.py`."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RUN = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""As `python -P -m`, which Python 3.10 does not have."""


def command(module: str, *words: str) -> tuple[str, ...]:
    """The words that run a module of ours, where `environment` is its environment."""
    return (sys.executable, "-c", _RUN, module, *words)


def environment() -> dict[str, str]:
    """Ours, and where this package is. What such a process starts in turn takes nothing of the folder either."""
    paths = [str(Path(__file__).absolute().parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONSAFEPATH": "1"}


@contextmanager
def safe() -> Iterator[None]:
    """What Python itself starts meanwhile, for multiprocessing, takes nothing of the folder; from Python 3.11 on."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def end_with(parent: int) -> None:
    """This process ends when that one does, which started it, however that ends."""
    try:
        is_there = os.pidfd_open(parent)
    except ProcessLookupError:
        os._exit(1)
    # Another process may have that number by now.
    if os.getppid() != parent:
        os._exit(1)

    def follow() -> None:
        select.select([is_there], [], [])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
