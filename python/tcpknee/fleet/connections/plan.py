"""How connections are gathered, as data: `opening` and `lake` write the queries, `gather` runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .assignment import Log
from .boots import Boot


@dataclass(frozen=True)
class Relation:
    """A relation that a query reads, made right before the query runs; of a lake the lake answers it."""

    name: str
    query: str


@dataclass(frozen=True)
class Step:
    """A query and the relations that it reads, in the order in which they are made."""

    query: str
    relations: Sequence[Relation] = ()


@dataclass
class Plan:
    """What opened DATA holds, and the queries for it."""

    boots: list[Boot]
    """Of all folders, or of the lake."""
    log: Log | None = None
    """The assignment log, which is the table `assignments` of the database."""
    parts: Sequence[Sequence[Step]] = ()
    """Queries for connections, a part for each folder or for folders that share a boot."""
    hours: Sequence[Step] = ()
    """Queries for what hosts counted, hour by hour."""
