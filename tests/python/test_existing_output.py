"""One habit of every command that writes: what exists is not replaced without --force, folders above are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import tcpknee
from support import SMALL
from tcpknee.cli.app import app

ADDS = {"record", "assign", "import"}
"""Commands that add files to a folder, next to what it holds, and say so."""

KEEPS = {"trace", "profile", "conform", "gallery", "gate", "fleet synthesize"}
"""Those whose folder has to be new or empty: what was measured there is never replaced."""

FORCED = {
    "calibrate": ["calibrate", "--out", "there"],
    "compare": ["compare", "cubic", "--duration", "1s", "--repeat", "1", "--out", "run"],
    "diff": ["diff", "run", "run", "--report", "--out", "there"],
    "export": ["export", "run", "--format", "mahimahi", "--out", "there"],
    "export --grafana": ["export", "--grafana", "there"],
    "export --systemd": ["export", "--systemd", "units"],
    "export csv": ["export", "run", "--format", "csv", "--out", "units"],
    "export flent": ["export", "run", "--format", "flent", "--out", "there.flent"],
    "export pcapng": ["export", "run", "--format", "pcapng", "--out", "there"],
    "fleet compare": ["fleet", "compare", "run", "--by", "algorithm", "--out", "comparison"],
    "fleet connections": ["fleet", "connections", "run", "--out", "connections"],
    "fleet report": ["fleet", "report", "run", "--by", "algorithm", "--out", "there"],
    "redteam": ["redteam", "reno", "--out", "there"],
    "report": ["report", "run", "--out", "there"],
    "run": ["run", "s.toml", "--out", "run"],
    "snapshot": ["snapshot", "--out", "there"],
    "whatif": ["whatif", "run", "--algorithms", "bbr1", "--out", "whatif"],
}
"""Words of a call of every other command, whose --out is there."""

SLOW = {"calibrate", "redteam", "whatif", "fleet compare", "fleet report"}
"""Of these, what takes long or needs more than a run; that --force goes on is seen by the others."""


def writers(group: click.Group = app, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is told where to write."""
    for name, command in group.commands.items():
        path = f"{above} {name}".strip()
        if isinstance(command, click.Group):
            yield from writers(command, path)
        elif any(option in one.opts for one in command.params for option in ("--out", "--grafana")):
            yield path, command


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, its run, and something at every place where a command would write."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SMALL.replace("repeat = 3", "repeat = 1"))
    tcpknee.run(tmp_path / "s.toml", out=tmp_path / "run", workers=1)
    names = {
        "units": ["knee-exporter.service", "flows.csv"],
        "comparison": ["comparison.json"],
        "connections": ["connections.parquet"],
        "whatif": ["paths.csv", "whatif.json"],
    }
    for name in ("there", "there.flent"):
        (tmp_path / name).write_text("precious")
    for folder, files in names.items():
        (tmp_path / folder).mkdir()
        for file in files:
            (tmp_path / folder / file).write_text("precious")
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_command_that_writes_has_the_habit() -> None:
    known = {path for path, _ in writers()}
    listed = {
        name.split(" --")[0].removesuffix(" csv").removesuffix(" flent").removesuffix(" pcapng") for name in FORCED
    }
    adding = {path for path in known if path.split()[0] in ADDS}
    assert known == adding | KEEPS | listed
    for path, command in writers():
        forces = any("--force" in one.opts for one in command.params)
        assert forces == (path in listed), path
        if path in adding:
            help_ = " ".join([command.help or "", *(one.help or "" for one in command.params if "--out" in one.opts)])
            assert "may hold" in help_ or "add" in help_, f"{path} adds to a folder and does not say so"


@pytest.mark.parametrize("name", list(FORCED))
def test_what_exists_is_refused_and_stays_as_it_was(place: Path, name: str) -> None:
    before = files_of(place)
    found = call(*FORCED[name])
    said = str(found.exception)
    assert found.exit_code != 0 and "--force" in said, said
    assert files_of(place) == before


@pytest.mark.parametrize("words", [["conform"], ["profile", "--for", "1s"]])
def test_a_folder_of_something_else_is_refused_by_what_measures(place: Path, words: list[str]) -> None:
    before = files_of(place)
    found = call(*words, "--out", "units")
    assert found.exit_code != 0 and files_of(place) == before
    assert "units" in f"{found.exception} {found.output}"


@pytest.mark.parametrize("name", [name for name in FORCED if name not in SLOW])
def test_force_replaces_it(place: Path, name: str) -> None:
    out = place / FORCED[name][-1]
    before = files_of(place)
    found = call(*FORCED[name], "--force")
    assert found.exit_code == 0, (found.output, found.exception)
    after = files_of(place)
    changed = [path for path in after if after[path] != before.get(path)]
    assert changed and all(path == out or out in path.parents for path in changed)


@pytest.mark.parametrize(
    "words",
    [
        ["export", "run", "--format", "mahimahi", "--out"],
        ["export", "run", "--format", "pcapng", "--out"],
        ["export", "run", "--format", "csv", "--out"],
        ["export", "--grafana"],
        ["report", "run", "--figure", "goodput", "--out"],
        ["snapshot", "--out"],
        ["fleet", "connections", "run", "--out"],
        ["run", "s.toml", "--out"],
    ],
    ids=" ".join,
)
def test_folders_above_are_made(place: Path, words: list[str]) -> None:
    found = call(*words, "above/it/is.svg")
    assert found.exit_code == 0, (found.output, found.exception)
    assert (place / "above/it/is.svg").exists()


def test_a_page_at_its_own_place_is_written_anew(place: Path) -> None:
    """It says nothing that its folder does not say."""
    assert call("report", "run").exit_code == call("report", "run").exit_code == 0
    assert call("diff", "run", "run", "--report").exit_code == call("diff", "run", "run", "--report").exit_code == 0


def test_a_link_to_nowhere_exists_too(place: Path) -> None:
    (place / "link").symlink_to(place / "nowhere")
    found = call("snapshot", "--out", "link")
    assert "link: is there already" in str(found.exception) and not (place / "nowhere").exists()


def test_a_folder_of_connections_is_not_called_as_the_file_in_it(place: Path) -> None:
    found = call("fleet", "connections", "run", "--out", "conns.parquet")
    assert found.exit_code == 2 and "expected a folder" in found.output
    assert not (place / "conns.parquet").exists()
