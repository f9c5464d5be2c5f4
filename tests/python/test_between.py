"""The engine hosts without a second host: names, what is refused, what a folder says of hosts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tcpknee
from tcpknee import host_files
from tcpknee.algorithms import outline
from tcpknee.cli import running
from tcpknee.cli.options import Options
from tcpknee.errors import EngineError, KernelUnsupported, MissingTable, RunFolderError, UsageError
from tcpknee.pages import engines_page, export, page, summary
from tcpknee.pages.figures import delay_goodput
from tcpknee.pages.run import ReportRun
from tcpknee.remote import helper, transport
from tcpknee.runs import api, between, between_text, far_settings, pool
from tcpknee.runs.folder import RunFolder
from tcpknee.runs.job import Job
from tcpknee.runs.pair import Pair

SHORT = """
title = "Between"
duration = "0.4s"
warmup = "0.1s"
repeat = 1
[path]
rate = "100Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "reno"
"""


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=x", "a b", "user@-x", "a;b", "$(x)", "", "a\nb", "ssh://-x", "'", "user@", "../x"]
)
def test_a_name_that_ssh_or_a_shell_would_take_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"--sender: got .*expected a host as ssh knows it"):
        transport.check_name("--sender", name)


@pytest.mark.parametrize(
    "name", ["local", "a", "user@a", "user@a.example.org", "ssh://user@a:2222", "user@[2001:db8::1]", "10.0.0.1"]
)
def test_a_name_that_ssh_knows_is_taken(name: str) -> None:
    assert transport.check_name("--sender", name) == name


def test_the_far_shell_gets_words_that_every_shell_hands_on() -> None:
    assert not set("'!\n\\") & set(transport._AS_ROOT + transport._TAKE)


@pytest.mark.parametrize(("root", "answers"), [("", True), ("/bin/false", False)])
def test_the_far_shell_leaves_no_folder_behind_whatever_becomes_of_the_program(
    tmp_path: Path, root: str, answers: bool
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    program = transport.program_for(os.uname().machine, "here").read_bytes()
    given = b"%d %s\n%s" % (len(program), hashlib.sha256(program).hexdigest().encode(), program)
    words = ["/bin/sh", "-c", f"word=; root={root}; {transport._TAKE}"]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "link")}
    asked = subprocess.run(words, input=given + b'{"ask": "ping", "n": 1}\n', capture_output=True, env=env)
    assert (b'"n":1' in asked.stdout, asked.returncode == 0) == (answers, answers)
    assert list((tmp_path / "real").iterdir()) == []


def test_what_a_killed_shell_left_of_a_copy_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    hour_ago = time.time() - 3600
    for name, files in (
        ("old0000000", ["knee-remote"]),
        ("young00000", ["knee-remote"]),
        ("more000000", ["knee-remote", "x"]),
    ):
        folder = tmp_path / f"tcpknee-{name}"
        folder.mkdir()
        for file in files:
            (folder / file).write_bytes(b"half")
        if name != "young00000":
            os.utime(folder, (hour_ago, hour_ago))
    (tmp_path / "tcpknee-link000000").symlink_to(tmp_path / "tcpknee-more000000")
    kept = ["tcpknee-link000000", "tcpknee-more000000", "tcpknee-young00000"]
    if os.geteuid() == 0:
        (other := tmp_path / "tcpknee-other00000").mkdir()
        (other / "knee-remote").write_bytes(b"half")
        os.utime(other, (hour_ago, hour_ago))
        os.chown(other, 65534, 65534)
        kept = sorted([*kept, other.name])
    words = ["/bin/sh", "-c", f"word=; root=/bin/false; {transport._TAKE}"]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    subprocess.run(words, input=b"0 x\n", capture_output=True, env=env)
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert len(list((tmp_path / "tcpknee-more000000").iterdir())) == 2


def test_a_processor_that_no_helper_is_for_is_named() -> None:
    with pytest.raises(EngineError, match="receiver b: its processor is of the kind 'vax'"):
        transport.program_for("vax", "receiver b")


def test_hosts_are_asked_for_and_their_options_belong_to_the_engine() -> None:
    with pytest.raises(UsageError, match="--receiver: got none with the engine hosts"):
        Pair.of(Pair("local", ""))
    with pytest.raises(UsageError, match="--address: got 'b'; expected an IP address"):
        Pair.of(Pair("local", "b", "b"))
    with pytest.raises(UsageError, match=r"hosts: got them with the engine sim; expected .*--engine hosts"):
        tcpknee.run(SHORT, hosts=("local", "local"))
    with pytest.raises(UsageError, match="hosts: got 'local'; expected two"):
        tcpknee.run(SHORT, engine="hosts", hosts="local")
    with pytest.raises(UsageError, match="workers: got 2 with the engine hosts"):
        tcpknee.run(SHORT, engine="hosts", hosts=("local", "local"), workers=2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('workload = "programs"\nclient = "true"', 'flow.0.workload = "programs" without a server'),
        (
            'workload = "programs"\nserver = "true"\nclient = "true"\nrcvbuf = "1MiB"',
            'flow.0.rcvbuf with workload = "programs"',
        ),
        ("blocking = true", "flow.0.blocking = true"),
        ('pacing = "fq"', 'flow.0.pacing = "fq"'),
    ],
)
def test_what_is_the_hosts_own_is_refused(line: str, said: str) -> None:
    with pytest.raises(KernelUnsupported, match=said):
        tcpknee.run(SHORT + line + "\n", engine="hosts", hosts=("local", "local"))


def test_a_helper_ends_with_its_standard_input_and_takes_its_folder_away(tmp_path: Path) -> None:
    program = transport.program_for(os.uname().machine, "here")
    folder = tmp_path / "private"
    folder.mkdir()
    own = folder / "knee-remote"
    own.write_bytes(program.read_bytes())
    own.chmod(0o700)
    asked = subprocess.run([own, folder], input='{"ask": "ping", "n": 1}\nnonsense\n', capture_output=True, text=True)
    assert '"n":1' in asked.stdout
    assert "does not understand" in asked.stdout
    assert asked.returncode == 0
    assert not folder.exists()


def test_a_host_that_ssh_cannot_reach_is_told_in_the_words_of_ssh(tmp_path: Path) -> None:
    scenario = tmp_path / "a.toml"
    scenario.write_text(SHORT, encoding="utf-8")
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'Host key verification failed.' >&2\nexit 255\n", encoding="utf-8")
    ssh.chmod(0o700)
    words = ["run", scenario, "--engine", "hosts", "--sender", "local", "--receiver", "u@b", "--out", tmp_path / "o"]
    found = subprocess.run(
        [sys.executable, "-m", "tcpknee", *words],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 2
    assert "receiver u@b: the connection by ssh is not there (Host key verification failed.)" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_shell_that_runs_no_command_is_told_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'This account is currently not available.'\nexit 1\n", encoding="utf-8")
    ssh.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(EngineError) as refused:
        transport.Connection("u@b", "receiver u@b")
    assert "ended with exit code 1 before any command (This account is currently not available.)" in str(refused.value)
    assert "nologin" in str(refused.value) and "host key" not in str(refused.value)


def test_resume_is_advised_only_where_something_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lock(pair: tuple[helper.Helper, helper.Helper]) -> None:
        raise pair[0].late(20)

    monkeypatch.setattr(between, "lock", lock)
    with pytest.raises(EngineError, match="sender local: did not answer") as ended:
        tcpknee.run(SHORT, engine="hosts", hosts=("local", "local"), out=tmp_path / "run")
    assert "--resume" not in str(ended.value)
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(RunFolder, "parts", lambda _: {(0, 0)})
    monkeypatch.setattr(RunFolder, "merge", lambda *_: {})
    monkeypatch.setattr(api.manifest, "repetitions", lambda *_: {})
    with pytest.raises(EngineError, match=r"very slow\. What was finished is kept; go on with --resume\."):
        tcpknee.run(SHORT, engine="hosts", hosts=("local", "local"), out=tmp_path / "run")


def test_a_run_between_hosts_does_not_say_that_it_loads_something(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []

    class Watching(pool.Watcher):
        def phase(self, title: str) -> AbstractContextManager[object]:
            said.append(title)
            return nullcontext()

    def lock(pair: tuple[helper.Helper, helper.Helper]) -> None:
        raise pair[0].late(20)

    monkeypatch.setattr(between, "lock", lock)
    with pytest.raises(EngineError, match="did not answer"):
        tcpknee.run(SHORT, engine="hosts", hosts=("local", "local"), watcher=Watching())
    assert said == ["Connecting to the hosts"]


def test_a_page_of_a_killed_run_between_hosts_says_that_they_are_named_again(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run", "interrupted")
    (folder / "flows.parquet").unlink()
    with pytest.raises(MissingTable, match=r"--resume --out .* with its hosts and their options named again"):
        tcpknee.open(folder).flows.arrow()


def begun(folder: Path, status: str, **hosts: object) -> Path:
    """A run's folder that says it was made between these hosts."""
    tcpknee.run(SHORT, out=folder)
    file = folder / "run.json"
    meta = json.loads(file.read_text(encoding="utf-8"))
    names = {"sender": "evil", "receiver": "local", "address": None, "port": 0, "netem": False, "programs": False}
    meta |= {"engine": "hosts", "status": status, "hosts": {**names, "allow_host_settings": False, **hosts}}
    file.write_text(json.dumps(meta), encoding="utf-8")
    return folder


