"""What each key of an uneven path, and each workload that comes and goes, does to real TCP over the user-space link.

Every scenario runs once, and the tests read the tables."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probes
import punctual
import repeats
import tcpknee
from tcpknee.runs.results import Run
from waiting import PATIENCE_SEC

pytestmark = pytest.mark.slow("fourteen paths are in real time, before the first test")

HEAD = 'duration = "2500ms"\nwarmup = "500ms"\n[sender]\ntcp_wmem_max = "16MiB"\n'
FLOW = '[[flow]]\nalgorithm = "cubic"\n'
PACED = FLOW + 'max_pacing_rate = "5Mbit/s"\n'


def path(keys: str, flow: str = FLOW, *, rate: str = '"50Mbit/s"', rtt: str = '"10ms"') -> str:
    return f'{HEAD}[path]\nbackend = "user"\nrate = {rate}\nrtt = {rtt}\n{keys}\n{flow}'


ON_OFF = """\
[[flow]]
algorithm = "cubic"
workload = "on-off"
on = "400ms"
off = "600ms"
[[flow]]
algorithm = "reno"
workload = "web"
arrivals = "40/s"
sizes = "lognormal"
"""

SCENARIOS = {
    "loss": path('loss = ["gilbert 2% burst 5", "trace lost.txt"]'),
    # The buffer is deep enough that the link always has something to send.
    "trace": path('buffer = "100packets"\noutage = "2s for 300ms"', rate='"trace steps.up"'),
    "route": path('rtt_change = "1500ms to 60ms"', PACED),
    "aggregate": path('aggregate = "20ms"', PACED, rtt='"20ms"'),
    "jitter": path('jitter = "4ms"\njitter_reorders = [false, true]', PACED, rtt='"20ms"'),
    "reorder": path('reorder = "5%"\nreorder_delay = "5ms"', PACED, rtt='"20ms"'),
    "duplicate": path('duplicate = "3%"', PACED),
    "ack": path(
        'buffer = "1000packets"\nack_rate = "50kbit/s"\nack_buffer = "100packets"\n'
        'ack_queue = "cake"\nack_cake.ack_filter = [0, 2]',
        "[receiver]\ngro = false\n" + FLOW,
    ),
    "web": path("", ON_OFF),
}


LATE_US = 3_000
"""What the bounds of the tests below leave for 1 % of the packets."""


@dataclass(frozen=True)
class Judged:
    """A run, and how late 1 % of its packets and of the machine's own wake-ups were."""

    run: Run
    late_us: float
    machine: punctual.Punctuality
    attempts: int


@dataclass(frozen=True)
class Runs:
    """The run of each scenario. A test whose link was late each time fails, unless the machine itself was."""

    by_name: dict[str, Judged]
    tell: Callable[[str, object], None]

    def of(self, name: str) -> Run:
        found = self.by_name[name]
        if found.attempts > 1:
            self.tell(repeats.REPEATED, found.attempts - 1)
        said = f"{name}: 1 % of packets {found.late_us:.0f} us late, of wake-ups {found.machine.late_us:.0f} us"
        if found.late_us > LATE_US and found.machine.excuses(found.late_us):
            pytest.skip(f"the machine held the link up {punctual.ATTEMPTS} times. {said}")
        assert found.late_us <= LATE_US, said
        return found.run

    @contextmanager
    def each_moment_of(self, name: str) -> Iterator[Run]:
        """The same for a test that one moment disturbs in which the machine stood still."""
        run = self.of(name)
        try:
            yield run
        except AssertionError:
            worst_us = self.by_name[name].machine.worst_us
            if worst_us > punctual.STALL_US:
                pytest.skip(
                    f"the machine held the link up {punctual.ATTEMPTS} times. {name}: once for {worst_us:.0f} us"
                )
            raise


