"""Prints the tests that were skipped and why: skips.py FILE, which the test runs wrote (tests/conftest.py).

With TCPKNEE_SKIPS_MUST_BE_LISTED in the environment, as in CI, a skip that tests/allowed_skips.toml does not list
makes the exit status 1.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ALLOWED = Path(__file__).resolve().parents[1] / "tests/allowed_skips.toml"


def main() -> None:
    skips = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    allowed: list[dict[str, str]] = tomllib.loads(ALLOWED.read_text(encoding="utf-8"))["skip"]
    print(f"{len(skips)} skipped tests")
    unlisted = 0
    for skip in sorted(skips, key=lambda skip: str(skip["test"])):
        why = next((entry["why"] for entry in allowed if covers(entry, skip)), None)
        unlisted += why is None
        print(f"  {skip['test']}: {skip['reason']}\n    {why or f'not listed in tests/{ALLOWED.name}'}")
    if unlisted and "TCPKNEE_SKIPS_MUST_BE_LISTED" in os.environ:
        sys.exit(f"{unlisted} of them are not listed in tests/{ALLOWED.name}, where each needs a reason.")


def covers(entry: dict[str, str], skip: dict[str, Any]) -> bool:
    """Is it a test that the entry names, skipped for the reason that it gives? Both are whole matches of patterns."""
    return all(re.fullmatch(entry[key], skip[key]) for key in ("test", "reason"))


if __name__ == "__main__":
    main()
