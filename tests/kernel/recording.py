"""Records the kernel's own algorithms over varied paths and replays that through cc/.

As a program, `python recording.py [--acks N] [--keep FOLDER] [ALGORITHM…]` goes over all paths again and again until
N ACKs of each algorithm are recorded, and prints for each what the replay found (`make replay`).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from building import BUILD, ROOT, run
from lab import PORT, Lab, laid_out
from waiting import PATIENCE_SEC

TRAFFIC = ROOT / "tests/kernel/traffic.py"


@dataclass(frozen=True)
class Course:
    """A path and the flows that run over it."""

    rate_bits_per_sec: int
    buffer_bytes: int
    drops_per_mille: int = 0
    # Of a policer before the bottleneck, with a bucket of 100 kB; 0: none.
    policed_bits_per_sec: int = 0
    pattern: str = "bulk"
    flows: int = 1
    seconds: float = 8
    # Whether the hosts send packets of many segments, and thus get fewer ACKs.
    offloads: bool = False


# After at least this share of the ACKs, over all courses, our window is the kernel's.
CWND_SHARE = {"reno": 0.999, "cubic": 0.999, "bbr1": 0.99}

COURSES = (
    Course(200_000_000, 96 * 1024),
    Course(100_000_000, 512 * 1024),
    Course(20_000_000, 256 * 1024, seconds=15),
    Course(2_000_000, 64 * 1024, seconds=25),
    Course(500_000_000, 1024 * 1024, flows=4),
    Course(1_000_000_000, 2048 * 1024, offloads=True),
    Course(100_000_000, 128 * 1024, drops_per_mille=1),
    Course(100_000_000, 256 * 1024, drops_per_mille=10),
    Course(50_000_000, 256 * 1024, drops_per_mille=50, flows=3),
    Course(100_000_000, 64 * 1024, flows=20),
    Course(100_000_000, 512 * 1024, flows=100, pattern="bursts"),
    Course(100_000_000, 256 * 1024, flows=3, pattern="steady"),
    Course(100_000_000, 64 * 1024, flows=4, pattern="bursts", seconds=15),
    Course(100_000_000, 64 * 1024, flows=8, pattern="short"),
    Course(50_000_000, 128 * 1024, flows=4, pattern="short", drops_per_mille=20),
    Course(50_000_000, 128 * 1024, flows=2, pattern="capped", drops_per_mille=2),
    Course(20_000_000, 16 * 1024, flows=2, pattern="bursts", drops_per_mille=20),
    Course(200_000_000, 256 * 1024, policed_bits_per_sec=20_000_000, seconds=15),
    Course(100_000_000, 512 * 1024, policed_bits_per_sec=5_000_000, flows=2, pattern="bursts", seconds=15),
)


def replay_program() -> Path:
    """The example `replay` of crates/validation, built as `cargo test --workspace` has built it already."""
    said = run(
        "cargo", "build", "--quiet", "--locked", "--profile", "test", "--workspace", "--example", "replay",
        "--message-format=json", timeout_s=900,
    )  # fmt: skip
    artifacts = (json.loads(line) for line in said.splitlines())
    return next(Path(a["executable"]) for a in artifacts if a.get("executable"))


@contextmanager
def recorded(program: Path, algorithm: str, objects: Path, into: Path) -> Iterator[dict[str, int]]:
    """Meanwhile knee_rec_ALGORITHM is the kernel's own, and is recorded. The counts are there afterwards."""
    counts: dict[str, int] = {}
    command = (program, "record", algorithm, objects / f"record_{algorithm}.bpf.o", into)
    recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert recorder.stdin is not None
    assert recorder.stdout is not None
    try:
        ready = recorder.stdout.readline()
        assert ready == f"ready knee_rec_{algorithm}\n", f"the recorder did not begin: {ready!r}"
        yield counts
        recorder.stdin.close()
        said = recorder.stdout.read()
        assert recorder.wait(timeout=PATIENCE_SEC) == 0
        counts["records"], counts["lost"] = map(int, re.findall(r"\d+", said))
    finally:
        recorder.kill()
        recorder.wait()


