"""Names that a program, an administrator of a container or a log chose: each is shown, and none drives the terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import probes
from test_watch import ready_in_a_namespace, watching

INTERFACE = "a\x1b[31m"
NOT_UTF8 = b"\xff\xfe"
PROCESS = "\x1b]0;owned\x07"
HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
KNEE = [sys.executable, "-m", "tcpknee"]

#: A process of that name with a connection bound to an interface of that name, over which it sends all the time.
HOLDER = f"""
import ctypes, socket, subprocess, threading, time
name = {INTERFACE!r}
for words in (["link", "set", "lo", "name", name], ["link", "set", name, "up"]):
    subprocess.run(["ip", *words], check=True)
subprocess.run(["ip", "link", "add", {NOT_UTF8!r}, "type", "veth", "peer", "name", "far"], check=True)
shaped = "root tbf rate 100mbit burst 100kb limit 1mb".split()
for device in (name, {NOT_UTF8!r}):
    subprocess.run(["tc", "qdisc", "add", "dev", device, *shaped], check=True)
with socket.create_server(("127.0.0.1", 5001)) as listener:
    near = socket.socket()
    for end in (near, listener):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
    near.connect(("127.0.0.1", 5001))
    far, _ = listener.accept()
ctypes.CDLL(None).prctl(15, {PROCESS.encode()!r}, 0, 0, 0)
def drain():
    while far.recv(65536): pass
threading.Thread(target=drain, daemon=True).start()
print("ready", flush=True)
while True:
    near.sendall(bytes(1448))
    time.sleep(0.005)
"""


@pytest.fixture(scope="module")
def held() -> Iterator[str]:
    """The PID of that process, in a network namespace of its own."""
    probes.need_root("an interface in a namespace")
    probes.need_programs("ip", "tc", "unshare")
    with ready_in_a_namespace("-c", HOLDER) as pid:
        yield pid


def knee(*words: str | Path) -> str:
    """What the command prints, on stdout and stderr."""
    done = subprocess.run([*KNEE, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not HARMFUL.search(done.stdout + done.stderr)
    return done.stdout


def test_a_recording_tells_interface_and_process_and_sql_shows_them(held: str, tmp_path: Path) -> None:
    out = tmp_path / "rec"
    knee("record", "--netns", held, "--processes", "--every", "200ms", "--for", "600ms", "--out", out)
    asked = "select distinct interface, process from sockets where process is not null"
    shown = knee("sql", asked, out).splitlines()[2]
    assert shown.split() == [r"a\x1b[31m", r"\x1b]0;owned\x07"]
    (row,) = json.loads(knee("sql", asked, out, "--json"))["rows"]
    assert row == {"interface": INTERFACE, "process": PROCESS}
    assert r"a\x1b[31m" in knee("sql", "select distinct interface from qdisc", out)


def test_a_device_whose_name_is_no_utf8_is_recorded_with_escapes(held: str, tmp_path: Path) -> None:
    out = tmp_path / "rec"
    knee("record", "--netns", held, "--every", "200ms", "--for", "400ms", "--out", out)
    for table in ("nic", "qdisc"):
        assert r"\xff\xfe" in knee("sql", f"select distinct interface from {table}", out), table


def test_the_page_of_a_connection_shows_its_interface(held: str, tmp_path: Path) -> None:
    probes.need_programs("tmux")
    with watching(tmp_path, (120, 70), "--netns", held) as terminal:
        terminal.until(lambda text: "sockets: ESTAB 2" in text, "no screen")
        terminal.keys("Enter")
        terminal.until(lambda text: "interface" in text, "no page with an interface")
        shown = next(line for line in terminal.screen(escapes=True) if "interface" in line)
        assert r"a\x1b[31m" in shown and "\x1b[31m" not in shown
        assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() != "owned"
        terminal.keys("q")


def test_the_qdisc_of_the_device_is_named(held: str) -> None:
    probes.need_tracepoint("qdisc_enqueue")
    told = knee("trace", "--qdisc", "--netns", held, "--for", "1s")
    assert re.search(r"^a\\x1b\[31m tbf \w+:", told, re.MULTILINE), told
