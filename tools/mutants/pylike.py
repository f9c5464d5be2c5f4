"""Where Python can be mutated, from its syntax tree."""

from __future__ import annotations

import ast
import re

from mutant import COMPARISONS, SUMS, Mutant, Places, other_numbers

# Nothing is decided in these: types, messages, texts.
_SKIPPED = (ast.Raise, ast.JoinedStr, ast.Assert)


def in_python(file: str, source: str) -> list[Mutant]:
    """All mutants of a Python file."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(finder.places.found, key=lambda m: (m.start, m.end, m.replacement))


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: str) -> None:
        self.places = Places(file, source)
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.before = [0]
        for line in self.lines:
            self.before.append(self.before[-1] + len(line))
        self.functions: list[str] = []

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _SKIPPED):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.functions.append(node.name)
            for child in node.body:
                self.visit(child)
            self.functions.pop()
            return
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.visit(node.value)
            return
        self._mutate(node)
        self.generic_visit(node)

    def _mutate(self, node: ast.AST) -> None:
        match node:
            case ast.If() | ast.IfExp():
                self._condition(node.test)
            case ast.comprehension():
                for condition in node.ifs:
                    self._condition(condition)
            case ast.Compare(ops=[_]):
                self._between(node.left, node.comparators[0], COMPARISONS)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    self._between(left, right, {"and": "or", "or": "and"})
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                self._between(node.left, node.right, SUMS)
            case ast.Constant(value=bool(value)):
                self._add(self._span(node), [str(not value)])
            case ast.Constant(value=int(value)):
                self._add(self._span(node), [str(other) for other in other_numbers(value)])
            case ast.Constant(value=float(value)):
                self._add(self._span(node), [repr(value * factor) for factor in (2, 0.5)] if value else ["1.0"])
            case _:
                pass

    def _condition(self, test: ast.expr) -> None:
        span = self._span(test)
        if self.source[slice(*span)] != "TYPE_CHECKING":
            self._add(span, [f"(not ({self.source[slice(*span)]}))", "True", "False"])

    def _between(self, left: ast.expr, right: ast.expr, others: dict[str, str]) -> None:
        """The operator between two operands, where the rest is brackets and white space."""
        start, end = self._span(left)[1], self._span(right)[0]
        found = re.fullmatch(r"[\s()]*?(<=|>=|==|!=|<|>|\+|-|\band\b|\bor\b)[\s()]*", self.source[start:end])
        if found is not None and found[1] in others:
            self._add((start + found.start(1), start + found.end(1)), [others[found[1]]])

    def _add(self, span: tuple[int, int], replacements: list[str]) -> None:
        self.places.add(span, replacements, ".".join(self.functions))

    def _span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """The syntax tree counts bytes within a line."""
        in_line = len(self.lines[line - 1].encode()[:column].decode())
        return self.before[line - 1] + in_line