def test_a_folder_decides_neither_where_ssh_connects_nor_what_root_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[object] = []

    def connect(*words: object, **_: object) -> None:
        connected.append(words)
        raise EngineError("connected")

    monkeypatch.setattr(helper, "Connection", connect)
    folder = begun(tmp_path / "run", "interrupted", netem=True, sender="evil\n")
    with pytest.raises(UsageError, match=r"got no hosts; .*--sender evil\\n --receiver local --netem\.$"):
        tcpknee.run(out=folder, resume=True)
    for given in (Pair("a", "local", netem=True), Pair("evil", "local")):
        with pytest.raises(RunFolderError, match="--resume: got --engine hosts --sender"):
            tcpknee.run(out=folder, resume=True, hosts=given)
    assert not connected


def test_settings_of_hosts_are_the_same_in_all_of_a_run(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run", "interrupted", sender="local", allow_host_settings=True)
    with pytest.raises(RunFolderError, match=r"was begun with --engine hosts .* --allow-host-settings"):
        tcpknee.run(out=folder, resume=True, hosts=("local", "local"))


def test_a_run_that_is_complete_needs_no_hosts_to_be_taken_up(tmp_path: Path) -> None:
    assert tcpknee.run(out=begun(tmp_path / "run", "complete"), resume=True).meta["engine"] == "hosts"


def test_of_several_engines_each_has_the_options_that_are_for_it() -> None:
    """And what is for none of them is refused."""
    pair = {"sender": "local", "receiver": "local", "port": 7000, "netem": True, "allow_programs": True}
    all_ = Options(engine="sim,kernel,hosts", pause="1s", budget="5GB", allow_host_settings=True, bpf=True, **pair)
    of_engine = {one.engines[0]: one for one in all_.by_engine()}
    for name, one in of_engine.items():
        api.check_engine(name, **one.of_engine)
    assert not of_engine["sim"].ending and of_engine["kernel"].ending.pause_sec == 1
    assert of_engine["hosts"].of_engine["hosts"] == Pair("local", "local", port=7000, netem=True, programs=True)
    assert [name for name, one in of_engine.items() if one.allow_host_settings] == ["kernel", "hosts"]
    (refused, _) = Options(engine="sim,guest", netem=True).by_engine()
    with pytest.raises(UsageError, match="hosts: got them with the engine sim"):
        api.check_engine("sim", **refused.of_engine)


def test_what_goes_on_with_a_run_names_its_hosts() -> None:
    options = Options(sender="a", receiver="b", port=7000, netem=True, allow_programs=True, allow_host_settings=True)
    words = "knee run --allow-host-settings --sender a --receiver b --port 7000 --netem --allow-programs"
    assert running.again(options) == words.split()


def test_a_capture_is_for_engines_that_have_packets_and_has_a_size() -> None:
    with pytest.raises(UsageError, match="capture: got 1MB with the engine sim; expected one of kernel, guest, hosts"):
        tcpknee.run(SHORT, capture="1MB")
    for size in ("0", "10kB", "1GB", "1e999MB", "many"):
        with pytest.raises(UsageError, match=f'capture: got "{size}"; expected the memory for packets at each host'):
            tcpknee.run(SHORT, engine="kernel", capture=size)


def test_a_folder_does_not_decide_that_root_captures_at_hosts() -> None:
    options = Options(engine="hosts", sender="a", receiver="b", capture="1MB")
    assert running.again(options)[-2:] == ["--capture", "1MB"]
    assert "--capture" not in running.again(Options(engine="kernel", capture="1MB"))


def test_ports_beyond_the_last_one_are_refused() -> None:
    two = SHORT + '[[flow]]\nalgorithm = "cubic"\n'
    with pytest.raises(UsageError, match=r"--port: got 65535 for 2 \[\[flow\]\] tables .*expected 65534 at most"):
        tcpknee.run(two, engine="hosts", hosts=Pair("local", "local", port=65535))


def test_an_address_of_one_link_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"--address: got 'fe80::1%eth0', which is of one link alone"):
        Pair.of(Pair("local", "local", "fe80::1%eth0"))
    addresses = {"sender": "192.0.2.1", "receiver": "fe80::2%eth0"}
    with pytest.raises(EngineError, match=r"receiver b: got 'fe80::2%eth0' as its address; .* with --address"):
        between._check_addresses(addresses, Pair("local", "b"))


