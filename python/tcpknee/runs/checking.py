"""What `knee check` asks of an algorithm's file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tcpknee import _core, reading
from tcpknee.algorithms import building, compiler, kernel_source, naming, prototype, text
from tcpknee.errors import AlgorithmFailed, EngineError, KernelUnsupported, UsageError

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_SCENARIO = """
duration = "4s"
warmup = "1s"
[path]
rate = ["5Mbit/s", "50Mbit/s"]
rtt = ["10ms", "200ms"]
loss = ["0%", "2%"]
[[flow]]
"""

_LEAST_SHARE = 0.02
"""Of a link without losses: what carries less stands still. Reno has more than five times that in each cell."""


class Finding(NamedTuple):
    """What was asked, the answer (None: it was not asked), and what there is to say of it. Without `matters`: it may be
    so."""

    asked: str
    ok: bool | None
    words: str
    matters: bool = True


_ASKED = (
    "integers only",
    "compiles",
    "fits 104 bytes",
    "bears any call",
    "goes into this kernel",
    "equal host and bytecode",
    "builds in guests",
    "carries data",
)

_SEQUENCES = 20_000
"""Of drawn calls, of 11 in the mean: a second."""


def check(path: str, seconds: int) -> list[Finding]:
    """All findings, in order; what hangs on one that failed is not asked. Raises `UsageError` where nothing can be
    asked: no file, no compiler."""
    if prototype.is_one(path):
        raise UsageError(
            f"{path}: got a prototype in Python; expected an algorithm in C. `knee compare` and `knee score` run a "
            "prototype, and `knee against` plays the same ACKs to it and to its twin in C."
        )
    sources, _ = building.gather(path, path, reading.program)
    compiler.command(path)
    found: list[Finding] = []
    try:
        found.extend(_findings(path, sources, seconds))
    except UsageError as error:
        found.append(Finding(_ASKED[len(found)], False, str(error)))
    rest = _ASKED[len(found) :]
    return [*found, *(Finding(asked, None, f"because of: {found[-1].asked}") for asked in rest)]


def _findings(path: str, sources: Mapping[str, str], seconds: int) -> Iterator[Finding]:
    if kernel_source.are_of_kernel(sources):
        yield from _kernel_findings(path, sources)
        return
    text.refuse_floats(path, sources)
    yield Finding("integers only", True, "")
    built = building.of_sources(path, sources)
    yield Finding("compiles", True, f"as {built.name}")
    bytes_ = built.state_bytes
    is_small = bytes_ <= kernel_source.LINUX_STATE_BYTES
    yield Finding(
        "fits 104 bytes",
        is_small,
        f"{bytes_} bytes of state" + ("" if is_small else "; a kernel module has no room for it, our BPF build has"),
        matters=False,
    )
    ok, words = compiler.sanitized(path, sources, building.HEADERS, seconds)
    yield Finding("bears any call", ok, words)
    (named,) = naming.named([built])
    yield _in_kernel(named)
    yield _equal(named)
    yield Finding("builds in guests", None, "because a guest runs sources of the Linux kernel, and this is none")
    yield _carries(named)


def _kernel_findings(path: str, sources: Mapping[str, str]) -> Iterator[Finding]:
    """Of a source of the Linux kernel, whose state is what it keeps in its private area."""
    other = "because it is a source of the Linux kernel"
    yield Finding("integers only", None, f"{other}, which compiles for integers alone")
    try:
        built = building.of_sources(path, sources)
    except UsageError as error:
        yield from _guests_findings(path, sources, error)
        return
    yield Finding("compiles", True, f"as {built.name}")
    is_larger = built.state_bytes > kernel_source.LINUX_STATE_BYTES
    yield Finding("fits 104 bytes", not is_larger, "stock kernels cannot have it" if is_larger else "", matters=False)
    yield Finding("bears any call", None, other)
    yield Finding("goes into this kernel", None, f"{other}: build it as a module")
    yield Finding("equal host and bytecode", None, other)
    yield _in_guests(built)
    yield _carries(*naming.named([built]))


def _guests_findings(path: str, sources: Mapping[str, str], error: UsageError) -> Iterator[Finding]:
    """Of one that the simulator does not take, whose text guests may take. Raises the error where it has no name."""
    try:
        built = building.of_sources(path, sources, in_guests_alone=True)
    except UsageError:
        raise error from None
    of_guests = _in_guests(built)
    yield Finding("compiles", False, str(error), matters=not of_guests.ok)
    for asked in _ASKED[2:]:
        yield of_guests if asked == of_guests.asked else Finding(asked, None, "because the simulator does not take it")


def _in_kernel(named: naming.Named) -> Finding:
    asked = "goes into this kernel"
    if os.geteuid() != 0:
        return Finding(asked, None, "because it takes root")
    from tcpknee.algorithms import for_kernel

    called = for_kernel.kernel_name(named)
    # To load it again would replace what somebody uses, and to unload it take that away.
    if called in _AVAILABLE.read_text(encoding="utf-8").split():
        return Finding(asked, None, f"because {called} is loaded: knee unload {named.name} takes it out")
    try:
        for_kernel.add(named)
    except UsageError as error:
        return Finding(asked, None, f"because {error}")
    try:
        called, _ = _core.load(named.name)
        _core.unload(named.name)
    except EngineError as error:
        return Finding(asked, False, str(error))
    return Finding(asked, True, f"as {called}")


def _equal(named: naming.Named) -> Finding:
    asked = "equal host and bytecode"
    if os.geteuid() != 0:
        return Finding(asked, None, "because it takes root")
    from tcpknee.algorithms import for_kernel

    try:
        return Finding(asked, *for_kernel.replayed(named, _SEQUENCES))
    except UsageError as error:
        return Finding(asked, None, f"because {error}")


def _in_guests(built: building.Built) -> Finding:
    from tcpknee.kernels import cache, modules

    asked = "builds in guests"
    kernels = [kernel for kernel in cache.kernels() if modules.can_build(kernel)]
    if not kernels:
        return Finding(asked, None, "because no kernel is there that modules can be built for: knee kernel add 6.12")
    done, failures = [], []
    for kernel in kernels:
        try:
            modules.module(kernel, built)
            done.append(kernel.name)
        except KernelUnsupported as error:
            failures.append(str(error))
    # A file is of some releases: others have other functions.
    return Finding(asked, bool(done), "; ".join([f"of Linux {', '.join(done)}"] * bool(done) + failures))


def _carries(named: naming.Named) -> Finding:
    from . import api, compose, isolated

    asked = "carries data"
    scenario = f"{_SCENARIO}algorithm = {compose.quoted(str(Path(named.built.path).absolute()))}\n"
    try:
        run = api.run(scenario)
    except AlgorithmFailed as failure:
        call: dict[str, Any] = dict(failure.call)
        about = api.parse(scenario, "<text>").cells[call["cell"]]
        return Finding(asked, False, f"{isolated.words(call)}, where {_path_of(about)}")
    except EngineError as error:
        return Finding(asked, False, str(error))
    goodputs = run.rows("flows", ["cell", "goodput_bits_per_sec"]).to_pydict()
    shares = []
    for cell, goodput in zip(*goodputs.values(), strict=True):
        about = run.meta["cells"][cell]
        shares.append((goodput or 0) / about["rate_bits_per_sec"])
        is_lossy = dict(about["axes"])["path.loss"] != "0%"
        if shares[-1] < (_LEAST_SHARE if not is_lossy else 1e-4):
            return Finding(asked, False, f"it stands still where {_path_of(about)}: {shares[-1]:.2%} of the link")
    return Finding(asked, True, f"on {len(shares)} paths, {min(shares):.0%} to {max(shares):.0%} of the link")


def _path_of(cell: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in cell["axes"])
