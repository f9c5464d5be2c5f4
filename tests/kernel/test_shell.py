"""`knee shell`: a command behind the emulated path, its way out, and nothing left of it."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import marked
import probes
from waiting import PATIENCE_SEC, until

KNEE = (sys.executable, "-m", "tcpknee")
BLOB = os.urandom(1_000_000)
DEVICES = Path("/sys/class/net")
# curl: seconds to connect, seconds in all.
TIMES = "%{time_connect} %{time_total}\n"


class _Blob(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(BLOB)))
        self.end_headers()
        self.wfile.write(BLOB)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A web server on the host's loopback that gives BLOB."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Blob)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    probes.need_lab()


def knee(*words: str, timeout: float = PATIENCE_SEC) -> subprocess.CompletedProcess[str]:
    command = [*KNEE, "shell", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def curl(*words: str) -> tuple[str, ...]:
    probes.need_programs("curl")
    return ("--", "curl", "-sS", "--max-time", "30", *words)


def lab_processes() -> set[str]:
    """Processes of ours in another network namespace, as `PID COMMAND`."""
    ours = Path("/proc/self/ns/net").readlink()
    found = set()
    for process in marked.processes():
        try:
            if (process / "ns/net").readlink() != ours:
                found.add(f"{process.name} {(process / 'comm').read_text().strip()}")
        except OSError:
            continue
    return found


@pytest.mark.timed
def test_a_download_takes_what_the_rate_allows_and_the_connection_the_rtt(port: int) -> None:
    ran = knee(
        "--rate", "20Mbit/s", "--rtt", "60ms", *curl("-o", "/dev/null", "-w", TIMES, f"http://knee-host:{port}/")
    )
    assert ran.returncode == 0, ran.stderr
    connect_sec, total_sec = map(float, ran.stdout.split())
    assert 0.060 <= connect_sec < 0.100
    assert total_sec >= len(BLOB) * 8 / 20e6
    assert total_sec < len(BLOB) * 8 / 20e6 + 1.5
    assert "down 1" in ran.stderr, "what the link measured is said at the end"


def test_every_byte_arrives_though_packets_are_lost(port: int) -> None:
    program = f"import hashlib, urllib.request as r; print(hashlib.sha256(r.urlopen('http://knee-host:{port}/').read()).hexdigest())"
    ran = knee("--rate", "50Mbit/s", "--rtt", "10ms", "--loss", "2%", "--", sys.executable, "-c", program)
    assert ran.stdout.strip() == hashlib.sha256(BLOB).hexdigest()
    down = ran.stderr.split("up")[0]
    lost = int(down.split(" lost")[0].split()[-1])
    packets = int(down.split(" packets")[0].split()[-1])
    assert 0.005 * packets < lost < 0.05 * packets, ran.stderr


def test_exit_codes_and_signals_of_the_command_are_passed_on() -> None:
    assert knee("--", "sh", "-c", "exit 7").returncode == 7
    assert knee("--", "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM


def test_a_command_that_is_not_there_is_refused_with_its_name() -> None:
    ran = knee("--", "knee-no-such-command")
    assert ran.returncode == 127
    assert "knee-no-such-command" in ran.stderr
    quiet = knee("-q", "--", "knee-no-such-command")
    assert quiet.returncode == 127 and "knee-no-such-command" in quiet.stderr


def test_rules_are_loaded_though_the_path_does_not_lead_to_nft(monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of an ordinary user of Debian, who has it in /usr/sbin."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    ran = knee("--", "echo", "through")
    assert (ran.returncode, ran.stdout) == (0, "through\n"), ran.stderr


def test_standard_streams_are_the_commands_own() -> None:
    command = [*KNEE, "shell", "--quiet", "--", "sh", "-c", "cat; echo error >&2"]
    ran = subprocess.run(command, input="through\n", capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert (ran.stdout, ran.stderr) == ("through\n", "error\n")


def test_a_signal_to_knee_reaches_the_command() -> None:
    script = "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen([*KNEE, "shell", "--quiet", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE_SEC)[0] == "got\n"
    assert process.returncode == 3


@pytest.mark.parametrize("how", [signal.SIGKILL, None], ids=["kill -9", "command ends"])
def test_nothing_is_left(how: signal.Signals | None) -> None:
    before = lab_processes()
    devices = set(DEVICES.iterdir())
    script = "sleep 300 & echo ready; read line"
    process = subprocess.Popen(
        [*KNEE, "shell", "--quiet", "--", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert lab_processes() - before, "the lab is another network"
    if how is None:
        process.stdin.close()
    else:
        process.send_signal(how)
    process.wait(timeout=PATIENCE_SEC)
    until(lambda: not lab_processes() - before, "nothing is left")
    assert set(DEVICES.iterdir()) == devices
    process.stdout.close()


def test_an_ordinary_user_needs_no_root(port: int) -> None:
    probes.need_user_namespaces()
    program = (
        f"import os, urllib.request as r; print(os.getuid(), len(r.urlopen('http://knee-host:{port}/').read()), "
        "open('/proc/self/status').read().split('CapEff:')[1].split()[0])"
    )
    python = probes.as_nobody()
    command = [*python, "-m", "tcpknee", "shell", "--rtt", "20ms", "--", python[-1], "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False, cwd="/")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["65534", str(len(BLOB)), "0" * 16]


PING = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
s.settimeout(20)
began = time.monotonic()
s.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ("knee-host", 0))
print(s.recv(100)[0], round(1000 * (time.monotonic() - began)))
"""
"""As ping(8) does it where it has no rights."""


