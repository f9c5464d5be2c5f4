"""Writes docs/suites/NAME.json, what each row of a suite gave when it was last run: `python tools/suites.py NAME...`.

Without a name all suites. The pages of the site are made of these files (docs/suites.py).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

from tcpknee import provenance
from tcpknee.gate import suite as suites
from tcpknee.gate import values

FOLDER = Path(__file__).parents[1] / "docs/suites"


def main(names: list[str]) -> int:
    for name in names or suites.names():
        suite = suites.find(name)
        rows = values.rows_of(suite)
        for row in rows:
            values.check(suite, row)
        if not rows:
            continue
        found = {
            row.name: {"sha256": values.digest(row), "values": [asdict(one) for one in values.run(suite, row)]}
            for row in rows
        }
        told = {
            "date": f"{datetime.now(timezone.utc):%Y-%m-%d}",
            "engine_version": provenance.engine_version(),
            "rows": found,
        }
        path = FOLDER / f"{name}.json"
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
