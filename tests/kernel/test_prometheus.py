"""`knee export --prometheus` over connections whose ends this test knows."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

import exposition
from ends import exchange, listening
from tcpknee.cli import main
from waiting import PATIENCE_SEC, until

COMMAND = [sys.executable, "-m", "tcpknee", "export"]
NOTHING_YET = r"knee export: 0 sockets: of .* --port \d+ leaves out .*\. It goes on and counts those that come\.\n"
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"


@dataclass
class Exporter:
    process: subprocess.Popen[str]
    urls: list[str]
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = int(self.urls[0].split(":")[-1].split("/")[0])

    def get(self, url: str | None = None, **headers: str) -> tuple[str, str]:
        """Content type and text."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with urllib.request.urlopen(
            urllib.request.Request(url or self.urls[0], headers=named), timeout=PATIENCE_SEC
        ) as answer:
            body: bytes = answer.read()
            if answer.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            return answer.headers["Content-Type"], body.decode()

    def values(self, name: str, **labels: str) -> float:
        """The sum of the samples with these labels."""
        return sum(
            sample.value
            for family in text_string_to_metric_families(self.get()[1])
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def after(self, samples: int) -> None:
        """Waits until so many more samples were taken."""
        self.until("tcpknee_samples_total", self.values("tcpknee_samples_total") + samples)

    def until(self, name: str, least: float, **labels: str) -> None:
        """Waits until it is as much."""
        until(lambda: self.values(name, **labels) >= least, f"{name} is {least}")


@contextmanager
def exporting(*options: str) -> Iterator[Exporter]:
    """The exporter on a free port, after its first sample; SIGTERM must end it in order."""
    command = [*COMMAND, "--prometheus", ":0", "--every", "100ms", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("Metrics: http://127.0.0.1:"), process.stderr.read()
        yield Exporter(process, line.split()[1:])
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_SEC)
        assert (process.returncode, out) == (0, "")
        # Filters that hold for no socket when it begins are said to.
        assert not err or ("--port" in options and re.fullmatch(NOTHING_YET, err)), err
    finally:
        process.kill()
        process.communicate()


def test_an_exporter_whose_filter_holds_for_no_socket_says_so_and_goes_on() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--prometheus", ":0", "--address", "192.0.2.0/24"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with listening():
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Metrics: ")
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE_SEC)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert "--address 192.0.2.0/24 leaves out all" in err or "there is no TCP socket" in err


