"""What the tests of this folder share: the list of algorithms and running commands from the root of the tree."""

import fcntl
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from waiting import PATIENCE_SEC

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
ALGORITHMS = re.findall(r"^CC_ALGORITHM_FILE\((\w+)\)$", (ROOT / "cc/algorithms.def").read_text(), re.M)


def kernel_name(algorithm: str) -> str:
    """What the kernel calls our build: knee_ and its name, or a shorter one that the file gives."""
    shorter = re.search(r"^#define CC_KERNEL_NAME (\w+)$", (ROOT / f"cc/{algorithm}.c").read_text(), re.M)
    return shorter[1] if shorter else f"knee_{algorithm}"


def run(*command: object, timeout_s: float = PATIENCE_SEC) -> str:
    """Runs a command; its output, or a failure that shows all it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


@contextmanager
def alone(name: str) -> Iterator[None]:
    """No other test process is in the body under that name meanwhile."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_bpf(target: str) -> Path:
    """Builds the objects of cc/bpf.mk's target; their folder."""
    with alone("bpf"):
        run("make", "-f", "cc/bpf.mk", target)
    return BUILD / "bpf"
