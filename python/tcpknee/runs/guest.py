"""The guest engine: a kernel that was built (`knee kernel add`) boots for each repetition, and runs it as a host would.

    python -m tcpknee.runs.guest PROGRAM SECONDS < REQUEST

is the process between: it speaks as a `labworker` does, boots the kernel with one inside, and hands on what that says
and the tables that it leaves. It gives the guest up when that said nothing for so many seconds of this host.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tcpknee import children
from tcpknee.algorithms import naming
from tcpknee.errors import KernelUnsupported
from tcpknee.kernels import building, cache, guest, modules

from .job import Job
from .kernel import Kernel, lines

_REQUEST, _PART, _SAID = "request.json", "part", "stderr"
_PART_FD = 9
STILL_SEC = 600.0
"""Of this host, after which a guest that said nothing is given up."""

_LINES_KEPT = 200
"""Of what a kernel says on its console; a panic has some fifty."""


class Guests(Kernel):
    """Runs each repetition in a guest of its own, of the kernel that the cell names."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, {})
        names = [cell["kernel"] for cell in self.cells]
        self.kernels = {name: cache.find(name) for name in dict.fromkeys(names)}
        self.of_cell = [_Chosen(job, index, self.kernels[name]) for index, name in enumerate(names)]

    def request(self, index: int) -> dict[str, Any]:
        chosen = self.of_cell[index]
        kernels = {chosen.kernel.name: chosen.kernel.release}
        return {
            "algorithms": chosen.names,
            "kernels": kernels,
            "boot": chosen.boot,
            "modules": chosen.modules,
            "host_settings": {},
        }

    def command(self, index: int) -> tuple[str, ...]:
        program = self.of_cell[index].kernel.program
        return (*guest.DIES_WITH_PARENT, *children.command("tcpknee.runs.guest", str(program), str(STILL_SEC)))


