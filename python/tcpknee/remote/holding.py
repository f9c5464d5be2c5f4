"""Settings of two hosts, held for the time of a run by a process of root on each (`crates/hold`), which puts them back
whatever happens: it ends with its connection, with a word, at a deadline, or when nothing is heard of this process."""

from __future__ import annotations

import json
import os
import selectors
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from tcpknee.errors import EngineError
from tcpknee.shapes import mistake

from . import answers
from .settings import Setting
from .transport import Connection

SILENCE_SEC = 60
"""A host puts everything back when it hears nothing for so long: the network between is gone."""

_BEAT_SEC = 5.0
_PATIENCE_SEC = 30.0
"""For an answer; a qdisc of many queues takes a second."""

_MOST_LINE_BYTES = 4 << 20


class Holder:
    """Root's process on a host, with settings that it holds."""

    def __init__(self, role: str, name: str, settings: Sequence[Setting], deadline_sec: int) -> None:
        self.where = f"{role} {name}"
        self.back: dict[str, Any] | None = None
        self._rest = b""
        self._connection = Connection(name, self.where, holds=True)
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, name=f"beat {role}", daemon=True)
        try:
            self._tell({"do": "hold", "settings": settings, "deadline_s": deadline_sec, "silence_s": SILENCE_SEC})
            said = self._answer()
            if "held" not in said:
                raise EngineError(
                    f"{self.where}: a setting cannot be made: {said.get('error', 'no reason is told.')} "
                    f"{_not_back(said) or 'Nothing stays changed there.'}"
                )
        except BaseException:
            self._connection.close()
            raise
        self.held: list[dict[str, str]] = said["held"]
        self._beating.start()

    def _beat(self) -> None:
        while not self._over.wait(_BEAT_SEC):
            with suppress(EngineError):
                self._tell({"do": "beat"})

    def _tell(self, what: Mapping[str, Any]) -> None:
        try:
            self._connection.write(json.dumps(what).encode() + b"\n", _PATIENCE_SEC)
        except (BrokenPipeError, ValueError):
            raise self._connection.lost() from None

    def _answer(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE_SEC
        descriptor = self._connection.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise EngineError(f"{self.where}: who holds its settings said nothing for {_PATIENCE_SEC:.0f} s.")
                read = os.read(descriptor, 1 << 16)
                if not read:
                    raise self._connection.lost(self._rest.decode(errors="replace"))
                self._rest += read
                if len(self._rest) > _MOST_LINE_BYTES:
                    raise EngineError(f"{self.where}: who holds its settings says more than {_MOST_LINE_BYTES} bytes.")
        line, self._rest = self._rest.split(b"\n", 1)
        try:
            found: dict[str, Any] = answers.read(line)
        except ValueError:
            raise self._connection.lost(line.decode(errors="replace")) from None
        if why := mistake(answers.HELD, found):
            raise EngineError(f"{self.where}: who holds its settings said what it never says: {why.lstrip(': ')}.")
        return found

    def check(self) -> None:
        """Raises EngineError where the host has put its settings back by itself."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.stdout, selectors.EVENT_READ)
            if not selector.select(0):
                return
        said = self._answer()
        self.back = said
        raise EngineError(
            f"{self.where}: its settings were put back before the end of the run, because {said.get('why', '?')}."
        )

    def end(self) -> list[str]:
        """Has everything put back; returns what was not, in words."""
        self._over.set()
        if self._beating.ident is not None:
            self._beating.join()
        try:
            if self.back is None:
                self._tell({"do": "end"})
                self.back = self._answer()
        except EngineError as error:
            return [
                f"{self.where}: did not say that it has put its settings back ({str(error).rstrip('.')}); it does so "
                f"by itself within {SILENCE_SEC} s"
            ]
        finally:
            self._connection.close()
        said = _not_back(self.back)
        return [f"{self.where}: {said}"] if said else []


def _not_back(said: Mapping[str, Any]) -> str:
    left = [f"{one['setting']}: {one['said']}" for one in said.get("back", ()) if not one["is_back"]]
    return f"Not put back: {' '.join(left)}" if left else ""


def _ended(one: Holder, warn: list[str]) -> None:
    warn.extend(one.end())


@contextmanager
def held(
    names: Mapping[str, str], settings: Mapping[str, Sequence[Setting]], deadline_sec: int, warn: list[str]
) -> Iterator[dict[str, Holder]]:
    """Holds the settings of each host, by its role, until the end; adds to `warn` what was not put back."""
    with ExitStack() as stack:
        found = {}
        for role, name in names.items():
            if settings.get(role):
                one = Holder(role, name, settings[role], deadline_sec)
                found[role] = one
                stack.callback(_ended, one, warn)
        yield found