ASKS = SHORT.replace('algorithm = "reno"', 'algorithm = "reno"\nworkload = "request-response"\nresponse = "64KiB"')


def sender_address(address: str, text: str = ASKS, sender: str = "a", came_from: str = "198.51.100.1") -> str:
    """By which the receiver reaches the sender where `address` is named for data."""
    of = [(sender, ["203.0.113.1", "203.0.113.2"]), ("b", [came_from, "203.0.113.3"])]
    pair = [
        SimpleNamespace(role=role, name=name, where=f"{role} {name}", facts={"ssh": None if name == "local" else ssh})
        for role, (name, ssh) in zip(("sender", "receiver"), of, strict=True)
    ]
    named: Any = (*pair, Pair(sender, "b", address), {})
    return between.Hosts(Job(api.parse(text, "f.toml"), text, "f.toml"), *named).addresses["sender"]


def test_data_of_a_network_of_its_own_goes_there_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\nfor asked; do :; done\necho "Welcome to src 9"\n'
        '[ "$asked" = "ip -o route get 192.0.2.7" ] && echo "192.0.2.7 via 192.0.2.1 dev x src 192.0.2.3 uid 0"\n',
        encoding="utf-8",
    )
    ssh.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert sender_address("192.0.2.7") == "192.0.2.3"
    # A host that does not say it is not taken to have one network for all.
    with pytest.raises(EngineError, match=r"sender a: does not say .* reaches 192\.0\.2\.8 of --address.*HostName"):
        sender_address("192.0.2.8")
    assert sender_address("192.0.2.8", SHORT) == "203.0.113.2"


