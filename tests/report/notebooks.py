"""Runs the notebooks of docs/notebooks as they stand."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs/notebooks"


def shown(name: str) -> list[Any]:
    """What the last expression of each cell gave, in one process and without the machinery of Jupyter."""
    names: dict[str, Any] = {}
    values = []
    for cell in json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop()
            exec(compile(tree, cell["id"], "exec"), names)
            assert isinstance(last, ast.Expr), f"{cell['id']} shows nothing"
            values.append(eval(compile(ast.Expression(last.value), cell["id"], "eval"), names))
    return values