def impair(lab: Lab, course: Course) -> None:
    """Drops on the way to the receiver, and offloads, as the course has them."""
    rules = []
    if course.drops_per_mille:
        rules.append(f"numgen random mod 1000 < {course.drops_per_mille} drop")
    if course.policed_bits_per_sec:
        rules.append(f"limit rate over {course.policed_bits_per_sec // 8} bytes/second burst 100 kbytes drop")
    if rules:
        chain = "".join(f'oifname "to-b" {rule}; ' for rule in rules)
        table = f"table ip knee {{ chain forward {{ type filter hook forward priority 0; {chain}}}; }}"
        run("ip", "netns", "exec", lab.router, "nft", table)
    if not course.offloads:
        for host in (lab.sender, lab.receiver):
            run("ip", "netns", "exec", host, "ethtool", "-K", "veth0", "tso", "off", "gso", "off", "gro", "off")


def run_course(course: Course, congestion: str) -> None:
    """Carries the flows of a course with sockets that choose this congestion control."""
    enter = ("ip", "netns", "exec")
    with laid_out(course.rate_bits_per_sec, course.buffer_bytes) as lab:
        impair(lab, course)
        server = subprocess.Popen(
            [*enter, lab.receiver, sys.executable, TRAFFIC, "server", str(PORT)], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            flows = (congestion, course.pattern, course.flows, course.seconds)
            client = run(*enter, lab.sender, sys.executable, TRAFFIC, "client", lab.address, PORT, *flows)
        finally:
            server.kill()
            server.wait()
    assert json.loads(client)["ran"] == [congestion]


@dataclass
class Replayed:
    """What `replay compare` printed, added up over recordings."""

    flows: int = 0
    ops: int = 0
    acks: int = 0
    equal: dict[str, int] = field(default_factory=dict)
    # By "OP FIELD (CAUSE)": how often, and the first one in words.
    kinds: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, said: str) -> None:
        for name, value in zip(("flows", "ops", "acks"), re.findall(r"(\d+) (?:flows|ops|ACKs)", said), strict=False):
            setattr(self, name, getattr(self, name) + int(value))
        for name, count in re.findall(r"^  (\w+) +equal on (\d+) ACKs", said, re.M):
            self.equal[name] = self.equal.get(name, 0) + int(count)
        for count, kind, first in re.findall(r"^  (\d+) x (.*), first: (.*)$", said, re.M):
            before, told = self.kinds.get(kind, (0, first))
            self.kinds[kind] = (before + int(count), told)

    def differing(self, cause: str, field: str = "") -> int:
        """Values that differ for this cause, of one field or of all."""
        return sum(count for kind, (count, _) in self.kinds.items() if kind.endswith(f"{field} ({cause})"))

    def share(self, name: str) -> float:
        """Share of the ACKs after which this field is equal."""
        return self.equal[name] / self.acks

    def __str__(self) -> str:
        lines = [f"{self.flows} flows, {self.ops} ops, {self.acks} ACKs compared"]
        lines += [
            f"  {name}: equal on {count} ACKs, {100 * count / self.acks:.4f} %" for name, count in self.equal.items()
        ]
        lines += [f"  {count} x {kind}, first: {first}" for kind, (count, first) in sorted(self.kinds.items())]
        return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="record the kernel's algorithms and replay them through cc/")
    parser.add_argument("algorithms", nargs="*", default=list(CWND_SHARE))
    parser.add_argument("--acks", type=int, default=1_000_000, help="ACKs to record of each")
    parser.add_argument("--keep", type=Path, help="a folder for the recordings; else they are removed")
    options = parser.parse_args()
    objects = BUILD / "bpf"
    run("make", "-f", "cc/bpf.mk", f"BPF_OUT={objects}", "bpf-record")
    program = replay_program()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for algorithm in options.algorithms:
            total = Replayed()
            lost = turn = 0
            while total.acks < options.acks:
                course = COURSES[turn % len(COURSES)]
                recording = folder / f"{algorithm}-{turn}.rec"
                with recorded(program, algorithm, objects, recording) as counts:
                    run_course(course, f"knee_rec_{algorithm}")
                lost += counts["lost"]
                said = run(program, "compare", recording)
                total.add(said)
                print(f"{course}\n{said}", flush=True)
                if not options.keep:
                    recording.unlink()
                turn += 1
            print(f"TOTAL {algorithm}: {lost} records lost, {total}", flush=True)
            if total.differing("unexplained") or total.share("snd_cwnd") < CWND_SHARE[algorithm]:
                sys.exit(f"{algorithm} differs from the kernel's own; the first of each kind stands above")


if __name__ == "__main__":
    main()
