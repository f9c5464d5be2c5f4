"""A run's repetitions on a Dask cluster, and calls of a function. Dask schedules and retries; what a task does is in
`units.py`, and where it leaves its results in `store.py`. The client brings finished units home, into the run folder,
as they come.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tcpknee import human
from tcpknee.errors import AlgorithmFailed, ClusterError, TcpkneeError, UsageError

from . import store, units
from .job import Job
from .pool import Key, Watcher

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SEC = 20.0
"""After so long without an answer a scheduler counts as unreachable."""

WORKERS_SEC = 60.0
"""After so long without a worker a cluster counts as empty."""

RETRIES = 2
"""How often Dask repeats a task that failed; one whose worker died it repeats by its own `allowed-failures`, 3."""

MOST_UNITS = 64
"""Of a task. Dask, the files of a part and the client cost about 50 ms a task: less than 1 ms for each of so many."""

TASKS_PER_THREAD = 8
"""At least, where there are units enough: with fewer, some threads would wait for the last tasks."""

TASK_SEC = 5.0
"""After so long a task keeps what it has finished and leaves the rest to another: what a death can cost."""

TASK_SEC_PER_THREAD = 0.1
"""More threads finish more tasks: so the client, which needs about 50 ms for each, keeps up."""

_TICK_SEC = 0.05
_LOOK_SEC = 5.0
"""How often progress is drawn, and how often workers are counted."""

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")
Take = Callable[[Key, dict[str, pa.Table]], None]


class Cluster:
    """A connection to a cluster."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self.address = address
        self.threads = sum(client.nthreads().values())
        self.words = f"on {human.counted(self.threads, 'thread')} of {address}{_dashboard(client)}"
        self._again = "then go on with --resume"
        self._store: store.Store
        self._parcel: Future

    def open(self, job: Job, meta: Mapping[str, Any], out: Path, parts: str | None) -> dict[str, Any]:
        """Begins a session: makes sure that every worker has the client's tcpknee and reaches the place for the
        parts, and sends what all tasks need. Returns what run.json says of the session."""
        url = store.new_place(out, parts)
        self._store = store.Store(url, meta["scenario_sha256"])
        try:
            self._check_workers(self._store)
        except BaseException:
            self._store.remove()
            raise
        # A task makes the parcel, so that Dask can make it again when the worker that holds it dies.
        self._parcel = self._client.submit(
            units.Parcel,
            key=f"tcpknee-scenario-{uuid.uuid4().hex}",
            text=job.text,
            file=job.file,
            files=tuple(job.scenario.files.items()),
            scenario_sha256=meta["scenario_sha256"],
            parts=url,
            build=tuple(store.build().items()),
            algorithm_files=tuple(json.dumps(one) for one in meta.get("algorithm_files", ())),
        )
        return {"cluster": self.address, **({} if store.is_within(out, url) else {"parts": url})}

    @property
    def place(self) -> str:
        """The URL of where this session's workers write."""
        return self._store.url

    def _check_workers(self, parts: store.Store) -> None:
        expected = store.build()
        try:
            parts.begin()
            for worker, answer in self._client.run(units.greet, parts.url, on_error="return").items():
                _check_worker(worker, answer, expected, parts)
        finally:
            parts.uncheck()

    def close(self) -> None:
        """Removes what the session left in its place, when all is at home."""
        self._store.remove()

    def run(self, keys: Sequence[Key], take: Take, watcher: Watcher) -> dict[Key, AlgorithmFailed]:
        """Runs units, hands each to `take` as soon as its part can be read, and removes the part then. When it ends
        early, for whatever reason, what workers have finished by then is handed over as well. Returns those that an
        algorithm from a file ended, with how."""
        parts, missing = self._store, set(keys)
        failures: dict[Key, AlgorithmFailed] = {}

        def bring(part: str) -> None:
            for key, found in parts.read(part):
                if key in missing:
                    take(key, found)
                    missing.remove(key)
                    watcher.finished(key)
            parts.discard(part)

        def ended(done: units.Done) -> None:
            if done.part:
                bring(done.part)
            for key in done.failures:
                watcher.finished(key)
            failures.update(done.failures)

        try:
            self._tasks(units.work, keys, ended, watcher.tick)
        except BaseException:
            with suppress(TcpkneeError):
                for part in parts.parts():
                    bring(part)
            if len(missing) == len(keys):
                parts.remove()
            raise
        return failures

    def run_late(self, keys: Sequence[Key]) -> dict[Key, pa.Table | AlgorithmFailed]:
        """The flows of units with late hosts, or how an algorithm from a file ended one."""
        found: dict[Key, pa.Table | AlgorithmFailed] = {}

        def take(done: units.DoneLate) -> None:
            for key, flows in zip(done.units, done.flows, strict=True):
                found[key] = pa.ipc.open_stream(flows).read_all()
            found.update(done.failures)

        self._tasks(units.work_late, keys, take, lambda: None)
        return found

    def map(self, function: Callable[[_Item], _Made], items: Sequence[_Item]) -> list[_Made]:
        """What the function makes of each item, in their order. The function is of a module that workers have as well.
        Nothing is kept of a call that fails."""
        self._again = "then ask again"
        build, run = tuple(store.build().items()), uuid.uuid4().hex[:12]
        futures = [
            self._client.submit(
                units.call, function, item, build, key=f"tcpknee-call-{run}-{place}", retries=RETRIES, pure=False
            )
            for place, item in enumerate(items)
        ]
        places, made = {future.key: place for place, future in enumerate(futures)}, {}
        for future, found in self._completed(self._waiting(futures), lambda: None):
            if future.status != "finished":
                raise self._failed(future)
            made[places[future.key]] = found
        return [made[place] for place in range(len(items))]

    def _tasks(
        self, function: Callable[..., Any], keys: Sequence[Key], take: Callable[[Any], None], tick: Callable[[], None]
    ) -> None:
        """Runs units in tasks, and gives what each task returned to `take`."""
        seconds = max(TASK_SEC, TASK_SEC_PER_THREAD * self.threads)
        run = uuid.uuid4().hex[:12]

        def submit(task: Sequence[Key], priority: int = 0) -> Future:
            name = f"tcpknee-{function.__name__}-{run}-{uuid.uuid4().hex[:12]}"
            return self._client.submit(
                function, self._parcel, list(task), seconds, key=name, retries=RETRIES, priority=priority, pure=False
            )

        waiting = self._waiting([submit(task) for task in _tasks_of(keys, self.threads)])
        for future, done in self._completed(waiting, tick):
            if not isinstance(done, (units.Done, units.DoneLate)):
                raise self._failed(future)
            take(done)
            if done.left:
                # Before those that wait: it belongs to earlier units.
                waiting.add(submit(done.left, priority=1))

    def _waiting(self, futures: Sequence[Future]) -> Any:
        """Those under way. With results: of a worker that died before it gave its result, Dask runs the task again."""
        from distributed import as_completed

        return as_completed(futures, loop=self._client.loop, with_results=True, raise_errors=False)

    def _completed(self, waiting: Any, tick: Callable[[], None]) -> Iterator[tuple[Future, Any]]:
        """Each that has ended, with its result, until none is under way. Raises ClusterError."""
        looked = self._last_seen = time.monotonic()
        while waiting.count():
            if waiting.has_ready():
                yield from waiting.next_batch(block=False)
            else:
                time.sleep(_TICK_SEC)
            if time.monotonic() - looked > _LOOK_SEC:
                self._look_for_workers()
                looked = time.monotonic()
            tick()

    def _failed(self, future: Future) -> TcpkneeError:
        """Why a task has no result."""
        from distributed.scheduler import KilledWorker

        if future.status != "error":
            return self._lost()
        error = future.exception()
        if isinstance(error, TcpkneeError):
            return error
        if isinstance(error, KilledWorker):
            return ClusterError(
                f"--cluster {self.address}: a task failed because {error.allowed_failures + 1} workers died that ran "
                f"it, the last one {error.last_worker.address}. Perhaps it needs more memory than a worker has: the "
                "workers' logs say why they ended."
            )
        return ClusterError(f"--cluster {self.address}: a worker failed: {_named(error)}.")

    def _look_for_workers(self) -> None:
        """Dask waits for workers for ever; a run does not."""
        if self._client.status != "running":
            raise self._lost()
        try:
            if self._client.nthreads():
                self._last_seen = time.monotonic()
        except Exception:
            raise self._lost() from None
        if time.monotonic() - self._last_seen > WORKERS_SEC:
            raise ClusterError(
                f"--cluster {self.address}: got no worker for {WORKERS_SEC:.0f} s; expected one at least. Start "
                f"workers, {self._again}."
            )

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"--cluster {self.address}: the scheduler is gone, or was restarted. Start it and its workers again, "
            f"{self._again}."
        )