@pytest.fixture(scope="module")
def exporter() -> Iterator[tuple[Exporter, socket.socket]]:
    """One for the tests that only look, with connections under way."""
    with listening() as (listener, port), exporting("--by", f"port={port}") as exporter:
        ends = [exchange(listener, 100_000) for _ in range(5)]
        exporter.after(2)
        yield exporter, listener
        for near, far in ends:
            near.close()
            far.close()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command says when it exits with 2."""

    def call(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["knee", "export", *options])
        with pytest.raises(SystemExit, match="2"):
            main()
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        return said.err

    return call


def test_every_byte_is_counted_once_also_of_connections_that_no_sample_saw() -> None:
    with listening() as (listener, port), exporting("--port", str(port), "--by", f"port={port}") as exporter:
        kept = [exchange(listener, 1_000) for _ in range(3)]
        sizes = [1_000] * 3
        for number in range(200):
            near, far = exchange(listener, 1 + number)
            sizes.append(1 + number)
            # A FIN that comes more than a delayed ACK after the end was closed finds no socket that counts it.
            near.shutdown(socket.SHUT_WR)
            assert far.recv(1) == b""
            far.close()
            assert near.recv(1) == b""
            near.close()
        exporter.until("tcpknee_tcp_closed_connections_total", 400)
        for near, far in kept:
            near.sendall(bytes(500))
            assert len(far.recv(500, socket.MSG_WAITALL)) == 500
            sizes.append(500)
        exporter.after(2)
        assert exporter.values("tcpknee_tcp_sent_bytes_total") == sum(sizes)
        # The kernel counts each FIN as a byte received.
        assert exporter.values("tcpknee_tcp_received_bytes_total") == sum(sizes) + 400
        # The end that was accepted has the port, and sent nothing.
        assert exporter.values("tcpknee_tcp_sent_bytes_total", local_port=str(port)) == 0
        assert exporter.values("tcpknee_tcp_sent_bytes_total", local_port="other") == sum(sizes)
        assert exporter.values("tcpknee_tcp_connections") == 6
        assert exporter.values("tcpknee_tcp_closed_connections_total") == 400
        for near, far in kept:
            near.close()
            far.close()
        exporter.until("tcpknee_tcp_closed_connections_total", 406)
        exporter.after(1)
        assert exporter.values("tcpknee_tcp_closed_connections_total") == 406
        assert exporter.values("tcpknee_tcp_sent_bytes_total") == sum(sizes)
        assert exporter.values("tcpknee_lost_events_total") == 0


def test_connections_are_told_apart_by_cgroup_and_process() -> None:
    comm = Path("/proc/self/comm").read_text().strip()
    [cgroup] = re.findall(r"^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.M) or [None]
    ways = [("process", comm)]
    if cgroup and Path("/sys/fs/cgroup", cgroup[1:]).is_dir():
        ways.append(("cgroup", cgroup))
    for name, value in ways:
        with (
            listening() as (listener, port),
            exporting("--port", str(port), "--by", f"{name}={value}") as exporter,
        ):
            near, far = exchange(listener, 1_000)
            # Both ends are ours. Who holds them is found in pieces of time, so one may be known before the other.
            wanted = {"tcpknee_tcp_sent_bytes_total": 1_000, "tcpknee_tcp_connections": 2}
            for counter, least in wanted.items():
                exporter.until(counter, least, **{name: value})
            assert exporter.values("tcpknee_tcp_connections", **{name: value}) == 2
            assert exporter.values("tcpknee_tcp_sent_bytes_total") == 1_000
            near.close()
            far.close()


def test_no_counter_goes_back_while_connections_come_and_go() -> None:
    def counted(exporter: Exporter) -> dict[tuple[str, str], float]:
        return {
            (sample.name, str(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(exporter.get()[1])
            if family.type in ("counter", "histogram")
            for sample in family.samples
        }

    with listening() as (listener, port), exporting("--port", str(port)) as exporter:
        before: dict[tuple[str, str], float] = {}
        for round_ in range(8):
            ends = [exchange(listener, 50_000) for _ in range(10)]
            if round_ % 2:
                time.sleep(0.12)
            for near, far in ends:
                near.close()
                far.close()
            after = counted(exporter)
            assert {name: value for name, value in before.items() if after[name] < value} == {}
            before = after


def test_what_is_told_keeps_prometheus_rules(exporter: tuple[Exporter, socket.socket]) -> None:
    content_type, text = exporter[0].get()
    assert content_type.startswith("text/plain; version=0.0.4")
    assert "tcpknee_tcp_srtt_seconds_bucket{" in text
    assert exposition.problems(text) == []
    if promtool := shutil.which("promtool"):
        checked = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_a_group_has_as_many_series_as_the_manual_says(exporter: tuple[Exporter, socket.socket]) -> None:
    groups: dict[tuple[str, str], int] = {}
    for family in text_string_to_metric_families(exporter[0].get()[1]):
        for sample in family.samples:
            if "algorithm" in sample.labels:
                group = sample.labels["algorithm"], sample.labels["local_port"]
                groups[group] = groups.get(group, 0) + 1
    manual = Path(__file__).parents[2] / "docs" / "observe.md"
    [said] = re.findall(r"has (\d+) series", manual.read_text(encoding="utf-8"))
    assert set(groups.values()) == {int(said)}
    assert len(groups) >= 2


def test_the_rules_find_what_breaks_them() -> None:
    broken = {
        "# TYPE a counter\na 1\n": "no help",
        "# HELP a_total x\n# TYPE a_total gauge\na_total 1\n": "_total is for counters",
        "# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1\n": "no base unit",
        "# HELP a x\n# TYPE a gauge\na 1\na 1\n": "told 2 times",
        '# HELP a x\n# TYPE a histogram\na_bucket{le="1.0"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n': "below it",
        '# HELP a x\n# TYPE a histogram\na_bucket{le="1.0"} 2\na_sum 1\na_count 2\n': "+Inf",
    }
    for text, said in broken.items():
        assert any(said in problem for problem in exposition.problems(text)), text


def test_both_formats_tell_the_same(exporter: tuple[Exporter, socket.socket]) -> None:
    def told(families: Iterator[Metric]) -> set[tuple[str, str, str]]:
        return {
            (family.type, sample.name, str(sorted(sample.labels.items())))
            for family in families
            for sample in family.samples
        }

    content_type, text = exporter[0].get(Accept=OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    assert "# UNIT tcpknee_tcp_srtt_seconds seconds\n" in text
    plain = told(text_string_to_metric_families(exporter[0].get()[1]))
    assert told(openmetrics(text)) == plain
    assert len(plain) > 200


def test_one_sample_is_the_same_answer_for_all_who_ask() -> None:
    with exporting("--every", "1h") as exporter:
        first = exporter.get()
        assert exporter.get(Accept_Encoding="gzip") == first
        for url in exporter.urls:
            assert exporter.get(url) == first
        assert exporter.values("tcpknee_samples_total") == 1
        # Ctrl-C is as good as SIGTERM, which comes after it.
        exporter.process.send_signal(signal.SIGINT)
        assert exporter.process.wait(timeout=PATIENCE_SEC) == 0


@pytest.mark.timed
def test_a_client_that_says_nothing_keeps_nobody_waiting(exporter: tuple[Exporter, socket.socket]) -> None:
    silent = [socket.create_connection(("127.0.0.1", exporter[0].port)) for _ in range(4)]
    began = time.monotonic()
    exporter[0].get()
    assert time.monotonic() - began < 5
    for one in silent:
        one.close()
    with pytest.raises(HTTPError, match="404"):
        exporter[0].get(exporter[0].urls[0].replace("/metrics", "/nothing"))


@pytest.mark.slow("a hundred scrapes ten times a second")
@pytest.mark.timed
def test_a_scrape_is_answered_at_once_whoever_else_dawdles() -> None:
    """500 clients send a byte every four seconds, 50 never read: the deadlines of all pass once and again meanwhile.

    An exporter without them is asked in turns: it takes what the machine takes. One of twenty scrapes may be later.
    """
    with exporting("--every", "1s") as exporter, exporting("--every", "1s") as deserted:
        dawdle = Path(__file__).with_name("dawdle.py")
        command = [sys.executable, str(dawdle), str(exporter.port), "500", "50"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crowd:
            try:
                assert crowd.stdout is not None and crowd.stdout.readline() == "there\n"
                took: list[float] = []
                by_itself: list[float] = []
                while len(took) < 100:
                    for asked, seconds in ((exporter, took), (deserted, by_itself)):
                        began = time.monotonic()
                        # Each must be answered: a refusal is an error here.
                        assert "tcpknee_build_info" in asked.get()[1]
                        seconds.append(time.monotonic() - began)
                    time.sleep(0.1)
                assert crowd.poll() is None
            finally:
                crowd.kill()
        took.sort()
        by_itself.sort()
        for name, seconds in (("among the crowd", took), ("without it", by_itself)):
            median, late, latest = (seconds[place] * 1e3 for place in (50, 95, -1))
            print(f"scrapes {name}: median {median:.1f} ms, 95th percentile {late:.1f} ms, {latest:.1f} ms")
        assert took[95] < by_itself[95] + 0.2, took


def test_it_listens_on_loopback_alone_unless_told(exporter: tuple[Exporter, socket.socket]) -> None:
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            address, port = line.split()[1].split(":")
            if int(port, 16) == exporter[0].port and line.split()[3] == "0A":
                found.add(address)
    loopback = {"0100007F", "00000000000000000000000001000000"}
    assert found and found <= loopback


def test_a_port_in_use_is_told_with_what_to_do(
    exporter: tuple[Exporter, socket.socket], refused: Callable[..., str]
) -> None:
    port = exporter[0].port
    said = refused("--prometheus", f":{port}")
    assert f"127.0.0.1:{port} is in use" in said and f":{port + 1}" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--prometheus", "example.org:9757"), "Names are not looked up"),
        (("--prometheus", "::1:9757"), '"[::1]:9757"'),
        (("--prometheus", ":70000"), '"[::]:9757"'),
        (("--prometheus", ":0", "--by", "user=root"), "process=nginx"),
        (("--prometheus", ":0", "--by", "port=" + ",".join(map(str, range(31)))), "30 values at most"),
        (("--prometheus", ":0", "--every", "1ms"), "100ms"),
        (("--prometheus", ":0", "--format", "csv"), "--format is for RUN"),
        (("runs/demo-1", "--port", "443"), "--port is for --prometheus"),
        (("runs/demo-1", "--out", "x"), "--format"),
        ((), "expected one of RUN, --prometheus, --grafana, --systemd"),
        (("--systemd", "/no/such/folder"), "is no folder"),
        (("--grafana", "/dev/null/x.json"), "/dev/null/x.json"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: tuple[str, ...], said: str, refused: Callable[..., str]) -> None:
    assert said in refused(*options)


def test_every_query_of_the_dashboard_asks_for_what_there_is(
    exporter: tuple[Exporter, socket.socket], tmp_path: Path
) -> None:
    subprocess.run(
        [*COMMAND, "--grafana", str(tmp_path / "x.json")], check=True, capture_output=True, timeout=PATIENCE_SEC
    )
    dashboard = json.loads((tmp_path / "x.json").read_text())
    there = exposition.sample_names(exporter[0].get()[1])
    labels = {"instance", "job", "le"} | set(re.findall(r'[{,](\w+)="', exporter[0].get()[1]))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    queries += [v["definition"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert len(queries) > 40
    for query in queries:
        asked = set(re.findall(r"\b(?:tcpknee|process)_\w+", query))
        assert asked and asked <= there, query
        assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", query)) <= labels, query
        for grouped in re.findall(r"(?:by|ignoring) \(([^)]*)\)", query):
            assert {label.strip() for label in grouped.split(",")} <= labels, query
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def test_units_hold_no_capability_and_systemd_understands_them(tmp_path: Path) -> None:
    subprocess.run([*COMMAND, "--systemd", str(tmp_path)], check=True, capture_output=True, timeout=PATIENCE_SEC)
    units = sorted(tmp_path.iterdir())
    assert [unit.name for unit in units] == ["knee-exporter.service", "knee-record.service"]
    command = Path(sys.executable).with_name("knee")
    for unit in units:
        text = unit.read_text()
        assert re.search(rf"^ExecStart={command} (export|record) ", text, re.M)
        assert re.search(r"^CapabilityBoundingSet=$", text, re.M)
        assert re.search(r"^DynamicUser=yes$", text, re.M)
        if not (analyze := shutil.which("systemd-analyze")):
            continue
        if not os.access(command, os.X_OK):
            unit.write_text(text.replace(str(command), "/bin/true"))
        # Whether the manual pages that it names are installed is no matter of the unit.
        words = [analyze, "verify", "--man=no", str(unit)]
        checked = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