def test_an_ordinary_user_pings_the_far_end() -> None:
    probes.need_user_namespaces()
    python = probes.as_nobody()
    command = [*python, "-m", "tcpknee", "shell", "--rtt", "40ms", "--", python[-1], "-c", PING]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False, cwd="/")
    assert ran.returncode == 0, ran.stderr
    kind, ms = map(int, ran.stdout.split())
    assert kind == 0 and ms >= 40


def test_udp_is_carried_on_and_answered_by_whom_it_was_sent_to() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        echo.settimeout(20)

        def answer() -> None:
            for _ in range(3):
                said, client = echo.recvfrom(100)
                echo.sendto(said.upper(), client)

        thread = threading.Thread(target=answer)
        thread.start()
        program = (
            "import socket, sys\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
            f"s.connect(('knee-host', {echo.getsockname()[1]}))\n"
            "for word in (b'one', b'two', b'three'): s.send(word); print(s.recv(100).decode())\n"
        )
        ran = knee("--rtt", "20ms", "--", sys.executable, "-c", program)
        thread.join()
    assert ran.stdout.split() == ["ONE", "TWO", "THREE"], ran.stderr


def test_a_port_where_nobody_listens_is_a_reset_and_ipv6_has_no_route() -> None:
    program = (
        "import socket\n"
        "s = socket.create_connection(('knee-host', 1), timeout=5)\n"
        "try: print(s.recv(1))\n"
        "except ConnectionResetError: print('reset')\n"
        "try: socket.create_connection(('2001:db8::1', 80), timeout=5)\n"
        "except OSError as error: print(error.errno)\n"
    )
    ran = knee("--rtt", "10ms", "--", sys.executable, "-c", program)
    assert ran.stdout.split() == ["reset", "101"], ran.stderr


def test_the_far_end_sends_with_the_algorithm_asked_for(port: int) -> None:
    """Read of the relay's socket, in its namespace, while it sends."""
    probes.need_root("looking into the far end")
    probes.need_programs("nsenter", "ss")
    before = lab_processes()
    words = ("--rate", "2Mbit/s", "--algorithm", "reno", *curl("-o", "/dev/null", f"http://knee-host:{port}/"))
    with subprocess.Popen([*KNEE, "shell", *words]) as process:

        def sending() -> str:
            relays = [entry.split()[0] for entry in lab_processes() - before if entry.endswith(" relay")]
            looked = [("nsenter", "-t", pid, "-n", "ss", "-tinHO", f"sport = :{port}") for pid in relays]
            # Those of tests beside this one may have ended since they were listed.
            return "".join(subprocess.run(look, capture_output=True, text=True).stdout for look in looked)

        until(lambda: "reno" in sending(), "a socket of the far end has the algorithm reno")
        process.terminate()


def test_an_algorithm_that_is_not_there_is_refused_with_a_suggestion() -> None:
    refused = knee("--algorithm", "renno", "--", "true")
    assert refused.returncode == 2
    assert '"reno"' in refused.stderr


