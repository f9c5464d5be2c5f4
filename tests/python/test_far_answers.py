"""What a far host says that no helper of ours would: one error with the host and the place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tcpknee.errors import EngineError, TcpkneeError
from tcpknee.remote import helper, holding

HELLO: dict[str, Any] = {
    "version": "1",
    "machine": "x86_64",
    "kernel": "6.1",
    "host": "h",
    "boot": "b",
    "uid": 0,
    "processors": 1,
    "ssh": None,
    "available": ["reno"],
    "allowed": ["reno"],
    "counters": {"cpu_ms": 1},
}
PAGE = {"number": 0, "counts": [0, 0, 0, 0]}
HISTOGRAM = {"count": 0, "sum": 0, "range": [(1 << 64) - 1, 0], "current": PAGE, "place": 0, "pages": []}
REPORT = {"latency_us": HISTOGRAM, "writes": 1, "reads": None, "tcp_info": [1]}
CONNECTION: dict[str, Any] = {"group": 0, "ends": [["10.0.0.1", 5201], ["::1", 40_000]], "congestion": "bbr"}
PROGRAM: dict[str, Any] = {
    "group": 0,
    "role": "server",
    "start_ns": -5,
    "wall_us": 7,
    "exit_code": None,
    "signal": 15,
    "printed": "ready",
}
DONE: dict[str, Any] = {
    "start_ns": 1,
    "ended_ns": 1,
    "progress": [[1, [1, None, None, None]]],
    "reports": [REPORT],
    "congestion": {"0": "reno"},
    "connections": [CONNECTION],
    "programs": [PROGRAM],
    "samples": 1,
    "missed": 0,
    "records_bytes": 0,
}
PATH = {
    "rtt_us_least": 1.5,
    "rtt_us_median": 2.0,
    "connect_us": 1.0,
    "rate_bits_per_sec": None,
    "retransmit_pct": None,
    "bytes": 1,
}

Saying = Callable[..., None]


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> Saying:
    """Has the far host say these lines, one for each that it hears."""

    def say(*lines: Any) -> None:
        class Far:
            def __init__(self, *_: Any, **__: Any) -> None:
                read, self.far = os.pipe()
                self.left, self.stdin, self.stdout = list(lines), self, os.fdopen(read, "rb")

            def write(self, *_: Any) -> None:
                line = self.left.pop(0)
                os.write(self.far, (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")

            def flush(self) -> None:
                pass

            def lost(self, said: str = "") -> EngineError:
                return EngineError(f"lost: {said}")

            def close(self) -> None:
                self.stdout.close()
                os.close(self.far)

        monkeypatch.setattr(helper, "Connection", Far)
        monkeypatch.setattr(holding, "Connection", Far)

    return say


def asked(ask: str) -> Any:
    one = helper.Helper("sender", "h")
    try:
        if ask == "done":
            one.tell("start")
            return one.hear(1)
        return one.compare_clocks() if ask == "ping" else one.ask(ask)
    finally:
        one.close()


def test_what_a_helper_says_is_taken(saying: Saying) -> None:
    saying({"hello": HELLO}, {"path": PATH})
    assert asked("path")["rtt_us_least"] == 1.5
    saying({"hello": HELLO}, {"done": DONE})
    (said,) = asked("done")
    assert said["done"]["records"] == b""


@pytest.mark.parametrize(
    ("ask", "line", "words"),
    [
        ("hello", "5", "got 5"),
        ("hello", {}, "got {}"),
        ("hello", {"hello": None}, "hello: got None"),
        ("hello", "[" * 30_000, "no line of the helper's"),
        ("hello", {"hello": {**HELLO, "ssh": "nonsense"}}, r"hello\.ssh"),
        ("hello", {"hello": {**HELLO, "kernel": "\ud800"}}, r"hello\.kernel"),
        ("ping", {"pong": {"n": 1, "monotonic_ns": None, "realtime_ns": 1}}, r"pong\.monotonic_ns"),
        ("prepare", {"listening": 7}, "listening: got 7"),
        ("prepare", {"settings": ""}, "got settings; expected listening"),
        ("settings", {"settings": 3}, "settings: got 3"),
        ("recorded", {"recorded": [1]}, "recorded: got"),
        ("recorded", {"recorded": {"files": {"proc/x": 1}}}, r"recorded\.files\['proc/x'\]: got 1"),
        ("counters", {"counters": {"tcp_InErrs": "x"}}, r"counters\['tcp_InErrs'\]: got 'x'"),
        ("lock", {"locked": {"who": "w", "since_unix_s": 1e40}}, r"locked\.since_unix_s"),
        ("path", '{"path": {"rtt_us_least": NaN}}', "no line of the helper's"),
        ("path", json.dumps({"path": PATH}).replace("1.5", "1e999"), "no line of the helper's"),
        ("path", {"path": {**PATH, "rtt_us_least": -1.0}}, r"path\.rtt_us_least"),
        ("done", {"done": {**DONE, "samples": "x"}}, r"done\.samples"),
        ("done", {"done": {**DONE, "progress": [[1, [(1 << 64) - 1, None, None, None]]]}}, r"done\.progress\[0\]"),
        ("done", {"done": {**DONE, "reports": [{**REPORT, "latency_us": 1}]}}, r"done\.reports\[0\]\.latency_us"),
        (
            "done",
            {
                "done": {
                    **DONE,
                    "reports": [{**REPORT, "latency_us": {**HISTOGRAM, "current": {**PAGE, "counts": [1, 0, 0, 0]}}}],
                }
            },
            "expected the least first",
        ),
        ("done", {"done": {**DONE, "connections": [{**CONNECTION, "group": -1}]}}, r"done\.connections\[0\]\.group"),
        ("done", {"done": {**DONE, "connections": [{**CONNECTION, "ends": [["x", 1], ["::1", 1]]}]}}, "an IP address"),
        ("done", {"done": {**DONE, "programs": [{**PROGRAM, "role": "../x"}]}}, r"done\.programs\[0\]\.role"),
        ("done", {"done": {**DONE, "programs": [{**PROGRAM, "start_ns": 1 << 62}]}}, "either way"),
        ("done", {"done": {**DONE, "programs": [{**PROGRAM, "printed": "\ud800"}]}}, "text of Unicode"),
        ("prepare", {"listening": {"ports": [], "everywhere": False, "servers": [[1 << 16]]}}, r"listening\.servers"),
        ("done", {"done": {name: value for name, value in DONE.items() if name != "congestion"}}, r"done\.congestion"),
    ],
)
def test_what_no_helper_says_is_one_error_that_names_the_place(saying: Saying, ask: str, line: Any, words: str) -> None:
    saying(*([] if ask == "hello" else [{"hello": HELLO}]), line)
    with pytest.raises(EngineError, match=f"^sender h: .*{words}"):
        asked(ask)


@pytest.mark.parametrize(
    "line", [5, {"held": 7}, {"held": [{}]}, {"held": [{"setting": 1, "was": "", "is": ""}]}, "[" * 30_000]
)
def test_who_holds_settings_is_no_more_believed(saying: Saying, line: Any) -> None:
    saying(line)
    with pytest.raises(TcpkneeError):
        holding.Holder("sender", "h", [], 1)


def test_settings_that_are_back_in_no_known_words_are_told_as_not_back(saying: Saying) -> None:
    saying({"held": []}, {"back": [{}]})
    (said,) = holding.Holder("sender", "h", [], 1).end()
    assert "did not say that it has put its settings back" in said
