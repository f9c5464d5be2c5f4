"""How near the simulator is to a kernel that runs the same file: the rows of docs/validation/file-in-guest.md.

    python tools/file_in_guest.py 6.12 ~/linux/net/ipv4/tcp_*.c

Each source of the kernel runs by both engines on six paths, and gets a row of Markdown: on how many of them they
agree, and the largest difference of each figure, with its path. Guests run a kernel of `knee kernel add`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import tcpknee
from tcpknee import say
from tcpknee.errors import TcpkneeError
from tcpknee.runs import compose

LOSSY = "0.5 % loss"
"""The one path on which chance decides, and the engines draw apart."""
PATHS = {
    "deep buffer": 'rate = "10Mbit/s"\nrtt = "40ms"\nbuffer = "4bdp"',
    "1 BDP": 'rate = "10Mbit/s"\nrtt = "40ms"\nbuffer = "1bdp"',
    "half a BDP": 'rate = "10Mbit/s"\nrtt = "40ms"\nbuffer = "0.5bdp"',
    "short path": 'rate = "20Mbit/s"\nrtt = "8ms"\nbuffer = "2bdp"',
    "CoDel": 'rate = "10Mbit/s"\nrtt = "40ms"\nqueue = "codel"',
    LOSSY: 'rate = "10Mbit/s"\nrtt = "40ms"\nbuffer = "1bdp"\nloss = "0.5%"',
}
GOODPUT, SRTT, RETRANSMITTED = "goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct"
NEAR = 0.05
"""Of goodput and RTT, where the simulator agrees with the guest."""
REPEAT_OF_LOSS = 3
"""Without random losses a repetition is as the next."""


def main(kernel: str, *files: str) -> int:
    """Prints a row for each file, and what it is of on stderr."""
    say.line(
        "| file | near | goodput, simulator / guest | srtt p50 | retransmitted, points | goodput with 0.5 % loss |"
    )
    say.line("|---|---|---|---|---|---|")
    for file in files:
        try:
            say.line(f"| {Path(file).name} | {row(dict(differences(kernel, file)))} |")
        except TcpkneeError as error:
            say.line(f"| {Path(file).name} | {' '.join(str(error).split())[:300]} |")
    return 0


def row(found: dict[str, tuple[float, float, float]]) -> str:
    """The cells of a row, of each path's ratios of goodput and RTT and difference of retransmissions."""
    lossy = found.pop(LOSSY)[0]
    near = sum(abs(goodput - 1) <= NEAR and abs(srtt - 1) <= NEAR for goodput, srtt, _ in found.values())
    cells = [f"{near} of {len(found)}"]
    for place, (equal, form) in enumerate(((1, "{:.3f}"), (1, "{:.3f}"), (0, "{:+.2f}"))):
        path = max(found, key=lambda path: abs(found[path][place] - equal))
        cells.append(f"{form.format(found[path][place])} ({path})")
    return " | ".join([*cells, f"{lossy:.3f}"])


def differences(kernel: str, file: str) -> Iterator[tuple[str, tuple[float, float, float]]]:
    """Of each path."""
    for path, keys in PATHS.items():
        repeat = REPEAT_OF_LOSS if "loss" in keys else 1
        text = f'duration = "12s"\nwarmup = "2s"\nrepeat = {repeat}\nkernel = "{kernel}"\n[path]\n{keys}\n[[flow]]\n'
        text += f"algorithm = {compose.quoted(str(Path(file).absolute()))}\n"
        simulated, real = (figures(text, engine) for engine in ("sim", "guest"))
        say.warn(json.dumps([kernel, Path(file).name, path, simulated, real]))
        yield path, (simulated[0] / real[0], simulated[1] / real[1], simulated[2] - real[2])


def figures(text: str, engine: str) -> list[float]:
    """Goodput, RTT and the share that was sent again, as an engine has them."""
    (cell,) = (one for one in tcpknee.run(text, engine=engine, workers=1).json()["cells"] if one["flow"] != "total")
    return [float(cell["metrics"][name]["mean"]) for name in (GOODPUT, SRTT, RETRANSMITTED)]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
