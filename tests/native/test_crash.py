"""An algorithm that crashes the process is named, with the function, the time and the cell."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

ROOT = Path(__file__).resolve().parents[2]
CRASHING = Path(__file__).with_name("crashing.py")
SCENARIO = """
duration = "1s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = ["reno", "crashing"]
"""

SOURCE = """
#include "cc_algorithm.h"

#define CRASHING_PARAMS(P)
struct crashing { u32 unused; };

static void crashing_ssthresh(struct crashing *s, const struct cc_in *in, struct cc_out *out)
{
	out->ret = 10;
}

static void crashing_cong_avoid(struct crashing *s, const struct cc_in *in, struct cc_out *out)
{
	out->snd_cwnd += IN_CONG_AVOID;
}

CC_HOST_ONLY static void crashing_get_info(const struct crashing *s, const struct cc_in *in, struct cc_info *info)
{
	info->bw = IN_GET_INFO;
}

CC_GET_INFO(crashing, struct crashing, "Only")

#define CRASHING_OPS(OP) OP(crashing, ssthresh) OP(crashing, cong_avoid)
CC_ALGORITHM(crashing, struct crashing, CRASHING_PARAMS, CRASHING_OPS, 0, .summary = "it crashes", .source = "none",
	.use_when = "never", .year = 2000, CC_HAS_INFO(crashing))
"""

MEMORY = "*(volatile u32 *)8"
CASES = [("cong_avoid", MEMORY, {"SIGSEGV"}), ("get_info", MEMORY, {"SIGSEGV"})]
if platform.machine() == "x86_64":
    # Other processors divide by zero. What the compiler sees is a trap of its own; the other is found by the processor.
    CASES += [
        ("cong_avoid", "in->acked / (in->acked - in->acked)", {"SIGILL", "SIGTRAP", "SIGFPE"}),
        ("cong_avoid", "in->acked / (in->snd_cwnd - out->snd_cwnd)", {"SIGFPE"}),
    ]


def library(folder: Path, function: str, crash: str) -> Path:
    """The algorithm compiled as crates/cc does, with that expression in one of its functions."""
    source, made = folder / "crashing.c", folder / "crashing.so"
    source.write_text(SOURCE)
    crashes = {"cong_avoid": "0", "get_info": "0", function: crash}
    given = [f"-DIN_{name.upper()}={value}" for name, value in crashes.items()]
    command = ["cc", "-std=gnu11", "-O2", "-w", "-shared", "-fPIC", f"-I{ROOT / 'cc'}", *given, source, "-o", made]
    subprocess.run(command, check=True)
    return made


def compare(folder: Path, made: Path, **more: str) -> subprocess.CompletedProcess[str]:
    (folder / "s.toml").write_text(SCENARIO)
    words = [sys.executable, CRASHING, made, "run", "s.toml", "--out", "run", "-q", "--workers", "1"]
    return subprocess.run(words, cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("function", "crash", "signals"), CASES)
def test_a_crash_names_algorithm_function_time_and_cell(
    tmp_path: Path, function: str, crash: str, signals: set[str]
) -> None:
    ended = compare(tmp_path, library(tmp_path, function, crash))
    got = signal.Signals(-ended.returncode).name
    assert got in signals
    said = re.fullmatch(
        rf"\ntcpknee: the algorithm crashing crashed the process: got {got} in its {function} at (\d+\.\d{{9}}) s of "
        r"cell 1 \(flow\.0\.algorithm = crashing\), repetition 0; expected .*\. Look for both in cc/crashing\.c\.\n",
        ended.stderr,
    )
    assert said, ended.stderr
    # The first sample after the handshake, which takes one round trip; the first ACK of data comes after two.
    first, last = {"get_info": (0.02, 0.031), "cong_avoid": (0.04, 0.06)}[function]
    assert first <= float(said[1]) <= last


def test_who_listened_before_still_hears_of_it(tmp_path: Path) -> None:
    ended = compare(tmp_path, library(tmp_path, "cong_avoid", MEMORY), PYTHONFAULTHANDLER="1")
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stderr.index("crashing crashed") < ended.stderr.index("Fatal Python error: Segmentation fault")


QUIET = f"""
import ctypes, os, signal, sys
from tcpknee import _core
cells = _core.parse({SCENARIO.replace(', "crashing"', "").replace("1s", "1000s")!r}, "s.toml")
"""


@pytest.mark.parametrize(
    "crash",
    [
        # In no cell any more; sent by somebody; in what is called between an algorithm's calls.
        "try: cells.run_cell(0, 0, progress=lambda ns: 1 / 0)\nexcept ZeroDivisionError: ctypes.string_at(8)",
        "cells.run_cell(0, 0, progress=lambda ns: os.kill(os.getpid(), signal.SIGSEGV))",
        "cells.run_cell(0, 0, progress=lambda ns: ctypes.string_at(8))",
    ],
)
def test_no_algorithm_is_named_for_what_none_did(crash: str) -> None:
    ended = subprocess.run([sys.executable, "-c", QUIET + crash], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGSEGV, "")