def test_several_values_of_a_setting_are_refused() -> None:
    ran = knee("--rtt", "10ms,20ms", "--", "true")
    assert ran.returncode == 2
    assert "path.rtt" in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--algorithm", "cubic,reno"), "expected one algorithm, which every connection towards the command has"),
        (("--set", "kernel=4.15"), "--set kernel: got a key of a run or of its flows"),
        (("--set", "flow.count=4"), "--set flow.count: got a key of a run or of its flows"),
    ],
)
def test_what_no_command_behind_a_path_has_is_refused(words: tuple[str, ...], said: str) -> None:
    ran = knee(*words, "--", "true")
    assert ran.returncode == 2 and said in ran.stderr


def test_keys_of_simulated_hosts_are_told_to_have_no_effect() -> None:
    ran = knee("--set", "sender.noise=1ms", "--", "true")
    assert ran.returncode == 0
    assert "Warning: sender.noise has no effect in the engine kernel, whose hosts are real." in ran.stderr


def test_an_algorithm_of_a_file_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = subprocess.run([sys.executable, "-m", "tcpknee", "new", "algorithm", "mine"], capture_output=True)
    assert written.returncode == 0, written.stderr
    ran = knee("--algorithm", "./mine.c", "--", "true")
    assert ran.returncode == 0, ran.stderr


def test_an_interactive_shell_has_the_terminal_and_job_control() -> None:
    """In a pseudo-terminal: Ctrl-C ends the shell's job and not the shell, and jobs stop and go on."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PS1"] = "$ "
        os.execv(KNEE[0], [*KNEE, "shell", "--", "bash", "--norc", "-i"])
    seen = b""

    def until_seen(text: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + PATIENCE_SEC
        os.set_blocking(terminal, False)
        while text not in seen:
            assert time.monotonic() < deadline, seen.decode(errors="replace")
            try:
                seen += os.read(terminal, 4096)
            except BlockingIOError:
                time.sleep(0.01)
        seen = seen.split(text, 1)[1]

    try:
        until_seen(b"$ ")
        os.write(terminal, b"echo a$((1+1))b; sleep 100\n")
        until_seen(b"a2b")
        time.sleep(0.3)
        os.write(terminal, b"\x03")
        until_seen(b"$ ")
        os.write(terminal, b"echo in$?terrupted\n")
        until_seen(b"in130terrupted")
        os.write(terminal, b"sleep 100\n")
        time.sleep(0.5)
        os.write(terminal, b"\x1a")
        until_seen(b"Stopped")
        os.write(terminal, b"kill %1; wait; stty -a | head -c 5; exit 5\n")
        until_seen(b"speed")
        deadline = time.monotonic() + PATIENCE_SEC
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            assert time.monotonic() < deadline, "knee does not end"
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                time.sleep(0.01)
        assert os.waitstatus_to_exitcode(ended[1]) == 5
    finally:
        os.close(terminal)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_browser_loads_a_page_through_the_path(port: int, tmp_path: Path) -> None:
    chromium = "chromium"
    probes.need_programs(chromium)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    page = tmp_path / "page.html"
    page.write_text("hello")
    alone = subprocess.run(
        [chromium, *flags, "--dump-dom", page.as_uri()], capture_output=True, timeout=PATIENCE_SEC, check=False
    )
    assert alone.returncode == 0, alone.stderr
    script = f"fetch('http://knee-host:{port}/').then(a=>a.arrayBuffer()).then(b=>document.title=b.byteLength)"
    page.write_text(f"<script>{script}</script>")
    flags += ["--disable-web-security", "--virtual-time-budget=20000"]
    ran = knee("--rtt", "20ms", "--", chromium, *flags, "--dump-dom", page.as_uri())
    assert f"<title>{len(BLOB)}</title>" in ran.stdout, ran.stderr


def test_json_is_what_tables_say() -> None:
    """`knee list keys` names every key that --set may take; a wrong one is refused with a suggestion."""
    keys = json.loads(subprocess.run([*KNEE, "list", "keys", "--json"], capture_output=True, check=True).stdout)
    assert keys
    ran = knee("--set", "receiver.tcp_rmem_maxx=6MiB", "--", "true")
    assert ran.returncode == 2
    assert "tcp_rmem_max" in ran.stderr
