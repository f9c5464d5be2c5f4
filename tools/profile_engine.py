"""Where the engine's instructions go: per data packet of a benchmark's cell, by part of the engine.

    profile_engine.py [CELL] [SECONDS]      one-flow, slow, hundred-flows …; 2 seconds of simulated time

valgrind counts them line by line. A line of the standard library counts for the function that it was inlined into.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "crates/sim/benches/cells"

PARTS = (
    ("the algorithm, and calls of it", r"^cc/|crates/cc/|knee_cc|cc_thunk|cubic|bbr"),
    (
        "receiving: reassembly, window, ACK policy",
        r"tcp/src/(receive|ecn|marks)|segment/src/reassembly|knee_tcp::(receive|ecn|marks)|knee_segment::reassembly",
    ),
    (
        "sending: what goes when, as segments",
        r"tcp/src/(output|emit|pacer|small_queue|write|write_queue|sndbuf|nagle|retransmit|segment)"
        r"|knee_tcp::(output|emit|pacer|write|sndbuf|segment)",
    ),
    ("timers and the hosts' clock", r"tcp/src/(timers|xmit_timer|host)|knee_tcp::(timers|host)"),
    ("an ACK's way through the sender", r"crates/tcp/|knee_tcp|min_rtt"),
    ("waits in the queue, histograms", r"crates/tables|knee_tables"),
    (
        "bottleneck: loss, queue, link",
        r"path/src/(bottleneck|foreseen|packet|pipe|queue)|crates/transit|knee_path::pipe",
    ),
    (
        "delays and NICs behind it",
        r"path/src/(behind|nics|way|routes)|crates/units/src/heap|knee_path|knee_units::heap",
    ),
    ("the world: events, turns of hosts, GRO, applications", r"crates/sim/|knee_sim|workload"),
)
"""Parts in the order in which a place is looked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cell", nargs="?", default="one-flow", choices=sorted(file.stem for file in CELLS.glob("*.toml"))
    )
    parser.add_argument("seconds", nargs="?", type=int, default=2)
    given = parser.parse_args()
    # Of cargo's profiles the one that is built for speed and has the lines of its sources.
    build = "cargo build --quiet --locked --profile bench -p knee-run --example packets"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    program = ROOT / "target/release/examples/packets"
    with tempfile.NamedTemporaryFile() as out:
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out.name}"]
        words = [*tool, program, CELLS / f"{given.cell}.toml", str(given.seconds)]
        try:
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            sys.exit("profile_engine.py: valgrind is not installed (Debian: apt-get install valgrind)")
        if ended.returncode:
            sys.exit(f"profile_engine.py: {ended.stderr}")
        counts = by_part(Path(out.name).read_text(encoding="utf-8"))
    packets = int(ended.stdout)
    for part, count in counts.most_common():
        print(f"{count / packets:8.0f}  {part}")
    print(f"{sum(counts.values()) / packets:8.0f}  instructions per data packet")


def by_part(text: str) -> Counter[str]:
    """Instructions of each part, of a file that cachegrind wrote."""
    counts: Counter[str] = Counter()
    file = function = ""
    for line in text.splitlines():
        if line.startswith("fl="):
            file = line[3:].removeprefix(f"{ROOT}/")
        elif line.startswith("fn="):
            function = line[3:]
        elif found := re.fullmatch(r"\d+ (\d+)", line):
            place = file if file.startswith(("crates/", "cc/")) else function
            part = next((name for name, pattern in PARTS if re.search(pattern, place)), "the rest")
            counts[part] += int(found[1])
    return counts


if __name__ == "__main__":
    main()