def knee(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tcpknee", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )


@pytest.fixture
def runs(judged: dict[str, Judged], record_property: Callable[[str, object], None]) -> Runs:
    return Runs(judged, record_property)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    """Each scenario's run on the kernel. It is repeated if its link was late, or if the machine stood still beside it:
    one stall makes 1 % of a few hundred packets late, or a connection open late, and nothing like 1 % of the machine's
    own wake-ups. What is late by its own fault is so each time."""
    probes.need_lab()
    folder = tmp_path_factory.mktemp("paths")
    (folder / "lost.txt").write_text("0\n" * 49 + "1\n")
    # A second of 12 Mbit/s and one of 6 Mbit/s, in packets of 1504 bytes.
    steps = [*range(1, 1001), *range(1002, 2001, 2)]
    (folder / "steps.up").write_text("".join(f"{ms}\n" for ms in steps))

    def run(name: str) -> Judged:
        (folder / f"{name}.toml").write_text(SCENARIOS[name])
        tried = []
        for attempt in range(punctual.ATTEMPTS):
            out = f"{name}-{attempt}"
            with punctual.beside() as machine:
                ended = knee("run", f"{name}.toml", "--engine", "kernel", "--out", out, "-q", cwd=folder)
            assert ended.returncode == 0, f"{name}: {ended.stderr}{ended.stdout}"
            found = tcpknee.open(folder / out)
            tried.append((max(found.links["added_delay_us_p99"].to_pylist()), machine, found))
            if tried[-1][0] <= LATE_US and machine.worst_us <= punctual.STALL_US:
                break
        late_us, machine, found = min(tried, key=lambda one: (one[0] > LATE_US, one[1].worst_us))
        return Judged(found, late_us, machine, len(tried))

    return {name: run(name) for name in SCENARIOS}


def rows(table: Any, **values: int) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of the rows with these values."""
    columns = {name: np.array(table[name].to_pylist()) for name in table.columns}
    chosen = np.all([columns[name] == value for name, value in values.items()], axis=0)
    return {name: column[chosen] for name, column in columns.items()}


def at(columns: dict[str, np.ndarray[Any, Any]], name: str, ms: int) -> float:
    """The column's value at the last row before that time."""
    before = np.searchsorted(columns["t_ns"], ms * 1_000_000, side="right") - 1
    return float(columns[name][before])


def median(columns: dict[str, np.ndarray[Any, Any]], name: str, begins_ms: int, ends_ms: int) -> float:
    """The column's median over that time, which one row that a busy machine took late does not move."""
    chosen = (begins_ms * 1_000_000 <= columns["t_ns"]) & (columns["t_ns"] < ends_ms * 1_000_000)
    return float(np.median(columns[name][chosen]))


def flow(run: Run, cell: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = run.flows.arrow().to_pylist()[cell]
    return found


def test_gilbert_loses_its_share_in_bursts(runs: Runs) -> None:
    queue = rows(runs.of("loss").queue, cell=0)
    lost, sent = queue["lost_pkts"][-1], queue["sent_pkts"][-1]
    # 2 % of n packets in bursts of 5: the share's deviation is sqrt(0.02 x 9 / n).
    deviation = (0.02 * 9 / (lost + sent)) ** 0.5
    assert lost / (lost + sent) == pytest.approx(0.02, abs=3 * deviation)
    losses = np.diff(queue["lost_pkts"], prepend=0)
    assert np.mean(losses[losses > 0]) > 2, "packets are lost several at a time"


def test_loss_trace_loses_the_packets_that_it_says(runs: Runs) -> None:
    queue = rows(runs.of("loss").queue, cell=1)
    lost, others = queue["lost_pkts"][-1], queue["sent_pkts"][-1] + queue["dropped_pkts"][-1] + queue["queue_pkts"][-1]
    # One may be on the wire.
    assert lost in {(lost + others) // 50, (lost + others + 1) // 50}
    assert lost > 10


def test_the_first_packet_of_a_path_is_the_first_of_a_connection() -> None:
    """Every second one is lost. If anything came before the SYN, as IPv6's question for a router, the SYN would be
    lost, and come again after a second."""
    probes.need_lab()
    text = path('loss = "periodic 50%"', '[[flow]]\nalgorithm = "reno"\nworkload = "transfer"\nbytes = "1448B"\n')
    assert flow(tcpknee.run(text, engine="kernel"))["completion_us"] < 900_000


def busiest(queue: dict[str, np.ndarray[Any, Any]], begins_ms: int, ends_ms: int) -> tuple[int, int]:
    """The first and the last row of the longest stretch within that time in which packets always wait."""
    within = (queue["t_ns"] >= begins_ms * 1e6) & (queue["t_ns"] <= ends_ms * 1e6)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], within & (queue["queue_pkts"] > 0), [0]))))
    first, end = max(edges.reshape(-1, 2), key=lambda stretch: stretch[1] - stretch[0])
    return int(first), int(end) - 1


