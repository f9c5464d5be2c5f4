"""Asking a change of another network namespace, through a process that is in it.

Files below /proc/sys/net and sockets belong to the namespace of who opens them, and /sys shows the namespace in which
it was mounted. `nsenter` and `unshare` (util-linux) put the process there, which then mounts a /sys that nobody else
sees. It ends with this one.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tcpknee import children
from tcpknee.errors import EngineError, UsageError
from tcpknee.live.which import namespace_path

_workers: dict[tuple[str, int], subprocess.Popen[str]] = {}
"""By the namespace's file and inode: a name can be given to another one."""


class Refused(EngineError):
    """What a change raised there. `is_gone`: what it belongs to is not there."""

    def __init__(self, why: str, *, is_gone: bool) -> None:
        super().__init__(why)
        self.is_gone = is_gone


def ask(netns: str, change: dict[str, Any], method: str, *arguments: Any) -> Any:
    """What `method` of the change returns in that namespace, as JSON. Raises Refused, UsageError."""
    worker = _worker(netns)
    assert worker.stdin is not None and worker.stdout is not None
    try:
        worker.stdin.write(json.dumps({"change": change, "method": method, "arguments": arguments}) + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if not answer:
        raise Refused(
            f"--netns: got {netns}; its process ended with code {worker.wait()}: {_last_words(worker)} Entering a "
            "namespace needs root and the programs nsenter, unshare and mount (package util-linux).",
            is_gone=False,
        )
    found = json.loads(answer)
    if "refused" in found:
        raise Refused(found["refused"], is_gone=found["is_gone"])
    return found["returned"]


def _worker(netns: str) -> subprocess.Popen[str]:
    path = namespace_path(netns)
    try:
        key = (str(path), path.stat().st_ino)
    except OSError as error:
        raise Refused(
            f"--netns: got {netns}; there is no such namespace ({error.strerror}: {path}).",
            is_gone=isinstance(error, FileNotFoundError),
        ) from None
    if key not in _workers:
        inside = children.command("tcpknee.doctor.changes.worker")
        try:
            _workers[key] = subprocess.Popen(
                ["nsenter", f"--net={path}", "--", "unshare", "--mount", "--propagation", "slave", "--", *inside],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=children.environment(),
                text=True,
            )
        except FileNotFoundError:
            raise UsageError("--netns: nsenter is not installed; install the package util-linux.") from None
    return _workers[key]


def _last_words(worker: subprocess.Popen[str]) -> str:
    assert worker.stderr is not None
    said = worker.stderr.read().strip().splitlines()
    return f"{said[-1].rstrip('.')}." if said else ""
