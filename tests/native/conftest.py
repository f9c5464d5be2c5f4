"""The playground, built once for all processes of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGET = "wasm32-unknown-unknown"

# Chromium, as the tests of reports call it.
sys.path.insert(0, str(ROOT / "tests/report"))


@pytest.fixture(scope="session")
def playground(once: Callable[[str, Callable[[Path], object]], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make play` makes: index.html and the engine in it, cell.wasm."""
    need_wasm(tmp_path_factory.mktemp("wasm"))

    def build(folder: Path) -> None:
        words = [sys.executable, ROOT / "site/play/build.py", folder]
        built = subprocess.run(words, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stderr

    return once("playground", build)


def need_wasm(folder: Path) -> None:
    """Skips where the machine cannot build for WebAssembly or run it."""
    if missing := [name for name in ("cargo", "rustc", "node") if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    rustc = os.environ.get("RUSTC", "rustc")
    if not works([rustc, "--target", TARGET, "--crate-type", "rlib", "-o", str(folder / "nothing.rlib"), "-"]):
        pytest.skip(f"rustc cannot build for {TARGET}: rustup target add {TARGET}")
    compilers = (name for name in ("clang-16", "clang") if shutil.which(name))
    if not any(
        works([name, f"--target={TARGET}", "-c", "-x", "c", "-", "-o", str(folder / "nothing.o")]) for name in compilers
    ):
        pytest.skip(f"no clang for {TARGET}")


def works(command: Sequence[str]) -> bool:
    """Whether a compiler takes an empty source."""
    return subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0
