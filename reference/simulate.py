"""Simulates every cell of files of reference results, and keeps what came of it in simulated/ beside them:

    simulate.py reference/linux-6.12.csv [--check]

The simulator gives the same on every machine, so what is kept changes only when the simulator or the file does;
docs/generate.py makes its tables of it. With --check nothing is written, and a difference is an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kneepoint import beside, engines, progress, reference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; is what is kept what is simulated?")
    given = parser.parse_args()
    stale = []
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
        text = reference.text_of(beside.to_keep(measured, cells, found))
        if kept.is_file() and kept.read_text(encoding="utf-8") == text:
            continue
        stale.append(str(kept))
        if not given.check:
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(text, encoding="utf-8")
    if given.check and stale:
        print(f"{', '.join(stale)}: not what the simulator gives. Run `make reference-tables`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
