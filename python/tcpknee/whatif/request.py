"""What `knee whatif` is asked, and its answer."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from tcpknee import _core, algorithms
from tcpknee.algorithms import naming
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.runs.workers import OnAll, on_cluster, on_processes

from . import observation, populations, render
from .identifiability import Judged
from .model import Path
from .observation import Recording
from .predict import fit_all, outcomes, predictions

_NO_POLICER = "10Tbit/s"
"""A policer that nothing meets, for the paths of a table in which others have one."""


@dataclass(frozen=True)
class Question:
    """What is asked; `baseline` of populations that nothing was recorded on."""

    data: tuple[str, ...]
    algorithms: tuple[str, ...]
    adoption_pcts: tuple[float, ...]
    most_paths: int
    seed: int
    baseline: str
    workers: int
    cluster: str | None = None
    """A Dask scheduler's address, whose workers do it instead."""


@dataclass(frozen=True)
class Answer:
    """The answer as text, in short and whole, as JSON, and as a table of paths."""

    summary: list[str]
    lines: list[str]
    json: dict[str, Any]
    paths_csv: str


def answered(question: Question, *, progress: Callable[[str], None] = lambda _: None) -> Answer:
    """Reads, fits, simulates, compares. `progress` is told how far that is.

    Raises UsageError, RunFolderError (DATA cannot be read, or few of its paths can be simulated as they were recorded).
    """
    [baseline] = algorithms.chosen("baseline", [question.baseline])
    asked, of_files = naming.chosen("algorithms", question.algorithms)
    question = replace(question, algorithms=asked, baseline=baseline)
    if slow := next((one.built.path for one in of_files if one.built.kind == "prototype"), None):
        raise UsageError(
            f"algorithms: got {slow}, a prototype in Python; expected algorithms in C, of which a prediction makes "
            "millions of calls. `knee compare` runs a prototype."
        )
    if question.cluster and of_files:
        raise UsageError(
            f"cluster: got it with {of_files[0].built.path}; expected algorithms of ours there, since a file that "
            "crashes would take a worker of the cluster along. Without --cluster this host does it."
        )
    naming.note(of_files)
    spread = (
        on_cluster(question.cluster)
        if question.cluster
        else on_processes(question.workers, progress, guarded="on a path that was fitted" if of_files else "")
    )
    with spread as on_all:
        recording, every = _paths(question, on_all)
        paths = render.well_fitted(every)
        if why := render.refusal(len(paths), len(every)):
            raise RunFolderError(f"{', '.join(question.data)}: {why}")
        open_ones = render.open_values(paths)
        found = outcomes(paths, question.algorithms, question.adoption_pcts, seed=question.seed, on_all=on_all)
    predicted = predictions(found, question.algorithms, question.adoption_pcts, question.seed)
    fit = render.of_fit(found, len(every) - len(paths))
    parts = (recording, fit, open_ones, predicted)
    document = render.as_json(*parts)
    document["paths"] = [_as_json(path) for path in every]
    return Answer(render.summary(*parts), render.lines(*parts), document, paths_csv(paths))


def _paths(question: Question, on_all: OnAll) -> tuple[Recording, list[Judged]]:
    calibrated: list[tuple[str, Path]] = []
    folders: list[File] = []
    for name in question.data:
        if name in populations.NAMES:
            calibrated += populations.named(name)
        elif populations.is_ibox(File(name)):
            calibrated += populations.ibox(File(name))
        else:
            folders.append(File(name))
    if calibrated and folders:
        raise UsageError(
            f"knee whatif: got {', '.join(question.data)}; expected recordings, or paths that others calibrated, and "
            "not both: of the latter there is no fit whose error is known."
        )
    if calibrated:
        paths = [populations.as_recorded(*each, question.baseline) for each in calibrated[: question.most_paths]]
        return Recording((), len(paths), 0), paths
    recording = observation.read(folders)
    _check_recorded(recording)
    return recording, fit_all(recording.chosen(question.most_paths, question.seed).paths, on_all)


def _check_recorded(recording: Recording) -> None:
    """What was recorded must be simulated too."""
    known = {str(found["name"]) for found in _core.algorithms()}
    found = {series.algorithm for path in recording.paths for series in path.connections}
    if found - known:
        raise UsageError(
            f"knee whatif: got connections with {', '.join(sorted(found - known))}; expected algorithms that the "
            f"simulator has: {', '.join(sorted(known))}. Record those alone: knee record --algorithm cubic."
        )


def paths_csv(paths: Sequence[Judged]) -> str:
    """The fitted paths as a table for `[[sample]]`; hidden cross traffic is no key of a path and stands in the JSON."""
    fitted = [one.fit.path for one in paths]
    policed = any(path.policer_rate_bits_per_sec is not None for path in fitted)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ["path.rate", "path.rtt", "path.buffer", "path.loss", "path.aggregate"]
    writer.writerow([*names, "path.policer_rate", "path.policer_burst"] if policed else names)
    for path in fitted:
        row = [
            f"{path.rate_bits_per_sec:.0f}bit/s",
            f"{path.rtt_us:.0f}us",
            f"{path.buffer_bytes:.0f}B",
            path.loss,
            f"{path.aggregate_us:.0f}us",
        ]
        if policed:
            rate = path.policer_rate_bits_per_sec
            row += [_NO_POLICER if rate is None else f"{rate:.0f}bit/s", f"{max(path.policer_burst_bytes, 3000):.0f}B"]
        writer.writerow(row)
    return out.getvalue()


def _as_json(one: Judged) -> dict[str, Any]:
    path = one.fit.path
    return {
        "path": one.fit.observed.key,
        "connections": len(one.fit.observed.connections),
        "explanations": list(one.names),
        "misfit": one.fit.misfit,
        "rate_bits_per_sec": float(path.rate_bits_per_sec),
        "rate_bits_per_sec_bounds": [one.rate.low, one.rate.high],
        "rtt_us": float(path.rtt_us),
        "buffer_us": float(path.buffer_us),
        "buffer_us_bounds": [one.buffer.low, one.buffer.high],
        "loss_pct": float(path.loss_pct),
        "loss_burst_pkts": float(path.loss_burst_pkts),
        "policer_rate_bits_per_sec": path.policer_rate_bits_per_sec,
        "policer_burst_bytes": float(path.policer_burst_bytes),
        "aggregate_us": float(path.aggregate_us),
        "hidden_load_bits_per_sec": float(path.hidden_load_bits_per_sec),
        "hidden_median_bytes": path.hidden_median_bytes,
    }
