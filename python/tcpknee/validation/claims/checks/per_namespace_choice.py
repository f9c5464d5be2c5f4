"""`per-namespace-choice`: two network namespaces on this host, each with a default algorithm and a qdisc of its own.

Nothing of the host is set: each namespace is one of `unshare`, and gone with its process. In it stands `namespaced.py`,
whose sockets ask for no algorithm and take what the namespace gives them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcpknee import children
from tcpknee.errors import EngineError, KernelUnsupported
from tcpknee.evidence.expect import Outcome

from .check import Found, Request, fact

_PROGRAMS = ("unshare", "ip", "tc", "sysctl")
_WANTED = (("reno", ("pfifo",)), ("bbr", ("fq", "bfifo")), ("cubic", ("bfifo",)))
"""Algorithms, of which the first two that a namespace may choose run, and the qdiscs of each, the first one that this
kernel has."""

_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_TIMEOUT_SEC = 120
"""A second on an idle host."""


def check(request: Request) -> Found:
    """Both run at once, each with what its namespace was given; the host keeps its default."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_search_path()) is None]
    if missing:
        raise KernelUnsupported(
            f"per-namespace-choice: needs {', '.join(missing)}, of util-linux, iproute2 and procps."
        )
    allowed = _ALLOWED.read_text(encoding="ascii").split()
    # What is not in this list may be no namespace's default: the kernel refuses it there with "Operation not
    # permitted".
    pairs = [pair for pair in _WANTED if pair[0] in allowed][:2]
    if len(pairs) < 2:
        raise KernelUnsupported(
            f"per-namespace-choice: this kernel lets namespaces choose among {', '.join(allowed)}; expected two of "
            f"{', '.join(name for name, _ in _WANTED)}. Add one to net.ipv4.tcp_allowed_congestion_control."
        )
    before = _DEFAULT.read_text(encoding="ascii").strip()
    told = _both(pairs)
    after = _DEFAULT.read_text(encoding="ascii").strip()
    outcomes: list[Outcome] = []
    ours: list[tuple[str, str]] = []
    for (algorithm, qdiscs), found in zip(pairs, told, strict=True):
        outcomes += [
            fact(
                f"a socket ran {algorithm}", found["algorithm"] == algorithm, f"TCP_CONGESTION is {found['algorithm']}"
            ),
            fact(
                f"over {' or '.join(qdiscs)}",
                found["qdisc"] in qdiscs and found["qdisc_pkts"] > 0,
                f"{found['qdisc_pkts']} packets through {found['qdisc']}",
            ),
        ]
        ours.append((f"namespace {1 + len(ours)}", f"{found['algorithm']} over {found['qdisc']}"))
    apart = all(told[0][key] != told[1][key] for key in ("netns", "algorithm", "qdisc"))
    at_once = max(found["began"] for found in told) < min(found["ended"] for found in told)
    outcomes += [
        fact("two namespaces, two algorithms, two qdiscs", apart, f"{told[0]['netns']} and {told[1]['netns']}"),
        fact("at once", at_once, "both transfers overlap" if at_once else "one was over before the other began"),
        fact("the host keeps its default", before == after, f"{before}, then {after}"),
    ]
    return Found(outcomes, ours)


def _search_path() -> str:
    """With sbin, where Debian has tc and sysctl, and where an ordinary user's own path does not lead."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def _both(pairs: Sequence[tuple[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """What each namespace told; each waits until the other is ready, so that they transfer at once."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    running = [
        subprocess.Popen(
            ["unshare", *user, "--net", *children.command(f"{__package__}.namespaced", algorithm, *qdiscs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**children.environment(), "PATH": _search_path()},
        )
        for algorithm, qdiscs in pairs
    ]
    try:
        for process in running:
            assert process.stdout is not None
            if process.stdout.readline().strip() != '"ready"':
                _, said = process.communicate(timeout=_TIMEOUT_SEC)
                raise KernelUnsupported(
                    f"per-namespace-choice: {said.strip().splitlines()[-1] if said.strip() else 'unshare failed'}"
                )
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=_TIMEOUT_SEC)[0]) for process in running]
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"per-namespace-choice: the transfers did not end within {_TIMEOUT_SEC} s; expected about one. Try again "
            "when the host has less to do."
        ) from None
    finally:
        for process in running:
            process.kill()
            process.wait()
