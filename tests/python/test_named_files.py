"""Files that somebody else's scenario names: root reads none of them, and no error quotes one."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tcpknee
from support import SMALL, Ended, refused
from tcpknee import reading
from tcpknee.errors import ScenarioError
from tcpknee.validation.references import reference

SECRET = "root:$6$hunter2:20228:0:99999:7:::\n" * 2
OUTSIDE = "lies outside of the scenario's folder"

NAMING = {
    "path.rate": ("path", 'rate = "trace {file}"'),
    "path.ack_rate": ("path", 'rate = "1Mbit/s"\nack_rate = "trace {file}"'),
    "path.loss": ("path", 'rate = "1Mbit/s"\nloss = "trace {file}"'),
    "flow.0.sizes": ("flow", 'workload = "web"\nload = "1Mbit/s"\nsizes = "cdf {file}"'),
    "sender.costs": ("sender", 'costs = "file {file}"'),
    "sample.0": ("sample", 'file = "{file}"'),
}
"""Each way to name a file, by the key that errors tell it by, and the table that it stands in."""


def scenario(key: str, file: str | Path) -> str:
    where, lines = NAMING[key]
    lines = lines.format(file=file)
    tables = {"path": 'rate = "1Mbit/s"', "sender": "", "flow": ""} | {where: lines}
    text = f'duration = "1s"\n[path]\nrtt = "100ms"\n{tables["path"]}\n[sender]\n{tables["sender"]}\n'
    text += f'[[flow]]\nalgorithm = "cubic"\n{tables["flow"]}\n'
    return text + (f"[[sample]]\n{lines}\n" if where == "sample" else "")


@pytest.fixture(autouse=True)
def nothing_allowed_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """--allow-foreign-files holds for a process, and tests share one."""
    monkeypatch.setattr(reading, "_foreign_allowed", False)
    yield


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "etc/shadow"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder for somebody's scenario."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


Placed = Callable[[Path, Path], str]

PLACES: dict[str, Placed] = {
    "absolute": lambda theirs, secret: str(secret),
    "above": lambda theirs, secret: "../etc/shadow",
    "link": lambda theirs, secret: (theirs / "innocent.up").symlink_to(secret) or "innocent.up",
    "folder link": lambda theirs, secret: (theirs / "traces").symlink_to(secret.parent) or "traces/shadow",
}
"""How a scenario gets at a file elsewhere."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", NAMING)
def test_root_reads_no_file_outside_of_the_scenarios_folder(
    key: str, place: str, call: Callable[..., Ended], root: None, theirs: Path, secret: Path
) -> None:
    file = theirs / "s.toml"
    file.write_text(scenario(key, PLACES[place](theirs, secret)))
    ended = call("run", file, "--dry-run")
    refused(ended, key, OUTSIDE, "--allow-foreign-files")
    assert "hunter2" not in ended.err
    # Allowed, it is read, and not quoted all the same.
    ended = call("run", file, "--dry-run", "--allow-foreign-files")
    refused(ended, key, OUTSIDE)
    assert "hunter2" not in ended.err and "--allow-foreign-files" not in ended.err


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", NAMING)
def test_a_user_is_told_line_and_what_was_expected_of_a_file_elsewhere(
    key: str, place: str, call: Callable[..., Ended], user: None, theirs: Path, secret: Path
) -> None:
    file = theirs / "s.toml"
    file.write_text(scenario(key, PLACES[place](theirs, secret)))
    ended = call("run", file, "--dry-run")
    refused(ended, key, "not shown here")
    assert "hunter2" not in ended.err
    # Of a column's name, the names that are known are told.
    assert "expected" in ended.err or (key == "sample.0" and "known here" in ended.err)


@pytest.mark.parametrize("key", NAMING)
def test_a_file_in_the_scenarios_folder_is_quoted(
    key: str, call: Callable[..., Ended], root: None, theirs: Path, secret: Path
) -> None:
    inside = theirs / "traces"
    inside.mkdir()
    secret.rename(inside / "mine")
    (theirs / "link.up").symlink_to("traces/mine")
    for name in ("traces/mine", "link.up", inside / "mine"):
        (theirs / "s.toml").write_text(scenario(key, name))
        ended = call("run", theirs / "s.toml", "--dry-run")
        refused(ended, key)
        # A cost profile that is no TOML is told by its line alone.
        assert OUTSIDE not in ended.err and ("hunter2" in ended.err or key == "sender.costs")


def test_what_the_user_names_himself_is_read_and_quoted(
    call: Callable[..., Ended], root: None, theirs: Path, secret: Path
) -> None:
    assert "hunter2" in call("compare", "cubic", "--rate", f"trace {secret}", "--dry-run").err
    for asked in (
        lambda: tcpknee.run(scenario("path.rate", secret)),
        lambda: tcpknee.run(
            duration="1s", path={"rate": f"trace {secret}", "rtt": "1ms"}, flow=[{"algorithm": "cubic"}]
        ),
        lambda: tcpknee.compare("cubic", rate=f"trace {secret}"),
    ):
        with pytest.raises(ScenarioError, match="hunter2"):
            asked()


