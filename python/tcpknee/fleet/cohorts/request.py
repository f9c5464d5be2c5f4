"""The request for a comparison, checked before anything is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tcpknee import human
from tcpknee.datasets.sql import literal
from tcpknee.errors import UsageError
from tcpknee.fleet.connections import COLUMNS, clusters
from tcpknee.fleet.connections.sizes import size_bytes
from tcpknee.fleet.statistics import SEED_MAX

STRATA = ("rtt", "rate", "prefix")

_NAMES = frozenset(column.name for column in COLUMNS)

LIMITS = {
    "rtt": ("min_rtt_us", (10_000, 30_000, 100_000, 300_000), "time"),
    "rate": ("access_rate_bits_per_sec", (2e6, 10e6, 50e6, 250e6), "rate"),
}
"""Bands: the column, where they end, and its kind."""

_TABLE = re.compile(r"\.(csv|tsv|parquet)(\.gz|\.zst)?$", re.IGNORECASE)
"""Files that DuckDB takes for tables, by their names."""

MOST_PREFIXES = 8
"""Prefixes that are strata of their own: those with most connections."""

MOST_VALUES = 30
"""Likewise of the values of a file."""


@dataclass(frozen=True)
class Request:
    """The options of `knee fleet compare`, by their names there."""

    by: str = "algorithm"
    baseline: str | None = None
    where: str = ""
    min_bytes: int = 0
    cluster: str | None = None
    triggered: bool = False
    strata: tuple[str, ...] = ()
    reweight: str | None = None
    before: tuple[str, ...] = ()
    margin: float = 0.02
    detect: float | None = None
    """A difference, as a share: the comparison says how many clusters would show it."""
    partial: bool = False
    seed: int = 1

    @property
    def cohort(self) -> str:
        """A connection's cohort, as an expression."""
        name = {"host": "host_id"}.get(self.by, self.by)
        return name if name in _NAMES else f"json_extract_string(tags, {literal(f'$.{_quoted(name)}')})"

    @property
    def cluster_of(self) -> str:
        """A connection's cluster, as an expression."""
        name = self.cluster or "unit"
        return clusters.OF.get(name, f"cast({name} as varchar)")


def checked(
    by: str,
    *,
    min_bytes: str | int,
    margin: str | float,
    detect: str | None,
    cluster: str | None,
    strata: Sequence[str],
    reweight: str | None,
    seed: int,
    **others: object,
) -> Request:
    """Raises UsageError."""
    if not re.fullmatch(r"\w[\w.-]*", by):
        raise UsageError(f'by: got "{by}"; expected algorithm, kernel, host, arm, or another column or tag.')
    if cluster is not None and cluster not in clusters.OF and cluster not in _NAMES:
        expected = human.suggest(cluster, list(clusters.OF), "expected", besides=", or a column")
        raise UsageError(f'cluster: got "{cluster}"; {expected}')
    for one in strata:
        if one not in STRATA and not (Path(one).is_file() and _TABLE.search(one)):
            raise UsageError(
                f'strata: got "{one}"; expected rtt, rate, prefix, or a file FILE.csv or FILE.parquet with the columns '
                "remote_prefix and another."
            )
    if reweight is not None and reweight not in strata:
        raise UsageError(f'reweight: got "{reweight}"; expected one of those of --strata, which it weights alike.')
    if not 0 <= seed <= SEED_MAX:
        raise UsageError(f"seed: got {seed}; expected a whole number from 0 to {SEED_MAX}.")
    return Request(
        by=by,
        min_bytes=min_bytes if isinstance(min_bytes, int) else size_bytes("min_bytes", min_bytes, example="1MB"),
        margin=margin if isinstance(margin, float) else _share("margin", str(margin)),
        detect=None if detect is None else _share("detect", detect),
        cluster=cluster,
        strata=tuple(strata),
        reweight=reweight,
        seed=seed,
        **others,  # type: ignore[arg-type]
    )


def _quoted(name: str) -> str:
    return f'"{name}"'


def _share(name: str, given: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", given)
    if not found or not 0 < float(found[1]) < 100:
        raise UsageError(f'{name}: got "{given}"; expected a share between 0 and 100 %, such as 2%.')
    return float(found[1]) / 100


def bands(name: str) -> list[str]:
    """Labels of the bands of `rtt` and `rate`, in order."""
    _, ends, kind = LIMITS[name]
    words = [human.quantity(kind, end) for end in ends]
    between = [f"{low} to {high}" for low, high in pairwise(words)]
    return [f"below {words[0]}", *between, f"from {words[-1]}"]


def band(name: str) -> str:
    """The label of a row's band, as an expression."""
    column, ends, _ = LIMITS[name]
    labels = bands(name)
    cases = " ".join(f"when {column} < {end} then {literal(label)}" for end, label in zip(ends, labels, strict=False))
    return f"case when {column} is null then null {cases} else {literal(labels[-1])} end"