def test_rate_trace_carries_what_each_second_allows(runs: Runs) -> None:
    queue = rows(runs.of("trace").queue, cell=0)
    for begins_ms, ends_ms, mbit in ((500, 950, 12), (1_050, 1_950, 6)):
        first, last = busiest(queue, begins_ms, ends_ms)
        took_ns = queue["t_ns"][last] - queue["t_ns"][first]
        assert took_ns >= 200e6, "a sender that a busy machine holds up leaves the link without a packet"
        sent = queue["sent_bytes"][last] - queue["sent_bytes"][first]
        assert sent * 8 / took_ns * 1e3 == pytest.approx(mbit * 1504 / 1500, rel=0.05)


def test_nothing_leaves_in_an_outage(runs: Runs) -> None:
    queue = rows(runs.of("trace").queue, cell=0)
    assert at(queue, "sent_pkts", 2_020) == at(queue, "sent_pkts", 2_290)
    assert at(queue, "sent_pkts", 2_000) < at(queue, "sent_pkts", 2_020) + 20
    assert at(queue, "sent_pkts", 2_400) > at(queue, "sent_pkts", 2_290)
    assert at(queue, "queue_pkts", 2_280) > 0, "what came waits"


def test_route_change_moves_the_round_trip_time(runs: Runs) -> None:
    with runs.each_moment_of("route") as run:
        samples = rows(run.samples, cell=0)
        # The medians of half a second each; the smoothed one takes as many round trips to follow as fit into the rest.
        assert 10_000 <= median(samples, "srtt_us", 1_000, 1_500) < 16_000
        assert 60_000 <= median(samples, "srtt_us", 2_000, 2_500) < 66_000


def test_round_trip_times_count_by_the_acks_that_brought_them(runs: Runs) -> None:
    """As in the simulator, and not by the time that they lasted."""
    samples = rows(runs.of("route").samples, cell=0)
    # The sample at 500 ms is the warm-up's last: the one that follows it weighs a third of a per cent. By time the mean
    # is 2 to 4 % lower, as the pause at the change has no ACKs.
    steady = samples["t_ns"] > 505_000_000
    acks = np.diff(samples["segs_in"], prepend=0)[steady]
    by_acks = np.average(samples["srtt_us"][steady], weights=acks)
    assert flow(runs.of("route"))["srtt_us_mean"] == pytest.approx(by_acks, rel=0.007)


def test_aggregation_holds_packets_in_both_directions(runs: Runs) -> None:
    # Data arrives 10 ms after a multiple of 20 ms, so its ACK waits for 10 ms more and takes 10.
    assert 30_000 <= flow(runs.of("aggregate"))["min_rtt_us"] < 35_000
    assert flow(runs.of("aggregate"))["srtt_us_p50"] > 32_000


