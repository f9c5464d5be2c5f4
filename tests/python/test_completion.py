"""What a shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import keep_kernel
from tcpknee.cli import completion


def completed(*words: str) -> list[str]:
    """What bash would show for the last word."""
    line = " ".join(("knee", *words))
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "_KNEE_COMPLETE": "bash_complete"}
    ended = subprocess.run(
        [str(Path(sys.executable).with_name("knee"))],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return [text.partition(",")[2] for text in ended.stdout.split()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("comp",), ["compare", "completion"]),
        (("compare", "cu"), ["cubic", "cubic_preack"]),
        (("compare", "cubic", "--queue", "fq_"), ["fq_codel", "fq_pie"]),
        (("compare", "--set", "path.ack_q"), ["path.ack_queue="]),
        (("compare", "--set", "path.queue=co"), ["path.queue=codel"]),
        (("compare", "--set", "flow.bbr1.cwnd_g"), ["flow.bbr1.cwnd_gain="]),
        (("compare", "--kernel", "5.6,5.6"), []),
        (("compare", "--kernel", "4.20,7."), ["4.20,7.0"]),
        (("compare", "--engine", "sim,g"), ["sim,guest"]),
        (("list", "que"), ["queues"]),
        (("list", "queues", "cod"), ["codel"]),
        (("help", "fleet", "comp"), ["compare"]),
        (("gallery", "--only", "x,loss-m"), ["x,loss-matrix"]),
        (("doctor", "few-q"), ["few-queues"]),
    ],
)
def test_names_are_completed(
    words: tuple[str, ...], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert completed(*words) == found


def test_kernels_that_were_built_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_kernel(tmp_path, "7.2-mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert completed("compare", "--kernel", "4.20,7.") == ["4.20,7.0", "4.20,7.2-mine"]
    assert completed("kernel", "remove", "7") == ["7.2-mine"]


def test_where_no_name_fits_an_algorithm_may_be_a_file() -> None:
    assert completed("compare", "./mi") == ["./mi"]


def test_bash_takes_the_script(tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "tcpknee", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "knee.bash").write_text(script)
    asks = "source knee.bash; COMP_WORDS=(knee list impo); COMP_CWORD=2; _knee_completion knee; echo ${COMPREPLY[@]}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", asks], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["importers"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_has_a_script_that_asks_knee(shell: str) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "tcpknee", "completion", shell], capture_output=True, text=True, check=True
    ).stdout
    assert f"_KNEE_COMPLETE={shell}_complete" in script
