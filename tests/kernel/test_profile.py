"""What the network costs this host, as `knee profile` counts it, against what sockets say of themselves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import probes
import tcpknee
from building import ROOT, run
from lab import Lab, laid_out
from loaded import programs, programs_of
from seen import whole
from tcpknee.live import profile
from waiting import until

PROFILED, TRACED = ROOT / "tests/kernel/profiled.py", ROOT / "tests/kernel/traced.py"
PORT = 5311
SENT_BYTES = 2_000_000
RATE_BITS_PER_SEC = 50_000_000
BUFFER_BYTES = 60_000
COUNTING = ["timers", "packets", "polls", "softirqs", "wakeups"]
CHECKED_SEC = 60.0
HANDSHAKE_SEGMENTS = 4
"""SYN, its ACK, FIN, its ACK: what a sender sends without data, at most."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts with a router between them, joined by veth, whose buffer loses packets."""
    probes.need_tracepoint("napi_poll")
    with laid_out(RATE_BITS_PER_SEC, BUFFER_BYTES) as found:
        yield found


@contextmanager
def server(lab: Lab) -> Iterator[None]:
    words = ["ip", "netns", "exec", lab.receiver, sys.executable, str(TRACED), "server", str(PORT)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.communicate()


def profiled(work: Callable[[], Any], folder: Path, **given: Any) -> tuple[profile.Profile, Any]:
    """A profile for as long as that takes, and what it returned."""
    stop, said = threading.Event(), []

    def begin(so_far: float) -> None:
        if not said:
            said.append(None)
            thread.start()

    def working() -> None:
        try:
            said[0] = work()
        finally:
            stop.set()

    thread = threading.Thread(target=working)
    found = profile.take(folder, seconds=CHECKED_SEC, stop=stop, progress=begin, **given)
    thread.join()
    return found, said[0]


def send(lab: Lab, algorithm: str) -> dict[str, int]:
    words = (sys.executable, PROFILED, lab.address, PORT, algorithm, SENT_BYTES)
    told: dict[str, int] = json.loads(run("ip", "netns", "exec", lab.sender, *words))
    return told


@pytest.fixture(scope="module")
def sent(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[profile.Profile, dict[str, int]]:
    """A profile of the sending host alone while it sends, and what its socket said of itself."""

    def take() -> tuple[profile.Profile, dict[str, int]]:
        folder = tmp_path_factory.mktemp("profile") / "sent"
        return profiled(lambda: send(lab, "reno"), folder, netns=lab.sender, chosen=COUNTING)

    with server(lab):
        return whole(take, lambda found: found[1]["data_segs_out"] - found[0].costs["data_segments_sent"])


@pytest.fixture(scope="module")
def received(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[profile.Profile, dict[str, int]]:
    """A profile of the receiving host alone, and what its TCP counted: packets, after merging, and segments."""

    def take() -> tuple[profile.Profile, dict[str, int]]:
        folder = tmp_path_factory.mktemp("profile") / "received"
        then = tcp_packets(lab.receiver)
        found, told = profiled(lambda: send(lab, "reno"), folder, netns=lab.receiver, chosen=COUNTING)
        return found, {**told, "packets": tcp_packets(lab.receiver) - then}

    with server(lab):
        return whole(take, lambda found: found[1]["packets"] - found[0].costs["skbs_received"])


def tcp_packets(namespace: str) -> int:
    """Packets that the namespace's TCP got so far: InSegs, which counts one for all that GRO merged (tcp_v4_rcv)."""
    names, values = [
        line.split()
        for line in run("ip", "netns", "exec", namespace, "cat", "/proc/net/snmp").splitlines()
        if line.startswith("Tcp:")
    ]
    return int(values[names.index("InSegs")])


def test_bytes_and_segments_are_those_that_the_socket_sent(sent: tuple[profile.Profile, dict[str, int]]) -> None:
    found, told = sent
    assert told["bytes_sent"] > SENT_BYTES, "the buffer is to lose packets, which are sent again"
    assert found.costs["data_bytes_sent"] == told["bytes_sent"]
    assert found.costs["data_segments_sent"] == told["data_segs_out"]
    assert 0 < found.costs["data_skbs_sent"] <= told["data_segs_out"]
    assert found.about["unreadable"] == 0


def test_sizes_add_up_to_the_packets_sent(sent: tuple[profile.Profile, dict[str, int]]) -> None:
    found, _ = sent
    rows = [row for row in found.rows("histograms") if row["histogram"] == "sent_bytes"]
    assert sum(row["count"] for row in rows) == found.costs["data_skbs_sent"]
    least = sum(row["least"] * row["count"] for row in rows)
    most = sum(row["most"] * row["count"] for row in rows)
    assert least <= found.costs["data_bytes_sent"] <= most


def test_an_unpaced_host_sets_no_timer(sent: tuple[profile.Profile, dict[str, int]]) -> None:
    costs = sent[0].costs
    assert {costs[f"pacing_timer_{what}"] for what in ("arms", "fires", "cancels")} == {0}


def test_a_qdisc_that_shapes_is_seen_by_its_timer(lab: Lab, tmp_path: Path) -> None:
    """The router's tbf waits for the time of the next packet, as fq does."""
    with server(lab):
        found, _ = profiled(
            lambda: send(lab, "reno"), tmp_path / "router", netns=lab.router, chosen=["timers", "packets"]
        )
    assert found.costs["qdisc_timer_fires"] > 10
    # It forwards, and has no socket that sends.
    assert found.costs["data_skbs_sent"] == 0 and found.costs["skbs_received"] > 0


def test_the_receiver_sends_acks_and_gets_all_segments(received: tuple[profile.Profile, dict[str, int]]) -> None:
    costs = received[0].costs
    assert costs["data_bytes_sent"] == 0 and costs["acks_sent"] > 0
    assert costs["skbs_received"] == received[1]["packets"]
    # No segment carries more; the router lost some of those that were sent.
    assert SENT_BYTES / 1460 <= costs["segments_received"] <= received[1]["data_segs_out"] + HANDSHAKE_SEGMENTS
    assert costs["skbs_received"] <= costs["segments_received"]


def test_polls_handle_at_least_the_packets_that_the_host_got(
    received: tuple[profile.Profile, dict[str, int]],
) -> None:
    found, _ = received
    assert found.costs["napi_packets"] >= found.costs["skbs_received"]
    rows = [row for row in found.rows("histograms") if row["histogram"] == "packets_per_poll"]
    assert sum(row["count"] for row in rows) == found.costs["napi_polls"]


def test_receiving_takes_time_in_its_softirq(received: tuple[profile.Profile, dict[str, int]]) -> None:
    found, _ = received
    by_softirq: dict[str, int] = {}
    for row in found.rows("softirqs"):
        by_softirq[row["softirq"]] = by_softirq.get(row["softirq"], 0) + row["ns"]
    assert by_softirq["net_rx"] == found.costs["softirq_net_rx_ns"] > 0
    assert found.costs["wakeups"] > 0


def test_it_states_what_each_program_cost(sent: tuple[profile.Profile, dict[str, int]]) -> None:
    cost = sent[0].about["cost"]
    assert cost["not_measured"] is None
    ran = {one["tracepoint"]: one["runs"] for one in cost["programs"]}
    assert ran["net_dev_queue"] >= sent[0].costs["data_skbs_sent"]
    assert "perf_event" not in ran


def test_an_instrument_that_is_left_out_has_no_program_and_no_counter(tmp_path: Path) -> None:
    found = profile.take(tmp_path / "some", seconds=0.3, chosen=["wakeups"])
    assert [one["tracepoint"] for one in found.about["cost"]["programs"]] == ["sched_wakeup"]
    assert "wakeups" in found.costs
    assert not {"pacing_timer_fires", "data_skbs_sent", "napi_polls", "softirq_net_rx_ns"} & found.costs.keys()


@pytest.mark.timed
@pytest.mark.parametrize("rate", ["5Mbit/s", "20Mbit/s", "80Mbit/s"])
def test_timers_fire_for_bbr_at_every_rate_and_never_for_cubic(
    rate: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a lab, by host. All of a sender's pacing timers are set by its own flow."""
    probes.need_tracepoint("hrtimer_start")
    text = f"""
        duration = "2s"
        warmup = "500ms"
        [path]
        rate = "{rate}"
        rtt = "20ms"
        [[flow]]
        algorithm = ["bbr1", "cubic"]
    """

    def take() -> tcpknee.Result:
        out = tmp_path_factory.mktemp("run") / "run"
        return tcpknee.run(text, out=out, engine="kernel", measure=["timers", "packets", "softnet"])

    found = whole(take, lambda found: sum(timers_without_end(found, cell) for cell in (0, 1)))
    algorithms = {cell["index"]: cell["flows"][0]["algorithm"] for cell in found.meta["cells"]}
    assert sorted(algorithms) == [0, 1]
    totals = {total.cell: total for total in found.summary.totals}
    for cell, algorithm in algorithms.items():
        costs = costs_of(found, cell)
        fires, skbs = (costs["sender", name] for name in ("pacing_timer_fires", "data_skbs_sent"))
        assert skbs > 0
        assert (fires > 0) == (algorithm == "bbr1"), cell
        assert costs["receiver", "pacing_timer_fires"] == 0
        # A paced packet waits for one timer at most.
        assert fires <= skbs + 1
        values = totals[cell].values
        assert (values["timer_fires_per_data_skb"][0] > 0) == (algorithm == "bbr1")
        assert values["cpu_ns_per_byte"][0] > 0 and values["acks_sent"][0] > 0
    assert found.meta["measure"] == ["timers", "packets", "softnet"]
    measured = [one["measured"]["instruments"] for one in found.meta["repetitions"]]
    assert all(one["seconds"] == pytest.approx(1.5, abs=0.3) and one["cost"]["programs"] for one in measured)


def costs_of(found: tcpknee.Result, cell: int) -> dict[tuple[str, str], int]:
    rows = found.host_costs.arrow().to_pylist()
    return {(row["host"], row["counter"]): row["value"] for row in rows if row["cell"] == cell}


def timers_without_end(found: tcpknee.Result, cell: int) -> int:
    """Pacing timers that were set and neither fired nor were taken back, or the other way round."""
    costs = costs_of(found, cell)
    arms, fires, cancels = (costs["sender", f"pacing_timer_{what}"] for what in ("arms", "fires", "cancels"))
    # One may be set when the interval begins or ends.
    return max(abs(arms - fires - cancels) - 1, 0)


def test_a_lab_that_is_not_measured_has_empty_tables(tmp_path: Path) -> None:
    text = 'duration = "300ms"\n[path]\nrate = "10Mbit/s"\nrtt = "4ms"\n[[flow]]\nalgorithm = "cubic"\n'
    found = tcpknee.run(text, out=tmp_path / "run", engine="kernel")
    assert len(found.host_costs) == len(found.stacks) == 0
    assert "measure" not in found.meta


def test_a_repetition_that_is_refused_says_why_and_nothing_else(tmp_path: Path) -> None:
    probes.need_tracepoint("net_dev_queue")
    scenario = tmp_path / "refused.toml"
    scenario.write_text(
        'duration = "1s"\n[path]\nrate = "10Mbit/s"\nrtt = "4ms"\n[[flow]]\nalgorithm = "cubic"\nblocking = true\n'
    )
    words = ["run", str(scenario), "--engine", "kernel", "--measure", "packets", "--out", str(tmp_path / "run"), "-q"]
    refused = subprocess.run([sys.executable, "-m", "tcpknee", *words], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert len(refused.stderr.strip().splitlines()) == 1 and "blocking" in refused.stderr


RUN_NS = 500_000_000
"""Processor time that a process is to have while it is looked at: a busy machine takes longer to give it."""


def run_ns(pid: int) -> int:
    """Processor time of a process with one thread so far, as the scheduler counts it."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def stacks_of(program: str, folder: Path) -> tuple[profile.Profile, int, int]:
    """A profile of the stacks of Python with that program, its PID and what it had of the processors meanwhile."""
    words = [sys.executable, "-c", f"print(flush=True)\n{program}"]
    stop, had = threading.Event(), []
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()

            def look(_: float) -> None:
                had.append(run_ns(process.pid))
                if had[-1] - had[0] >= RUN_NS:
                    stop.set()

            found = profile.take(
                folder,
                seconds=CHECKED_SEC,
                pid=process.pid,
                chosen=["stacks"],
                stop=stop,
                progress=look,
                ending=lambda: had.append(run_ns(process.pid)),
            )
        finally:
            process.kill()
    return found, process.pid, had[-1] - had[0]


def test_a_program_that_spins_is_what_its_stacks_show(tmp_path: Path) -> None:
    found, pid, ran_ns = stacks_of("while True: pass", tmp_path / "spin")
    rows = found.rows("stacks")
    assert rows and all(row["stack"].startswith("python") for row in rows)
    # The ticks that fell on it; those of a processor that the machine itself lost for a while are missing.
    assert 20 < sum(row["samples"] for row in rows) <= ran_ns / 1e9 * profile.STACKS_HZ * 1.3
    assert found.classes["user"] > 0.5 * sum(found.classes.values())
    assert found.about["idle_samples"] == 0
    (thread,) = [row for row in found.rows("threads") if row["run_ns"] > 20e6]
    assert thread["pid"] == pid and thread["user_us"] > 0


READ = "import os\nzero = os.open('/dev/zero', 0)\nwhile True: os.read(zero, 1 << 23)"


@pytest.mark.timed
def test_a_copy_shows_functions_of_the_kernel_by_name(tmp_path: Path) -> None:
    found, _, _ = stacks_of(READ, tmp_path / "copy")
    frames = {frame for row in found.rows("stacks") for frame in row["stack"].split(";")}
    assert "vfs_read_[k]" in frames and any(frame.startswith("do_syscall_64") for frame in frames)
    assert found.about["lost_samples"] == 0


def test_nothing_stays_in_the_kernel_when_it_is_killed(tmp_path: Path) -> None:
    probes.need_programs("bpftool")
    words = [sys.executable, "-m", "tcpknee", "profile", "--out", str(tmp_path / "killed"), "-q"]
    process = subprocess.Popen(words)
    try:
        until(lambda: {"host_send", "stack_sample"} <= set(programs_of(process.pid).values()), "it profiles")
        ours = programs_of(process.pid)
    finally:
        process.kill()
        process.wait()
    until(lambda: not ours.keys() & programs().keys(), "its programs are gone")
    assert not (tmp_path / "killed").exists()


def test_without_privileges_one_error_says_what_is_missing_and_what_can_be_had(tmp_path: Path) -> None:
    probes.need_programs("setpriv")
    probes.need_root("giving capabilities away")
    # Without CAP_SYSLOG addresses of the kernel are hidden too, which is not what is missing.
    few = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin,-syslog", "--inh-caps=-all"]
    words = [*few, sys.executable, "-m", "tcpknee", "profile", "--for", "200ms", "-q", "--out"]
    refused = subprocess.run([*words, str(tmp_path / "a")], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "CAP_PERFMON, CAP_BPF" in refused.stderr and "--no-bpf" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1 and not (tmp_path / "a").exists()
    plain = subprocess.run([*words, str(tmp_path / "b"), "--no-bpf"], capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    assert "context_switches" in plain.stdout
