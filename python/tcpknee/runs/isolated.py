"""The simulator for scenarios that name algorithms of files: processes of their own run the repetitions, so that what
an algorithm does hurts its own repetition alone. The rows are those that the simulator gives in this process."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from tcpknee import _core, children, say, writing
from tcpknee.algorithms import compiler, naming, prototype, statics
from tcpknee.errors import AlgorithmFailed, EngineError

from . import folder, manifest, packets, tables
from .kernel import lines, told_error

_COMMAND = children.command("tcpknee.runs.fileworker")

_MOST_WORDS = 2_000


class Isolated:
    """Runs repetitions in processes of their own; a context manager, which ends them."""

    def __init__(self, scenario: _core.Scenario, text: str, file: str) -> None:
        self.scenario, self.cells = scenario, scenario.cells
        self._files = naming.used_by(scenario)
        names = sorted({cell["kernel"] for cell in self.cells} - {None})
        self._start = {
            "scenario": text,
            "file": file,
            "files": scenario.files,
            "kernels": {name: name for name in names},
            "algorithm_files": [one.request() for one in self._files],
            "foreign_folders": writing.foreign_folders_allowed(),
        }
        # What an algorithm remembers beside its state is not to reach the next repetition.
        self._only_once = any(
            one.built.kind != "contract" or statics.has_some(one.built.so_path) for one in self._files
        )
        self._free: list[_Worker] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *raised: object) -> None:
        while self._free:
            self._free.pop().end()

    def run_cell(
        self, index: int, rep: int, *, cancel: Any = None, progress: Callable[[int], object] | None = None
    ) -> dict[str, pa.Table]:
        """The tables of one repetition. Raises `AlgorithmFailed`, `EngineError`, `Cancelled`."""
        if not self._uses_files(index):
            found = self.scenario.run_cell(index, rep, cancel=cancel, progress=progress)
            return tables.of_simulator(found)
        return self._asked({"cell": index, "rep": rep}, cancel, progress)

    def write_packets(self, index: int, rep: int, out: Path) -> None:
        """One repetition as pcapng. Raises `AlgorithmFailed`, `EngineError`, `RunFolderError`."""
        if self._uses_files(index):
            self._asked({"cell": index, "rep": rep, "packets": str(out.absolute())}, None, None)
        else:
            packets.write(self.scenario, index, rep, out)

    def run_late(self, index: int, rep: int, noise_ns: int, *, cancel: Any = None) -> pa.Table:
        """The flows of one repetition with late hosts. Raises as `run_cell`."""
        return self._asked({"cell": index, "rep": rep, "noise_ns": noise_ns}, cancel, None)["flows"]

    def _uses_files(self, index: int) -> bool:
        return bool(self._names(index) & {one.name for one in self._files})

    def _names(self, index: int) -> set[str]:
        return {value for key, value, _ in self.cells[index]["describe"] if key.endswith("algorithm")}

    def _asked(
        self, request: Mapping[str, Any], cancel: Any, progress: Callable[[int], object] | None
    ) -> dict[str, pa.Table]:
        with self._lock:
            worker = self._free.pop() if self._free else None
        worker = worker or _Worker(self._start)
        try:
            found = worker.run(request, cancel, progress)
        except _Died as death:
            worker.end()
            raise self._failure(request, death) from None
        except BaseException:
            worker.end()
            raise
        if self._only_once:
            worker.end()
            return found
        with self._lock:
            self._free.append(worker)
        return found

    def _failure(self, request: Mapping[str, Any], death: _Died) -> EngineError:
        where = f"{self._start['file']}: cell {request['cell']}, repetition {request['rep']}"
        if death.call is None:
            return EngineError(f"{where}: the process of the simulator ended ({death.words}); this is a defect.")
        call = json.loads(death.call)
        seed = manifest.seed_of({"seed": self.scenario.seed}, self.cells[request["cell"]])
        files = {one.name: one for one in self._files}
        of_file = files.get(call["algorithm"])
        call |= {
            "schema": 1,
            "cell": request["cell"],
            "rep": request["rep"],
            "seed": seed,
            "path": of_file.built.path if of_file else "",
            "sha256": of_file.built.digest if of_file else "",
        }
        # Where its process is gone: else the engine says what it did.
        if of_file and of_file.built.kind == "prototype" and call["what"].startswith("SIG"):
            call["what"] = prototype.did(death.printed)
        return AlgorithmFailed(f"{where} (seed {seed}): {words(call)}", call)


def words(call: Mapping[str, Any]) -> str:
    """What an algorithm did in a call, as one clause."""
    did = compiler.DID.get(call["what"], call["what"])
    return f"{call['algorithm']} {did} in {call['op']}, at {call['t_ns'] / 1e9:.6f} s"


def play(file: naming.Named, call: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Makes a call again, in a process of its own: `out` and `state` after it; or None, and what went wrong. Raises
    `UsageError`."""
    scenario = 'duration = "1s"\n[path]\nrate = "1Gbit/s"\nrtt = "1ms"\n[[flow]]\nalgorithm = "reno"\n'
    start = {"scenario": scenario, "file": "call", "files": {}, "kernels": {}, "algorithm_files": [file.request()]}
    worker = _Worker(start)
    try:
        return worker.play(json.dumps(call)), ""
    except _Died as death:
        if death.call is None:
            raise EngineError(f"the process of the call ended ({death.words}); this is a defect.") from None
        found = json.loads(death.call)
        return None, f"{found['algorithm']} {compiler.DID.get(found['what'], found['what'])} in {found['op']}"
    finally:
        worker.end()


