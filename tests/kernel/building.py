"""What the tests of this folder share: the list of algorithms and running commands from the root of the tree."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
ALGORITHMS = re.findall(r"^CC_ALGORITHM_FILE\((\w+)\)$", (ROOT / "cc/algorithms.def").read_text(), re.M)


def kernel_name(algorithm: str) -> str:
    """What the kernel calls our build: knee_ and its name, or a shorter one that the file gives."""
    shorter = re.search(r"^#define CC_KERNEL_NAME (\w+)$", (ROOT / f"cc/{algorithm}.c").read_text(), re.M)
    return shorter[1] if shorter else f"knee_{algorithm}"


def run(*command: object, timeout_s: float = 120) -> str:
    """Runs a command; its output, or a failure that shows all it said."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        pytest.fail(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def missing_tools(*names: str) -> list[str]:
    """Those of the tools that are not installed."""
    return [name for name in names if not shutil.which(name)]
