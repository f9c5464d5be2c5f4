"""Settings of the whole machine, changed for the time of a run. A process of their own holds them and puts them back:

    python -m tcpknee.runs.host_settings net.core.NAME VALUE

It tells what was there in a line of JSON, `{"was": …, "set": …}` or `{"error": …}`, and waits for the end of its
standard input, which comes when the process that asked ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from tcpknee import children
from tcpknee.errors import EngineError, KernelUnsupported

KEEPER = children.command("tcpknee.runs.host_settings")
"""The command of the process that holds a setting."""

LONGEST_BYTES = 100
"""Of a sysctl that is a number."""


@contextmanager
def held(
    wanted: Mapping[str, int], file: str, environment: Mapping[str, str], *, allowed: bool
) -> Iterator[dict[str, dict[str, int]]]:
    """Keeps these sysctls at these values until the end; yields what each was and is. `environment`: of our processes.

    Raises `KernelUnsupported` where that is not `allowed`, `EngineError` where it cannot be."""
    if wanted and not allowed:
        name, value = next(iter(wanted.items()))
        raise KernelUnsupported(
            f"{file}: {name.rsplit('.', 1)[-1]} = {value} is asked for, which this kernel has for the whole machine "
            f"and not for a lab ({name}). Allow it for the time of the run with --allow-host-settings, or leave it out."
        )
    with ExitStack() as stack:
        yield {name: stack.enter_context(_held(name, value, file, environment)) for name, value in wanted.items()}


@contextmanager
def _held(name: str, value: int, file: str, environment: Mapping[str, str]) -> Iterator[dict[str, int]]:
    # A session of its own: Ctrl-C in a terminal ends the run, and with it this.
    keeper = subprocess.Popen(
        [*KEEPER, name, str(value)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    try:
        said = json.loads(keeper.stdout.readline() or '{"error": "the process that was to hold it died"}')
        if "error" in said:
            raise EngineError(f"{file}: cannot set {name} to {value}: {said['error']}.")
        yield said
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


def main(name: str, value: str) -> int:
    """Exit code 0 when the setting is as it was."""
    # Only the end of the process that asked ends this one.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        setting = os.open(f"/proc/sys/{name.replace('.', '/')}", os.O_RDWR | os.O_CLOEXEC)
        # Of two that hold it, the one that ends last would leave what it found.
        fcntl.flock(setting, fcntl.LOCK_EX | fcntl.LOCK_NB)
        was = _read(setting)
        os.pwrite(setting, value.encode(), 0)
    except BlockingIOError:
        return _refused("another run holds it; wait for its end")
    except PermissionError:
        return _refused("only root may; run as root")
    except OSError as error:
        return _refused(f"{error.strerror}; leave it out")
    try:
        print(json.dumps({"was": was, "set": _read(setting)}), flush=True)
        sys.stdin.buffer.read()
    finally:
        os.pwrite(setting, str(was).encode(), 0)
    return 0


def _refused(why: str) -> int:
    print(json.dumps({"error": why}), flush=True)
    return 1


def _read(setting: int) -> int:
    return int(os.pread(setting, LONGEST_BYTES, 0))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
