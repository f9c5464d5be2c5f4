"""What is said with a helper: lines of JSON each way (`crates/remote/src/asked.rs` and `said.rs`)."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tcpknee.errors import EngineError

from . import answers
from .transport import Connection, check_name, cut

PATIENCE_SEC = 20.0
"""How long a helper may say nothing that was asked."""

_HEARTBEAT_SEC = 8.0
"""How often a helper hears something, which it ends without."""

_END_SEC = 1.0
"""How long an error of one helper waits for the end of the other, which would be its cause."""

_PINGS = 10

_ANSWERS = {"ping": "pong", "lock": "locked", "prepare": "listening"}
"""By what was asked, where they have another name."""

_MOST_LINE_BYTES = 32 << 20
_MOST_RECORDS_BYTES = 576 << 20
"""A helper leaves samples out from 512 MiB on; the last ones may take it beyond that."""

_MOST_LEFT_BYTES = 4096
"""Of a line that broke off, what is looked at."""

SLOWEST_BYTES_PER_SEC = 10_000
"""Samples and packets that come more slowly than this are given up."""


@dataclass(frozen=True)
class Clock:
    """A host's monotonic clock beside ours: what to add to ours, and how far that may be off; and how far its calendar
    is from ours."""

    offset_ns: int
    uncertainty_ns: int
    calendar_ns: int


class Helper:
    """A helper on a host; `role` is sender or receiver. `as_root`: root's, which may capture packets."""

    def __init__(self, role: str, name: str, *, as_root: bool = False) -> None:
        self.role, self.name = role, check_name(f"--{role}", name)
        self.where = f"{role} {name}"
        self._rest = bytearray()
        self._looked = 0
        self._delivering: dict[str, Any] | None = None
        """Said already; its records are still to come, until `_until`."""
        self._until = 0.0
        self._heard = time.monotonic()
        self._connection = Connection(name, self.where, as_root=as_root)
        self._telling, self._ended = threading.Lock(), threading.Event()
        threading.Thread(target=self._keep_alive, daemon=True).start()
        try:
            self.facts: Mapping[str, Any] = self.ask("hello")
        except BaseException:
            self.close()
            raise

    def tell(self, ask: str, **words: Any) -> None:
        """Asks without waiting for an answer."""
        try:
            with self._telling:
                self._connection.write(json.dumps({"ask": ask, **words}).encode() + b"\n", PATIENCE_SEC)
        except (BrokenPipeError, ValueError):
            raise self._connection.lost(self._line_left()) from None

    def ask(self, ask: str, *, patience_sec: float | None = None, **words: Any) -> Any:
        """Asks, and waits for the answer. `patience_sec`: how long, where it is work. Raises `EngineError`."""
        expected = _ANSWERS.get(ask, ask)
        patience_sec = patience_sec or PATIENCE_SEC
        self.tell(ask, **words)
        until = time.monotonic() + patience_sec
        while time.monotonic() < until:
            for said in self.hear(0.5):
                # One that the heartbeat asked for comes in between.
                if "pong" in said and said["pong"]["n"] != words.get("n"):
                    continue
                if expected not in said:
                    raise self._wrong(f"got {next(iter(said))}; expected {expected}")
                return said[expected]
        raise self.late(patience_sec)

    def late(self, patience_sec: float) -> EngineError:
        """It has not said in time what was to be said."""
        return EngineError(
            f"{self.where}: did not answer within {patience_sec:.0f} s. The host or the way to it is gone or very slow."
        )

    def hear(self, patience_sec: float) -> list[dict[str, Any]]:
        """What it has said, at once where there is something. Raises `EngineError` for its errors and its end."""
        found = list(self._take())
        if not found:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection.stdout, selectors.EVENT_READ)
                if selector.select(patience_sec):
                    self.read()
                    found = list(self._take())
        return found

    def fileno(self) -> int:
        return self._connection.stdout.fileno()

    def read(self) -> None:
        """Takes in what has come."""
        read = os.read(self.fileno(), 1 << 20)
        if not read:
            raise self._connection.lost(self._line_left())
        self._rest += read
        self._heard = time.monotonic()

    def _keep_alive(self) -> None:
        """Lets it hear something now and then, whatever this process waits for: the other host, or the user."""
        while not self._ended.wait(_HEARTBEAT_SEC):
            with contextlib.suppress(EngineError):
                self.tell("ping", n=0)

    def check_alive(self) -> None:
        """Raises `EngineError` where nothing comes back, or samples come too slowly to wait for."""
        now = time.monotonic()
        if now - self._heard > PATIENCE_SEC:
            raise self._connection.lost()
        if self._delivering is not None and now > self._until:
            raise EngineError(
                f"{self.where}: its samples come more slowly than {SLOWEST_BYTES_PER_SEC / 1000:.0f} kB/s. Take a "
                "faster way to the host, or fewer samples (sample_interval)."
            )

    def look_for_its_end(self) -> None:
        """Raises `EngineError` where it is gone: its host's kernel tells the other host so before ssh tells us."""
        until = time.monotonic() + _END_SEC
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection.stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, until - time.monotonic())):
                self.read()

    @property
    def is_delivering(self) -> bool:
        """It has said that it is done, and its samples are on their way."""
        return self._delivering is not None

    def _take(self) -> Iterator[dict[str, Any]]:
        """Whole messages of what was read."""
        while True:
            if self._delivering is not None:
                of_records = _with_records(self._delivering)
                assert of_records is not None
                length = of_records["records_bytes"]
                if len(self._rest) < length:
                    return
                said, self._delivering = self._delivering, None
                with memoryview(self._rest) as view:
                    of_records["records"] = bytes(view[:length])
                del self._rest[:length]
                yield said
                continue
            end = self._rest.find(b"\n", self._looked)
            if (len(self._rest) if end < 0 else end) > _MOST_LINE_BYTES:
                raise EngineError(f"{self.where}: says a line of more than {_MOST_LINE_BYTES} bytes; it is no helper.")
            if end < 0:
                self._looked = len(self._rest)
                return
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._looked = 0
            said = self._read(line)
            if self._delivering is None:
                yield said

    def _read(self, line: bytes) -> dict[str, Any]:
        try:
            found = answers.read(line)
        except ValueError:
            text = line.decode(errors="replace")
            raise (
                self._connection.lost(text)
                if text.startswith("tcpknee-")
                else EngineError(
                    f"{self.where}: said {line[:200]!r}, which is no line of the helper's; this is a defect."
                )
            ) from None
        try:
            said = answers.of_helper(found)
        except ValueError as error:
            raise self._wrong(str(error)) from None
        if "error" in said:
            raise EngineError(f"{self.where}: {cut(str(said['error'])).removesuffix('.')}.")
        if of_records := _with_records(said):
            length = of_records["records_bytes"]
            if not 0 <= length <= _MOST_RECORDS_BYTES:
                raise EngineError(
                    f"{self.where}: got {length} bytes of records; expected at most {_MOST_RECORDS_BYTES}."
                )
            self._delivering = said
            self._until = time.monotonic() + PATIENCE_SEC + length / SLOWEST_BYTES_PER_SEC
        return said

    def _wrong(self, why: str) -> EngineError:
        return EngineError(
            f"{self.where}: said what no helper says: {why}. Nothing of this repetition is kept. Is somebody else in "
            "its place there?"
        )

    def _line_left(self) -> str:
        return self._rest[:_MOST_LEFT_BYTES].split(b"\n")[0].decode(errors="replace")

    def compare_clocks(self) -> Clock:
        """Of several questions the one that was answered soonest: its answer was given between the asking and the
        hearing, so that it is off by half of that at most."""
        best: Clock | None = None
        for n in range(1, _PINGS + 1):
            asked = time.monotonic_ns()
            pong = self.ask("ping", n=n)
            heard = time.monotonic_ns()
            calendar = time.time_ns() - (heard - asked) // 2
            half = (heard - asked + 1) // 2
            if best is None or half < best.uncertainty_ns:
                best = Clock(pong["monotonic_ns"] - asked - half, half, pong["realtime_ns"] - calendar)
        assert best is not None
        return best

    def close(self) -> None:
        """Ends it."""
        self._ended.set()
        self._connection.close()


