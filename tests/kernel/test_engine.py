"""The kernel engine end to end, through the command line: the same scenario on both engines, as root and as an ordinary
user, with programs of the scenario's own, and what is said when those fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import probes
import punctual
import tcpknee
from lab import available
from tcpknee.algorithms import outline
from tcpknee.runs import tables
from waiting import PATIENCE_SEC

DEMO = """\
title = "The demo's path, shorter and slower"
duration = "6s"
warmup = "2s"
repeat = 2
[path]
rate = "20Mbit/s"
rtt = "40ms"
[[flow]]
algorithm = ["cubic", "reno", "bbr1"]
"""

REDIS = """\
title = "Redis"
duration = "20s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = ["cubic", "bbr1"]
workload = "programs"
server = "redis-server --bind {server} --port 5201 --protected-mode no --save '' --appendonly no"
client = "redis-benchmark -h {server} -p 5201 -t set,get -n 2000 -c 10 --csv"
"""

HOPS = """\
title = "Two hops"
duration = "6s"
warmup = "2s"
repeat = 1
[[hop]]
rate = "20Mbit/s"
rtt = "10ms"
[[hop]]
rate = "5Mbit/s"
rtt = "20ms"
[[flow]]
name = "alone_both"
algorithm = "cubic"
workload = "transfer"
bytes = "10kB"
[[flow]]
name = "alone_first"
algorithm = "cubic"
hops = "1"
workload = "transfer"
bytes = "10kB"
start = "400ms"
[[flow]]
name = "alone_second"
algorithm = "cubic"
hops = "2"
workload = "transfer"
bytes = "10kB"
start = "800ms"
[[flow]]
name = "both"
algorithm = "cubic"
start = "1200ms"
[[flow]]
name = "first"
algorithm = "cubic"
hops = "1"
start = "1200ms"
[[flow]]
name = "second"
algorithm = "cubic"
hops = "2"
start = "1200ms"
"""

PROGRAMS = """\
title = "A client of one line"
duration = "5s"
repeat = 1
[path]
rate = "50Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
workload = "programs"
client = "sh -c 'echo to {server}; CLIENT'"
"""

PARAMETERS = """\
title = "A parameter set in the kernel"
duration = "8s"
warmup = "3s"
repeat = 1
[path]
rate = "20Mbit/s"
rtt = "40ms"
buffer = "0.2bdp"
[[flow]]
algorithm = "reno"
reno.beta = [0.3, 0.9]
"""

PACED = """\
title = "A paced flow beside one that is not"
duration = "2s"
repeat = 1
[path]
rate = "20Mbit/s"
rtt = "20ms"
buffer = "1bdp"
[sender]
pacing = "HOST"
[[flow]]
algorithm = "cubic"
pacing = "FLOW"
[[flow]]
algorithm = "cubic"
"""

USERS = ("root", "nobody")


@dataclass(frozen=True)
class User:
    """Who runs `knee`, and a folder of theirs."""

    name: str
    folder: Path


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest, tmp_path: Path) -> User:
    """Root, and an ordinary user."""
    if request.param == "root":
        probes.need_root("root's case")
        return User("root", tmp_path)
    probes.need_user_namespaces()
    if os.geteuid() != 0:
        return User("ordinary", tmp_path)
    return User("nobody", probes.folder_of_nobody(tmp_path))


def scenario(folder: Path, text: str) -> str:
    (folder / "scenario.toml").write_text(text)
    return "scenario.toml"


def knee(*words: str, cwd: Path, user: str = "root") -> subprocess.CompletedProcess[str]:
    """`knee` to its end, as the user nobody or as who runs this."""
    python = probes.as_nobody() if user == "nobody" else [sys.executable]
    return subprocess.run(
        [*python, "-m", "tcpknee", *words],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "120", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SEC,
        check=False,
    )


def in_lab(*words: str, cwd: Path, user: str = "root", code: int = 0) -> subprocess.CompletedProcess[str]:
    """`knee … --engine kernel`."""
    probes.need_lab()
    ended = knee(*words, "--engine", "kernel", cwd=cwd, user=user)
    assert ended.returncode == code, ended.stderr + ended.stdout
    return ended


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_parameters_of_a_flow_are_set_in_the_kernel(tmp_path: Path) -> None:
    """Reno that keeps 90 % of its window at a loss fills the path; one that keeps 30 % lets it idle."""
    probes.need_struct_ops()
    in_lab("run", scenario(tmp_path, PARAMETERS), "--out", "out", cwd=tmp_path)
    low, high = (row["goodput_bits_per_sec"] for row in tcpknee.open(tmp_path / "out").flows.arrow().to_pylist())
    assert low < 0.85 * 20e6
    assert high > 1.1 * low
    lab = json.loads((tmp_path / "out/run.json").read_text())["labs"][0]
    ours = lab["algorithms"]
    assert set(ours) == {"cubic", "reno(beta = 307)", "reno(beta = 922)"}
    assert all(name.endswith("_reno") for variant, name in ours.items() if variant != "cubic")
    assert not set(ours.values()) - {"cubic"} & set(available())


@pytest.mark.slow("it is in real time")
def test_a_flow_is_paced_by_itself_where_the_lab_can(tmp_path: Path) -> None:
    def file(host: str, flow: str) -> str:
        return scenario(tmp_path, PACED.replace("HOST", host).replace("FLOW", flow))

    in_lab("run", file("internal", "timer"), "--out", "out", cwd=tmp_path)
    rows = tcpknee.open(tmp_path / "out").flows.arrow().to_pylist()
    assert all(row["goodput_bits_per_sec"] > 1e6 for row in rows)
    refused = in_lab("run", file("internal", "fq"), "--out", "fq", cwd=tmp_path, code=2).stderr
    assert 'flow.0.pacing = "fq"; this kernel has one qdisc for all flows' in refused, refused
    assert 'flow.pacing = "timer"' in refused, refused
    refused = in_lab("run", file("fq", "internal"), "--out", "no", cwd=tmp_path, code=2).stderr
    assert 'flow.0.pacing = "internal"; this kernel paces every flow of a host whose qdisc is fq' in refused, refused


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_the_demo_runs_on_both_engines_and_fills_the_same_tables(user: User) -> None:
    if user.name != "root":
        probes.need_algorithm("bbr")  # only root can load ours
    repeat = 2 if user.name == "root" else 1
    file = scenario(user.folder, DEMO.replace("repeat = 2", f"repeat = {repeat}"))
    with punctual.beside() as machine:
        in_lab("run", file, "--out", "kernel", cwd=user.folder, user=user.name)
    assert knee("run", file, "--out", "sim", cwd=user.folder, user=user.name).returncode == 0
    kernel, sim = tcpknee.open(user.folder / "kernel"), tcpknee.open(user.folder / "sim")
    for name in tables.of_engine("sim"):
        own, common = kernel.table(name), sim.table(name)
        assert own.columns[: len(common.columns)] == common.columns, name
        # What hosts spend is measured and simulated where it is asked for.
        assert len(own) > 0 or name in {"events", "host_costs"}, name
    assert len(kernel.links) == 2 * 3 * repeat
    assert {row["name"] for row in kernel.cpu_time.arrow().to_pylist()} >= {"cpu0"}
    # Three algorithms that fill a link without loss: what it carries is its rate less the headers, on both engines.
    for real, virtual in zip(kernel.summary.groups, sim.summary.groups, strict=True):
        assert real.algorithm == virtual.algorithm
        measured, expected = (g.metrics["goodput_bits_per_sec"].mean for g in (real, virtual))
        if measured != pytest.approx(expected, rel=0.1):
            links = [row for row in kernel.links.arrow().to_pylist() if row["cell"] == real.cell]
            said = f"{real.algorithm}: {measured} beside {expected}; wake-ups {machine.late_us:.0f} us late, "
            said += f"{machine.waited_share:.0%} of the time without a processor; {links}"
            # The machine is to blame only where it added a quarter of the round trip to the path.
            late_us = max(row["added_delay_us_p99"] for row in links)
            waits = user.name != "root" and machine.is_contended
            if late_us > 10_000 and (machine.excuses(late_us) or waits):
                pytest.skip(f"the machine held the link up. {said}")
            pytest.fail(said)
        assert real.metrics["min_rtt_us"].mean == pytest.approx(40_000, rel=0.05)
    lab = kernel.meta["labs"][0]
    assert lab["rootless"] is (user.name != "root")
    assert lab["kernel"] == os.uname().release


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_compare_runs_on_the_kernel(tmp_path: Path) -> None:
    words = ("compare", "cubic", "reno", "bbr1", "--rate", "20Mbit/s", "--rtt", "20ms", "--duration", "3s")
    ended = in_lab(*words, "--repeat", "2", "--json", cwd=tmp_path)
    assert "in real time, about 27 s" in ended.stderr
    cells = json.loads(ended.stdout)["cells"]
    assert [cell["algorithm"] for cell in cells] == ["cubic", "reno", "bbr1"]
    assert {cell["engine"] for cell in cells} == {"kernel"}
    assert all(cell["metrics"]["goodput_bits_per_sec"]["mean"] > 15e6 for cell in cells)


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_a_run_ends_by_its_budget_with_whole_blocks(tmp_path: Path) -> None:
    text = 'duration = "300ms"\nrepeat = 3\n[path]\nrate = "20Mbit/s"\nrtt = "10ms"\n[[flow]]\n'
    scenario = tmp_path / "s.toml"
    scenario.write_text(text + 'algorithm = ["cubic", "reno"]\n')
    run = tcpknee.run(scenario, engine="kernel", out=tmp_path / "run", budget="1h,1kB")
    expected = {"until_decided": False, "budget": "1h,1kB", "pause": "", "by": "bytes", "blocks": 1}
    assert run.meta["ending"] == expected
    assert [(entry["cell"], entry["rep"]) for entry in run.meta["repetitions"]] == [(0, 0), (1, 0)]
    assert run.complete


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_flows_cross_their_own_hops_of_a_path_of_two(tmp_path: Path) -> None:
    in_lab("run", scenario(tmp_path, HOPS), "--out", "run", cwd=tmp_path)
    run = tcpknee.open(tmp_path / "run")
    flows = {row["name"]: row for row in run.flows.arrow().to_pylist()}
    # Base RTTs are those of the hops crossed, told by transfers that met no queue.
    assert 30_000 <= flows["alone_both"]["min_rtt_us"] < 34_000
    assert 20_000 <= flows["alone_second"]["min_rtt_us"] < 24_000
    assert 10_000 <= flows["alone_first"]["min_rtt_us"] < 13_000
    # The far hop's link is shared by two.
    shared = flows["both"]["goodput_bits_per_sec"] + flows["second"]["goodput_bits_per_sec"]
    assert 0.85 * 5e6 < shared / 0.965 < 1.01 * 5e6
    queue = run.queue.to_pandas()
    assert set(queue["hop"]) == {0, 1}
    last = queue.sort_values("t_ns").groupby("hop").last()
    # What the first hop sends besides is the first flow's, which ends there.
    assert last["sent_pkts"][0] > last["sent_pkts"][1]


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_redis_tells_its_requests_per_second_with_cubic_and_bbr1(tmp_path: Path) -> None:
    probes.need_programs("redis-server", "redis-benchmark")
    ended = in_lab("run", scenario(tmp_path, REDIS), "--out", "run", "--json", cwd=tmp_path)
    cells = json.loads(ended.stdout)["cells"]
    assert [cell["algorithm"] for cell in cells] == ["cubic", "bbr1"]
    for cell in cells:
        # Ten clients, each with one request in 10 ms at best.
        assert 300 < cell["metrics"]["requests_per_sec"]["mean"] <= 1000
        assert cell["metrics"]["latency_us_p50"]["mean"] >= 10_000
    run = tcpknee.open(tmp_path / "run")
    assert run.programs["role"].to_pylist() == ["server", "client"] * 2
    for output in run.programs["output"].to_pylist():
        assert (tmp_path / "run" / output).is_file()


def test_the_output_of_programs_is_kept_and_their_exit_code_is_the_runs(tmp_path: Path) -> None:
    text = PROGRAMS.replace("CLIENT", "exit 0")
    in_lab("run", scenario(tmp_path, text), "--out", "good", cwd=tmp_path)
    [output] = tcpknee.open(tmp_path / "good").programs["output"].to_pylist()
    assert (tmp_path / "good" / output).read_text() == "to 10.77.0.1\n"
    text = PROGRAMS.replace("CLIENT", "echo cannot find it; exit 3")
    ended = in_lab("run", scenario(tmp_path, text), "--out", "bad", cwd=tmp_path, code=1)
    assert "failed: the client `sh -c " in ended.stdout
    assert "ended with exit code 3. It last printed: to 10.77.0.1 / cannot find it" in ended.stdout


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_our_builds_run_where_the_kernel_has_its_own_and_are_gone_afterwards(tmp_path: Path) -> None:
    probes.need_struct_ops()
    text = DEMO.replace('"6s"', '"2s"').replace('"2s"\nrepeat = 2', '"500ms"\nrepeat = 1')
    in_lab("run", scenario(tmp_path, text), "--bpf", "--out", "run", cwd=tmp_path)
    run = tcpknee.open(tmp_path / "run")
    ours = run.meta["labs"][0]["algorithms"]
    assert set(ours) == {"bbr1", "cubic", "reno"}
    assert all(called.endswith(f"_{name}") for name, called in ours.items())
    assert min(run.flows["goodput_bits_per_sec"].to_pylist()) > 15e6
    # Sockets that are closing hold a congestion control for a moment; none of ours may be chosen any more.
    assert not set(ours.values()) & set(available())


@pytest.mark.slow("it is in real time")
@pytest.mark.timed
def test_a_file_of_ones_own_runs_in_this_kernel_and_is_gone_afterwards(tmp_path: Path) -> None:
    probes.need_struct_ops()
    (tmp_path / "mine.c").write_text(outline.of("mine"), encoding="utf-8")
    text = DEMO.replace('"6s"', '"2s"').replace('"2s"\nrepeat = 2', '"500ms"\nrepeat = 1')
    text = text.replace('["cubic", "reno", "bbr1"]', '["reno", "./mine.c"]\nmine.beta = 0.7')
    in_lab("run", scenario(tmp_path, text), "--out", "run", cwd=tmp_path)
    run = tcpknee.open(tmp_path / "run")
    called = run.meta["labs"][-1]["algorithms"]
    assert {name.partition("(")[0] for name in called} == {"reno", "mine", "cubic"}
    assert min(run.flows["goodput_bits_per_sec"].to_pylist()) > 15e6
    of_file = {loaded for name, loaded in called.items() if name.startswith("mine")}
    assert all(loaded.endswith("_mine") for loaded in of_file) and not of_file & set(available())


def test_a_source_of_the_kernel_is_refused_by_this_kernel_with_what_runs_it(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "guest/tcp_half.c"
    (tmp_path / "tcp_half.c").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    ended = in_lab("compare", "./tcp_half.c", "--alone", "--duration", "1s", cwd=tmp_path, code=2)
    assert "got a source of the Linux kernel" in ended.stderr and "--engine guest --kernel 6.12" in ended.stderr
