"""Writes docs/claims.json, from which `make docs` makes docs/claims.md: `python tools/claims.py GALLERY.JSON...`.

Each file is one that `knee gallery` wrote. A claim that an engine cannot run has its result from the other one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "claims.json"

NOT_TESTABLE = "not testable here"


def entry(claim: dict[str, Any]) -> dict[str, Any]:
    """What the page says of one run of a claim."""
    kept = {key: claim[key] for key in ("engine", "seed", "quick", "verdict", "ours", "found", "why", "warnings")}
    return kept | {"published": [beside(one) for one in claim["published"]]}


def beside(one: dict[str, Any]) -> str:
    """`57ms for cubic.completion_us, ours is 0.52 times that (source)`."""
    ratio = "unknown" if one["ratio"] is None else f"{one['ratio']['mean']:.3g} times that"
    return f"{one['figure']} for `{' '.join(one['value'].split())}`, ours {ratio} ({one['source']})"


def main(files: list[str]) -> int:
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        for claim in json.loads(Path(file).read_text(encoding="utf-8"))["claims"]:
            kept = found.setdefault(claim["id"], {"sha256": claim["sha256"], "results": []})
            if kept["sha256"] != claim["sha256"]:
                print(
                    f"{file}: {claim['id']} is of another version of the gallery. Run them all anew.", file=sys.stderr
                )
                return 2
            kept["results"].append(entry(claim))
    for kept in found.values():
        tested = [one for one in kept["results"] if one["verdict"] != NOT_TESTABLE]
        kept["results"] = tested or kept["results"][:1]
    PAGE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
