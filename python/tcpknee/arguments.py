"""Arguments of the Python API: one of a wrong type is refused by its name, as any other mistake is.

@checked(scenario=OrNull(SCENARIO), workers=OrNull(COUNT))
def run(scenario=None, *, workers=None): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from numbers import Integral
from os import PathLike
from typing import Any, TypeVar, cast

from .errors import UsageError
from .shapes import Kind, Shape, mistake

_Function = TypeVar("_Function", bound=Callable[..., Any])

_VARARGS = 0x04
"""Flag of the code of a function that has `*args`."""


def _are_texts(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, bytes) and all(isinstance(one, str) for one in value)


PATH = Kind("a path", lambda value: isinstance(value, str | PathLike))
COUNT = Kind("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool))
TEXTS = Kind("a text or a list of texts", lambda value: isinstance(value, str) or _are_texts(value))
LISTED = Kind("a list of texts", lambda value: _are_texts(value) and not isinstance(value, str))
KEYS = Kind("a dict of keys and values", lambda value: isinstance(value, Mapping))


def checked(**shapes: Shape) -> Callable[[_Function], _Function]:
    """The function, which refuses arguments of other shapes than these. Raises UsageError."""

    def wrapped(function: _Function) -> _Function:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        has_further = bool(code.co_flags & _VARARGS)

        @wraps(function)
        def checking(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            if has_further:
                given[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]] = list(args[len(names) :])
            check(shapes, given)
            return function(*args, **kwargs)

        return cast(_Function, checking)

    return wrapped


def check(shapes: Mapping[str, Shape], given: Mapping[str, Any]) -> None:
    """Raises UsageError: one of the arguments given is of another shape."""
    if said := mistake({name: shape for name, shape in shapes.items() if name in given}, given):
        raise UsageError(f"{said}.")
