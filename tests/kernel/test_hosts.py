"""Hosts of a lab with nothing between them: a veth pair, and what runs on which processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import probes
from direct import HEAD, as_ordinary_user, run, tried
from tcpknee.runs.results import Run


@pytest.mark.parametrize("algorithm", ["cubic", "bbr1"])
def test_hosts_joined_directly_carry_more_than_a_gigabit(tmp_path: Path, algorithm: str) -> None:
    if algorithm == "bbr1":
        probes.need_algorithm("bbr")
    found = run(tmp_path, f'{HEAD}[[flow]]\nalgorithm = "{algorithm}"\n')
    flow = found.flows.arrow().to_pylist()[0]
    assert flow["goodput_bits_per_sec"] > 1e9
    assert flow["min_rtt_us"] < 1_000
    data, back = found.links.arrow().to_pylist()
    assert (data["backend"], back["backend"]) == ("veth", "veth")
    assert data["forwarded_bytes"] > flow["bytes_read"] > 0
    assert 0 < back["forwarded_pkts"] < data["forwarded_pkts"]
    assert data["asked_rate_bits_per_sec"] is None
    assert found.queue.arrow().num_rows == 0


def steered(mask: str) -> str:
    """A flow whose far host has no GRO, so that each packet that arrives is handed to a processor by itself."""
    return f"""\
{HEAD}[sender]
app_cpus = "0"
[receiver]
app_cpus = "1"
gro = false
rps_cpus = "{mask}"
[[flow]]
algorithm = "cubic"
[[expect]]
assert = "total.softirq_share_of_busiest_cpu >= 50%"
"""


def softirq_share(run: Run, name: str) -> float:
    """What a processor has of all softirq time, over the whole run."""
    rows = [row for row in run.cpu_time.arrow().to_pylist() if row["softirq_us"] is not None]
    last = {row["name"]: row["softirq_us"] for row in sorted(rows, key=lambda row: row["t_ns"])}
    return float(last[name] / sum(last.values()))


def woken(cpu: int) -> int:
    """How often other processors have handed a batch of packets to this one so far, where it had none left
    (Linux, net/core/net-procfs.c, received_rps)."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return int(lines[cpu].split()[9], 16)


@pytest.mark.timed
@pytest.mark.alone
def test_rps_moves_the_receivers_softirq_to_the_processor_of_its_mask(tmp_path: Path) -> None:
    probes.need_root("steering packets")
    probes.need_processors(2)
    shares, wakes = {}, {}
    for mask in ("0", "2"):
        (tmp_path / mask).mkdir()
        before = woken(1)
        found = run(tmp_path / mask, steered(mask))
        wakes[mask] = woken(1) - before
        shares[mask] = softirq_share(found, "cpu1")
        (lab,) = found.meta["labs"]
        assert lab["receiver"]["nic"] == ({} if mask == "0" else {"queues/rx-0/rps_cpus": "2"})
        assert (lab["sender"]["app_cpus"], lab["receiver"]["app_cpus"]) == ("0", "1")
        assert found.expectations[0].verdict == "holds"
    assert wakes["0"] == 0 < wakes["2"]
    assert shares["2"] > shares["0"] + 0.1, shares


def test_applications_run_on_their_processors_alone(tmp_path: Path) -> None:
    probes.need_processors(2)
    text = f"""{HEAD}[sender]
app_cpus = "1"
[receiver]
app_cpus = "0"
[[flow]]
workload = "programs"
algorithm = "cubic"
client = "grep Cpus_allowed_list: /proc/self/status"
"""
    found = run(tmp_path, text)
    (row,) = found.programs.arrow().to_pylist()
    assert (tmp_path / "out" / row["output"]).read_text().split() == ["Cpus_allowed_list:", "0"]


def test_queues_and_polling_are_those_of_the_scenario(tmp_path: Path) -> None:
    probes.need_root("steering packets")
    text = f"""{HEAD}[receiver]
queues = 2
rps_cpus = "1"
gro_flush_timeout = "20us"
napi_defer_hard_irqs = 2
threaded_napi = true
[[flow]]
algorithm = "cubic"
"""
    found = run(tmp_path, text)
    (lab,) = found.meta["labs"]
    assert lab["receiver"]["queues"] == 2
    assert lab["receiver"]["nic"] == {
        "gro_flush_timeout": "20000",
        "napi_defer_hard_irqs": "2",
        "queues/rx-0/rps_cpus": "1",
        "queues/rx-1/rps_cpus": "1",
        "threaded": "1",
    }


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('app_cpus = "8191"', 'sender.app_cpus = "8191" is asked for; this kernel has the processors 0'),
        ('rps_cpus = "80000000,00000000"', "Name some of those."),
        ("queues = 2", "sender.queues = 2 is asked for; this kernel has one queue for the TUN device"),
        ("threaded_napi = true", "does not poll the TUN device"),
        ("rps_sock_flow_entries = 4096", "(net.core.rps_sock_flow_entries). Allow it for the time of the run with"),
    ],
)
def test_what_this_machine_has_not_is_refused_before_anything_runs(tmp_path: Path, keys: str, said: str) -> None:
    path = '[path]\nbackend = "user"\nrate = "9Mbit/s"\nrtt = "9ms"\n'
    ran = tried(tmp_path, f'duration = "1s"\n{path}[sender]\n{keys}\n[[flow]]\nalgorithm = "cubic"\n')
    assert ran.returncode == 2
    assert said in ran.stderr, ran.stderr
    assert not list(tmp_path.glob("out/*.parquet"))


