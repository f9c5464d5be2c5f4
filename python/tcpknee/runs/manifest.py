"""What `run.json` says of a run: what was asked, on what, and how it ended.

schema             version of this layout, 1
status             "complete", or "interrupted" while repetitions are missing
title claim file   of the scenario; `file` is the name it was given by
scenario           its text, verbatim;  scenario_sha256 its hash
seed repeat        as the scenario says
cells              per cell: index, hash (of what an engine is given: cells of one version that are alike have
                   the same), axes, describe (positions in facts), cautions (what its settings are warned of),
                   kernel (whose rules it has, or that boots; null: none is named), duration_ns, warmup_ns,
                   rate_bits_per_sec, rtt_ns, bdp_bytes, buffer_bytes, buffer_pkts, flows (group, name, algorithm,
                   workload, count); samples, the columns of the table samples that were chosen; null: all;
                   phase_noise_ns, the lateness of hosts that shows whether its shares depend on their phase; null:
                   they cannot; is_random, whether anything on the path is drawn
facts              (key, value, doc) of what describes cells, each once. `datasets.manifest.read` puts them in the
                   place of their positions
algorithm_files    where algorithms are named by path: path, name (what it is called in the tables), kind ("contract"),
                   sha256 of the sources, sources (their texts, by name)
expects            assert and line of each [[expect]]
published          value, figure, source and line of each [[published]]
engine             "sim", "kernel", "guest" or "hosts";  engine_version the version of tcpknee
bpf                of the kernel engine: our build of each algorithm, also where the kernel has its own
guests             of the guest engine: the kernels that were booted (`kernels.cache.Kernel`)
hosts              of the engine hosts: sender, receiver, address, port, netem, allow_host_settings, as they were given
measure            of the kernel engine: the instruments for what a repetition costs the host, where there are some
capture            the memory for packets at each host, as it was asked for, where there is some
labs               of the kernel engine: the settings of each lab that differs from the others, as read back, what the
                   kernel calls each algorithm of the scenario, and where it has programs whom they ran as
                   (programs_ran_as: user, uid, gid, groups)
repetitions        of the kernel engine, one per repetition: cell, rep, lab (position in labs), measured (of the link,
                   what sampling cost, and what the instruments saw and cost), warnings (what makes its figures
                   doubtful), failures (programs that ended badly)
ending             of a run that may end early: until_decided and budget, as asked; by, what ended it ("repeat",
                   "decided", "time", "bytes"); blocks, the repetitions of every cell that there are then
path_measured      of the engine hosts, what was measured of the path before the repetitions of each block: block,
                   rtt_us, rate_bits_per_sec (of payload), loss_pct (sent again by that), bytes (what it cost);
                   null: not measured
beside             what was set beside the run (`runs.beside`): label, kind, rows (name, algorithm, unit, metrics with
                   their intervals, lines over time), path (what is known of the path that it saw), notes
failed             repetitions that are missing because an algorithm of a file ended them: cell, rep, words, and for
                   some call (the reproducer, a file of the folder)
versions host      libraries; name, boot, kernel, processor, number of processors
command            what to type to run it again; of the API the call of `compare`, or without a file
                   `tcpknee.run(scenario)`
sessions           one per start or resumption: started (UTC), wall_sec, workers, repetitions finished; on a cluster
                   also its address (cluster), and where its workers kept finished units when not in the run folder
                   (parts)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tcpknee import provenance
from tcpknee.errors import RunFolderError
from tcpknee.say import printable


def describe(
    scenario: Any,
    text: str,
    file: str,
    command: str,
    engine: str = "sim",
    bpf: bool = False,
    measure: Sequence[str] = (),
    guests: Sequence[Mapping[str, Any]] = (),
    algorithm_files: Sequence[Mapping[str, Any]] = (),
    hosts: Mapping[str, Any] | None = None,
    capture: str = "",
) -> dict[str, Any]:
    """A run about to begin. `scenario` is a `_core.Scenario`."""
    return {
        "status": "interrupted",
        "title": scenario.title,
        "claim": scenario.claim,
        "file": file,
        "scenario": text,
        "scenario_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "seed": scenario.seed,
        "repeat": scenario.repeat,
        "cells": cells(scenario, engine),
        **({"algorithm_files": list(algorithm_files)} if algorithm_files else {}),
        "expects": [{"assert": assertion, "line": line} for assertion, line in scenario.expects],
        "published": [
            {"value": value, "figure": figure, "source": source, "line": line}
            for value, figure, source, line in scenario.published
        ],
        "engine": engine,
        "engine_version": provenance.engine_version(),
        **({"bpf": bpf} if engine == "kernel" else {}),
        **({"measure": list(measure)} if measure else {}),
        **({"capture": capture} if capture else {}),
        **({"guests": [dict(guest) for guest in guests]} if guests else {}),
        **({"hosts": dict(hosts)} if hosts else {}),
        "versions": provenance.versions(),
        "host": provenance.host(),
        "command": command,
        "sessions": [],
    }


def cells(scenario: Any, engine: str) -> list[dict[str, Any]]:
    """The cells of a `_core.Scenario` as JSON has them, with what they set that has no effect in the engine: lists for
    tuples, but for their facts, which are many."""
    return [
        {
            **cell,
            "axes": [list(axis) for axis in cell["axes"]],
            "flows": [dict(flow) for flow in cell["flows"]],
            "cautions": [*cell["cautions"], *scenario.without_effect(cell["index"], engine)],
        }
        for cell in scenario.cells
    ]


def seed_of(run: Mapping[str, Any], cell: Mapping[str, Any]) -> int:
    """Where a cell's draws start: the scenario's seed, if that is no axis."""
    return int(dict(cell["axes"]).get("seed", run["seed"]))


def kernel_of(run: Mapping[str, Any]) -> str:
    """The kernel that carried the flows of a run that was not simulated."""
    if run["engine"] == "hosts":
        kernels = {f"{lab[role]['kernel']}" for lab in run.get("labs", ()) for role in ("sender", "receiver")}
        return ", ".join(sorted(kernels)) or "two hosts"
    releases = ", ".join(guest["release"] for guest in run.get("guests", ()))
    return f"guests of Linux {releases}" if releases else str(run["host"]["kernel"])


def hops(run: Mapping[str, Any]) -> int:
    """How many hops the path has, in all cells alike."""
    described = [key for cell in run["cells"][:1] for key, _, _ in cell["describe"]]
    return sum(re.fullmatch(r"(path|hop\.\d+)\.rtt", key) is not None for key in described)


def session(workers: int) -> dict[str, Any]:
    """A session about to begin."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"started": started, "wall_sec": 0.0, "workers": workers, "repetitions": 0}


