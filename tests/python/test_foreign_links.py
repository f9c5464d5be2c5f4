"""A folder of somebody's in which any file may be a link to a file of another: no verb that reads the folder quotes
that one. `test_named_files.py` has the files that scenarios name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NoReturn

import pytest

import tcpknee
from support import SMALL, Ended
from tcpknee import imports
from tcpknee.cli.app import VERBS
from tcpknee.errors import UsageError
from tcpknee.whatif import request

SECRETS = (
    '{"hunter2": "hunter2", "status": "hunter2", "schema": "hunter2", "sessions": "hunter2", "format": "hunter2"}\n',
    "hunter2,path.rtt\nroot:$6$hunter2:20228:0:99999:7:::\n",
    "PAR1hunter2hunter2PAR1",
)
"""What the other file may hold, as each reader might take it for its own."""

DUMP = """\
Fri Aug 21 12:00:00 UTC 2026
ESTAB 0 0 10.1.2.3:443 192.0.2.77:50123 cubic rtt:16/10 cwnd:10 bytes_acked:1000
"""

RUNS, TABLES = ("run", "begun"), ("run", "import")
READERS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "conform": (("begun",), ["conform --resume --quick --out FOLDER -q"]),
    "diff": (("run",), ["diff FOLDER FOLDER -q"]),
    "doctor": (("snapshots",), ["doctor --fleet FOLDER"]),
    "export": (
        TABLES,
        [
            "export FOLDER --format csv --out csv",
            "export FOLDER --format pcapng --out x.pcapng",
            "export FOLDER --format flent --out x.flent",
            "export FOLDER --format mahimahi --out x.up",
        ],
    ),
    "fleet": (
        (*TABLES, "assign"),
        [
            "fleet connections FOLDER --out c.parquet -q",
            "fleet compare FOLDER --by algorithm -q",
            "fleet watch FOLDER --guard retransmit_pct~ratio~<=~1.2 --every 1s --for 1s -q",
        ],
    ),
    "gallery": (("begun",), ["gallery --resume --only timer-rule --quick --out FOLDER -q"]),
    "report": (TABLES, ["report FOLDER --out page.html -q"]),
    "run": (RUNS, ["run --resume --out FOLDER -q"]),
    "sql": (TABLES, ["sql show~tables FOLDER", "sql select~*~from~runs FOLDER"]),
    "whatif": (TABLES, ["whatif FOLDER --algorithms bbr1 --paths 1 -q"]),
}
"""Of each verb that reads folders, which ones, and how it is given one."""

OTHERS = {
    *(
        "assign",
        "calibrate",
        "compare",
        "import",
        "kernel",
        "list",
        "load",
        "profile",
        "recommend",
        "record",
        "redteam",
        "shell",
        "snapshot",
    ),
    *("against", "check", "completion", "gate", "help", "new", "score", "suite", "trace", "unload", "watch"),
}
"""Verbs that read no folder."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind that verbs read."""
    place = tmp_path_factory.mktemp("folders")
    tcpknee.run(SMALL, out=place / "run")
    (place / "dump.txt").write_text(DUMP)
    imports.write("ss", place / "dump.txt", place / "import")
    (place / "snapshots").mkdir()
    (place / "snapshots/a.json").write_text("{}")
    (place / "assign").mkdir()
    for name in ("assign.json", "assign-stop.json"):
        (place / "assign" / name).write_text("{}")
    shutil.copytree(place / "run", place / "begun")
    manifest = json.loads((place / "begun/run.json").read_text())
    (place / "begun/run.json").write_text(json.dumps(manifest | {"status": "interrupted"}))
    return {name: place / name for name in ("run", "import", "snapshots", "assign", "begun")}


def linked(folder: Path, to: Path) -> Iterator[tuple[Path, Path]]:
    """Copies of the folder, in each of which another file is a link, and to what."""
    for file in sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()):
        name = str(file).replace("/", "-")
        copy = shutil.copytree(folder, to / f"{folder.name}-{name}")
        (copy / file).unlink()
        (copy / file).symlink_to(to / f"secret-{name}")
        yield copy, to / f"secret-{name}"


def _no_search(*_: object) -> NoReturn:
    raise UsageError("what is read is searched")


def test_every_verb_says_whether_it_reads_a_folder() -> None:
    assert set(VERBS) == {*READERS, *OTHERS}


@pytest.mark.slow("each verb reads a folder for each of its files and contents")
@pytest.mark.parametrize("verb", READERS)
def test_no_verb_quotes_a_file_that_a_folder_links_to(
    verb: str, folders: dict[str, Path], call: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A minute of search, which begins when all has been read.
    monkeypatch.setattr(request, "fit_all", _no_search)
    names, commands = READERS[verb]
    for name in names:
        for copy, secret in linked(folders[name], tmp_path):
            for content, command in product(SECRETS, commands):
                secret.write_text(content)
                ended = call(*(word.replace("FOLDER", str(copy)).replace("~", " ") for word in command.split()))
                assert "hunter2" not in ended.out + ended.err, (command, copy, content)
                assert "Traceback" not in ended.err, ended.err
