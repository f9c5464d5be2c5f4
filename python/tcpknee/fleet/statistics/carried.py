"""A tally as bytes, for a host whose rows cannot move."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from tcpknee.errors import UsageError

from .bins import Bins
from .tally import BUCKETS, Tally

_FORMAT = "tcpknee-tally-1"
_ARRAYS = {
    "keys": np.uint64,
    "n": np.float64,
    "total": np.float64,
    "row": np.int32,
    "bin": np.int32,
    "count": np.float64,
    "smallest": np.uint64,
}


def packed(made: Tally) -> bytes:
    """Some 6 bytes per occupied (cluster, bin)."""
    out = io.BytesIO()
    facts = np.array([made.bins.error, made.grouped, made.rows, made.missing], dtype=np.float64)
    arrays = {name: getattr(made, name) for name in _ARRAYS}
    np.savez_compressed(out, format=np.array(_FORMAT), facts=facts, **arrays)
    return out.getvalue()


def unpacked(data: bytes) -> Tally:
    """The tally that `packed` made these bytes of. Raises `UsageError` of anything else."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            told = str(stored["format"])
            facts = [float(fact) for fact in stored["facts"]]
            arrays = {name: stored[name] for name in _ARRAYS}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as problem:
        raise UsageError(f"bytes that are no tally ({problem}); expected what `packed` made") from problem
    if told != _FORMAT or len(facts) != 4:
        raise UsageError(
            f'a tally of the format "{told}"; this version reads "{_FORMAT}": use the same version on all hosts'
        )
    error, grouped, rows, missing = facts
    made = Tally(Bins(error), bool(grouped), **arrays, rows=int(rows), missing=int(missing))
    damage = _damage(made, arrays)
    if damage:
        raise UsageError(f"a damaged tally: {damage}; send it again")
    return made


def _damage(made: Tally, arrays: dict[str, npt.NDArray[Any]]) -> str:
    for name, kind in _ARRAYS.items():
        if arrays[name].dtype != kind or arrays[name].ndim != 1:
            return f"{name} is {arrays[name].dtype} of {arrays[name].ndim} dimensions, not a list of {np.dtype(kind)}"
    clusters, cells = len(made.keys), len(made.row)
    if len({len(made.row), len(made.bin), len(made.count)}) > 1 or len({clusters, len(made.n), len(made.total)}) > 1:
        return "its lists differ in length"
    if cells and not (made.row.min() >= 0 and made.row.max() < clusters):
        return f"a cell of cluster {int(made.row.max())} of {clusters}"
    if (made.grouped and clusters != BUCKETS) or not np.all(made.keys[1:] > made.keys[:-1]):
        return "its clusters are not in order"
    if not 0 < made.bins.error < 1:
        return f"bins with an error of {made.bins.error}"
    counted = np.bincount(made.row, made.count, clusters) if clusters else np.zeros(0)
    return "" if np.allclose(counted, made.n) else "its cells do not add up to its clusters"
