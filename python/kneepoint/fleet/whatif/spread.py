"""Who does the work: this host's processors, or a cluster's."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

OnAll = Callable[[str, Callable[[Any], Any], Sequence[Any]], list[Any]]
"""What a function makes of each item, in their order. Before: what that is called, for who waits. The function is of a
module, because workers import it."""


@contextmanager
def on_processes(workers: int, progress: Callable[[str], None] = lambda _: None) -> Iterator[OnAll]:
    """This host's. Of a fit two thirds of the time are Python's, and its lock would leave one processor to threads.
    `progress` is told how many items are done."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    def told(title: str, items: Sequence[Any], found: Iterator[Any]) -> list[Any]:
        every = []
        for one in found:
            every.append(one)
            progress(f"{title}: {len(every)} of {len(items)} done")
        return every

    if workers == 1:
        yield lambda title, make, items: told(title, items, map(make, items))
        return
    # Not forked: a fork takes locks that threads of this process hold.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin) as pool:
        try:
            yield lambda title, make, items: told(title, items, pool.map(make, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    """A worker ends without a word on Ctrl-C, and with the process that started it however that ends."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def on_cluster(address: str) -> Iterator[OnAll]:
    """Workers of a Dask scheduler; `local:N` starts N processes. Raises UsageError, ClusterError."""
    from kneepoint.runs import cluster
    from kneepoint.runs.pool import Watcher

    with cluster.connected(address, Watcher()) as found:
        yield lambda _, make, items: found.map(make, items)