def _with_records(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was said, where records follow it."""
    value: dict[str, Any] | None = said.get("done", said.get("captured"))
    return value


@contextmanager
def helpers(sender: str, receiver: str, *, as_root: bool = False) -> Iterator[tuple[Helper, Helper]]:
    """A helper on each host until the end, an ordinary user's or root's."""
    with ExitStack() as stack:
        pair = []
        for role, name in (("sender", sender), ("receiver", receiver)):
            one = Helper(role, name, as_root=as_root)
            stack.callback(one.close)
            pair.append(one)
        yield pair[0], pair[1]


def lock(pair: Sequence[Helper]) -> None:
    """Has both hosts to this run alone until the helpers end. Raises `EngineError` with who else tests there."""
    who = f"{getpass.getuser()}@{socket.gethostname()}, process {os.getpid()}, {secrets.token_hex(4)}"
    for one in pair:
        holder = one.ask("lock", who=who)
        # Both may be one machine.
        if holder is not None and holder["who"] != who:
            since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(holder["since_unix_s"]))
            raise EngineError(
                f"{one.where}: another test runs there, of {holder['who']}, since {since}. Two at once would measure "
                "each other: wait for its end."
            )


def listen(
    pair: Sequence[Helper], take: Callable[[Helper, dict[str, Any]], bool], cancelled: Callable[[], bool]
) -> None:
    """Hands on what helpers say until `take` says that it was all, or somebody cancels."""
    with selectors.DefaultSelector() as selector:
        for one in pair:
            selector.register(one, selectors.EVENT_READ)
        while not cancelled():
            for key, _ in selector.select(0.1):
                key.fileobj.read()  # type: ignore[union-attr]
            for one in pair:
                one.check_alive()
                try:
                    for said in one._take():
                        if take(one, said):
                            return
                except EngineError:
                    for other in pair:
                        if other is not one:
                            other.look_for_its_end()
                    raise
