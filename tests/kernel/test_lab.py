"""What a lab is: settings that hold in it and nowhere else, as an ordinary user and as root, and servers that are ready
before their clients."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import probes
import tcpknee
from drawn_fixes import OF_THE_MACHINE
from test_engine import in_lab, scenario
from test_faults import children, command, role, short, until_up
from waiting import PATIENCE_SEC, until

SET = """\
title = "Hosts unlike this one"
duration = "2s"
repeat = 1
[path]
rate = "20Mbit/s"
rtt = "10ms"
mtu = "1400B"
[sender]
tcp_wmem_default = "65536B"
tcp_wmem_max = "1000000B"
tcp_limit_output_bytes = "131072B"
tcp_slow_start_after_idle = false
initcwnd = 3
gso_max = "0B"
[receiver]
tcp_rmem_default = "100000B"
tcp_rmem_max = "2000000B"
tcp_window_scaling = false
tcp_sack = false
tcp_timestamps = false
tcp_moderate_rcvbuf = false
tcp_comp_sack_nr = 7
[[flow]]
algorithm = "cubic"
"""

LATE_SERVER = """\
import os, socket, sys, time
time.sleep(float(sys.argv[1]))
server = socket.create_server((os.environ["KNEE_SERVER"], 7000))
time.sleep(60)
"""
BOTH_FAMILIES = """\
import socket, time
server = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
with server.accept()[0] as connection:
    connection.sendall(bytes(2_000_000))
time.sleep(60)
"""
READER = """\
import os, socket
with socket.create_connection((os.environ["KNEE_SERVER"], 7000)) as connection:
    while connection.recv(65536):
        pass
"""
CLIENT = """\
import os, socket
socket.create_connection((os.environ["KNEE_SERVER"], 7000)).close()
"""
TWO_SERVERS = """\
title = "Two servers, one of them slow"
duration = "20s"
repeat = 1
[path]
rate = "20Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
workload = "programs"
server = "python3 FOLDER/server.py 0"
client = "python3 FOLDER/client.py"
[[flow]]
algorithm = "cubic"
workload = "programs"
server = "python3 FOLDER/server.py 2"
client = "python3 FOLDER/client.py"
"""

BESIDE = """\
title = "A short client beside a flow for the whole time"
duration = "6s"
repeat = 1
[path]
rate = "20Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
[[flow]]
algorithm = "cubic"
workload = "programs"
client = "sh -c 'sleep 0.5 & sleep 1'"
"""


def host_settings() -> dict[str, str]:
    """The sysctls of this network namespace that a socket's behaviour depends on, but for what the whole kernel has."""
    found = {}
    for file in sorted(Path("/proc/sys/net").rglob("*")):
        of_kernel = file.name in OF_THE_MACHINE
        if file.is_file() and file.parts[4] in ("ipv4", "core") and "conf" not in file.parts and not of_kernel:
            try:
                found[str(file)] = file.read_text()
            except OSError:
                continue
    return found


def lab_of(folder: Path) -> dict[str, Any]:
    [lab] = tcpknee.open(folder / "run").meta["labs"]
    return dict(lab)


def test_settings_hold_in_the_lab_as_the_kernel_tells_and_not_on_the_host(tmp_path: Path) -> None:
    before = host_settings()
    in_lab("run", scenario(tmp_path, SET), "--out", "run", cwd=tmp_path)
    assert host_settings() == before
    lab = lab_of(tmp_path)
    sender, receiver = lab["sender"], lab["receiver"]
    assert sender["sysctls"]["net.ipv4.tcp_wmem"] == "4096 65536 1000000"
    assert sender["sysctls"]["net.ipv4.tcp_limit_output_bytes"] == "131072"
    assert sender["sysctls"]["net.ipv4.tcp_slow_start_after_idle"] == "0"
    assert receiver["sysctls"]["net.ipv4.tcp_rmem"] == "4096 100000 2000000"
    for name in ("tcp_window_scaling", "tcp_sack", "tcp_timestamps", "tcp_moderate_rcvbuf"):
        assert receiver["sysctls"][f"net.ipv4.{name}"] == "0", name
    assert receiver["sysctls"]["net.ipv4.tcp_comp_sack_nr"] == "7"
    assert receiver["sysctls"]["net.ipv4.tcp_no_metrics_save"] == "1"
    assert receiver["sysctls"]["net.ipv4.tcp_orphan_retries"] == "5"
    assert (sender["mtu_bytes"], receiver["mtu_bytes"]) == (1400, 1400)
    assert (sender["tso"], receiver["tso"]) == (False, True)
    assert sender["qdisc"] not in ("", "default")
    assert sender["addresses"] == ["10.77.0.1"]
    run = tcpknee.open(tmp_path / "run")
    # 1400 bytes less 20 of IPv4 and 20 of TCP, as the far end wants no timestamps.
    assert max(run.samples["snd_mss_bytes"].to_pylist()) == 1360


