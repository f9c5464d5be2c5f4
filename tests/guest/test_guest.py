"""The engine guest, on a kernel that is built for it: `make test-guest`."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tcpknee
from tcpknee.errors import EngineError, KernelUnsupported, UsageError
from tcpknee.kernels import building, cache, guest
from tcpknee.runs.progress import Phase

NOBODY = 65_534
RUNS = int(os.environ.get("RUNS", "3"))
KILLS = int(os.environ.get("KILLS", "2"))
VERSION = os.environ.get("KERNEL", "6.12")
PATH = 'rate = "20Mbit/s"\nrtt = "40ms"\nbuffer = "1bdp"'


@pytest.fixture(scope="session")
def kernel() -> cache.Kernel:
    """The kernel, built where it is not there yet."""
    try:
        return cache.find(VERSION)
    except KernelUnsupported:
        return building.add(VERSION, phase=lambda title: Phase(title, lines=True))


def scenario(algorithms: str, more: str = "", seconds: int = 8) -> str:
    return f'duration = "{seconds}s"\nwarmup = "2s"\n[path]\n{PATH}\n{more}[[flow]]\nalgorithm = {algorithms}\n'


def processes_of(program: Path) -> list[int]:
    """Those that run that program."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "exe").resolve() == program:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.glob("*.parquet") if path.name != "runs.parquet"}


def test_packets_of_a_guest_are_captured_and_the_same_again(kernel: cache.Kernel, tmp_path: Path) -> None:
    asked = {"engine": "guest", "kernel": kernel.name, "capture": "4MB"}
    for out in ("first", "second"):
        tcpknee.run(scenario('"cubic"', seconds=3), out=tmp_path / out, **asked)
    assert tcpknee.open(tmp_path / "first").packets.arrow().num_rows > 5_000
    assert tables(tmp_path / "first") == tables(tmp_path / "second")


def test_a_guest_has_no_processor_time_and_its_run_can_be_gone_on_with(kernel: cache.Kernel, tmp_path: Path) -> None:
    """Nothing takes time there, and 0 would be a figure."""
    asked = {"engine": "guest", "kernel": kernel.name, "out": tmp_path / "run"}
    run = tcpknee.run(scenario('"cubic"', 'backend = "user"\n', seconds=3), **asked)
    assert tcpknee.open(tmp_path / "run").cpu_time.arrow().num_rows == 0
    assert set(tcpknee.open(tmp_path / "run").links.arrow()["cpu_pct"].to_pylist()) == {None}
    before = tables(tmp_path / "run")
    again = tcpknee.run(None, out=tmp_path / "run", engine="guest", resume=True)
    assert again.meta["repetitions"] == run.meta["repetitions"] and tables(tmp_path / "run") == before


REPEATED = {
    "losses": scenario('"bbr1"', 'loss = "0.5%"\n', seconds=3),
    "pie": scenario('"reno"', 'queue = "pie"\npie.tupdate = "20ms"\n', seconds=3).replace('"1bdp"', '"200packets"'),
    "two flows and jitter": scenario('"cubic"', 'jitter = "1ms"\n', seconds=3) + '[[flow]]\nalgorithm = "bbr1"\n',
    "our link": scenario('"cubic"', 'backend = "user"\nloss = "1%"\n', seconds=3).replace("20Mbit", "5Mbit"),
    "web": scenario('"cubic"', seconds=3) + '[[flow]]\nalgorithm = "cubic"\nworkload = "web"\nload = "5Mbit/s"\n',
}


@pytest.mark.parametrize("name", REPEATED)
def test_the_same_seed_gives_the_same_tables_on_a_busy_machine(kernel: cache.Kernel, tmp_path: Path, name: str) -> None:
    """RUNS of each scenario: 40 are the two hundred of docs/kernels.md."""
    tcpknee.run(REPEATED[name], out=tmp_path / "first", engine="guest", kernel=kernel.name, workers=1)
    first = tables(tmp_path / "first")
    assert {"flows.parquet", "samples.parquet"} <= set(first)
    # In the way of a guest, and less of who else works here.
    spins = ["nice", "-n", "10", sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(spins) for _ in range(os.cpu_count() or 1)]
    try:
        for run in range(1, RUNS):
            out = tmp_path / str(run)
            tcpknee.run(REPEATED[name], out=out, engine="guest", kernel=kernel.name, workers=1)
            assert tables(out) == first, f"run {run}"
            shutil.rmtree(out)
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.mark.parametrize("text", [REPEATED["losses"], scenario('"cubic"', seconds=3)], ids=["losses", "clock's phase"])
def test_chance_comes_from_the_seed(kernel: cache.Kernel, tmp_path: Path, text: str) -> None:
    """Where nothing else is random, a run begins at another time after a tick."""
    for seed in (1, 2):
        tcpknee.run(f"seed = {seed}\n{text}", out=tmp_path / str(seed), engine="guest", kernel=kernel.name)
    assert tables(tmp_path / "1") != tables(tmp_path / "2")