def test_a_scenario_by_stdin_is_not_named_by_hand(
    call: Callable[..., Ended], root: None, theirs: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(theirs)
    text = io.BytesIO(scenario("path.rate", secret).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text))
    refused(call("run", "-", "--dry-run"), OUTSIDE, "--allow-foreign-files")


def test_it_is_not_said_which_files_there_are_elsewhere(
    call: Callable[..., Ended], root: None, theirs: Path, secret: Path
) -> None:
    said = []
    for name in ("shadow", "none", "shadow/x"):
        (theirs / "s.toml").write_text(scenario("path.loss", secret.parent / name))
        ended = call("run", theirs / "s.toml", "--dry-run")
        said.append(ended.err.replace(str(secret.parent / name), "NAME"))
    assert len(set(said)) == 1


def test_what_is_no_regular_file_is_not_opened(call: Callable[..., Ended], user: None, theirs: Path) -> None:
    os.mkfifo(theirs / "fifo")
    (theirs / "s.toml").write_text(scenario("path.loss", "fifo"))
    refused(call("run", theirs / "s.toml", "--dry-run"), "fifo: cannot be read: it is a FIFO; expected a regular file")


STORED = {
    "no file": lambda theirs, secret: "nowhere/s.toml",
    "beside the secret": lambda theirs, secret: str(secret.with_name("s.toml")),
    "by hand": lambda theirs, secret: "<command line>",
    "another file": lambda theirs, secret: str(secret),
}
"""What a run.json may say of where its scenario was."""


@pytest.mark.parametrize("said", STORED)
@pytest.mark.parametrize("verb", [("run", "--resume", "--out"), ("export", "--format", "pcapng", "--out", "x.pcapng")])
@pytest.mark.parametrize("key", ["path.rate", "sample.0"])
def test_a_stored_scenario_is_believed_nothing_of_where_it_came_from(
    key: str, verb: tuple[str, ...], said: str, call: Callable[..., Ended], theirs: Path, secret: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    out = theirs / "run"
    tcpknee.run(SMALL, out=out)
    manifest = json.loads((out / "run.json").read_text())
    manifest |= {"status": "interrupted", "scenario": scenario(key, secret), "file": STORED[said](theirs, secret)}
    (out / "run.json").write_text(json.dumps(manifest))
    for uid, told in ((0, OUTSIDE), (1000, "not shown here")):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        ended = call(*verb, out)
        refused(ended, told)
        assert "hunter2" not in ended.err


def test_a_stored_scenario_whose_file_still_holds_it_is_in_that_files_folder(
    call: Callable[..., Ended], root: None, theirs: Path
) -> None:
    (theirs / "link.up").write_text("1\n2\n3\n")
    file = theirs / "s.toml"
    file.write_text(scenario("path.rate", "link.up"))
    out = theirs / "run"
    assert call("run", file, "--out", out, "-q").code == 0
    assert call("run", "--resume", "--out", out, "-q").code == 0
    file.write_text(scenario("path.rate", "link.up") + "# edited\n")
    refused(call("run", "--resume", "--out", out, "-q"), OUTSIDE)
    assert call("run", "--resume", "--out", out, "-q", "--allow-foreign-files").code == 0


def test_a_mix_of_a_fleet_is_a_scenario_as_well(
    call: Callable[..., Ended], root: None, theirs: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcpknee.fleet.synthetic import mix

    shipped = next(iter(mix.shipped()))
    text = (Path(mix.__file__).parents[2] / "gallery/fleets" / f"{shipped}.toml").read_text()
    first = text.index("[[clients]]") + len("[[clients]]\n")
    head, rest = text[:first], text[first:]
    rest = "\n".join(line for line in rest.splitlines() if not line.startswith("path.loss"))
    (theirs / "mix.toml").write_text(f'{head}path.loss = "trace {secret}"\n{rest}\n')
    words = ("fleet", "synthesize", theirs / "mix.toml", "--prefixes", "2", "--out", "fleet")
    ended = call(*words)
    refused(ended, OUTSIDE, "--allow-foreign-files")
    ended = call(*words, "--allow-foreign-files")
    refused(ended, OUTSIDE)
    assert "hunter2" not in ended.err


def test_a_file_of_reference_results_names_no_file(secret: Path) -> None:
    text = f"# tcpknee reference 1\n# kernel = 6.12.1\n# hz = 250\n# clock = real\n# set path.rate = trace {secret}\n"
    text += (
        "suite,group,run,flow,duration,warmup,path.rtt,flow.algorithm,goodput_bits_per_sec,srtt_us_p50,retransmit_pct\n"
    )
    with pytest.raises(reference.ReferenceError, match="scenarios read no files here"):
        found = reference.parse(f"{text}one,reno,1,0,4s,1s,20ms,reno,9600000,38000,0.5\n", "r.csv")
        found.parsed(found.cells()[0])
