"""No package index has a release of tcpknee, so whatever a name of ours there holds is somebody else's.

Nothing that is printed, documented or run has an installer look it up: extras come from the tree or from a wheel file.
"""

from __future__ import annotations

import re

from sources import ROOT, files

# An installer's line, and within it what it is to install: a bare name of ours, with an extra or a version or without.
INSTALLER = re.compile(
    r"\b(?:pipx?|uvx?|conda|poetry)\b[^\n]*?\b(?:install|add|run|download|wheel)\b(?P<words>[^\n]*)|\buvx(?P<one>[^\n]*)"
)
BARE = re.compile(r"(?<![\w./-])tcpknee(?:\[[\w,]+\])?(?:[=<>~!]=?[\w.]+)?(?=[\s'\"`)|&;.,:]|$)(?!/)")
# A requirement with an extra is one wherever it stands (pyproject.toml, an error's advice).
EXTRA = re.compile(r"(?<![\w./-])tcpknee\[")


def looked_up(line: str) -> bool:
    """Would whoever follows this line have an installer look for our name in an index?"""
    words = [found["words"] or found["one"] or "" for found in INSTALLER.finditer(line)]
    return bool(EXTRA.search(line)) or any(BARE.search(one) for one in words)


def test_nothing_installs_our_name_from_an_index() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in files()
        if path.name != "test_registry.py"
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if "tcpknee" in line and looked_up(line)
    ]
    assert not found


def test_the_pattern_knows_what_it_looks_for() -> None:
    for line in (
        "pip install tcpknee",
        "pip install 'tcpknee[cluster]'",
        "python -m pip install --upgrade tcpknee==0.1.0",
        "uv tool install tcpknee",
        "uvx tcpknee",
        "pipx run tcpknee",
        '    "tcpknee[cluster,frames]",',
    ):
        assert looked_up(line), line
    for line in (
        "pip install '.[cluster]'",
        "pip install 'dist/tcpknee-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl[cluster]'",
        "pip install ./tcpknee",
        'Installing tcpknee into "$(VENV)"',
        "import tcpknee",
    ):
        assert not looked_up(line), line
