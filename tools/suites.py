"""Writes docs/suites/NAME.json, what each row of a suite gave when it was last run: `python tools/suites.py NAME...`.

Without a name all suites. A row that this version has run stays: take its file away to run it again. The pages of the
site are made of these files (docs/suite_pages.py). A row with an algorithm under test is run with three of ours, beside
CUBIC where it needs another; rows that say what must hold are the gate's.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tcpknee import provenance
from tcpknee.gate import suite as suites
from tcpknee.gate import values
from tcpknee.gate.suite import Row, Suite

ALGORITHMS = ("cubic", "bbr1", "bbr3")
FOLDER = Path(__file__).parents[1] / "docs/suites"


def main(names: list[str]) -> int:
    for name in names or suites.names():
        suite = suites.find(name)
        for row in values.rows_of(suite):
            values.check(suite, row)
        path = FOLDER / f"{name}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        now = {row.name: (values.digest(row), provenance.engine_version()) for row in suite.rows}
        rows = {row: one for row, one in kept.items() if (one["sha256"], one["engine_version"]) == now.get(row)}
        for row in suite.rows:
            if row.name not in rows and (found := stored(suite, row)):
                rows[row.name] = found
                ordered = {one: rows[one] for one in now if one in rows}
                path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if rows:
            print(f"wrote {path}")
    return 0


def stored(suite: Suite, row: Row) -> dict[str, Any]:
    """What is kept of a row; nothing of one that is not run."""
    if row.published and not row.uses_new:
        found: dict[str, Any] = {"values": [beside(one) for one in values.run(suite, row)]}
    elif row.measure and row.uses_new and not row.limits:
        found = {"measured": {name: values.measured(suite, row, name) for name in ALGORITHMS}}
    else:
        return {}
    run = {"date": f"{datetime.now(timezone.utc):%Y-%m-%d}", "engine_version": provenance.engine_version()}
    return {**run, "sha256": values.digest(row), **found}


def beside(one: values.Value) -> dict[str, str]:
    """What the row itself does not say."""
    return {"figure": one.figure, "ours": one.ours, "ratio": one.ratio, "verdict": one.verdict}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