def test_a_client_waits_for_its_own_server_and_not_for_another(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(LATE_SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    # The folder is closed to others.
    as_we_are = ["--programs-as-root"] if os.geteuid() == 0 else []
    file = scenario(tmp_path, TWO_SERVERS.replace("FOLDER", str(tmp_path)))
    in_lab("run", file, "--out", "run", *as_we_are, cwd=tmp_path)
    programs = tcpknee.open(tmp_path / "run").programs.arrow().to_pylist()
    clients = [row for row in programs if row["role"] == "client"]
    assert [row["exit_code"] for row in clients] == [0, 0]


def test_a_server_of_both_families_is_seen(tmp_path: Path) -> None:
    """It accepts sockets of IPv6, as iperf3, Go's and Java's servers do."""
    (tmp_path / "server.py").write_text(BOTH_FAMILIES)
    (tmp_path / "client.py").write_text(READER)
    as_we_are = ["--programs-as-root"] if os.geteuid() == 0 else []
    text = TWO_SERVERS.replace("FOLDER", str(tmp_path)).rpartition("[[flow]]")[0].replace("server.py 0", "server.py")
    in_lab("run", scenario(tmp_path, text), "--out", "run", *as_we_are, cwd=tmp_path)
    [flow] = tcpknee.open(tmp_path / "run").flows.arrow().to_pylist()
    # As of the last sample before its end.
    assert flow["bytes_acked"] > 1_900_000 and flow["goodput_bits_per_sec"] > 1e6, flow


@pytest.mark.timed
def test_the_time_of_a_client_is_its_own_beside_a_longer_flow(tmp_path: Path) -> None:
    in_lab("run", scenario(tmp_path, BESIDE), "--out", "run", cwd=tmp_path)
    [client] = tcpknee.open(tmp_path / "run").programs.arrow().to_pylist()
    assert client["exit_code"] == 0
    assert 1.0e6 <= client["wall_us"] < 4.0e6


def test_the_first_process_of_a_lab_takes_all_others_with_it(tmp_path: Path) -> None:
    probes.need_lab()
    process = subprocess.Popen(
        command(tmp_path, short("60s")), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until_up(process)
        [sender] = [pid for pid in children(process.pid) if role(pid) == "sender"]
        first = parent(sender)
        below = children(first)
        os.kill(first, signal.SIGKILL)
        _, stderr = process.communicate(timeout=PATIENCE_SEC)
        assert process.returncode == 2
        assert "SIGKILL" in stderr
        assert "Traceback" not in stderr
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), "all below it are gone")
    finally:
        process.kill()
        process.wait()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_an_ordinary_user_is_told_of_the_limit_of_user_namespaces(tmp_path: Path) -> None:
    """The limit is set in a user namespace of the test's own, in which the user is not root."""
    probes.need_root("becoming another user")
    probes.need_user_namespaces()
    folder = probes.folder_of_nobody(tmp_path)
    scenario(folder, short())
    lower = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --reuid 65534 --clear-groups -- "$@"'
    holder = subprocess.Popen(["unshare", "--user", "sleep", "60"], stderr=subprocess.DEVNULL)
    try:
        ours, theirs = Path("/proc/self/ns/user"), Path(f"/proc/{holder.pid}/ns/user")
        until(lambda: theirs.readlink() != ours.readlink(), "a user namespace")
        for table in ("uid_map", "gid_map"):
            Path(f"/proc/{holder.pid}/{table}").write_text("0 0 65536")
        enter = ("nsenter", "--target", str(holder.pid), "--user", "-S", "0", "-G", "0", "sh", "-c", lower, "sh")
        words = [*probes.as_nobody(enter), "-m", "tcpknee", "run", "scenario.toml", "--engine", "kernel"]
        ended = subprocess.run(
            [*words, "--out", "run"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False
        )
    finally:
        holder.kill()
        holder.wait()
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "a lab needs its own user namespace" in ended.stderr
    assert "/proc/sys/user/max_user_namespaces, is 0" in ended.stderr
