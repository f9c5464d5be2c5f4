"""What came of each claim when `make claims` last ran it: `verdicts.json`, which tools/claims.py writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .catalogue import CLAIMS
from .claim import ENGINES

FILE = Path(__file__).with_name("verdicts.json")


def results() -> dict[str, list[dict[str, Any]]]:
    """The results of every claim, one for each way of running it; none for a claim that was not run yet."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    return {claim.id: stored.get(claim.id, {"results": []})["results"] for claim in CLAIMS}


def form(result: Mapping[str, Any]) -> str:
    """How the claim was run: `seed 1, short form`."""
    seed = f"seed {result['seed']}" if result["engine"] == "sim" else ENGINES["kernel"]
    return f"{seed}, short form" if result["quick"] else seed


def by_verdict(found: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The forms that gave each verdict: `{"reproduced": "seed 1, seed 2"}`."""
    forms: dict[str, list[str]] = {}
    for one in found:
        forms.setdefault(one["verdict"], []).append(form(one))
    return {verdict: ", ".join(listed) for verdict, listed in forms.items()}
