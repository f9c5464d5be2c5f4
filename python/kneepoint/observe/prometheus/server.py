"""The HTTP server that Prometheus asks: `/metrics`, on loopback unless told otherwise."""

from __future__ import annotations

import errno
import gzip
import ipaddress
import json
import re
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.exposition import choose_encoder

from kneepoint.errors import UsageError

from .families import Families

FORMS = (
    'a port for loopback, ":9757", or an address of this host with it, "0.0.0.0:9757", "192.0.2.1:9757", "[::]:9757"'
)
MOST_AT_ONCE = 16
"""Answers under way; who comes then is sent away. Each has a thread."""
PATIENCE_S = 10
"""A connection on which nothing moves for so long is closed."""
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


class _Page:
    """One sample, in each form that was asked for: made once, however many ask."""

    def __init__(self, snapshot: str) -> None:
        self._snapshot = snapshot
        self._made: dict[tuple[str, bool], bytes] = {}
        self._lock = threading.Lock()

    def body(self, accept: str, zipped: bool) -> tuple[str, bytes]:
        """The content type and the bytes."""
        encode, content_type = choose_encoder(accept)
        with self._lock:
            if (content_type, zipped) not in self._made:
                plain = self._made.get((content_type, False))
                if plain is None:
                    plain = self._made[content_type, False] = encode(Families(json.loads(self._snapshot)))
                if zipped:
                    self._made[content_type, True] = gzip.compress(plain, compresslevel=1)
            return content_type, self._made[content_type, zipped]


class Server:
    """Listens from the beginning and answers from the first sample on."""

    def __init__(self, wanted: Sequence[Address]) -> None:
        """Raises UsageError for an address that is not to be had."""
        self._page: _Page | None = None
        self._servers: list[_Listener] = []
        try:
            for host, port in wanted:
                # Port 0 is any, and the same one for both loopbacks.
                chosen = port or (self._servers[0].server_port if self._servers else 0)
                if (listener := _listener(host, chosen, self, optional=bool(self._servers))) is not None:
                    self._servers.append(listener)
        except UsageError:
            self.close()
            raise

    @property
    def urls(self) -> list[str]:
        """Where it listens."""
        return [server.url for server in self._servers]

    def publish(self, snapshot: str) -> None:
        """Takes a sample, a JSON object; with the first one answers begin."""
        begins = self._page is None
        self._page = _Page(snapshot)
        if begins:
            for server in self._servers:
                threading.Thread(target=server.serve_forever, name=server.url, daemon=True).start()

    def body(self, accept: str, zipped: bool) -> tuple[str, bytes]:
        """The content type and the bytes of the last sample."""
        assert self._page is not None, "answers begin with the first sample"
        return self._page.body(accept, zipped)

    def close(self) -> None:
        """Ends it; answers under way are cut off with the process."""
        # Each looks up only now and then, so they are told at once.
        ends = [threading.Thread(target=server.shutdown) for server in self._servers if self._page is not None]
        for end in ends:
            end.start()
        for end in ends:
            end.join()
        for server in self._servers:
            server.server_close()


def _listener(host: str, port: int, server: Server, *, optional: bool) -> _Listener | None:
    """None: a loopback that this host does not have."""
    try:
        return _Listener(host, port, server)
    except OSError as error:
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"--prometheus: {where} is in use; expected a free port. `ss -tlnp 'sport = :{port}'` says by whom; "
                f"choose another, as in --prometheus :{port + 1 if port < 65535 else 9757}."
            ) from None
        raise UsageError(f"--prometheus: cannot listen on {where}: {error.strerror}; expected {FORMS}.") from None


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, server: Server) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = server
        self._room = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((host, port), _Handler)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_port}/metrics"

    def server_bind(self) -> None:
        """Binds, without asking the resolver for our own name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        bound = self.socket.getsockname()
        self.server_address, self.server_name, self.server_port = bound, bound[0], bound[1]

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """A thread for it while there is room."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Makes room again, however it ended."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    timeout = PATIENCE_S

    def version_string(self) -> str:
        """Nothing of Python."""
        return "kneepoint"

    def do_GET(self) -> None:
        """The metrics."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            zipped = "gzip" in self.headers.get("Accept-Encoding", "")
            content_type, body = self.server.pages.body(self.headers.get("Accept", ""), zipped)
            self._send(HTTPStatus.OK, content_type, body, zipped)
        elif path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", _INDEX)
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"The metrics are at /metrics.\n")

    do_HEAD = do_GET  # noqa: N815  (the library's name)

    def _send(self, status: HTTPStatus, content_type: str, body: bytes, zipped: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Vary", "Accept, Accept-Encoding")
        if zipped:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape is not worth a line."""
