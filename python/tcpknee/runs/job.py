"""What a run asks of an engine: the job, and the algorithms that a kernel must have for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee.errors import EngineError

from .ending import NEVER, Ending

if TYPE_CHECKING:
    from tcpknee import _core

    from .folder import RunFolder
    from .pair import Pair
    from .run_as import User


@dataclass(frozen=True)
class Job:
    """What is run: a scenario that was read, its text and name, and where programs may leave what they print.

    `parts`: the folder that a simulated repetition's rows go to while it runs; None keeps them in memory. `bpf`: the
    kernel engine takes our build of an algorithm also where the kernel has its own. `user`: who the scenario's programs
    run as; None where it has none. `programs_as_root`: root's may. `allow_host_settings`: what the kernel has for the
    whole machine may be set.
    `measure`: instruments for what a repetition costs the host, of the kernel engine. `capture_bytes`: memory
    for packets at each host. `ending`: what ends it early, and
    its pauses. `pair`: the hosts of the engine hosts. `told`: what an engine says of its session as a whole.
    """

    scenario: _core.Scenario
    text: str
    file: str
    output: Path | None = None
    parts: RunFolder | None = None
    bpf: bool = False
    user: User | None = None
    programs_as_root: bool = False
    allow_host_settings: bool = False
    measure: tuple[str, ...] = ()
    capture_bytes: int = 0
    ending: Ending = NEVER
    pair: Pair | None = None
    told: dict[str, Any] = field(default_factory=dict)


@contextmanager
def algorithms(scenario: _core.Scenario, file: str, *, bpf: bool) -> Iterator[dict[str, str]]:
    """What the kernel calls each algorithm of a scenario, by its name and the parameters that are set; it has all of
    them until the end.

    `bpf`: our build also where the kernel has its own. Raises `KernelUnsupported`, `EngineError` where that cannot be.
    """
    from tcpknee import _core

    if scenario.algorithm_files:
        from tcpknee.algorithms import for_kernel, naming

        for one in naming.used_by(scenario):
            for_kernel.add(one)
    try:
        loaded = _core.load_for_run(scenario, ours=bpf)
    except EngineError as error:
        raise type(error)(f"{file}: {error}") from None
    with loaded:
        yield dict(loaded.names)