def cautioned(cells: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cells of `run.json`, with what is to be known of their kernels."""
    doubts = {name: building.doubt(cache.find(name)) for name in {cell["kernel"] for cell in cells}}
    return [{**cell, "cautions": [*cell["cautions"], *filter(None, [doubts[cell["kernel"]]])]} for cell in cells]


@contextmanager
def engine(job: Job) -> Iterator[Kernel]:
    """The engine for a job. Raises `KernelUnsupported`."""
    yield Guests(job)


class _Chosen:
    """The kernel of a cell, its names of the algorithms, the words about them on its command line, and the modules of
    users' files that it loads: of each its path, its words and the file's."""

    def __init__(self, job: Job, index: int, kernel: cache.Kernel) -> None:
        self.kernel = kernel
        self.names: dict[str, str] = {}
        self.modules: list[tuple[str, str, str]] = []
        files = {one.name: one.built for one in naming.used_by(job.scenario)}
        told: dict[str, list[str]] = {}
        for variant, (called, _, params, of_flow) in job.scenario.variants(index).items():
            if called in files:
                words = [f"{name}={value}" for name, value in params.items()]
            elif called in kernel.algorithms:
                words = _params(called, params, job.file)
            else:
                raise KernelUnsupported(
                    f"{job.file}: got the algorithm {called}; the guest kernel {kernel.name} has "
                    f"{', '.join(kernel.algorithms)}. Our builds cannot be loaded into a guest, which has no BPF "
                    "struct_ops; a source of the kernel can, by its path: ./tcp_x.c."
                )
            # Far ends send next to nothing, and have what the flows have.
            if of_flow and told.setdefault(called, words) != words:
                raise KernelUnsupported(
                    f"{job.file}: has flows of {called} with other parameters beside each other; a kernel has one "
                    "value of each. Run them in cells of their own, or with the engine sim."
                )
            self.names[variant] = called
        self.boot = [word for called, words in told.items() if called not in files for word in words]
        for called in dict.fromkeys(name for name in self.names.values() if name in files):
            # Others of a scenario have longer names, which may begin alike.
            named = f"knee{len(self.modules) or ''}_{files[called].name}"[: naming.MOST_KERNEL_NAME]
            module = modules.module(kernel, files[called])
            self.modules.append(
                (str(module), " ".join([f"knee_name={named}", *told.get(called, ())]), files[called].path)
            )
            self.names |= {variant: named for variant, name in self.names.items() if name == called}


_SAME = {
    "cubic": ("beta", "bic_scale", "fast_convergence", "tcp_friendliness"),
    "bic": ("beta", "max_increment", "low_window", "smooth_part", "fast_convergence"),
    "vegas": ("alpha", "beta", "gamma"),
    "illinois": ("win_thresh", "theta"),
    "hybla": ("rtt0",),
    "htcp": ("use_rtt_scaling", "use_bandwidth_switch"),
    "cdg": ("window", "backoff_beta", "backoff_factor", "use_ineff", "use_shadow", "use_tolerance"),
}
"""Parameters that Linux's modules have by the same name and unit (7.2, net/ipv4/tcp_NAME.c: module_param)."""

_OTHERWISE = {
    ("dctcp", "shift_g"): "dctcp_shift_g",
    ("dctcp", "alpha_on_init"): "dctcp_alpha_on_init",
    ("nv", "pad"): "nv_pad",
    ("nv", "reset_period"): "nv_reset_period",
    ("cdg", "hystart"): "hystart_detect",
}


_HYSTART_MOST = 3
"""Of the parameter of CUBIC; above is HyStart++, which Linux has not."""


def _params(called: str, params: Mapping[str, int], file: str) -> list[str]:
    """Parameters of a kernel's algorithm as words of its command line. Raises `KernelUnsupported`."""
    words = []
    for name, value in params.items():
        if (called, name) == ("cubic", "hystart") and value <= _HYSTART_MOST:
            words += [f"tcp_cubic.hystart={int(value > 0)}", *([f"tcp_cubic.hystart_detect={value}"] if value else [])]
        elif name in _SAME.get(called, ()) or (called, name) in _OTHERWISE:
            words.append(f"tcp_{called}.{_OTHERWISE.get((called, name), name)}={value}")
        else:
            raise KernelUnsupported(
                f"{file}: sets {name} of {called} to a value that Linux's own has no parameter for; expected its "
                "default with the engine guest, which runs the kernel's own build."
            )
    return words


def main(program: str, still_sec: str) -> int:
    """Exit code 0 when the repetition was run and written, 1 when it was refused or failed."""
    request = json.load(sys.stdin)
    part, output = request["part"], Path(request["output"])
    try:
        with guest.folder() as folder:
            # In the guest, its first process asks.
            inside = {**request, "part": _PART_FD, "parent": 1}
            (folder / _REQUEST).write_text(json.dumps(inside), encoding="utf-8")
            python = (
                f"PYTHONPATH={shlex.quote(os.environ['PYTHONPATH'])} PYTHONSAFEPATH=1 {shlex.quote(sys.executable)}"
            )
            worker = f"-m tcpknee.runs.guestworker <{_REQUEST} >/dev/console 2>{_SAID} {_PART_FD}>{_PART}"
            work = f"{python} {worker}"
            writable = [output] if "run_as" in request else []
            for path in writable:
                path.mkdir(parents=True, exist_ok=True)
            process = guest.boot(
                Path(program), folder, work, seed=_seed(request), writable=writable, more=request["boot"]
            )
            assert process.stdout is not None
            kernel_said: deque[str] = deque(maxlen=_LINES_KEPT)
            try:
                for line in lines(process.stdout, patience_sec=float(still_sec)):
                    # The console has lines of the kernel's own where something is wrong.
                    if line.startswith(b"{"):
                        sys.stdout.buffer.write(line.rstrip() + b"\n")
                        sys.stdout.buffer.flush()
                    else:
                        kernel_said.append(line.decode(errors="replace"))
            except TimeoutError:
                process.kill()
                process.wait()
                raise KernelUnsupported(
                    f"the guest's time stands still: it said nothing for {float(still_sec):g} s of this host. A "
                    "program that computes without end, or waits without sleeping, stops its clock (docs/kernels.md)."
                ) from None
            code = guest.ended(process, folder, kernel_said)
            sys.stderr.write((folder / _SAID).read_text(encoding="utf-8", errors="replace"))
            if code == 0:
                with (folder / _PART).open("rb") as tables, os.fdopen(part, "wb") as sink:
                    shutil.copyfileobj(tables, sink)
            return code
    except KernelUnsupported as error:
        print(json.dumps({"error": "KernelUnsupported", "message": str(error)}), flush=True)
        return 1


def _seed(request: Mapping[str, Any]) -> int:
    """Of the kernel's random numbers: the same for each cell, as the simulator's draws are."""
    text = f"{request['seed']} {request['rep']}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
