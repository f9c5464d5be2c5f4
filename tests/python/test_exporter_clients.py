"""What the exporter does with clients that dawdle, that are too many, or that speak no HTTP."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcpknee.live.prometheus import catalogue, client, server

GET = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
# More than the kernel takes of what nobody reads.
PAGE = random.Random(1).randbytes(20_000_000)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server whose page is PAGE and whose deadlines are short."""
    monkeypatch.setattr(client, "REQUEST_SEC", 0.5)
    monkeypatch.setattr(client, "ANSWER_SEC", 1.0)
    monkeypatch.setattr(server._Page, "body", lambda page, accept, zipped: ("text/plain", PAGE))
    serving = server.Server([("127.0.0.1", 0)])
    serving.publish("{}")
    yield int(serving.urls[0].split(":")[2].split("/")[0])
    serving.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def told(connection: socket.socket) -> tuple[int, bytes, bytes]:
    """Status, head and body of the answer, which must end with the connection."""
    said = b""
    while piece := connection.recv(1 << 20):
        said += piece
    connection.close()
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), head, body


def asked(port: int, request: bytes) -> tuple[int, bytes, bytes]:
    connection = connected(port)
    connection.sendall(request)
    return told(connection)


def test_an_answer_says_how_long_it_is_and_that_nothing_follows(port: int) -> None:
    status, head, body = asked(port, GET)
    assert (status, body == PAGE) == (200, True)
    assert f"Content-Length: {len(PAGE)}".encode() in head and b"Connection: close" in head
    assert b"Server: tcpknee" in head and b"Date: " in head
    status, head, body = asked(port, GET.replace(b"GET", b"HEAD"))
    assert (status, body) == (200, b"")
    assert f"Content-Length: {len(PAGE)}".encode() in head
    assert asked(port, GET.replace(b"HTTP/1.1", b"HTTP/1.0"))[0] == 200


def test_a_client_that_has_closed_its_half_gets_the_whole_answer(port: int) -> None:
    connection = connected(port)
    connection.sendall(GET)
    connection.shutdown(socket.SHUT_WR)
    assert told(connection)[2] == PAGE


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nhello", 405),
        (b"GET /nothing HTTP/1.1\r\nHost: here\r\n\r\n", 404),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a handshake of TLS\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 20_000, 431),
    ],
)
def test_what_is_no_request_for_metrics_is_refused(port: int, request_: bytes, status: int) -> None:
    assert asked(port, request_)[0] == status


def test_a_request_has_a_deadline_however_steadily_its_bytes_come(port: int) -> None:
    connection = connected(port)
    connection.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    began = time.monotonic()
    connection.settimeout(0.05)
    while True:
        try:
            said = connection.recv(4096)
            break
        except TimeoutError:
            assert time.monotonic() - began < 5, "it may go on for ever"
            connection.sendall(b"x")
    assert said.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began >= 0.4
    connection.close()


def test_a_client_that_says_nothing_is_told_so_and_closed(port: int) -> None:
    assert told(connected(port))[0] == 408


def test_a_client_that_does_not_read_is_cut_off_and_costs_no_memory(port: int) -> None:
    before = resident_bytes()
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(port)) for _ in range(50)]
        for connection in silent:
            connection.sendall(GET)
        time.sleep(0.5)
        assert resident_bytes() - before < 2 * len(PAGE)
        # The others are served meanwhile.
        assert asked(port, GET)[0] == 200
        time.sleep(1)
        for connection in silent:
            # Reset, so that the kernel keeps nothing for it either.
            with pytest.raises(ConnectionResetError):
                while connection.recv(1 << 20):
                    pass


def test_one_that_reads_slowly_is_cut_off_too(port: int) -> None:
    connection = connected(port)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(GET)
    began = time.monotonic()
    with pytest.raises(ConnectionResetError):
        while connection.recv(1000):
            assert time.monotonic() - began < 5, "it may go on for ever"
            time.sleep(0.01)
    connection.close()


