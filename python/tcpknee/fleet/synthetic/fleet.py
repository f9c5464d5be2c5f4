"""A whole fleet, from its mix to its folders."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tcpknee import provenance
from tcpknee.errors import RunFolderError
from tcpknee.runs import engines
from tcpknee.runs.pool import Watcher
from tcpknee.writing import replacing

from . import plan, recording, simulate
from .mix import Mix

MANIFEST = "fleet.json"


def write(mix: Mix, out: Path | str, *, workers: int | None = None, watcher: Watcher | None = None) -> dict[str, Any]:
    """Simulates the fleet into the folder `out`: `host-NN/` with the tables `sockets`, `settings` and `assignments` of
    each host, `paths.csv` with the true path of each prefix, `fleet.json` with the mix. Returns what `fleet.json` has.

    `workers`: paths simulated at once, by default one per processor; it changes no byte but those of the times in
    `fleet.json`. Raises UsageError (the mix), EngineError, RunFolderError (`out`).
    """
    folder = Path(out)
    if (folder / MANIFEST).exists():
        raise RunFolderError(f"{folder}: already holds a fleet; expected a new folder. Choose another one.")
    count = workers if workers is not None else engines.default_workers("sim")
    began = time.monotonic()
    rows = list(plan.rows(mix, plan.prefixes(mix)))
    connections: Counter[str] = Counter()
    with recording.Recording(mix, folder) as files:
        for found in simulate.run(mix, rows, workers=count, watcher=watcher or Watcher()):
            files.write(found)
            for one in found:
                for group in one.flows["group"].to_pylist():
                    connections[mix.arms[one.row.arms[group][0]].name] += 1
    with replacing(folder / "paths.csv") as file:
        file.write(recording.paths_of(rows).encode())
    told = {
        "schema": 1,
        "mix": mix.text,
        "file": mix.file,
        "seed": mix.seed,
        "design": mix.design,
        "arms": [{"name": arm.name, "algorithm": arm.algorithm, "share": arm.share} for arm in mix.arms],
        "prefixes": mix.prefixes,
        "periods": mix.periods,
        "hosts": [host.name for host in files.hosts],
        "connections": sum(connections.values()),
        "connections_by_arm": {arm.name: connections[arm.name] for arm in mix.arms},
        "engine_version": provenance.engine_version(),
        "elapsed_sec": round(time.monotonic() - began, 3),
        "workers": count,
    }
    with replacing(folder / MANIFEST) as file:
        file.write((json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())
    return told