def test_this_machine_tells_its_own_address_of_a_data_network(monkeypatch: pytest.MonkeyPatch) -> None:
    assert transport.source_towards("local", "127.0.0.7") == "127.0.0.1"
    assert transport.source_towards("local", "nonsense") is None
    sources = {"192.0.2.7": "192.0.2.3", "203.0.113.3": "10.0.0.3"}
    monkeypatch.setattr(between, "source_towards", lambda _, address: sources[address])
    assert sender_address("192.0.2.7", sender="local") == "192.0.2.3"
    # Over the network of ssh: what translates addresses there leads back to the one that arrived.
    sources["192.0.2.7"] = "10.0.0.3"
    assert sender_address("192.0.2.7", sender="local", came_from="198.51.100.9") == "198.51.100.9"


@pytest.mark.parametrize(
    ("further", "words"),
    [
        ({"hosts": []}, "hosts: got"),
        ({"hosts": {"sender": 7}}, r"hosts\.sender: got 7"),
        ({"sessions": [{"started": "2026-01-01", "hosts": 7}]}, r"sessions\[0\]\.hosts: got 7"),
        ({"sessions": [{"started": "2026-01-01", "hosts": {"sender": {"held": [{}]}}}]}, r"sender\.held\[0\]\.setting"),
        ({"labs": [{"sender": 5}]}, r"labs\[0\]\.sender: got 5"),
        (
            {"labs": [{"sender": {"kernel": "6.1"}, "receiver": {"kernel": "6.1"}, "addresses": 5}]},
            r"labs\[0\]\.addresses: got 5",
        ),
        (
            {"repetitions": [{"cell": 0, "rep": 0, "measured": {}, "warnings": [], "failures": []}]},
            r"measured\.sender_clock_uncertainty_us",
        ),
    ],
)
def test_what_a_folder_says_of_hosts_is_checked(tmp_path: Path, further: dict[str, object], words: str) -> None:
    file = begun(tmp_path / "run", "complete") / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | further), encoding="utf-8")
    with pytest.raises(RunFolderError, match=words):
        tcpknee.open(file.parent)