def test_who_comes_to_a_full_house_is_served_and_the_longest_there_is_refused(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_SEC", 20)
    monkeypatch.setattr(server, "MOST_AT_ONCE", 3)
    serving = server.Server([("127.0.0.1", 0)])
    serving.publish("{}")
    port = int(serving.urls[0].split(":")[2].split("/")[0])
    there = [connected(port) for _ in range(3)]
    time.sleep(0.2)
    assert asked(port, GET)[0] == 200
    status, head, _ = told(there[0])
    assert status == 503 and b"Retry-After: 1" in head
    # The others still have their place.
    for connection in there[1:]:
        connection.sendall(GET)
        assert told(connection)[0] == 200
    serving.close()


def resident_bytes() -> int:
    [kilobytes] = re.findall(r"^VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    return int(kilobytes) * 1024


SNAPSHOT = {
    "by": "port",
    "groups": [],
    "host": {},
    "queues": [
        {"device": "\x1b]0;pwned\x07\u202eeth0\n", "kind": "fq"}
        | {metric.key: 1 for metric in (*catalogue.QDISC_COUNTERS, *catalogue.QDISC_GAUGES)}
    ],
    "sampling": {metric.key: 1 for metric in (*catalogue.SAMPLING_COUNTERS, *catalogue.SAMPLING_GAUGES)}
    | {"cpu": {"user_us": 1, "system_us": 1}},
}


@pytest.fixture(scope="module")
def true_port() -> Iterator[int]:
    """Of a server whose page is a sample's."""
    serving = server.Server([("127.0.0.1", 0)])
    serving.publish(json.dumps(SNAPSHOT))
    yield int(serving.urls[0].split(":")[2].split("/")[0])
    serving.close()


def asking(port: int, *headers: bytes) -> tuple[int, bytes, bytes]:
    return asked(port, b"\r\n".join((b"GET /metrics HTTP/1.1", b"Host: here", *headers, b"", b"")))


PLAIN = b"Content-Type: text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("form", [b"application/openmetrics-text", b"text/plain"])
@pytest.mark.parametrize(
    "version", [b"zzz", b"", b"1.0.0.7", b"-1", b"1e9", b"\xff", b"99999999999999999999", b"1.0.0\t1"]
)
def test_a_version_of_a_format_that_nobody_has_is_answered_in_one_that_is_known(
    true_port: int, form: bytes, version: bytes
) -> None:
    status, head, body = asking(true_port, b"Accept: " + form + b"; version=" + version)
    assert status == 200 and b"tcpknee_samples_total 1.0" in body
    assert re.search(rb"Content-Type: \S+; version=(0\.0\.4|1\.0\.0); charset=utf-8", head)


def test_the_forms_that_prometheus_asks_for_are_given(true_port: int) -> None:
    for asks, answered in (
        (b"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6", b"openmetrics-text; version=1.0.0"),
        (b"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4", b"text/plain; version=1.0.0"),
        (b"text/plain;version=0.0.4;q=0.3,*/*;q=0.2", PLAIN),
        (b"", PLAIN),
    ):
        assert answered in asking(true_port, b"Accept: " + asks)[1], asks


@given(st.lists(st.tuples(st.sampled_from([b"Accept", b"accept-encoding", b"X"]), st.binary(max_size=60)), max_size=4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_headers_a_client_sends_it_gets_an_answer(
    true_port: int, capfd: pytest.CaptureFixture[str], headers: list[tuple[bytes, bytes]]
) -> None:
    lines = (name + b": " + re.sub(rb"[\0\r\n]", b";", value) for name, value in headers)
    assert asking(true_port, *lines)[0] in (200, 400)
    assert capfd.readouterr().err == ""


def test_whatever_goes_wrong_with_an_answer_is_said_in_a_line_and_not_in_the_journal(
    port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(page: object, accept: str, zipped: bool) -> None:
        raise KeyError("secret\n" * 20)

    monkeypatch.setattr(server._Page, "body", broken)
    status, _, body = asked(port, GET)
    assert (status, body.count(b"\n")) == (500, 1) and b"KeyError" in body and b"secret" not in body
    assert capfd.readouterr().err == ""


def test_a_label_has_no_character_that_a_terminal_obeys(true_port: int) -> None:
    for accept in (b"", b"application/openmetrics-text;version=1.0.0"):
        body = asking(true_port, b"Accept: " + accept)[2].decode()
        assert r'device="\\x1b]0;pwned\\x07\\u202eeth0\\n"' in body
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", body)
