"""Conditions over connections, as `--where` takes them: SQL of one expression, which can read nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tcpknee.errors import UsageError

from .columns import COLUMNS

if TYPE_CHECKING:
    import duckdb


def checked(database: duckdb.DuckDBPyConnection, where: str) -> str:
    """The condition, to be put into a query: it is one expression, whatever stands around it. Raises UsageError.

    A query within it is refused: it could ask other tables, and functions that read files.
    """
    # In parentheses nothing can follow the expression. Without them its own must match, as in "a) or (b" they do not.
    for form in (where, f"({where}\n)"):
        query = f"select * from connections where {form}"
        found = json.loads(database.execute("select json_serialize_sql(?)", [query]).fetchall()[0][0])
        if found["error"]:
            raise refused(where, found["error_message"])
    if any(node.get("class") == "SUBQUERY" for node in _nodes(found["statements"])):
        raise refused(where, "has a query within it")
    return form


def refused(where: str, why: str) -> UsageError:
    """What to say of a condition that cannot be asked."""
    known = ", ".join(column.name for column in COLUMNS)
    said = " ".join(why.split()).rstrip(". ")
    return UsageError(f'where: got "{where}": {said}; expected a condition over the columns, which are {known}.')


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a JSON document."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for below in tree:
            yield from _nodes(below)
