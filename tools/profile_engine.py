"""Where the engine's instructions go: per data packet of a benchmark's cell, by part of the engine.

    profile_engine.py [CELL] [SECONDS]      one-flow, slow, hundred-flows …; 2 seconds of simulated time

valgrind counts them line by line. A line of the standard library counts for the function that it was inlined into.

With --jumps: how many jumps a data packet takes, and the lines whose conditional jump is taken nearly always, so that
what comes next does not lie next. knee_kit::odds tells the compiler which way a branch goes.
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
        r"tcp/src/(receive|reassembly|ecn|marks)|knee_tcp::(receive|reassembly|ecn|marks)",
    ),
    (
        "sending: what goes when, as segments",
        r"tcp/src/(output|emit|pacer|small_queue|write|sndbuf|nagle|retransmit|segment|write_queue)"
        r"|knee_tcp::(output|emit|pacer|write|sndbuf|segment|write_queue)",
    ),
    ("timers and the hosts' clock", r"tcp/src/(timers|xmit_timer|host)|knee_tcp::(timers|host)"),
    ("an ACK's way through the sender", r"crates/tcp/|knee_tcp|min_rtt"),
    ("waits in the queue, histograms", r"crates/tables|knee_tables"),
    (
        "bottleneck: loss, queue, link",
        r"path/src/(bottleneck|foreseen|impairment|loss|packet|pipe|queue|trace|transit)|knee_path::pipe",
    ),
    (
        "delays and NICs behind it",
        r"path/src/(behind|nics|way|routes)|crates/kit/src/heap|knee_path|knee_kit::heap",
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
    parser.add_argument("--jumps", action="store_true", help="count jumps, in place of instructions")
    given = parser.parse_args()
    # Of cargo's profiles the one that is built for speed and has the lines of its sources.
    build = "cargo build --quiet --locked --profile bench -p knee-engine --example packets"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    program = ROOT / "target/release/examples/packets"
    cell = [CELLS / f"{given.cell}.toml", str(given.seconds)]
    if given.jumps:
        text, packets = counted(
            "--tool=callgrind --dump-instr=yes --collect-jumps=yes --callgrind-out-file", program, cell
        )
        print_jumps(text, program, packets)
        return
    text, packets = counted("--tool=cachegrind --cache-sim=no --cachegrind-out-file", program, cell)
    counts = by_part(text)
    for part, count in counts.most_common():
        print(f"{count / packets:8.0f}  {part}")
    print(f"{sum(counts.values()) / packets:8.0f}  instructions per data packet")


def counted(tool: str, program: Path, cell: list[str | Path]) -> tuple[str, int]:
    """What a tool of valgrind wrote of a run, whose last option names its file; and how many data packets it had."""
    with tempfile.NamedTemporaryFile() as out:
        words = ["valgrind", *f"{tool}={out.name}".split(), program, *cell]
        try:
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            sys.exit("profile_engine.py: valgrind is not installed (Debian: apt-get install valgrind)")
        if ended.returncode:
            sys.exit(f"profile_engine.py: {ended.stderr}")
        return Path(out.name).read_text(encoding="utf-8"), int(ended.stdout)


def print_jumps(text: str, program: Path, packets: int) -> None:
    """How many jumps there are, and the lines that jump nearly always."""
    conditional, always = jumps(text, program.name)
    taken = sum(count for count, _ in conditional.values())
    print(f"{taken / packets:8.1f}  conditional jumps taken per data packet")
    print(f"{always / packets:8.1f}  others")
    often = {at: count for at, (count, passes) in conditional.items() if count > 0.9 * passes}
    print(f"{sum(often.values()) / packets:8.1f}  of the conditional where more than 90 % are taken:")
    by_line: Counter[str] = Counter()
    for place, count in zip(places(program, list(often)), often.values(), strict=True):
        by_line[place] += count
    for place, count in by_line.most_common(LINES):
        print(f"{count / packets:8.2f}  {place}")


LINES = 60
"""Of a list of jumps."""


def jumps(text: str, program: str) -> tuple[dict[int, tuple[int, int]], int]:
    """Of a file that callgrind wrote: by address how often a conditional jump of the program was taken, and passed; and
    how often all others were taken."""
    conditional: dict[int, tuple[int, int]] = {}
    always = at = 0
    objects: dict[str, str] = {}
    ours = False
    lines = iter(text.splitlines())

    def moved(line: str) -> int:
        """The address that a line begins with, which may be told relative to the one before."""
        word = line.split(maxsplit=1)[0]
        return at if word == "*" else int(word, 0) + (at if word[0] in "+-" else 0)

    for line in lines:
        if found := re.fullmatch(r"(c?)ob=\((\d+)\)(?: (.*))?", line):
            name = objects.setdefault(found[2], found[3] or "")
            ours = ours if found[1] else Path(name).name == program
        elif found := re.match(r"jcnd=(\d+)/(\d+) ", line):
            at = moved(next(lines))
            if ours:
                conditional[at] = (int(found[1]), int(found[2]))
        elif found := re.match(r"jump=(\d+) ", line):
            at = moved(next(lines))
            always += int(found[1]) * ours
        elif line.startswith("calls="):
            at = moved(next(lines))
        elif re.match(r"[0-9+*-]", line):
            at = moved(line)
    return conditional, always


def places(program: Path, addresses: list[int]) -> list[str]:
    """The innermost line of our sources at each address, or the innermost of all."""
    words = ["addr2line", "--inlines", "--addresses", "--exe", program, *map(hex, addresses)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = []
    for stack in re.split(r"^0x[0-9a-f]+\n", told, flags=re.MULTILINE)[1:]:
        frames = [frame.split(" (")[0].removeprefix(f"{ROOT}/") for frame in stack.splitlines()]
        found.append(next((frame for frame in frames if is_told_by_line(frame)), frames[0]))
    return found


def is_told_by_line(place: str) -> bool:
    """Is it a line of our sources that says where it is? Not what only tells the odds of others' branches."""
    return place.startswith(("crates/", "cc/")) and "kit/src/odds.rs" not in place


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
            place = file if is_told_by_line(file) else function
            part = next((name for name, pattern in PARTS if re.search(pattern, place)), "the rest")
            counts[part] += int(found[1])
    return counts


if __name__ == "__main__":
    main()