def test_an_ordinary_user_joins_hosts_and_polls_them_but_does_not_steer(tmp_path: Path) -> None:
    probes.need_user_namespaces()
    flow = '[[flow]]\nalgorithm = "reno"\n'
    polled = f'{HEAD}[receiver]\napp_cpus = "0"\nqueues = 2\nthreaded_napi = true\n{flow}'
    ran = as_ordinary_user(tmp_path / "polled", polled)
    assert ran.returncode == 0, ran.stderr
    ran = as_ordinary_user(tmp_path / "steered", f'{HEAD}[receiver]\nrps_cpus = "1"\n{flow}')
    assert ran.returncode == 2
    assert "rps_cpus = 1 is asked for; this kernel does not let a lab's device have it" in ran.stderr
    assert "Run as root, or leave it out." in ran.stderr


@pytest.mark.timed
def test_the_user_space_link_can_be_without_rate_and_length(tmp_path: Path) -> None:
    found = run(tmp_path, HEAD.replace('"veth"', '"user"') + '[[flow]]\nalgorithm = "cubic"\n')
    (flow,) = flows(found)
    assert flow["min_rtt_us"] < 1_000 and flow["goodput_bits_per_sec"] > 1e9
    assert {row["backend"] for row in found.links.arrow().to_pylist()} == {"user"}


def flows(run: Run, cell: int = 0) -> list[dict[str, Any]]:
    return [row for row in run.flows.arrow().to_pylist() if row["cell"] == cell]


@pytest.mark.timed
def test_each_message_of_a_transaction_is_a_write_and_a_segment(tmp_path: Path) -> None:
    text = f"""{HEAD}[[flow]]
algorithm = "cubic"
workload = "request-response"
request = "100B"
response = "100B"
"""
    (flow,) = flows(run(tmp_path, text))
    assert flow["requests"] > 1_000
    assert flow["bytes_read"] <= 100 * flow["writes"] <= flow["bytes_read"] + 100
    # What was under way at the last sample.
    assert flow["data_segs_out"] == pytest.approx(flow["writes"], rel=0.05)


def test_bulk_data_is_written_in_calls_of_the_asked_size(tmp_path: Path) -> None:
    found = run(tmp_path, f'{HEAD}[[flow]]\nalgorithm = "cubic"\nwrite = ["1024B", "1MiB"]\n')
    for cell, asked, least in ((0, 1_024, 0.95), (1, 1 << 20, 0.3)):
        (flow,) = flows(found, cell)
        # A long write finds the send buffer partly full, and takes two calls or three; a short one seldom does.
        mean = flow["bytes_acked"] / flow["writes"]
        assert least * asked < mean <= asked, f"{mean} of {asked}"


@pytest.mark.timed
def test_server_computes_for_one_request_at_a_time_in_each_thread(tmp_path: Path) -> None:
    probes.need_processors(2)
    text = f"""{HEAD}[[flow]]
algorithm = "cubic"
workload = "request-response"
connections = 4
service_time = "500us"
threads = [1, 2]
client_threads = 2
"""
    found = run(tmp_path, text)
    per_sec = [sum(flow["requests_per_sec"] for flow in flows(found, cell)) for cell in (0, 1)]
    assert 200 < per_sec[0] <= 2_000 * 1.01
    assert per_sec[0] < per_sec[1] <= 4_000 * 1.01
    threads = {row["name"] for row in found.cpu_time.arrow().to_pylist() if row["cell"] == 1}
    assert {"sender/main", "sender/1", "receiver/main", "receiver/1"} <= threads
    assert {flow["requests"] > 0 for flow in flows(found, 1)} == {True}


@pytest.mark.timed
@pytest.mark.parametrize("size", [128, 32])
def test_small_writes_arrive_whole_and_reads_are_timed(tmp_path: Path, size: int) -> None:
    text = f"""{HEAD}[[flow]]
algorithm = "cubic"
workload = "small-writes"
write = "{size}B"
"""
    (flow,) = flows(run(tmp_path, text.replace('warmup = "500ms"', "")))
    assert flow["bytes_read"] == flow["transfer_bytes"] == 4_096 * size
    assert 4_096 <= flow["writes"] <= 4_150
    assert 0 < flow["completion_us"] < 2_000_000
    assert 0 < flow["reads"] <= 4_096
    assert size * 0.99 <= flow["read_bytes_p50"] <= flow["read_bytes_p99"]
    assert flow["read_bytes_p99"] * flow["reads"] >= flow["bytes_read"]
    assert flow["read_gap_us_p50"] <= flow["read_gap_us_p99"]


def test_a_program_that_is_missing_is_told_with_the_package_that_has_it(tmp_path: Path) -> None:
    probes.need_lab()
    text = f'{HEAD}[[flow]]\nworkload = "programs"\nalgorithm = "cubic"\nclient = "/nowhere/netperf -H {{server}}"\n'
    ran = tried(tmp_path, text)
    assert ran.returncode == 2
    assert '"/nowhere/netperf" is not installed, or not in PATH (Debian: netperf, in non-free)' in ran.stderr
