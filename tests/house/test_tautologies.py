"""No test asserts what always holds, or looks at nothing and passes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sources import files, read

SEARCHES = {"glob", "rglob", "iterdir", "listdir", "scandir", "walk", "finditer", "findall"}
"""What they find may be nothing."""
ANYTHING = {"Exception", "BaseException"}


def tautologies(source: str) -> list[tuple[int, str]]:
    """Lines of a module of tests, and what is wrong there."""
    tree = ast.parse(source)
    found = [wrong for node in ast.walk(tree) for wrong in _wrong(node)]
    tests = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return sorted(found + [wrong for test in tests for wrong in _looks_at_nothing(test)])


def _wrong(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Assert):
        for part in _parts(node.test):
            if _is_constant(part):
                yield node.lineno, f"always the same: {ast.unparse(part)}"
            if isinstance(part, ast.Compare) and _is_of_itself(part):
                yield node.lineno, f"compared with itself: {ast.unparse(part)}"
    if _called(node) == "raises" and isinstance(node, ast.Call) and node.args and not node.keywords:
        kinds = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        if ANYTHING & {ast.unparse(kind) for kind in kinds}:
            yield node.lineno, f"any mistake passes: {ast.unparse(node)}"


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    """The condition, and what it is made of with and, or and not."""
    yield test
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _parts(value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)


def _is_constant(value: ast.expr) -> bool:
    """A tuple with anything in it is true, whatever that is."""
    if isinstance(value, ast.Compare):
        return all(isinstance(side, ast.Constant) for side in (value.left, *value.comparators))
    displays = ast.Tuple | ast.List | ast.Set | ast.Dict
    return isinstance(value, ast.Constant | ast.JoinedStr | ast.Lambda | ast.GeneratorExp | displays)


def _is_of_itself(compared: ast.Compare) -> bool:
    """Two calls may differ; two readings of a name do not."""
    sides = [compared.left, *compared.comparators]
    same = len(sides) == 2 and ast.dump(sides[0]) == ast.dump(sides[1])
    return same and not any(isinstance(node, ast.Call) for node in ast.walk(sides[0]))


def _looks_at_nothing(test: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """All that the test asserts stands in loops over what a search finds, so that it passes where nothing is found."""
    searched = {
        target.id
        for node in ast.walk(test)
        if isinstance(node, ast.Assign) and _may_be_empty(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    loops = [node for node in ast.walk(test) if isinstance(node, ast.For) and _may_be_empty(node.iter, searched)]
    inside = {id(below) for loop in loops for below in ast.walk(loop)}
    if loops and not any(_checks(node) for node in ast.walk(test) if id(node) not in inside):
        yield loops[0].lineno, f"passes if nothing is found: {ast.unparse(loops[0].iter)}"


def _may_be_empty(found: ast.expr, searched: set[str]) -> bool:
    """A search, or what sorts, counts or filters its findings, alone or beside something else."""
    if isinstance(found, ast.Name):
        return found.id in searched
    if isinstance(found, ast.Call):
        return _called(found) in SEARCHES or any(_may_be_empty(word, searched) for word in found.args)
    if isinstance(found, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return any(_may_be_empty(one.iter, searched) for one in found.generators)
    if isinstance(found, ast.Tuple | ast.List):
        return any(isinstance(one, ast.Starred) and _may_be_empty(one.value, searched) for one in found.elts)
    return False


def _checks(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or _called(node) in {"raises", "fail", "refused"}


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def test_no_test_asserts_what_always_holds() -> None:
    modules = [path for path in files() if path.parts[0] == "tests" and path.suffix == ".py"]
    assert len(modules) > 100
    assert [f"{path}:{line}: {what}" for path in modules for line, what in tautologies(read(path))] == []


@pytest.mark.parametrize(
    "body",
    [
        "assert x or True",
        "assert (x == 1 and y) or True",
        "assert not (x and 0)",
        "assert True",
        "assert (x == 1, 'x is 1')",
        "assert 'text'",
        "assert [x]",
        "assert 1 < 2",
        "assert x == x",
        "assert x.y is x.y",
        "with pytest.raises(Exception): f()",
        "with pytest.raises((ValueError, BaseException)): f()",
        "for path in folder.glob('*'):\n  assert path",
        "for path in sorted(folder.rglob('*')):\n  assert path",
        "for number, found in enumerate(re.findall('a', text)):\n  assert found",
        "paths = sorted(folder.iterdir())\n for path in paths:\n  assert path",
        "for path in (README, *folder.glob('*')):\n  assert path",
        "for path in (p for p in folder.iterdir() if p.is_file()):\n  assert path",
    ],
)
def test_a_tautology_is_found(body: str) -> None:
    assert len(tautologies(f"def test_x() -> None:\n {body}\n")) == 1


@pytest.mark.parametrize(
    "body",
    [
        "assert x or y",
        "assert x == [1, 2] == y",
        "assert next(x) == next(x)",
        "assert not x",
        "with pytest.raises(Exception, match='why'): f()",
        "with pytest.raises(ValueError): f()",
        "paths = folder.glob('*')\n assert paths\n for path in paths:\n  assert path",
        "for path in folder.glob('*'):\n  x = path\n assert x",
        "for one in [1, 2]:\n  assert one",
    ],
)
def test_what_can_fail_is_let_be(body: str) -> None:
    assert tautologies(f"def test_x() -> None:\n {body}\n") == []