def repetitions(engine: str, notes: Mapping[tuple[int, int], Mapping[str, Any]]) -> dict[str, Any]:
    """`labs` and `repetitions` from the notes of what was run; nothing of simulations, which have neither."""
    if engine == "sim":
        return {}
    labs: list[Any] = []
    rows = []
    for (cell, rep), note in notes.items():
        lab = {name: fact for name, fact in note["lab"].items() if name != "measured"}
        if lab not in labs:
            labs.append(lab)
        row = {"cell": cell, "rep": rep, "lab": labs.index(lab), "measured": note["lab"].get("measured", {})}
        rows.append({**row, "warnings": note["warnings"], "failures": note["failures"]})
    told = {"labs": labs, "repetitions": rows}
    return {**told, "path_measured": _path(rows)} if engine == "hosts" else told


def _path(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was measured of a path before the repetitions of each block: the least of its round-trip times, and its rate
    where that was measured."""
    blocks: dict[int, dict[str, list[float]]] = {}
    for row in rows:
        for name, value in row["measured"].items():
            if name.startswith("path_"):
                blocks.setdefault(row["rep"], {}).setdefault(name, []).append(value)
    return [
        {
            "block": block,
            "rtt_us": min(found["path_rtt_us_least"]),
            "rate_bits_per_sec": max(found.get("path_rate_bits_per_sec", [0.0])) or None,
            "loss_pct": max(found["path_retransmit_pct"]) if "path_retransmit_pct" in found else None,
            "bytes": sum(found["path_bytes"]),
        }
        for block, found in sorted(blocks.items())
    ]


def check_same(old: Mapping[str, Any], new: Mapping[str, Any], folder: Path) -> None:
    """Refuses to go on with what would mix two scenarios, engines or versions in one table."""
    if old["scenario"] != new["scenario"]:
        raise RunFolderError(
            f"{folder}: --resume: the scenario differs from the one that began this run ({old['file']}). "
            "Run it into another folder, or give no scenario to go on with the stored one."
        )
    if any(old.get(name) != new.get(name) for name in ("engine", "bpf", "measure", "capture", "guests", "hosts")):
        raise RunFolderError(
            f"{folder}: --resume: got {begun_with(new)}; this run was begun with {begun_with(old)}. Run it into "
            f"another folder, or {'give' if 'hosts' in (old['engine'], new['engine']) else 'leave out'} the options as "
            "it was begun."
        )
    check_version(old, folder)
    if [cell["hash"] for cell in old["cells"]] != [cell["hash"] for cell in new["cells"]]:
        raise RunFolderError(
            f"{folder}: --resume: a file that the scenario names is another than when this run began. Run it into "
            "another folder, or bring the file back."
        )


def check_version(old: Mapping[str, Any], folder: Path) -> None:
    """Refuses to simulate on with another version than began the run."""
    if old["engine_version"] != provenance.engine_version():
        raise RunFolderError(
            f"{folder}: begun by tcpknee {old['engine_version']}; this is {provenance.engine_version()}, whose "
            "results may differ. Run it again into another folder."
        )


def begun_with(meta: Mapping[str, Any]) -> str:
    """The options of the engine."""
    measured = f" --measure {','.join(meta['measure'])}" if meta.get("measure") else ""
    guests = ", ".join(f"{guest['name']} of {guest['built']}" for guest in meta.get("guests", ()))
    return (
        f"--engine {meta['engine']}{f' ({guests})' if guests else ''}"
        + (" --bpf" if meta.get("bpf") else "")
        + "".join(_option(name, value) for name, value in meta.get("hosts", {}).items() if value)
        + measured
        + (_option("capture", meta["capture"]) if meta.get("capture") else "")
    )


def _option(name: str, value: Any) -> str:
    option = f" --{name.replace('_', '-')}"
    return option if value is True else f"{option} {printable(value)}"