def _check_worker(worker: str, answer: Any, expected: dict[str, str], parts: store.Store) -> None:
    """Refuses a worker that is not as the client, or does not reach the place for the parts, by its answer."""
    if isinstance(answer, TcpkneeError):
        raise type(answer)(f"worker {worker}: {answer}")
    if isinstance(answer, Exception):
        raise ClusterError(
            f"worker {worker}: cannot run tcpknee: {_named(answer)}. Expected tcpknee "
            f'{expected["tcpknee"]}; install the wheel that is installed here there, with the extra "cluster".'
        )
    got, name = answer
    if got != expected:
        raise ClusterError(f"worker {worker}: {units.differs(got, expected)}")
    if parts.place.get(name) is None:
        raise ClusterError(
            f"worker {worker}: wrote into {parts.url}, and none of it is visible here. Expected a folder or object "
            "store that this host and every worker reach by the same name; give one with --parts."
        )


@contextmanager
def connected(address: str, watcher: Watcher) -> Iterator[Cluster]:
    """The cluster at an address until the end."""
    _check_address(address)
    try:
        import distributed  # noqa: F401
        import fsspec  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f'cluster: {error}; expected the packages of the extra "cluster", here and on every worker: in the source '
            "tree pip install '.[cluster]', else pip install 'WHEEL[cluster]' with the path of the wheel."
        ) from None
    if not address.startswith(("tls://", "wss://")):
        watcher.caution(
            f"--cluster {address}: nothing protects it. Whoever reaches its scheduler or a worker over the network can "
            "run any program there, and here, as the user who runs tcpknee. Use tls:// with a certificate "
            "(docs/cluster.md), or be sure that nobody else is on that network and on these hosts."
        )
    # What goes wrong is said once, by us, and not by Dask or by the loops of events that it stands on.
    for name in ("distributed", "distributed.client", "tornado.application", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        with watcher.phase(f"Connecting to {address}"):
            client = stack.enter_context(_client(address))
        yield Cluster(client, address)


def _dashboard(client: Client) -> str:
    """Where Dask shows what the cluster does; empty where it does not."""
    services = client.scheduler_info(n_workers=0).get("services", {})
    return f", dashboard at {client.dashboard_link}" if "dashboard" in services else ""


def _check_address(address: str) -> None:
    if processes := re.fullmatch(r"local:(\d*)", address):
        raise UsageError(
            f'cluster: got "{address}"; expected the address of a Dask scheduler. For the processors of this host no '
            f"cluster is needed: leave it out, or give --workers {processes[1] or 'N'}."
        )
    if not re.fullmatch(r"((tcp|tls|ucx|ws|wss)://)?[^/\s]+:\d+", address):
        raise UsageError(
            f'cluster: got "{address}"; expected the address of a Dask scheduler, such as tls://10.0.0.5:8786.'
        )


@contextmanager
def _client(address: str) -> Iterator[Client]:
    from distributed import Client

    class Connecting(Client):  # type: ignore[misc]
        """A client that is ended where its start fails, and not later where Python collects it."""

        def start(self, **settings: Any) -> None:
            try:
                super().start(**settings)
            except BaseException:
                _end(self)
                raise

    unreachable = (
        f"cluster: no Dask scheduler answers at {address} within {CONNECT_SEC:.0f} s (%s); expected one. Start it with "
        "`dask scheduler`, or correct the address."
    )
    try:
        client = Connecting(address, timeout=CONNECT_SEC, set_as_default=False)
    except (OSError, TimeoutError, asyncio.TimeoutError) as error:
        raise UsageError(unreachable % _line(error)) from None
    except Exception as error:
        raise UsageError(
            f'cluster: got "{address}", which Dask cannot connect to: {_line(error)}. Expected the address of a Dask '
            "scheduler, such as tls://10.0.0.5:8786, and for tls:// the key that it has (docs/cluster.md)."
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=WORKERS_SEC)
        except (TimeoutError, asyncio.TimeoutError):
            raise UsageError(
                f"cluster: the scheduler at {address} got no worker within {WORKERS_SEC:.0f} s; expected one at "
                "least. Start workers with `dask worker`."
            ) from None
        yield client
    finally:
        # What waits is cancelled with the client; a task under way ends by itself and keeps its part.
        with suppress(Exception):
            client.close(timeout=5)
        _end(client)


def _end(client: Client) -> None:
    """Ends a client's thread, whatever became of its connection.

    Dask leaves that to the client's collection, which waits for a lock that every start of a client holds: where Python
    collects inside of one, neither returns.
    """
    client.status = "closed"
    client._loop_runner.stop()


def _tasks_of(keys: Sequence[Key], threads: int) -> list[Sequence[Key]]:
    size = max(1, min(MOST_UNITS, len(keys) // (threads * TASKS_PER_THREAD)))
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _named(error: BaseException) -> str:
    """What an error is and says. Dask turns some into plain ones that say what they were."""
    return _line(error) if type(error) is Exception else f"{type(error).__name__}: {_line(error)}"


def _line(error: BaseException | None) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split()).rstrip(".")
