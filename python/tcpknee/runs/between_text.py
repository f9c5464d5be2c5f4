"""What the text of a run says of the two hosts that it ran between: who they are, and the path as it was found."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from tcpknee import human

_OFF_PCT = 20.0
"""A path this far from what the scenario expects is worth a warning."""


def lines(meta: Mapping[str, Any]) -> Iterator[str]:
    """Of `run.json`; none where nothing was run yet."""
    rows = [(row["cell"], row["measured"]) for row in meta.get("repetitions", ())]
    if not rows:
        return
    said = [f"Between {meta['hosts']['sender']} and {meta['hosts']['receiver']}"]
    found = [measured["path_rtt_us_least"] for _, measured in rows if "path_rtt_us_least" in measured]
    if found:
        middle, spread = statistics.median(found), " to ".join(human.quantity("time", f(found)) for f in (min, max))
        said.append(f"round trip without load {human.quantity('time', middle)} ({spread})")
    clocks = [measured[f"{role}_clock_uncertainty_us"] for _, measured in rows for role in ("sender", "receiver")]
    said.append(f"clocks compared to within {human.quantity('time', max(clocks))}")
    yield " · ".join(said)
    if found:
        expected = {cell["rtt_ns"] / 1e3 for cell in meta["cells"]}
        for rtt_us in sorted(rtt_us for rtt_us in expected if abs(middle - rtt_us) > rtt_us * _OFF_PCT / 100):
            yield (
                f"Warning: the path is another than expected: its round trip without load takes "
                f"{human.quantity('time', middle)}, and path.rtt = {human.quantity('time', rtt_us)}. The figures are "
                "those of the path; what the scenario says of it is not applied."
            )