def test_a_guest_agrees_with_the_simulator(kernel: cache.Kernel) -> None:
    text = scenario('["reno", "cubic", "bbr1"]', seconds=20)
    guest = tcpknee.run(text, engine="guest", kernel=kernel.name)
    simulated = tcpknee.run(text)
    for there, here in zip(guest.flows.arrow().to_pylist(), simulated.flows.arrow().to_pylist(), strict=True):
        assert there["goodput_bits_per_sec"] == pytest.approx(here["goodput_bits_per_sec"], rel=0.03)
        # Small packets of the handshake have a full packet's time on the link there: 600 us at this rate, 24 us here.
        assert 0 <= there["min_rtt_us"] - here["min_rtt_us"] <= 600


def test_an_ordinary_user_boots_it(kernel: cache.Kernel) -> None:
    """Where root's files are an unknown user's, setuid programs of the host do what they can without the bit."""
    if os.geteuid() != 0:
        pytest.skip("all tests of this file are an ordinary user's then")
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "linux"
        shutil.copy(kernel.program, program)
        for path in (Path(place), program):
            path.chmod(0o755)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(0 if "cubic" in guest.algorithms(program) else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_engines_and_kernels_stand_in_one_table(kernel: cache.Kernel, tmp_path: Path) -> None:
    words = ["compare", "cubic", "--kernel", kernel.name, "--engine", "sim,guest,kernel", "--duration", "3s", "-q"]
    words += ["--rate", "10Mbit/s", "--repeat", "1", "--out", str(tmp_path / "out")]
    found = subprocess.run(
        [sys.executable, "-m", "tcpknee", *words], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    rows = [
        line.split("  ")[1] for line in found.stdout.splitlines() if line.startswith(("  sim", "  guest", "  kernel"))
    ]
    assert rows[:2] == [f"sim, rules of {kernel.name}", f"guest {kernel.name}"]
    assert rows[2].startswith("kernel Linux ")


@pytest.mark.parametrize(
    "queue",
    [
        'queue = "cake"\ncake.bandwidth = "20Mbit/s"',
        'queue = "red"\nred.min = "30kB"\nred.max = "90kB"\nred.burst = 50',
        'queue = "pie"\npie.tupdate = "20ms"\npie.target = "10ms"\npie.ecn = true',
        'queue = "fq_codel"\nfq_codel.ce_threshold = "1ms"\nfq_codel.flows = 16',
        'policer_rate = "10Mbit/s"\npolicer_burst = "60kB"',
    ],
)
def test_queues_are_the_kernels_own(kernel: cache.Kernel, queue: str) -> None:
    """And fill the path as the simulator's do."""
    text = scenario('"cubic"', f"{queue}\n", seconds=6).replace('"1bdp"', '"400packets"')
    guest = tcpknee.run(text, engine="guest", kernel=kernel.name)
    assert set(guest.links.arrow()["backend"].to_pylist()) == {"netem"}
    [there], [here] = (run.flows.arrow().to_pylist() for run in (guest, tcpknee.run(text, kernel=kernel.name)))
    assert there["goodput_bits_per_sec"] == pytest.approx(here["goodput_bits_per_sec"], rel=0.1)
    if "policer" in queue:
        [row] = guest.queue.arrow().to_pylist()[-1:]
        assert 0.9 * there["total_retrans"] < row["dropped_pkts"] <= there["total_retrans"] + 10


def test_time_in_a_guest_is_exact(kernel: cache.Kernel) -> None:
    found = tcpknee.run(scenario('"cubic"'), engine="guest", kernel=kernel.name)
    (flow,) = found.flows.arrow().to_pylist()
    assert 40_000 <= flow["min_rtt_us"] < 40_700


def test_an_algorithm_that_the_kernel_lacks_is_refused_by_name(kernel: cache.Kernel) -> None:
    with pytest.raises(KernelUnsupported, match=rf"bbr3; the guest kernel {kernel.name} has bbr, "):
        tcpknee.run(scenario('"bbr3"'), engine="guest", kernel=kernel.name)


def test_parameters_of_the_kernels_algorithms_are_set_and_others_refused(kernel: cache.Kernel) -> None:
    """Without HyStart CUBIC's slow start ends in a loss."""
    text = scenario('"cubic"', seconds=4) + "cubic.hystart = {}\n"
    lost = [
        tcpknee.run(text.format(value), engine="guest", kernel=kernel.name).flows.arrow()["total_retrans"][0].as_py()
        for value in (3, 0)
    ]
    assert lost[1] > 5 * lost[0] + 20
    with pytest.raises(
        KernelUnsupported, match="sets hystart of cubic to a value that Linux's own has no parameter for"
    ):
        tcpknee.run(text.format(4), engine="guest", kernel=kernel.name)
    apart = text.format(0) + '[[flow]]\nalgorithm = "cubic"\n'
    with pytest.raises(KernelUnsupported, match="a kernel has one value of each"):
        tcpknee.run(apart, engine="guest", kernel=kernel.name)


def of_ours(place: Path) -> dict[int, str]:
    """Processes whose temporary files are in that folder, and what each runs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"TMPDIR={place}\0".encode() in (entry / "environ").read_bytes() + b"\0":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def until(holds: Callable[[], object], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def first_of(pids: set[int]) -> int:
    """The one that is no other's child. Of a guest's processes that is the kernel or what contains it; those of its own
    programs, as which the host shows them with the same words, may have smaller numbers where these have come round."""

    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])

    return next(pid for pid in pids if parent(pid) not in pids)


WHO = {"front": " run ", "between": "tcpknee.runs.guest ", "guest": "time-travel=inf-cpu"}
"""Whose command has which words."""


@pytest.mark.parametrize("which", WHO)
def test_who_is_killed_leaves_nothing(kernel: cache.Kernel, tmp_path: Path, which: str) -> None:
    """KILLS times, at any time of a run: no process, no mount, no temporary file, and a cache as before."""
    place, file = tmp_path / "tmp", tmp_path / "long.toml"
    place.mkdir()
    file.write_text(scenario('"cubic"', seconds=600))
    words = ["-m", "tcpknee", "run", str(file), "--engine", "guest", "--kernel", kernel.name, "-q", "--force"]
    before = hashlib.sha256(kernel.program.read_bytes()).digest(), sorted(cache.home().iterdir()), mounts()
    chance = random.Random(which)
    for number in range(KILLS):
        front = subprocess.Popen(
            [sys.executable, *words, "--out", str(tmp_path / "out")],
            env={**os.environ, "TMPDIR": str(place)},
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        until(lambda: any(WHO[which] in said for said in of_ours(place).values()), f"no {which} came")
        time.sleep(4 * chance.random())
        os.kill(first_of({pid for pid, said in of_ours(place).items() if WHO[which] in said}), signal.SIGKILL)
        _, said = front.communicate(timeout=120)
        assert front.returncode == (-signal.SIGKILL if which == "front" else 2), said
        if which == "guest":
            assert "the guest kernel ended before its work was done" in said
        until(lambda: not of_ours(place), f"kill {number}: processes are left")
        until(lambda: not list(place.iterdir()), f"kill {number}: files are left")
    assert before == (hashlib.sha256(kernel.program.read_bytes()).digest(), sorted(cache.home().iterdir()), mounts())
    assert cache.find(kernel.name) == kernel


def mounts() -> list[str]:
    """Of this host, by their places."""
    return sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())


def objects(home: Path) -> int:
    """How many a build has compiled. What a build takes away meanwhile is no error to `find`."""
    return subprocess.run(["find", home, "-name", "*.o"], capture_output=True, check=False).stdout.count(b"\n")


def test_a_builder_that_is_killed_leaves_a_whole_cache_and_goes_on(tmp_path: Path) -> None:
    """KILLS times in a build of its own, each time after it has compiled something more: no kernel is there, no
    process, no temporary file, and what was compiled stays."""
    place, home = tmp_path / "tmp", tmp_path / "cache"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place), "XDG_CACHE_HOME": str(home)}
    command = [sys.executable, "-m", "tcpknee", "kernel"]
    chance, most_built = random.Random(1), 0
    for number in range(KILLS):
        builder = subprocess.Popen(
            [*command, "add", VERSION, "-q"], env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL
        )
        end = time.monotonic() + 900
        # Of the last, one per processor, each may be under way, and goes with its compiler.
        while objects(home) <= most_built + (os.cpu_count() or 1):
            assert builder.poll() is None and time.monotonic() < end, "it compiles nothing"
            time.sleep(0.1)
        time.sleep(4 * chance.random())
        builder.kill()
        builder.wait()
        until(lambda: not of_ours(place), f"kill {number}: processes are left")
        assert list(place.iterdir()) == [], f"kill {number}: files are left"
        listed = subprocess.run(
            [*command, "list"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert listed.stdout.startswith("No kernel "), f"a kernel is there before it is whole: {listed.stdout}"
        built = objects(home)
        assert built > most_built, "what was compiled is gone"
        most_built = built


def test_a_guest_that_dies_fails_its_repetition_by_name(kernel: cache.Kernel) -> None:
    """A program of the scenario asks the guest's kernel to panic."""
    text = scenario('"cubic"') + 'workload = "programs"\nclient = "sh -c \'echo c >/proc/sysrq-trigger\'"\n'
    with pytest.raises(EngineError, match=r"ended before its work was done.*sysrq"):
        tcpknee.run(text, engine="guest", kernel=kernel.name, programs_as_root=True)


def test_a_program_that_never_ends_in_virtual_time_is_given_up(
    kernel: cache.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcpknee.runs.guest.STILL_SEC", 8.0)
    text = scenario('"cubic"') + 'workload = "programs"\nclient = "sh -c \'while :; do :; done\'"\n'
    with pytest.raises(KernelUnsupported, match=r"the guest's time stands still: it said nothing for 8 s"):
        tcpknee.run(text, engine="guest", kernel=kernel.name)
    assert processes_of(kernel.program) == []


HALF = Path(__file__).with_name("tcp_half.c").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def with_modules(kernel: cache.Kernel) -> cache.Kernel:
    """The kernel with what a module of it takes, built anew where an older version left none."""
    if kernel.work:
        return kernel
    return building.add(VERSION, phase=lambda title: Phase(title, lines=True))


@pytest.mark.parametrize("more", ["", "if (!tcp_send_head(sk) && !tcp_wnd_end(tcp_sk(sk))) return 2; "])
def test_a_source_of_the_kernel_runs_in_the_guest_as_it_is(
    with_modules: cache.Kernel, tmp_path: Path, more: str
) -> None:
    """Also one that uses what the simulator does not have."""
    (tmp_path / "tcp_half.c").write_text(HALF.replace("return max(", f"{more}return max("))
    file = str(tmp_path / "tcp_half.c")
    text = scenario(f'["reno", "{file}"]', 'loss = "0.5%"\n')
    run = tcpknee.run(text, engine="guest", kernel=with_modules.name)
    # Who reads the clock takes a quarter of a microsecond there, and a module is loaded before.
    timed = ["t_ns", "srtt_us", "rttvar_us", "pacing_rate_bits_per_sec", "delivery_rate_bits_per_sec"]
    timed += ["last_data_sent_ms", "last_ack_recv_ms"]
    of_kernel, of_file = (run.rows("samples", cell=cell).drop(["cell", *timed]) for cell in (0, 1))
    assert of_file.equals(of_kernel), "it is Reno, under another name"
    # With its parameter it is none.
    (name,) = {row["algorithm"] for row in run.flows.arrow().to_pylist()} - {"reno"}
    other = tcpknee.run(f"{text}{name}.part = 8\n", engine="guest", kernel=with_modules.name)
    of_two, of_eight = (each.flows.arrow().to_pylist()[1]["goodput_bits_per_sec"] for each in (run, other))
    assert of_eight < of_two, "it keeps an eighth at a loss"


def test_a_file_stands_beside_itself_on_the_simulator(with_modules: cache.Kernel, tmp_path: Path) -> None:
    (tmp_path / "tcp_half.c").write_text(HALF)
    words = ["compare", "./tcp_half.c", "--alone", "--kernel", with_modules.name, "--engine", "sim,guest"]
    found = subprocess.run(
        [sys.executable, "-m", "tcpknee", *words, "--duration", "5s", "--repeat", "1", "-q", "--out", "out"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert f"sim, rules of {with_modules.name}" in found.stdout
    assert f"guest {with_modules.name}" in found.stdout


def test_what_goes_wrong_with_a_module_is_said_of_its_file(with_modules: cache.Kernel, tmp_path: Path) -> None:
    file = tmp_path / "tcp_half.c"
    text = scenario(f'"{file}"', seconds=4)
    crash = "if (tcp_snd_cwnd(tcp_sk(sk)) > 20) *(volatile int *)8 = 1; return 1U << 20;"
    file.write_text(HALF.replace("return max(", f"{crash} return max("))
    with pytest.raises(EngineError, match="the guest kernel ended before its work was done"):
        tcpknee.run(text.replace("[path]", '[path]\nloss = "1%"'), engine="guest", kernel=with_modules.name)
    file.write_text(
        HALF.replace("int __init half_register(void) {", "int __init half_register(void) { if (HZ) return -7;")
    )
    with pytest.raises(UsageError, match="registers no congestion control"):
        tcpknee.run(text, engine="guest", kernel=with_modules.name)