def test_jitter_reorders_only_where_it_may(runs: Runs) -> None:
    for cell, reorders in ((0, False), (1, True)):
        samples = rows(runs.of("jitter").samples, cell=cell)
        assert bool(samples["reord_seen"][-1] > 0) is reorders
        assert 16_000 <= flow(runs.of("jitter"), cell)["min_rtt_us"] < 19_000
    assert flow(runs.of("jitter"), 0)["total_retrans"] == 0


def test_reordered_packets_are_seen_as_such_and_not_lost(runs: Runs) -> None:
    samples = rows(runs.of("reorder").samples, cell=0)
    assert samples["reord_seen"][-1] > 0
    assert flow(runs.of("reorder"))["path_lost_pkts"] == 0


def test_duplicates_are_reported_by_dsack(runs: Runs) -> None:
    sent, dups = (
        flow(runs.of("duplicate"))["data_segs_out"],
        rows(runs.of("duplicate").samples, cell=0)["dsack_dups"][-1],
    )
    # Its deviation is a sixth of the expected count of 30, and ACKs may tell of two at once.
    assert dups == pytest.approx(0.03 * sent, rel=0.6)


def test_link_for_acks_has_its_rate_and_its_queue(runs: Runs) -> None:
    run = runs.of("ack")
    back = [row for row in run.links.arrow().to_pylist() if row["direction"] == "back"]
    assert [row["asked_rate_bits_per_sec"] for row in back] == [50_000, 50_000]
    assert all(row["forwarded_bytes"] * 8 / 2.5 < 1.05 * 50_000 for row in back)
    # 120 ACKs a second of two packets each are 2.8 Mbit/s; the window still grows, and with it what an ACK lets go:
    # 4.6 Mbit/s, 4.3 in the simulator. Without those that a later one makes needless, each acknowledges what came while
    # it waited.
    plain, filtered = (flow(run, cell)["goodput_bits_per_sec"] for cell in (0, 1))
    assert plain < 10e6
    assert filtered > 3 * plain


def test_on_off_source_pauses(runs: Runs) -> None:
    with runs.each_moment_of("web") as run:
        samples = rows(run.samples, cell=0, flow=0)
        for begins in (0, 1_000):
            on = at(samples, "bytes_read", begins + 390) - at(samples, "bytes_read", begins + 50)
            assert on * 8 / 340e3 > 5, "Mbit/s while it is on"
            # What the send buffer and the queue hold, some 300 kB, is through in 50 ms.
            assert at(samples, "bytes_read", begins + 600) == at(samples, "bytes_read", begins + 950)


def test_web_transfers_are_those_of_the_simulator(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(SCENARIOS["web"])
    assert knee("run", "web.toml", "--out", "sim", "-q", cwd=tmp_path).returncode == 0
    with runs.each_moment_of("web") as kernel:
        real, simulated = (
            [row for row in run.flows.arrow().to_pylist() if row["workload"] == "web"]
            for run in (kernel, tcpknee.open(tmp_path / "sim"))
        )
        assert len(real) == len(simulated) > 60
        # A machine that stands still for a moment delays the transfers of that moment, and no other.
        late = [abs(one["start_ns"] - other["start_ns"]) > 20e6 for one, other in zip(real, simulated, strict=True)]
        assert sum(late) <= 0.05 * len(real)
        times: dict[str, list[float]] = {"real": [], "simulated": []}
        for one, other in zip(real, simulated, strict=True):
            assert one["transfer_bytes"] == other["transfer_bytes"] > 0
            if one["completion_us"] and other["completion_us"]:
                assert one["bytes_read"] == other["bytes_read"] == one["transfer_bytes"]
                assert min(one["slowdown"], other["slowdown"]) >= 1
                times["real"].append(one["completion_us"])
                times["simulated"].append(other["completion_us"])
        assert len(times["real"]) > 0.9 * len(real)
        medians = [statistics.median(found) for found in times.values()]
        assert medians[0] == pytest.approx(medians[1], rel=0.3)
