"""Prints the tests that were skipped and why, and those that took long and do not say why: skips.py FILE, which the
test runs wrote (tests/conftest.py).

With TCPKNEE_SKIPS_MUST_BE_LISTED in the environment, as in CI, a skip that tests/allowed_skips.toml does not list
makes the exit status 1, and so does a test of more than twice the 10 s, unless other work kept the processors busy.
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
    told = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    skips = [one for one in told if "reason" in one]
    slow = [one for one in told if "took_sec" in one]
    must_be_listed = "TCPKNEE_SKIPS_MUST_BE_LISTED" in os.environ
    allowed: list[dict[str, str]] = tomllib.loads(ALLOWED.read_text(encoding="utf-8"))["skip"]
    print(f"{len(skips)} skipped tests")
    unlisted = 0
    for skip in sorted(skips, key=lambda skip: str(skip["test"])):
        why = next((entry["why"] for entry in allowed if covers(entry, skip)), None)
        unlisted += why is None
        print(f"  {skip['test']}: {skip['reason']}\n    {why or f'not listed in tests/{ALLOWED.name}'}")
    if slow:
        print(f"{len(slow)} tests took more than 10 s and do not say why (@pytest.mark.slow)")
    for one in slow:
        print(f"  {one['test']}: {one['took_sec']} s")
    if unlisted and must_be_listed:
        sys.exit(f"{unlisted} of them are not listed in tests/{ALLOWED.name}, where each needs a reason.")
    # The same test takes up to twice as long on another day of a shared machine.
    slow = [one for one in slow if one["took_sec"] > 20]
    # Our own tests make about as many processes run as there are processors.
    if slow and must_be_listed and os.getloadavg()[2] < 2 * (os.cpu_count() or 1):
        sys.exit("A test that takes so long says why.")


def covers(entry: dict[str, str], skip: dict[str, Any]) -> bool:
    """Is it a test that the entry names, skipped for the reason that it gives? Both are whole matches of patterns."""
    return all(re.fullmatch(entry[key], skip[key]) for key in ("test", "reason"))


if __name__ == "__main__":
    main()