@pytest.mark.parametrize(
    "files", [{"proc" + "/x" * 3000: ""}, {"proc/x": "", "proc/x/y": ""}, {"proc/" + "x" * 300: ""}, {"proc/../x": ""}]
)
def test_files_of_a_host_that_no_host_has_are_refused_and_end_no_finished_run(
    tmp_path: Path, files: dict[str, str]
) -> None:
    assert host_files.mistake(files)
    folder = begun(tmp_path / "run", "complete")
    told = {"format": "tcpknee-host-files", "version": 1, "taken_unix_ns": 1, "files": files}
    (folder / "sender.host.json").write_text(json.dumps(told), encoding="utf-8")
    (line,) = running._judged(tcpknee.open(folder))
    assert line.startswith("Warning: the doctor cannot judge the sender: files of a host: got the path")


@pytest.fixture
def in_one_rack(tmp_path: Path) -> tcpknee.Run:
    """A run between hosts that are 40 us apart, where the scenario expects 10 ms."""
    run = tcpknee.run(SHORT, out=tmp_path / "run")
    measured = {"path_rtt_us_least": 40.0, "path_rate_bits_per_sec": 95e6, "path_retransmit_pct": 9.7}
    for role in ("sender", "receiver"):
        measured |= {f"{role}_clock_uncertainty_us": 60.0, f"{role}_calendar_off_ms": 0.0}
    row = {"cell": 0, "rep": 0, "measured": measured, "warnings": [], "failures": []}
    hosts = {"sender": "a", "receiver": "b", "netem": False}
    pq.write_table(pa.table({"cell": pa.array([], pa.int32())}), tmp_path / "run/programs.parquet")
    return tcpknee.Run({**run.meta, "engine": "hosts", "hosts": hosts, "labs": [], "repetitions": [row]}, run.folder)


def test_a_report_has_the_path_that_was_found_and_the_warning_that_it_is_another(in_one_rack: tcpknee.Run) -> None:
    report = ReportRun.open(in_one_rack)
    heads, [row] = summary.table(report)
    assert row.values[[heading for heading, _ in heads].index("Base RTT")].text == "0.0400"
    found, other = summary.warnings(report)[:2]
    assert found.startswith("Between a and b · round trip without load 40.0 us")
    assert "of payload alone, 9.7 % sent again · clocks" in found
    assert other.startswith("the path is another than expected: its round trip without load takes 40.0 us")
    assert "The path as the scenario expects it; nothing of it is applied" in page.render(report)
    rule = json.dumps(export.spec(report, delay_goodput))
    assert '"rtt": 0.04' in rule and '"rtt": 10.0' not in rule


