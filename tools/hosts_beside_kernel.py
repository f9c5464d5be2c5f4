"""The engine hosts beside the engine kernel, over the same emulated path: goodput, RTT and retransmissions.

    python tools/hosts_beside_kernel.py [REPETITIONS] [SECONDS]

For each path: half of the kernel engine's repetitions, all of those between two hosts, the other half, so that what
grows evenly with time cancels. The two hosts are those of a lab of the kernel engine, in which an sshd and `knee run
--engine hosts` are the programs: their path is made by the same link. Prints the ratio of hosts to kernel with its 95 %
interval, and exits with 1 where one is beyond 3 %. Needs root, sshd and ssh.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import tcpknee
from tcpknee import say
from tcpknee.evidence.stats import ratio_apart

PATHS = [
    *((rate, rtt, "0%") for rate in ("10Mbit/s", "50Mbit/s", "200Mbit/s") for rtt in ("10ms", "40ms")),
    ("50Mbit/s", "40ms", "periodic 0.1%"),
]
METRICS = ("goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct")
LEFT = (True, True, False, False, False, False)
MOST = 0.03
MOST_POINTS = 0.02
"""Of retransmissions, in points: a share of a few packets in thousands is not the same to 3 % twice."""
SCENARIO = """
title    = "cubic at {rate}, {rtt}, loss {loss}"
duration = "{seconds}s"
warmup   = "{warmup}s"
repeat   = {repeat}
[path]
rate   = "{rate}"
rtt    = "{rtt}"
loss   = "{loss}"
buffer = "1bdp"
[[flow]]
"""
OF_PROGRAMS = 'workload = "programs"\nalgorithm = "cubic"\nserver = """{server}"""\nclient = """{client}"""\n'


def main(repetitions: int, seconds: int) -> int:
    beyond = 0
    rows = [["path", "metric", "kernel", "hosts", "hosts / kernel", "95 % interval"]]
    with tempfile.TemporaryDirectory(prefix="knee-hosts-") as name:
        folder = Path(name)
        keys(folder)
        for rate, rtt, loss in PATHS:
            # Which packet is lost first is chance, since the path was measured before: what it did is to be over.
            longer = 4 if loss != "0%" else 1
            length, half = longer * seconds, max(1, repetitions // min(longer, 2) // 2)
            path = {"rate": rate, "rtt": rtt, "loss": loss, "seconds": length, "warmup": max(1, length // 4)}
            kernel = by_kernel(path, half)
            hosts = between_hosts(folder, path, 2 * half)
            kernel += by_kernel(path, half)
            for metric in METRICS:
                a, b = (np.array([one[metric] for one in every]) for every in (kernel, hosts))
                rows.append([f"{rate} {rtt} {loss}", metric, *compared(metric, a, b)])
                beyond += is_beyond(metric, a, b)
            say.lines(say.aligned([rows[0], *rows[-len(METRICS) :]], left=LEFT))
    say.lines(["", *say.aligned(rows, left=LEFT), "", f"{beyond} of {len(rows) - 1} beyond {MOST:.0%}"])
    return 1 if beyond else 0


def is_beyond(metric: str, kernel: np.ndarray[Any, Any], hosts: np.ndarray[Any, Any]) -> bool:
    if metric == "retransmit_pct" and abs(hosts.mean() - kernel.mean()) <= MOST_POINTS:
        return False
    return not abs(hosts.mean() / kernel.mean() - 1) <= MOST


def compared(metric: str, kernel: np.ndarray[Any, Any], hosts: np.ndarray[Any, Any]) -> list[str]:
    plain = [f"{found.mean():.5g}" for found in (kernel, hosts)]
    ratio = ratio_apart(kernel, hosts) if kernel.mean() > 0 and hosts.mean() > 0 else None
    if ratio is None or math.isnan(ratio.mean):
        return [*plain, "-", "-"]
    interval = "-" if ratio.low is None or ratio.high is None else f"{ratio.low:.4f} to {ratio.high:.4f}"
    return [*plain, f"{ratio.mean:.4f}", interval]


def by_kernel(path: dict[str, Any], repeat: int) -> list[dict[str, float]]:
    return measured(tcpknee.run(SCENARIO.format(**path, repeat=repeat) + 'algorithm = "cubic"\n', engine="kernel"))


def between_hosts(folder: Path, path: dict[str, Any], repeat: int) -> list[dict[str, float]]:
    inner, out = folder / "inner.toml", folder / "run"
    inner.write_text(SCENARIO.format(**path, repeat=repeat) + 'algorithm = "cubic"\n', encoding="utf-8")
    words = [
        "-m",
        "tcpknee",
        "run",
        inner,
        "--engine",
        "hosts",
        "--sender",
        "a",
        "--receiver",
        "local",
        "-q",
        "--out",
        out,
    ]
    script = folder / "client.sh"
    script.write_text(
        f"sed s/SERVER/$1/ {folder}/config > {folder}/now\n"
        f"PATH={folder}:$PATH exec {shlex.join(map(str, [sys.executable, *words, '--force']))}\n",
        encoding="utf-8",
    )
    lab = path | {"seconds": 30 + repeat * (path["seconds"] + 10), "repeat": 1}
    programs = OF_PROGRAMS.format(
        server=f"/usr/sbin/sshd -D -e -p 2222 -f {folder}/sshd_config", client=f"sh {script} {{server}}"
    )
    ran = tcpknee.run(
        SCENARIO.format(**lab) + programs, out=folder / "lab", force=True, engine="kernel", programs_as_root=True
    )
    for doubt in ran.doubts:
        say.warn(doubt.line)
        if doubt.failed:
            for printed in (folder / "lab").rglob("*client*"):
                say.warn(printed.read_text(encoding="utf-8", errors="replace")[-500:])
    return measured(tcpknee.open(out))


def measured(run: tcpknee.Run) -> list[dict[str, float]]:
    (group,) = [one for one in run.summary.groups if one.name != "total"]
    values = {metric: group.values[metric].tolist() for metric in METRICS}
    return [{metric: values[metric][at] for metric in METRICS} for at in range(len(group.reps))]


def keys(folder: Path) -> None:
    """What sshd and ssh need, in a folder that is root's alone."""

    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nPidFile none\nUsePAM no\nStrictModes no\n"
        "PermitRootLogin yes\n",
        encoding="utf-8",
    )
    (folder / "config").write_text(
        f"Host a\n  HostName SERVER\n  User root\n  Port 2222\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n",
        encoding="utf-8",
    )
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {folder}/now "$@"\n', encoding="utf-8")
    ssh.chmod(0o755)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]] + [4, 3][len(sys.argv) - 1 :]
    raise SystemExit(main(*given))
