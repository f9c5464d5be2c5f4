"""Searches the parsers of foreign bytes for inputs that break what they claim.

    python tools/fuzz.py [--inputs 10000000] [--parser NAME]... [--seed 1]

Builds crates/fuzz with coverage, on any stable Rust, and lets libFuzzer try that many inputs in all, parser after
parser. Every input has a limit of time, and one of memory that its parser states. A finding is saved, told and makes
the exit status 1. What reached new code is kept in build/fuzz/corpus, where the next search begins.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
COVERAGE = (
    "-Cpasses=sancov-module",
    # Edges, calls, and what is compared with what.
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
LONGEST_SECONDS = 20
"""Of one input, by the clock: the slowest takes one second on an idle machine."""
MEMORY_MIB = 2048
"""Of the process: the end of a parser that takes memory without bound. What it may take is judged more closely."""
LONGEST_BYTES = 16384


def main() -> None:
    """Builds, searches, sums up."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--inputs", type=int, default=10_000_000, help="in all, divided among the parsers")
    arguments.add_argument("--parser", action="append", help="only this one (may be given again)")
    arguments.add_argument("--seed", type=int, default=1)
    asked = arguments.parse_args()
    if asked.inputs < 1 or asked.seed < 1:
        arguments.error("--inputs and --seed are at least 1")
    program = build()
    known = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    parsers = asked.parser or known
    for name in parsers:
        if name not in known:
            arguments.error(f"--parser {name}: no such parser; known: {', '.join(known)}")
    share = -(-asked.inputs // len(parsers))
    print(
        f"seed {asked.seed}, {share} inputs for each of {len(parsers)} parsers; logs and findings: {BUILD}", flush=True
    )
    print(f"{'parser':<12} {'inputs':>10} {'seconds':>8} {'kB held':>9} {'slowest s':>9}  outcome", flush=True)
    outcomes = [search(program, name, share, asked.seed) for name in parsers]
    total = sum(inputs for inputs, _ in outcomes)
    findings = sum(not held for _, held in outcomes)
    print(f"{'in all':<12} {total:>10}{'':>29}  {findings or 'no'} finding{'s' * (findings != 1)}")
    sys.exit(findings > 0)


def build() -> str:
    """The searching program."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = re.search(r"^host: (\S+)$", version, re.M)
    assert host, "rustc names its host"
    # With a target named, what runs during the build is built without coverage.
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "fuzz", "--target", host[1]]
    command += ["--package", "knee-fuzz", "--features", "program", "--message-format", "json-render-diagnostics"]
    flags = " ".join(("--cfg fuzzing", *COVERAGE))
    environment = os.environ | {"RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} {flags}".strip()}
    built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        sys.exit(built.returncode)
    programs = [found for line in built.stdout.splitlines() if (found := json.loads(line).get("executable"))]
    return str(programs[-1])


def search(program: str, name: str, inputs: int, seed: int) -> tuple[int, bool]:
    """Tries inputs on one parser: how many, and did its claims hold?"""
    seeds, corpus = BUILD / "seeds" / name, BUILD / "corpus" / name
    for folder in (seeds, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{name}.log"
    command = [
        program,
        f"-runs={inputs}",
        f"-seed={seed}",
        f"-max_len={LONGEST_BYTES}",
        f"-timeout={LONGEST_SECONDS}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={BUILD}/{name}-",
        "-print_final_stats=1",
        str(corpus),
        str(seeds),
    ]
    with log.open("w", encoding="utf-8", errors="replace") as out:
        environment = os.environ | {"FUZZ_TARGET": name, "FUZZ_SEEDS": str(seeds)}
        ended = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.STDOUT, check=False)
    said = log.read_text(encoding="utf-8", errors="replace")
    tried = figure(said, r"stat::number_of_executed_units:\s*(\d+)") or figure(said, r"^#(\d+)\s")
    seconds = figure(said, r"^Done \d+ runs in (\d+) second")
    slowest = figure(said, r"stat::slowest_unit_time_sec:\s*(\d+)")
    held = max((int(peak) for peak in re.findall(r"^peak_bytes: (\d+)", said, re.M)), default=0)
    outcome = "holds" if ended.returncode == 0 else "; ".join(told(said)) or f"ended with {ended.returncode}: {log}"
    print(f"{name:<12} {tried:>10} {seconds:>8} {held // 1000:>9} {slowest:>9}  {outcome}", flush=True)
    return tried, ended.returncode == 0


def figure(said: str, pattern: str) -> int:
    """The last number that the pattern finds, or 0."""
    found = re.findall(pattern, said, re.M)
    return int(found[-1]) if found else 0


def told(said: str) -> Iterator[str]:
    """What broke, and where the input is."""
    lines = said.splitlines()
    for at, line in enumerate(lines):
        if " panicked at " in line:
            yield f"{line.split(' panicked at ')[1]} {lines[at + 1] if at + 1 < len(lines) else ''}"
        elif "SUMMARY: libFuzzer: " in line and "deadly signal" not in line:
            yield line.split("SUMMARY: libFuzzer: ")[1]
        elif "Test unit written to " in line:
            yield line.split("Test unit written to ")[1]


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
