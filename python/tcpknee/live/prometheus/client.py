"""One client of the exporter: what it asks, the answer, and a deadline for each. The protocol is h11's."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

import h11

REQUEST_SEC = 5.0
"""From the connection to the last byte of the request's head, however steadily it comes."""
ANSWER_SEC = 10.0
"""Until the client has all of the answer and has closed; Prometheus waits as long by default."""
MOST_REQUEST_BYTES = 16 * 1024
"""Of a request's head."""
_PIECE_BYTES = 64 * 1024
"""What is handed to the kernel at once: a client that does not read costs us no more than this."""


@dataclass(frozen=True)
class Answer:
    """What a client is told."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def text(status: HTTPStatus, said: str, *headers: tuple[str, str]) -> Answer:
    """A line for whoever reads it."""
    return Answer(status, "text/plain; charset=utf-8", said.encode(), headers)


class Clients:
    """Who is connected, in the order of their coming, `most` at once."""

    def __init__(self, most: int, answer: Callable[[h11.Request], Answer]) -> None:
        self.most, self.answer = most, answer
        self._there: dict[Client, None] = {}

    def come(self, client: Client) -> None:
        """Lets it in. Where there is no room, the one that came first gives way."""
        if len(self._there) >= self.most:
            longest = next(iter(self._there))
            self.go(longest)
            longest.give_way()
        self._there[client] = None

    def go(self, client: Client) -> None:
        """It is connected no more."""
        self._there.pop(client, None)

    def cut(self) -> None:
        """Ends them all at once."""
        for client in self._there:
            client.cut()


class Client(asyncio.Protocol):
    """A connection: one request, its answer, the end."""

    _transport: asyncio.Transport
    _deadline: asyncio.TimerHandle

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_REQUEST_BYTES)
        self._unsent: memoryview | None = None
        """What is left of the answer; None before there is one."""
        self._full = False
        """The kernel takes no more."""
        self._heard_all = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Gives it the time for a request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # Nothing waits here for the kernel but the rest of one piece.
        transport.set_write_buffer_limits(high=0)
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_SEC, self._late)
        self._clients.come(self)

    def data_received(self, data: bytes) -> None:
        """Answers when the request's head is whole; what follows it means nothing."""
        if self._unsent is not None:
            return
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            self._tell(text(HTTPStatus(error.error_status_hint), f"This is no request of HTTP: {error}.\n"))
            return
        if isinstance(event, h11.Request):
            try:
                answer = self._clients.answer(event)
            except Exception as error:
                # Who asks may say anything, and is not to fill the journal with what it makes of us.
                said = f"The metrics could not be made, which is a defect: {type(error).__name__}.\n"
                answer = text(HTTPStatus.INTERNAL_SERVER_ERROR, said)
            self._tell(answer, head_only=event.method == b"HEAD")

    def eof_received(self) -> bool:
        """Whether the answer is still to be sent; else the connection is closed."""
        self._heard_all = True
        return bool(self._unsent)

    def pause_writing(self) -> None:
        """The kernel takes no more."""
        self._full = True

    def resume_writing(self) -> None:
        """It does again."""
        self._full = False
        self._send()

    def connection_lost(self, reason: Exception | None) -> None:
        """Makes room."""
        self._deadline.cancel()
        self._clients.go(self)

    def give_way(self) -> None:
        """Ends it now, in favour of another; a client that has no answer yet is told so."""
        if self._unsent is None:
            self._tell(text(HTTPStatus.SERVICE_UNAVAILABLE, "Too many clients at once.\n", ("Retry-After", "1")))
            self._transport.close()
        else:
            self.cut()

    def cut(self) -> None:
        """Ends it at once; the kernel too forgets what the client has not taken."""
        connection = self._transport.get_extra_info("socket")
        # It may have gone already.
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _late(self) -> None:
        self._tell(text(HTTPStatus.REQUEST_TIMEOUT, f"The request was not complete within {REQUEST_SEC:g} s.\n"))

    def _tell(self, answer: Answer, *, head_only: bool = False) -> None:
        self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(ANSWER_SEC, self.cut)
        headers = [
            ("Date", formatdate(usegmt=True)),
            ("Server", "tcpknee"),
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Connection", "close"),
            *answer.headers,
        ]
        status = answer.status
        head = h11.Response(status_code=status.value, reason=status.phrase, headers=headers)
        self._unsent = memoryview(b"" if head_only else answer.body)
        self._transport.write(self._http.send(head) or b"")
        self._send()

    def _send(self) -> None:
        """As much as the kernel takes. The client closes when it has all, or we do at the deadline."""
        assert self._unsent is not None
        while self._unsent and not self._full:
            piece, self._unsent = self._unsent[:_PIECE_BYTES], self._unsent[_PIECE_BYTES:]
            self._transport.write(self._http.send(h11.Data(data=piece)) or b"")  # type: ignore[arg-type]
        if not self._unsent and not self._full:
            if self._heard_all:
                self._transport.close()
            else:
                # It may have gone already.
                with suppress(OSError):
                    self._transport.write_eof()
