"""What is packed is whole: a wheel has the data that the package reads, the sources have all that the crates are built
of, both say of which commit they are, and every verb has a page for `man`."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sources import ROOT
from tcpknee import provenance
from tcpknee.cli.app import VERBS

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

MATURIN = Path(sys.executable).with_name("maturin")


def listed(*folders: str) -> list[str]:
    words = ["git", "ls-files", *folders]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_a_wheel_has_every_file_behind_the_links_of_the_package() -> None:
    """But recipes and descriptions, which are for those who have the tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = [one["path"] for one in project["tool"]["maturin"]["include"] if "wheel" in one["format"]]
    files = [f"python/tcpknee/{name}" for name in listed("cc", "gallery", "packaging", "suites")]
    files = [name for name in files if not name.endswith((".md", ".mk", ".def", ".clang-format", "Containerfile"))]
    assert len(files) > 100
    # A star stands for no slash.
    left_out = [
        name for name in files
        if not any(fnmatch.fnmatch(name, one) and name.count("/") == one.count("/") for one in patterns)
    ]  # fmt: skip
    assert left_out == []


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a source distribution, without the folder that all are in."""
    out = tmp_path_factory.mktemp("sdist")
    done = subprocess.run([MATURIN, "sdist", "--out", out], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [archive] = out.iterdir()
    with tarfile.open(archive) as packed:
        return {name.partition("/")[2] for name in packed.getnames()}


def test_the_sources_have_what_the_crates_are_built_of(sources: set[str]) -> None:
    wanted = listed("cc/*.c", "cc/*.h", "cc/*.def", "cc/kernel", "bpf", "hosts", "gallery/traces")
    wanted += [f"python/tcpknee/{name}" for name in listed("cc/*.c", "gallery/*.toml")]
    assert len(wanted) > 100 and [name for name in wanted if name not in sources] == []


def test_a_note_of_the_commit_is_there_while_something_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = ROOT / "python" / "tcpknee" / "build.json"
    words = [sys.executable, ROOT / "tools" / "stamp.py", "trained", shutil.which("cat") or "cat", note]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    stamp = json.loads(done.stdout)
    assert done.returncode == 0 and not note.exists() and stamp["build"] == "trained"
    package = tmp_path / "tcpknee"
    package.mkdir()
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    assert provenance.build() == "of a commit that nobody noted"
    (package / "build.json").write_text(done.stdout, encoding="utf-8")
    assert provenance.build() == f"commit {stamp['commit']}, trained"
    assert (
        stamp["commit"].split()[0]
        in subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    )


def test_every_verb_has_a_page_for_man_that_says_its_options(tmp_path: Path) -> None:
    words = [sys.executable, ROOT / "tools" / "man.py", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = tmp_path / "share" / "man" / "man1"
    assert [verb for verb in VERBS if not (pages / f"knee-{verb}.1").exists()] == []
    text = (pages / "knee-compare.1").read_text(encoding="utf-8")
    assert ".SH NAME\nknee\\-compare \\- " in text and ".B \\-\\-rate TEXT\nRate of the bottleneck" in text
    # A line that begins with a dot is an order to roff.
    orders = {line.split()[0] for page in pages.iterdir() for line in page.read_text().splitlines() if line[:1] == "."}
    assert orders == {".TH", ".SH", ".B", ".BR", ".PP", ".TP", ".nf", ".fi"}
    assert (tmp_path / "share/zsh/site-functions/_knee").read_text(encoding="utf-8").startswith("#compdef knee")


def test_all_that_names_the_version_names_the_same() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert cargo == project and f"\nversion: {project}\n" in citation
    assert f"\n## {project}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_release_uses_actions_by_commit_and_tells_where_all_that_it_publishes_came_from() -> None:
    """A tag of somebody else's may become another program, in jobs that may sign for us."""
    found = [(name, (ROOT / name).read_text(encoding="utf-8")) for name in listed(".github/workflows")]
    used = [(name, one) for name, text in found for one in re.findall(r"uses: (.+)", text)]
    assert len(used) > 5 and [one for one in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", one[1])] == []
    release = dict(found)[".github/workflows/release.yml"]
    attested = re.findall(r"attest-build-provenance@.*\n +with: \{subject-path: (\S+)\}", release)
    assert attested == ["dist/*", "site.tar.gz"]
    assert "dist/* site.tar.gz\n" in release
    # As what it compares the tag's version with.
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    lines = {
        file: line.replace("\\", "").replace("$version", version)
        for line, file in re.findall(r'grep -Fqx "(.+)" (\S+)', release)
    }
    assert set(lines) == {"pyproject.toml", "Cargo.toml", "CITATION.cff"}
    for file, line in lines.items():
        assert line in (ROOT / file).read_text(encoding="utf-8").splitlines(), file
