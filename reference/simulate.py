"""Simulates every cell of files of reference results, and keeps what came of it in simulated/ beside them:

    simulate.py reference/linux-6.12.csv

The simulator gives the same on every machine, so what is kept changes only when the simulator or the file does;
`make docs` makes tables of it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tcpknee.runs import engines, progress
from tcpknee.validation.references import beside, reference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    for file in given.files:
        measured = reference.read(file)
        cells = measured.cells()
        found = beside.simulate(
            measured,
            cells,
            beside.every_repetition(cells),
            workers=engines.default_workers("sim"),
            watcher=progress.watcher(),
        )
        kept = file.parent / "simulated" / file.name
        kept.parent.mkdir(exist_ok=True)
        reference.write(beside.to_keep(measured, cells, found), kept)
        print(f"wrote {kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
