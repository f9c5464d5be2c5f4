"""What JSON of others has to hold, written down as it looks, and checked once where it is read.

    mistake({"title": TEXT, "claim": OrNull(TEXT), "cells": [{"index": WHOLE}]}, found)

A dictionary is an object that has at least these keys, a list with one shape is a list of such things, and a tuple is a
list of as many things, each of its own shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Shape = Any
"""A `Kind`, `OrNull`, `Optional`, `Every`, or a dictionary, list or tuple of shapes."""

_SHOWN = 60


@dataclass(frozen=True)
class Kind:
    """A value without parts."""

    words: str
    """What is expected."""
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class OrNull:
    """That, or null."""

    shape: Shape


@dataclass(frozen=True)
class Optional:
    """In an object: that, or no such key."""

    shape: Shape


@dataclass(frozen=True)
class Every:
    """An object whose values are each that, whatever their names."""

    shape: Shape


def one_of(*words: str) -> Kind:
    """One of these texts."""
    return Kind(" or ".join(f'"{word}"' for word in words), lambda value: isinstance(value, str) and value in words)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


TEXT = Kind("text", lambda value: isinstance(value, str))
WHOLE = Kind("a whole number from 0 on", _is_whole)
NUMBER = Kind("a number", _is_number)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TIME = Kind("a date and time", _is_time)
ANY = Kind("anything", lambda value: True)


def mistake(shape: Shape, found: Any) -> str | None:
    """The first place where it is of another shape, what is there and what is expected; None: nowhere."""
    return next(_mistakes(shape, found, ""), None)


def _mistakes(shape: Shape, found: Any, where: str) -> Iterator[str]:
    if isinstance(shape, OrNull):
        if found is not None:
            yield from _mistakes(shape.shape, found, where)
    elif isinstance(shape, Optional):
        yield from _mistakes(shape.shape, found, where)
    elif isinstance(shape, Kind):
        if not shape.holds(found):
            yield _told(where, found, shape.words)
    elif isinstance(shape, Every):
        if isinstance(found, dict):
            for key, value in found.items():
                yield from _mistakes(shape.shape, value, f"{where}[{_shown(key)}]")
        else:
            yield _told(where, found, "an object")
    elif isinstance(shape, dict):
        yield from _of_object(shape, found, where)
    elif not isinstance(found, list):
        yield _told(where, found, "a list")
    elif isinstance(shape, tuple) and len(found) != len(shape):
        yield _told(where, found, f"a list of {len(shape)}")
    else:
        shapes = shape if isinstance(shape, tuple) else shape * len(found)
        for place, (of_item, item) in enumerate(zip(shapes, found, strict=True)):
            yield from _mistakes(of_item, item, f"{where}[{place}]")


def _of_object(shape: Mapping[str, Shape], found: Any, where: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield _told(where, found, "an object")
        return
    for key, of_value in shape.items():
        place = f"{where}.{key}" if where else key
        if key in found:
            yield from _mistakes(of_value, found[key], place)
        elif not isinstance(of_value, Optional):
            yield f"{place}: got no such key; expected {_words(of_value)}"


def _told(where: str, found: Any, words: str) -> str:
    return f"{where}: got {_shown(found)}; expected {words}"


def _shown(found: Any) -> str:
    shown = repr(found)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _words(shape: Shape) -> str:
    if isinstance(shape, OrNull):
        return f"{_words(shape.shape)} or null"
    return shape.words if isinstance(shape, Kind) else "an object" if isinstance(shape, dict | Every) else "a list"
