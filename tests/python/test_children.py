"""Processes of ours take nothing of the folder that they were called in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tcpknee
from tcpknee import children

HOSTILE = "raise SystemExit('the wrong one')\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    for name in ("runpy", "json", "argparse", "ast", "multiprocessing", "pickle"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    return tmp_path


def test_a_module_is_found_without_the_folder(hostile: Path) -> None:
    """Also by Python 3.10, which does not know PYTHONSAFEPATH."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for environment in (plain, children.environment()):
        ended = subprocess.run(
            children.command("json.tool", "--compact"),
            input="[1, 2]",
            env=environment,
            cwd=hostile,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.stdout.strip() == "[1,2]", ended.stderr


def test_an_empty_word_of_the_search_path_is_not_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}/some/where")
    assert children.environment()["PYTHONPATH"].split(os.pathsep)[1:] == ["/some/where"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no PYTHONSAFEPATH, which multiprocessing heeds")
def test_workers_of_multiprocessing_take_nothing_of_it_either(hostile: Path, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "from tcpknee.runs.workers import on_processes\n"
        "if __name__ == '__main__':\n"
        "    with on_processes(2) as on_all:\n"
        "        print(on_all('', abs, [-1, -2]))\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ended = subprocess.run(
        [sys.executable, script], env=plain, cwd=hostile, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "[1, 2]\n", ended.stderr


def test_no_module_starts_another_in_the_folder() -> None:
    modules = [*Path(tcpknee.__file__).parent.rglob("*.py")]
    assert len(modules) > 100
    for path in modules:
        assert 'executable, "-m"' not in path.read_text(encoding="utf-8"), path


def test_who_is_to_end_with_another_process_ends_where_that_is_gone() -> None:
    code = "from tcpknee import children; children.end_with(2**22); print('still here')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
