"""Writes the stored verdicts, from which `make docs` makes docs/claims.md: `python tools/claims.py GALLERY.JSON...`.

Each file is one that `knee gallery` wrote. A claim that an engine cannot run has its result from the other one. What
the page has of claims, engines and seeds that no file has stays, where it is of the claim as it is now.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tcpknee.validation.claims import judging, verdicts
from tcpknee.validation.claims.catalogue import CLAIMS
from tcpknee.validation.claims.claim import ENGINES

KEPT = ("engine", "seed", "quick", "sha256", "verdict", "ours", "found", "needed", "warnings")


def entry(claim: dict[str, Any]) -> dict[str, Any]:
    """What the page says of one run of a claim."""
    return {key: claim[key] for key in KEPT} | {"published": [beside(one) for one in claim["published"]]}


def beside(one: dict[str, Any]) -> str:
    """`57ms for cubic.completion_us, ours is 0.52 times that (source)`."""
    ratio = "unknown" if one["ratio"] is None else f"{one['ratio']['mean']:.3g} times that"
    return f"{one['figure']} for `{' '.join(one['value'].split())}`, ours {ratio} ({one['source']})"


def main(files: list[str]) -> int:
    found: dict[str, dict[tuple[object, ...], dict[str, Any]]] = {}
    for claim in CLAIMS:
        kept = json.loads(verdicts.FILE.read_text(encoding="utf-8")).get(claim.id, {"results": []})["results"]
        found[claim.id] = {form(one): one for one in kept}
    for file in files:
        for told in json.loads(Path(file).read_text(encoding="utf-8"))["claims"]:
            if told["id"] in found:
                found[told["id"]][form(told)] = entry(told)
    page = {}
    for claim in CLAIMS:
        now = {engine: judging.sha256(claim, engine) for engine in ENGINES}
        current = [one for one in found[claim.id].values() if one["sha256"] == now[one["engine"]]]
        tested = [one for one in current if one["verdict"] != judging.NOT_TESTABLE]
        if current:
            order = {engine: number for number, engine in enumerate(ENGINES)}
            results = sorted(tested or current[:1], key=lambda one: (order[one["engine"]], one["seed"]))
            page[claim.id] = {"results": results}
    verdicts.FILE.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {verdicts.FILE}")
    return 0


def form(result: dict[str, Any]) -> tuple[object, ...]:
    """Results of one form of a claim replace each other."""
    return tuple(result[key] for key in ("engine", "seed", "quick"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
