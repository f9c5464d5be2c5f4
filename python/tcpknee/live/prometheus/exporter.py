"""The exporter: samples in native code, answers by the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tcpknee import _core
from tcpknee.live.record import stop_signals

from .server import Server, addresses


def export(where: str, asked: dict[str, Any], *, ready: Callable[[Sequence[str], Sequence[str]], None]) -> None:
    """Answers at `where` until SIGINT, SIGTERM or SIGHUP comes.

    After the first sample `ready` gets the URLs and the values of `asked["by"]` that this host has nothing of yet.

    `asked` has the options of `knee export --prometheus` as texts.
    Raises UsageError for an invalid text or an address that is not available, EngineError where the
    kernel refuses.
    """
    server = Server(addresses(where))
    told = False

    def publish(snapshot: str) -> None:
        nonlocal told
        server.publish(snapshot)
        if not told:
            told = True
            ready(server.urls, json.loads(snapshot)["absent"])

    try:
        with stop_signals() as stop:
            _core.export(json.dumps(asked), stop, publish)
    finally:
        server.close()