NETEM = """
duration = "300ms"
repeat = 1
[path]
rate = "80Mbit/s"
rtt = ["10ms", "40ms"]
loss = ["0%", "1%"]
[[flow]]
algorithm = "reno"
"""


def with_netem(tmp_path: Path, rtts_ms: tuple[float, float], rate: float = 75e6) -> tcpknee.Run:
    """A run whose hosts make its paths, with the round trips that were found where 10 and 40 ms are asked for."""
    run = tcpknee.run(NETEM, out=tmp_path / "run")
    rows = []
    for cell in run.meta["cells"]:
        axes = dict(cell["axes"])
        rtt_ms = rtts_ms[axes["path.rtt"] == "40ms"]
        found = {
            "path_rtt_us_least": rtt_ms * 1e3,
            "path_rate_bits_per_sec": 9e6 if axes["path.loss"] == "1%" else rate,
        }
        for role in ("sender", "receiver"):
            found |= {f"{role}_clock_uncertainty_us": 60.0, f"{role}_calendar_off_ms": 0.0}
        rows.append({"cell": cell["index"], "rep": 0, "measured": found, "warnings": [], "failures": []})
    hosts = {"sender": "a", "receiver": "b", "netem": True}
    pq.write_table(pa.table({"cell": pa.array([], pa.int32())}), tmp_path / "run/programs.parquet")
    return tcpknee.Run({**run.meta, "engine": "hosts", "hosts": hosts, "labs": [], "repetitions": rows}, run.folder)


@pytest.mark.parametrize(
    ("rtts_ms", "rate", "said"),
    [
        ((10.5, 40.5), 75e6, []),
        ((30.0, 60.0), 75e6, ["between the hosts takes 20.0 ms by itself, to which netem adds the scenario's: where "]),
        (
            (10.0, 15.0),
            75e6,
            ["another than expected: its round trip without load takes 15.0 ms where path.rtt = 40.0"],
        ),
        ((10.0, 40.0), 20e6, ["another than expected: its rate is 20.7 Mbit/s where path.rate = 80.0 Mbit/s."]),
    ],
)
def test_a_path_that_netem_makes_is_judged_by_its_own_cells(
    tmp_path: Path, rtts_ms: tuple[float, float], rate: float, said: list[str]
) -> None:
    run = with_netem(tmp_path, rtts_ms, rate)
    told = list(between_text.warnings(run.meta))
    assert len(told) == len(said) and all(words in line for words, line in zip(said, told, strict=True)), told
    assert sorted(set(ReportRun.open(run).base_rtts_ms.values())) == sorted(rtts_ms)


def test_two_names_of_one_machine_are_told(in_one_rack: tcpknee.Run) -> None:
    def told(sender: str) -> str:
        labs = [{"addresses": {"sender": sender, "receiver": "192.0.2.2"}}]
        return "\n".join(between_text.lines({**in_one_rack.meta, "labs": labs}))

    assert "Warning: sender a and receiver b are one machine, by one address" in told("192.0.2.2")
    assert "one machine" not in told("192.0.2.1")


