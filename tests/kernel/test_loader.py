"""`knee load`, `knee unload` and `knee list algorithms`: our builds in the running kernel, and out of it again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import probes
import tcpknee
from building import ALGORITHMS, kernel_name, run
from lab import available, registered_maps
from leftovers import new_namespace, noted
from tcpknee import _core
from tcpknee.algorithms import building, for_kernel, naming, outline
from waiting import PATIENCE_SEC, until

ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
PINNED = """
mount -t bpf bpf /sys/fs/bpf && "$@" load reno && "$@" list algorithms --json
ls /sys/fs/bpf/tcpknee && "$@" unload reno && test ! -e /sys/fs/bpf/tcpknee
"""
KNEE = (sys.executable, "-m", "tcpknee")

LONG = """\
title = "long"
duration = "60s"
[path]
rate = "10Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
"""


@pytest.fixture(autouse=True)
def _nothing_stays(kernel: None) -> Iterator[None]:
    before = available()
    yield
    for name, status in _core.in_kernel().items():
        if status["loaded"] and status["loaded"] not in before:
            _core.unload(name)
    assert sorted(available()) == sorted(before)


def knee(*words: str, code: int = 0) -> str:
    ended = subprocess.run([*KNEE, *words], capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode == code, ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def listed() -> dict[str, dict[str, Any]]:
    found = json.loads(knee("list", "algorithms", "--json"))["algorithms"]
    return {entry["name"]: entry["kernel"] for entry in found}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_loaded_listed_and_unloaded(name: str) -> None:
    called = kernel_name(name)
    assert listed()[name]["loaded"] is None
    assert f"sockets can choose {called}" in knee("load", name)
    assert called in available()
    assert listed()[name]["loaded"] == called
    # Not where every socket might take it unasked.
    assert called not in ALLOWED.read_text().split()
    with socket.socket() as chosen:
        chosen.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, called.encode())
    knee("unload", name)
    assert called not in available()
    assert called not in registered_maps()


def test_a_file_is_loaded_anew_and_unloaded(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(outline.of("mine"), encoding="utf-8")
    for _ in range(2):
        assert "sockets can choose knee_mine" in knee("load", str(file))
        assert "knee_mine" in available()
        file.write_text(file.read_text(encoding="utf-8").replace("512", "600"), encoding="utf-8")
    assert "mine is unloaded" in knee("unload", str(file))
    assert "knee_mine" not in available()
    knee("load", str(file))
    file.unlink()
    assert "mine is unloaded" in knee("unload", "mine")
    assert "knee_mine" not in available()


def test_what_the_verifier_refuses_of_a_file_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    grow = "cc_reno_cong_avoid(in, out, acked);"
    file.write_text(outline.of("mine").replace(grow, "for (;;) *(volatile u32 *)&out->ret = 0;"), encoding="utf-8")
    assert "the verifier refuses it" in knee("load", str(file), code=2)
    assert "knee_mine" not in available()


def test_a_file_that_does_another_thing_as_bytecode_is_found(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    text = outline.of("mine")
    begin = text.index("static void mine_ssthresh")
    other = text[:begin] + text[begin:].replace("\n}", "\n#ifdef __bpf__\n\tout->ret++;\n#endif\n}", 1)
    for content, ok, said in (
        (text, True, "of 2,000 drawn sequences"),
        (other, False, "host and kernel differ at seed"),
    ):
        file.write_text(content, encoding="utf-8")
        (named,) = naming.named([building.build(str(file))])
        found = for_kernel.replayed(named, 2000)
        assert found[0] is ok and said in found[1], found


def test_a_second_load_finds_the_first_and_changes_nothing() -> None:
    """Also without a BPF file system, where no pin says that it was us."""
    words = ["unshare", "--mount", "sh", "-ec", 'umount -q /sys/fs/bpf || true; exec "$@"', "sh", *KNEE, "load", "reno"]
    subprocess.run(words, check=True, capture_output=True, timeout=PATIENCE_SEC)
    maps = registered_maps()
    again = subprocess.run(words, check=False, capture_output=True, text=True, timeout=PATIENCE_SEC)
    assert again.returncode == 0 and registered_maps() == maps
    assert "reno was loaded already: sockets can choose knee_reno until `knee unload reno`" in again.stdout
    # What the message says is so.
    knee("unload", "reno")
    assert "knee_reno" not in available()
    assert "reno is loaded: " in knee("load", "reno")
    assert "reno was loaded already: " in knee("load", "reno")


def test_what_was_loaded_becomes_the_default_of_a_namespace(namespace: str) -> None:
    before = default_in(namespace)
    knee("load", "reno")
    assert "knee_reno" not in ALLOWED.read_text().split()
    assert f"new sockets of {namespace} get it" in knee("load", "reno", "--default-in", namespace)
    assert default_in(namespace) == "knee_reno" and "knee_reno" in ALLOWED.read_text().split()
    assert "was loaded already" in knee("load", "reno", "--default-in", namespace)
    # A second default of the same build would lose what the first was before.
    assert "knee_reno is loaded already" in knee("load", "reno", "--default-in", str(os.getpid()), code=2)
    knee("unload", "reno")
    assert default_in(namespace) == before


def test_what_a_link_holds_elsewhere_is_told_so() -> None:
    """A BPF file system that only another process sees has the pin."""
    probes.need_bpf_mount()
    script = 'mount -t bpf bpf /sys/fs/bpf && "$@" load reno && read -r line'
    words = ["unshare", "--mount", "sh", "-ec", script, "sh", *KNEE]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        assert "is loaded" in other.stdout.readline()
        said = knee("load", "reno", code=2)
        other.stdin.close()
    assert "knee_reno is loaded already by root" in said
    assert "held by a link that is not pinned to /sys/fs/bpf/tcpknee/reno" in said
    until(lambda: "knee_reno" not in available(), "it went with its process")


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    assert 'Did you mean "cubic"?' in knee("load", "cubci", code=2)
    assert "cubci" in knee("unload", "cubci", code=2)


def test_what_is_not_loaded_cannot_be_unloaded() -> None:
    assert "this kernel has no knee_reno" in knee("unload", "reno", code=2)
    assert "nothing is loaded" in knee("unload", "--all")


def test_unloading_all_passes_over_what_a_run_holds() -> None:
    knee("load", "reno")
    with _core.load_for_run(_core.parse(LONG, "s.toml"), ours=True) as run:
        own = run.names["cubic"]
        assert own.endswith("_cubic") and own != "knee_cubic"
        knee("unload", "--all")
        assert "knee_reno" not in available()
        assert own in available()
    assert own not in available()


def test_two_runs_have_builds_of_their_own() -> None:
    scenario = _core.parse(LONG, "s.toml")
    with _core.load_for_run(scenario, ours=True) as first, _core.load_for_run(scenario, ours=True) as second:
        names = {first.names["cubic"], second.names["cubic"]}
        assert len(names) == 2
        first.close()
        assert second.names["cubic"] in available()
    assert not names & set(available())


def test_unloading_names_the_sockets_that_still_run_it() -> None:
    knee("load", "reno")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"knee_reno")
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        with server:
            said = knee("unload", "reno")
            port = client.getsockname()[1]
            assert f"1 socket runs it until closed: 127.0.0.1:{port}" in said
            assert "knee_reno" not in available()
            # It goes on all the same.
            client.sendall(b"x" * 100_000)
            received = 0
            while received < 100_000:
                received += len(server.recv(1 << 16))


def test_an_ordinary_user_is_refused_with_the_reason() -> None:
    words = [*probes.as_nobody(), "-c", "from tcpknee import _core\n_core.load('reno')"]
    ended = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert "KernelUnsupported" in ended.stderr
    assert "CAP_BPF" in ended.stderr
    assert "knee_reno" not in available()


def test_what_a_run_has_loaded_goes_with_it_also_when_it_is_killed(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(LONG)
    words = [*KNEE, "run", "s.toml", "--engine", "kernel", "--bpf", "--out", "run", "--quiet"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ours() -> list[str]:
        assert process.poll() is None, process.communicate()[1]
        return [name for name in available() if name.endswith("_cubic")]

    own = until(ours, "its algorithm is there")
    time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: own[0] not in available(), "it went with the run")


@pytest.mark.parametrize("place", ["no-such-namespace", "2147483647"])
def test_a_default_that_cannot_be_set_leaves_nothing_loaded(place: str) -> None:
    said = knee("load", "reno", "--default-in", place, code=2)
    assert f"there is no network namespace {place}" in said
    assert "knee_reno" not in available()


def test_where_the_bpf_file_system_is_mounted_a_pin_holds_it() -> None:
    probes.need_bpf_mount()
    # In a mount namespace of its own, so that the machine's mounts stay as they are.
    words = ["unshare", "--mount", "sh", "-ec", PINNED, "sh", *KNEE]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    assert ended.returncode == 0, ended.stderr
    assert '"pin": "/sys/fs/bpf/tcpknee/reno"' in ended.stdout
    # What the folder had, then the message; and the folder is gone.
    assert ended.stdout.endswith("\nreno\nreno is unloaded\n")
    # The kernel takes it away when its last reference is gone, which may be a moment later.
    until(lambda: "knee_reno" not in available(), "it is unloaded")


@pytest.fixture
def namespace() -> Iterator[str]:
    name = new_namespace("a")
    with noted("netns", name):
        run("ip", "netns", "add", name)
        yield name
        run("ip", "netns", "delete", name)


def default_in_host() -> str:
    return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def default_in(namespace: str) -> str:
    return run("ip", "netns", "exec", namespace, "cat", "/proc/sys/net/ipv4/tcp_congestion_control").strip()


def test_a_default_of_a_namespace_is_put_back(namespace: str) -> None:
    host, before = default_in_host(), default_in(namespace)
    knee("load", "reno", "--default-in", namespace)
    assert default_in(namespace) == "knee_reno"
    assert default_in_host() == host
    knee("unload", "reno")
    assert default_in(namespace) == before
    assert not Path("/run/tcpknee").exists()
    assert "knee_reno" not in available()


@pytest.mark.parametrize("first", ["reno", "cubic"])
def test_two_defaults_of_one_namespace_are_put_back_in_either_order(namespace: str, first: str) -> None:
    before = default_in(namespace)
    knee("load", "reno", "--default-in", namespace)
    knee("load", "cubic", "--default-in", namespace)
    assert default_in(namespace) == "knee_cubic"
    knee("unload", first)
    assert default_in(namespace) == ("knee_cubic" if first == "reno" else "knee_reno")
    knee("unload", "cubic" if first == "reno" else "reno")
    assert default_in(namespace) == before
    assert not Path("/run/tcpknee").exists()


def test_two_hosts_run_what_was_loaded_there_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.c").write_text(outline.of("mine"), encoding="utf-8")
    knee("load", "bbr3", str(tmp_path / "mine.c"))
    text = LONG.replace("60s", "400ms").replace('"cubic"', '["bbr3", "./mine.c"]')
    (tmp_path / "s.toml").write_text(f"repeat = 1\n{text}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run = tcpknee.run("s.toml", engine="hosts", hosts=("local", "local"))
    assert min(run.flows["bytes_acked"].to_pylist()) > 0
    said = run.meta["repetitions"][0]["warnings"] + run.meta["repetitions"][1]["warnings"]
    assert any('sender: bbr3 is "knee_bbr3" there; of which sources' in line for line in said)
    assert any('sender: mine is "knee_mine" there' in line for line in said)
    assert knee("unload", "bbr3", "mine")
