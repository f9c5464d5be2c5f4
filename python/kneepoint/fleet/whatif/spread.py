"""Who does the work: this host's processors, or a cluster's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

OnAll = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""What a function makes of each item, in their order. The function is of a module, because workers import it."""


@contextmanager
def on_threads(workers: int) -> Iterator[OnAll]:
    """The simulator runs without Python's lock, so threads are enough."""
    with ThreadPoolExecutor(workers, thread_name_prefix="kneepoint") as pool:
        yield lambda make, items: list(pool.map(make, items))


@contextmanager
def on_cluster(address: str) -> Iterator[OnAll]:
    """Workers of a Dask scheduler; `local:N` starts N processes. Raises UsageError, ClusterError."""
    from kneepoint.runs import cluster
    from kneepoint.runs.pool import Watcher

    with cluster.connected(address, Watcher()) as found:
        yield found.map