def test_beside_another_engine_the_path_that_was_found_is_told_too(
    in_one_rack: tcpknee.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [tcpknee.run(SHORT), in_one_rack]
    running.show_beside(runs, Options(engine="sim,hosts", quiet=True), first=True)
    told = capsys.readouterr().out
    assert "Between a and b · round trip without load 40.0 us" in told
    assert "Warning: hosts: the path is another than expected: its round trip without load takes 40.0 us" in told
    assert "the path is another than expected" in engines_page.render(runs)


def names_at(
    tmp_path: Path, algorithms: str, role: str, available: str, uid: int = 1000, further: str = ""
) -> dict[str, str]:
    """What a host that has these calls the algorithms of a scenario."""
    file = tmp_path / "s.toml"
    file.write_text(SHORT.replace('"reno"', algorithms) + further, encoding="utf-8")
    facts = {"kernel": "6.1.0", "available": available.split(), "allowed": available.split(), "uid": uid}
    one: Any = SimpleNamespace(role=role, where=f"{role} a", facts=facts)
    text = file.read_text(encoding="utf-8")
    return between._names(one, Job(api.parse(text, str(file)), text, str(file)))


def test_what_was_loaded_at_a_host_runs_where_its_kernel_has_no_build_of_its_own(tmp_path: Path) -> None:
    both = '["bbr1", "bbr3"]'
    assert names_at(tmp_path, both, "sender", "cubic bbr knee_bbr1 knee_bbr3")["bbr1"] == "bbr"
    assert names_at(tmp_path, both, "sender", "cubic knee_bbr1 knee_bbr3") | {"cubic": ""} == {
        "bbr1": "knee_bbr1",
        "bbr3": "knee_bbr3",
        "cubic": "",
    }
    # Only the sender must have what flows run.
    assert names_at(tmp_path, both, "receiver", "cubic")["bbr1"] == "bbr"
    with pytest.raises(KernelUnsupported, match=r'has no "bbr" loaded.*modprobe tcp_bbr, or knee load bbr1\.'):
        names_at(tmp_path, both, "sender", "cubic")
    # Root has the kernel load a module.
    assert names_at(tmp_path, '"bbr1"', "sender", "cubic", uid=0)["bbr1"] == "bbr"


def test_a_receiver_needs_no_algorithm_that_the_file_does_not_name(tmp_path: Path) -> None:
    assert names_at(tmp_path, '"reno"', "receiver", "reno bbr")
    named = '[receiver]\nalgorithm = "cubic"\n'
    with pytest.raises(KernelUnsupported, match=r'receiver a: receiver\.algorithm = "cubic": .* has no "cubic" loaded'):
        names_at(tmp_path, '"reno"', "receiver", "reno bbr", further=named)
    for further, given in (("", "bbr"), (named, "cubic")):
        text = SHORT + further
        hosts: Any = SimpleNamespace(
            job=(job := Job(api.parse(text, "f.toml"), text, "f.toml")),
            cells=job.scenario.cells,
            names={"sender": {"cubic": "cubic"}, "receiver": {"cubic": "cubic"}},
            host_settings=SimpleNamespace(default=lambda _: "bbr", receiver_says=far_settings.names_the_receivers(job)),
        )
        assert between.Hosts._called(hosts, "receiver", 0) == {"cubic": given}
        assert between.Hosts._called(hosts, "sender", 0) == {"cubic": "cubic"}


def test_what_a_host_keeps_for_root_is_allowed_by_one_command() -> None:
    facts = {"kernel": "6.1.0", "available": ["reno", "bbr"], "allowed": ["reno"], "uid": 1000}
    one: Any = SimpleNamespace(where="sender a", facts=facts)
    with pytest.raises(KernelUnsupported, match=r'sysctl -w net\.ipv4\.tcp_allowed_congestion_control="reno bbr"\.'):
        between._check_algorithm(one, "bbr", "flow.algorithm", "bbr1")


def test_a_file_runs_at_a_host_under_the_name_of_its_build_there(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(outline.of("mine"), encoding="utf-8")
    (tmp_path / "mine_too.c").write_text(outline.of("mine"), encoding="utf-8")
    source = Path(__file__).parents[1] / "guest/tcp_half.c"
    (tmp_path / "tcp_half.c").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    assert names_at(tmp_path, '"./mine.c"', "sender", "cubic knee_mine", uid=0)["mine"] == "knee_mine"
    # A module registers the name that it gives itself.
    assert names_at(tmp_path, '"./tcp_half.c"', "sender", "cubic reno") == {"cubic": "cubic", "reno_tcp_half": "reno"}
    with pytest.raises(KernelUnsupported, match=r'has no "knee_mine" loaded.*as root: knee load \S*mine\.c\.'):
        names_at(tmp_path, '"./mine.c"', "sender", "cubic mine", uid=0)
    with pytest.raises(UsageError, match=r'flow.algorithm: got .*, which are both "knee_mine" in a kernel'):
        names_at(tmp_path, '["./mine.c", "./mine_too.c"]', "sender", "cubic knee_mine")