class _Died(Exception):
    """A worker is gone: what it said last, the call that ended it, as JSON, if one did, and the end of what it
    printed."""

    def __init__(self, words: str, call: str | None, printed: str) -> None:
        super().__init__(words)
        self.words, self.call, self.printed = words, call, printed


class _Worker:
    """A process that runs repetitions one after the other."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        # Files without a name: nothing is left of them, however this process ends.
        with ExitStack() as stack:
            self._part = stack.enter_context(tempfile.TemporaryFile())
            self._report = stack.enter_context(tempfile.TemporaryFile())
            self._stderr = stack.enter_context(tempfile.TemporaryFile())
            self._told = 0
            self._held = stack.pop_all()
        descriptors = {"part": self._part.fileno(), "report": self._report.fileno()}
        # A session of its own: Ctrl-C in a terminal reaches this process only, which then ends its workers.
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=tuple(descriptors.values()),
            env=children.environment(),
            start_new_session=True,
        )
        self._say({**start, **descriptors})

    def run(
        self, request: Mapping[str, Any], cancel: Any, progress: Callable[[int], object] | None
    ) -> dict[str, pa.Table]:
        """The tables of one repetition. Raises `_Died`, `Cancelled`, and the worker's own error."""
        self._asked(request, cancel, progress)
        self._tell()
        with pa.OSFile(f"/proc/self/fd/{self._part.fileno()}", "rb") as source:
            return folder.read_streams(source)

    def play(self, call: str) -> dict[str, Any]:
        """What a call makes of its blocks. Raises as `run`."""
        played: dict[str, Any] = self._asked({"call": call}, None, None)["played"]
        return played

    def _asked(
        self, request: Mapping[str, Any], cancel: Any, progress: Callable[[int], object] | None
    ) -> dict[str, Any]:
        self._say(request)
        assert self._process.stdout is not None
        for line in lines(self._process.stdout, cancel):
            said: dict[str, Any] = json.loads(line)
            if "t_ns" in said:
                if progress is not None:
                    progress(said["t_ns"])
            elif "error" in said:
                raise told_error(said["error"], said["message"])
            else:
                return said
        code = self._process.wait()
        self._report.seek(0)
        # A file that is shared with what wrote it: only its end is of interest.
        begin = max(os.fstat(self._stderr.fileno()).st_size - _MOST_WORDS, 0)
        ended = os.pread(self._stderr.fileno(), _MOST_WORDS, begin)
        printed = ended.decode(errors="replace")
        last = say.printable(printed.strip().rpartition("\n")[2])
        call = _core.read_call(self._report.read())
        if call is not None:
            self._tell()
        raise _Died(f"exit code {code}{f': {last}' if last else ''}", call, printed)

    def _tell(self) -> None:
        """Says what an algorithm printed since the last time, as a source of the kernel may, or a prototype."""
        # The process goes on writing where it is.
        printed = os.pread(self._stderr.fileno(), _MOST_WORDS, self._told)
        self._told += len(printed)
        for line in printed.decode(errors="replace").splitlines():
            if line and not line.startswith(prototype.FAILED):
                say.warn(say.printable(line))

    def _say(self, said: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        # One that died before it listened says by its end how.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(said).encode() + b"\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Ends it at once: nothing of it is kept."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._held.close()
