"""Rows of a run: written while it goes on, and of `samples` those columns that the scenario keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tcpknee
from support import SMALL, tables_of
from tcpknee import pages
from tcpknee.errors import MissingColumn, UsageError
from tcpknee.runs import flent

KEYS = ["cell", "rep", "t_ns", "flow"]


def keeping(samples: str) -> str:
    return f"samples = {samples}\n{SMALL}"


@pytest.fixture(scope="module")
def whole() -> tcpknee.Run:
    return tcpknee.run(SMALL)


@pytest.mark.parametrize("in_folder", [True, False])
def test_the_columns_that_are_kept_are_those_of_a_run_that_keeps_all(
    whole: tcpknee.Run, tmp_path: Path, in_folder: bool
) -> None:
    run = tcpknee.run(keeping('["srtt_us", "cc_phase"]'), out=tmp_path / "run" if in_folder else None)
    assert run.samples.columns == [*KEYS, "srtt_us", "cc_phase"]
    for column in run.samples.columns:
        assert run.samples[column].to_pylist() == whole.samples[column].to_pylist()
    assert run.flows.arrow().to_pylist() == whole.flows.arrow().to_pylist()
    assert [group.metrics for group in run.summary.groups] == [group.metrics for group in whole.summary.groups]


@pytest.mark.parametrize("in_folder", [True, False])
def test_who_asks_for_a_column_that_was_not_kept_is_told(tmp_path: Path, in_folder: bool) -> None:
    run = tcpknee.run(keeping('["srtt_us"]'), out=tmp_path / "run" if in_folder else None)
    said = r'samples\.snd_cwnd was not kept: the scenario says samples = \["srtt_us"\]\. Add it there'
    with pytest.raises(MissingColumn, match=said):
        run.samples["snd_cwnd"]
    with pytest.raises(MissingColumn, match=said):
        run.rows("samples", ["t_ns", "snd_cwnd"])
    with pytest.raises(MissingColumn, match="was not kept"):
        flent.document(run, 0, 0)
    with pytest.raises(MissingColumn, match="got the column 'cwnd'; expected one of cell, rep, t_ns, flow, srtt_us"):
        run.samples["cwnd"]
    with pytest.raises(MissingColumn, match="got the column 'srtt'; expected one of cell"):
        run.flows["srtt"]


def test_sql_and_reports_say_what_was_not_kept(tmp_path: Path) -> None:
    for samples, kept, absent in (
        ('["srtt_us"]', "srtt_us", "not drawn: congestion window, in flight, "),
        ("[]", "", "not drawn: congestion window, "),
    ):
        out = tmp_path / (kept or "none")
        run = tcpknee.run(keeping(samples), out=out)
        for query in ("select snd_cwnd from samples", "select s.snd_cwnd from samples s"):
            with pytest.raises(UsageError, match=r"samples\.snd_cwnd was not kept: the scenario says samples = "):
                tcpknee.sql(query, out)
        with pytest.raises(UsageError, match="Its tables are"):
            tcpknee.sql("select nothing from samples", out)
        rows = tcpknee.sql("select count(*) n from samples", out)["n"][0].as_py()
        assert (rows > 0) == bool(kept)
        page = pages.write(run, tmp_path / f"{out.name}.html").read_text(encoding="utf-8")
        assert f"Not kept, as the scenario&#39;s `samples` says, and so {absent}" in page


def test_an_unknown_column_is_refused_with_the_nearest() -> None:
    with pytest.raises(tcpknee.ScenarioError, match=r'samples: got "srtt"; .* Did you mean "srtt_us"\?'):
        tcpknee.run(keeping('["srtt"]'))
    with pytest.raises(tcpknee.EngineError, match="names what real kernels tell, which only a lab can"):
        tcpknee.run(keeping('["rcv_rtt_us"]'))


def test_a_repetition_that_fails_leaves_nothing_to_be_taken_for_whole(tmp_path: Path) -> None:
    """A folder where the part's file is to be: the write fails when the repetition is over."""
    out = tmp_path / "run"
    tcpknee.run(SMALL, out=tmp_path / "whole")
    program = (
        "import sys, tcpknee\n"
        "from tcpknee.runs import pool\n"
        "class Watcher(pool.Watcher):\n"
        "    def finished(self, key):\n"
        "        import os, signal\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "tcpknee.run(sys.argv[1], out=sys.argv[2], workers=1, watcher=Watcher())\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, SMALL, out], check=False)
    assert killed.returncode == -9
    assert len(list((out / "parts").glob("*.flows.parquet"))) == 1
    run = tcpknee.run(out=out, resume=True)
    assert run.meta["sessions"][-1]["repetitions"] == 5
    assert tables_of(out) == tables_of(tmp_path / "whole")


def test_memory_does_not_follow_the_number_of_samples(tmp_path: Path) -> None:
    """Some 400 bytes a row would be held otherwise: 100 MB."""
    program = (
        "import resource, sys, tcpknee\n"
        "run = tcpknee.run(sys.argv[1], out=sys.argv[2], workers=1)\n"
        "run.summary\n"
        "print(len(run.samples), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    held = {}
    for seconds in (1, 30):
        text = SMALL_AND_OFTEN.format(seconds=seconds)
        ended = subprocess.run(
            [sys.executable, "-c", program, text, tmp_path / f"{seconds}"], capture_output=True, text=True, check=True
        )
        rows, kibibytes = map(int, ended.stdout.split())
        held[seconds] = kibibytes / 1024
        assert rows > 8_000 * seconds
    assert held[30] - held[1] < 25, held


SMALL_AND_OFTEN = """\
duration = "{seconds}s"
sample_interval = "10us"
[path]
rate = "200Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
"""
