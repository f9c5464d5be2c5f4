"""Tests in real time have no limits of their own for what has to come: a busy machine exceeds any that seems enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sources import files, read

WAITS = {"wait", "join", "communicate"}


def limits(source: str) -> Iterator[str]:
    """Calls that wait for so many seconds, written as a number."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            words = [word.value for word in node.keywords if word.arg == "timeout"] + (
                node.args if name in WAITS else []
            )
            if any(isinstance(word, ast.Constant) and isinstance(word.value, int | float) for word in words):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_what_has_to_come_is_waited_for_with_patience() -> None:
    modules = [path for path in files() if path.match("tests/kernel/*.py")]
    assert len(modules) > 40
    assert [f"{path}:{found}, not PATIENCE_SEC" for path in modules for found in limits(read(path))] == []


@pytest.mark.parametrize("call", ["p.wait({})", "t.join({})", "p.communicate(timeout={})", "run(words, timeout={})"])
def test_a_limit_is_found(call: str) -> None:
    assert list(limits(call.format(2.5))) == [f"1: {call.format(2.5)}"]
    assert list(limits(call.format("PATIENCE_SEC"))) == []
