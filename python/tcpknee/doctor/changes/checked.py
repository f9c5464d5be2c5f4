"""Fields of a record as a file has them: each is what its class declares, whoever wrote the file."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tcpknee.errors import UsageError


def checked(kind: type, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields, for `kind(**fields)`. Raises UsageError."""
    if not isinstance(fields, Mapping):
        raise UsageError(f"change: got {fields!r}; expected an object.")
    hints = get_type_hints(kind)
    for name, value in fields.items():
        if name in hints and not _is(hints[name], value):
            raise UsageError(f"change: {name}: got {value!r}; expected {_told(hints[name])}.")
    return fields


def _is(hint: Any, value: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_is(part, value) for part in parts)
    if origin is Literal:
        return value in parts
    if origin in (list, tuple):
        if not isinstance(value, (list, tuple)):
            return False
        items = parts[:1] * len(value) if origin is list or parts[-1] is Ellipsis else parts
        return len(items) == len(value) and all(map(_is, items, value))
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _told(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
