"""The scripts of reference/, as far as they go without a kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))

import cell as cells
import matrices
import measure
from tcpknee.validation.references import reference

EVERY = [cell for suite in matrices.SUITES.values() for cell in suite()]


def commands(folder: Path, cell: matrices.Cell) -> tuple[str, str]:
    cells.write(folder, measure.parse(cell, measure.hosts("6.12")), Path("flow"))
    return tuple((folder / name).read_text() for name in ("setup.sh", "run.sh"))  # type: ignore[return-value]


def cell_of(group: str, **settings: str) -> matrices.Cell:
    wanted = {key.replace("_", "."): value for key, value in settings.items()}
    return next(cell for cell in EVERY if cell.group == group and wanted.items() <= cell.settings.items())


def test_every_algorithm_has_nine_cells_and_no_cell_is_there_twice() -> None:
    assert len(set(matrices.ALGORITHMS)) == 17
    assert [cell.group for cell in matrices.algorithms()].count("cubic") == 9
    keys = [reference.key_of(cell.suite, cell.settings, cell.flows) for cell in EVERY]
    assert len(set(keys)) == len(keys)


def test_every_cell_of_every_suite_becomes_a_path(tmp_path: Path) -> None:
    for i, cell in enumerate(EVERY):
        setup, flows = commands(tmp_path / str(i), cell)
        # Both ways of each flow have half of its RTT.
        assert setup.count(" netem delay ") == 2 * len(cell.flows)
        assert len(flows.split()) == 5 + 6 * len(cell.flows)


def test_the_queue_is_the_bottlenecks_and_counts_ip_packets(tmp_path: Path) -> None:
    setup, flows = commands(
        tmp_path / "a", cell_of("cubic", path_rate="20Mbit/s", path_buffer="4bdp", path_rtt="100ms")
    )
    assert "stab overhead -14 linklayer ethernet htb" in setup
    assert "htb rate 20000000bit ceil 20000000bit burst 1 cburst 1" in setup
    assert "bfifo limit 1000000" in setup
    assert "tc -n f qdisc add dev to-r0 root netem delay 50000us limit 10000000 rate 20000000bit -14" in setup
    assert "tc -n r0 qdisc add dev to-f root netem delay 50000us limit 10000000" in setup
    assert flows == "flow samples.csv 30000000000 10000000 131072 s0 r0 10.1.0.2 cubic cubic 0\n"
    assert "netem loss" not in setup


def test_loss_stands_before_the_queue_and_jitter_behind_the_link(tmp_path: Path) -> None:
    lossy, _ = commands(tmp_path / "a", cell_of("bbr1", path_loss="1%"))
    assert "tc -n l qdisc add dev to-b root netem loss random 1%" in lossy
    jittery, flows = commands(tmp_path / "b", cell_of("bbr1 20+80 ms, jitter", path_rate="20Mbit/s"))
    assert "tc -n f qdisc add dev to-j root netem rate 20000000bit -14" in jittery
    assert "to-r0 root netem delay 10000us 1000us limit 10000000 rate 1000gbit" in jittery
    assert "to-r1 root netem delay 40000us 1000us limit 10000000 rate 1000gbit" in jittery
    # Linux calls it bbr.
    assert "s0 r0 10.1.0.2 bbr cubic 0 s1 r1 10.1.1.2 bbr cubic 0" in flows


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("fq_codel", "fq_codel limit 1000 target 5ms interval 100ms ecn\n"),
        ("codel", "codel limit 1000 target 5ms interval 100ms noecn\n"),
        ("cake", "root cake bandwidth 50000000bit overhead 0\n"),
        ("policer", "ingress matchall action police rate 50000000bit burst 125000 conform-exceed drop/ok\n"),
        ("pie", "pie limit 1000 target 15ms noecn\n"),
        ("step", "fq_codel limit 1000 target 5ms interval 100ms ecn ce_threshold 1ms\n"),
        (
            "red",
            "red limit 1500000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.02 bandwidth 50000000bit\n",
        ),
    ],
)
def test_each_queue_is_the_qdisc_with_the_same_parameters(tmp_path: Path, group: str, said: str) -> None:
    setup, _ = commands(tmp_path / "a", cell_of(group))
    assert said in setup


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"path.queue": "dualpi2"}, "path.queue: got dualpi2; expected fifo, fq_codel"),
        ({"path.queue": "pie"}, "path.pie.tupdate: expected 20ms"),
        ({"path.queue": "cake", "path.cake.bandwidth": "1Mbit/s"}, "path.cake.bandwidth: expected path.rate"),
    ],
)
def test_what_the_path_does_not_have_is_refused(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    path = {"duration": "30s", "path.rate": "20Mbit/s", "path.rtt": "40ms", "path.buffer": "100packets"}
    with pytest.raises(cells.Unsupported, match=said):
        commands(tmp_path / "a", matrices.Cell("s", "g", {**path, **settings}, ({"flow.algorithm": "reno"},), 1))


def test_metrics_are_those_after_the_warm_up_but_for_retransmissions(tmp_path: Path) -> None:
    lines = ["t_ns,flow,bytes_read,srtt_us,snd_cwnd,data_segs_out,total_retrans"]
    lines += [f"{t}000000000,0,{read},{srtt},10,{sent},{again}" for t, read, srtt, sent, again in (
        (1, 900, 9000, 10, 5), (2, 1000, 20000, 20, 5), (3, 2000, 30000, 90, 5), (4, 5000, 50000, 200, 6)
    )]  # fmt: skip
    (tmp_path / "samples.csv").write_text("\n".join(lines) + "\n")
    cell = {"flows": [{}], "warmup_ns": 2_000_000_000, "duration_ns": 4_000_000_000}
    [found] = measure.metrics(tmp_path / "samples.csv", cell)
    assert found == {"goodput_bits_per_sec": 16000.0, "srtt_us_p50": 30000, "retransmit_pct": 3.0}
    with pytest.raises(measure.Failed, match="flow 0 has no samples up to the end"):
        measure.metrics(tmp_path / "samples.csv", {**cell, "duration_ns": 5_000_000_000})


def test_runs_that_the_file_holds_are_kept_and_rows_stand_as_the_matrices_have_them(tmp_path: Path) -> None:
    first, second = EVERY[0], EVERY[1]
    facts = {"kernel": "6.12.1", "hz": "250", "clock": "virtual"}
    metrics = {"goodput_bits_per_sec": 1.0, "srtt_us_p50": 2.0, "retransmit_pct": 0.0}
    store = measure.Store(tmp_path / "r.csv", facts, matrices.HOSTS)
    for cell in (second, first):
        assert not store.has(cell, 1)
        store.put(cell, 1, [metrics])
    again = measure.Store(tmp_path / "r.csv", facts, matrices.HOSTS)
    assert again.has(first, 1)
    assert again.has(second, 1)
    assert not again.has(first, 2)
    read = reference.read(tmp_path / "r.csv")
    assert [cell.settings for cell in read.cells()] == [first.settings, second.settings]
    with pytest.raises(SystemExit, match="choose another --output"):
        measure.Store(tmp_path / "r.csv", {**facts, "kernel": "6.1.1"}, matrices.HOSTS)
