"""The HTTP server that Prometheus asks: `/metrics`, on loopback unless told otherwise."""

from __future__ import annotations

import asyncio
import errno
import gzip
import ipaddress
import json
import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus

import h11
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tcpknee.errors import UsageError

from .client import ANSWER_SEC, Answer, Client, Clients, text
from .families import Families

FORMS = (
    'a port for loopback, ":9757", or an address of this host with it, "0.0.0.0:9757", "192.0.2.1:9757", "[::]:9757"'
)
MOST_AT_ONCE = 512
"""Clients at once. Who comes then takes the place of the one that has been there longest: a scrape takes milliseconds,
so clients that dawdle give way to each other and not to it in theirs."""
_MET_AT_ONCE = 32
"""Clients that are let in before others are heard again: a crowd that comes at once displaces nobody who asks."""
_BACKLOG = 512
"""Connections that the kernel holds until we let them in."""
_INDEX = b'<!doctype html><title>knee export</title><p>Metrics of TCP on this host: <a href="/metrics">/metrics</a>\n'

Address = tuple[str, int]


def addresses(text: str) -> list[Address]:
    """Where to listen. Raises UsageError for what is no address."""
    found = re.fullmatch(r"(?:(?P<host>.*):)?(?P<port>[0-9]{1,5})", text)
    if not found or int(found["port"]) > 65535:
        raise UsageError(f'--prometheus: got "{text}"; expected {FORMS}.')
    host, port = found["host"], int(found["port"])
    if host in (None, "", "localhost"):
        return [("127.0.0.1", port), ("::1", port)]
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        raise UsageError(
            f'--prometheus: got "{text}", whose address "{host}" is none; expected {FORMS}. Names are not looked up.'
        ) from None
    if address.version == 6 and bare == host:
        raise UsageError(f'--prometheus: got "{text}"; write an IPv6 address in brackets: "[{host}]:{port}".')
    return [(bare, port)]


_KNOWN_FORM = re.compile(r"version=(0\.0\.4|1\.0\.0);")
"""Versions of the formats that Prometheus asks for. A client may ask for any number, each of which would be kept."""


def _form(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    """What makes the text that a client accepts, and its content type; of what nobody knows the plain form."""
    with suppress(Exception):
        encode, content_type = choose_encoder(accept)
        if _KNOWN_FORM.search(content_type):
            return encode, content_type
    return choose_encoder("")


class _Page:
    """One sample, in each form that was asked for: made once, however many ask."""

    def __init__(self, snapshot: str) -> None:
        self._snapshot = snapshot
        self._made: dict[tuple[str, bool], bytes] = {}

    def body(self, accept: str, zipped: bool) -> tuple[str, bytes]:
        """The content type and the bytes."""
        encode, content_type = _form(accept)
        if (content_type, zipped) not in self._made:
            plain = self._made.get((content_type, False))
            if plain is None:
                plain = self._made[content_type, False] = encode(Families(json.loads(self._snapshot)))
            if zipped:
                self._made[content_type, True] = gzip.compress(plain, compresslevel=1)
        return content_type, self._made[content_type, zipped]


class Server:
    """Listens from the beginning and answers from the first sample on, all clients in one thread."""

    def __init__(self, wanted: Sequence[Address]) -> None:
        """Raises UsageError for an address that is not available."""
        self._page: _Page | None = None
        self._listeners: list[socket.socket] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        try:
            for host, port in wanted:
                # Port 0 is any, and the same one for both loopbacks.
                chosen = port or (self._listeners[0].getsockname()[1] if self._listeners else 0)
                if (listener := _listener(host, chosen, optional=bool(self._listeners))) is not None:
                    self._listeners.append(listener)
        except UsageError:
            self.close()
            raise

    @property
    def urls(self) -> list[str]:
        """Where it listens."""
        return [f"http://{_shown(*listener.getsockname()[:2])}/metrics" for listener in self._listeners]

    def publish(self, snapshot: str) -> None:
        """Takes a sample, a JSON object; with the first one answers begin."""
        self._page = _Page(snapshot)
        if self._thread is None:
            begun = threading.Event()
            self._thread = threading.Thread(target=asyncio.run, args=[self._serve(begun)], name="answers", daemon=True)
            self._thread.start()
            begun.wait()

    def close(self) -> None:
        """Ends it; answers under way are cut off."""
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        for listener in self._listeners:
            listener.close()

    async def _serve(self, begun: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        clients = Clients(MOST_AT_ONCE, self._answer)
        for listener in self._listeners:
            await self._loop.create_server(lambda: Client(clients), sock=listener, backlog=_MET_AT_ONCE)
            # asyncio has one number for both.
            listener.listen(_BACKLOG)
        begun.set()
        await self._stop.wait()
        clients.cut()

    def _answer(self, request: h11.Request) -> Answer:
        """The metrics."""
        if request.method not in (b"GET", b"HEAD"):
            return text(HTTPStatus.METHOD_NOT_ALLOWED, "Metrics are for GET.\n", ("Allow", "GET, HEAD"))
        path = request.target.partition(b"?")[0]
        if path == b"/":
            return Answer(HTTPStatus.OK, "text/html; charset=utf-8", _INDEX)
        if path != b"/metrics":
            return text(HTTPStatus.NOT_FOUND, "The metrics are at /metrics.\n")
        assert self._page is not None, "answers begin with the first sample"
        zipped = "gzip" in _header(request, b"accept-encoding")
        content_type, body = self._page.body(_header(request, b"accept"), zipped)
        encoding = [("Content-Encoding", "gzip")] if zipped else []
        return Answer(HTTPStatus.OK, content_type, body, (("Vary", "Accept, Accept-Encoding"), *encoding))


def _header(request: h11.Request, name: bytes) -> str:
    """What all lines of that name say."""
    return ", ".join(value.decode("latin-1") for given, value in request.headers if given == name)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _listener(host: str, port: int, *, optional: bool) -> socket.socket | None:
    """None: a loopback that this host does not have."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = _shown(host, port)
        if optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"--prometheus: {where} is in use; expected a free port. `ss -tlnp 'sport = :{port}'` says by whom; "
                f"choose another, as in --prometheus :{port + 1 if port < 65535 else 9757}."
            ) from None
        raise UsageError(f"--prometheus: cannot listen on {where}: {error.strerror}; expected {FORMS}.") from None
    # Connections inherit it: the kernel drops what a client does not take, also once we have closed.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(ANSWER_SEC * 1000))
    return listener
