"""Output of external programs: what is read from it, and what is said of a client that failed. The texts were printed
by the programs themselves (Redis 7.0.15, wrk 4.1, iperf3 3.12), cut to what matters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kneepoint.runs import columns, programs
from kneepoint.runs.programs import iperf3, redis_benchmark, wrk
from kneepoint.runs.programs.measured import Measured

CSV = """\
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","85836.91","0.308","0.088","0.295","0.407","0.735","1.871"
"GET","88495.58","0.291","0.072","0.287","0.351","0.423","1.951"
"""
PLAIN = """\
====== SET ======
  20000 requests completed in 0.23 seconds
  50 parallel clients
  3 bytes payload

Summary:
  throughput summary: 87719.30 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.300     0.096     0.295     0.399     0.583     1.055
"""
QUIET = (
    "\rSET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\r          \rSET: 87719.30 requests per second, "
    "p50=0.295 msec\n"
)
WRK = """\
Running 1s test @ http://127.0.0.1:7998/csv.txt
  1 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.75ms    2.47ms  24.02ms   85.31%
    Req/Sec     1.08k   182.41     1.34k    60.00%
  Latency Distribution
     50%    3.15ms
     75%    4.47ms
     90%    6.38ms
     99%   14.97ms
  1075 requests in 1.00s, 453.70KB read
Requests/sec:   1072.10
Transfer/sec:    452.47KB
"""


def test_redis_benchmark_is_read_in_all_its_formats() -> None:
    of_set = Measured(85836.91, 295.0, 407.0, 735.0)
    assert redis_benchmark.parse("".join(CSV.splitlines(keepends=True)[:2])) == of_set
    assert redis_benchmark.parse(PLAIN) == Measured(87719.3, 295.0, 399.0, 583.0)
    assert redis_benchmark.parse(QUIET) == Measured(87719.3, 295.0)
    assert redis_benchmark.parse('"SET","101010.10"\n') == Measured(101010.1)


def test_several_tests_of_as_many_requests_are_one_rate_over_all() -> None:
    """20000 requests at 85836.91/s and as many at 88495.58/s: 40000 in the sum of both times."""
    found = redis_benchmark.parse(CSV)
    assert found.requests_per_sec == pytest.approx(40000 / (20000 / 85836.91 + 20000 / 88495.58))
    assert found.latency_us_p95 == pytest.approx((407 + 351) / 2)


def test_wrk_is_read_with_its_units() -> None:
    assert wrk.parse(WRK) == Measured(1072.1, 3150.0, None, 14970.0)
    slow = WRK.replace("3.15ms", "850.00us").replace("14.97ms", "1.05s")
    assert wrk.parse(slow) == Measured(1072.1, 850.0, None, 1.05e6)


def test_iperf3_is_read_at_the_receiving_side() -> None:
    text = json.dumps({"end": {"sum_sent": {"bits_per_second": 9.9e6}, "sum_received": {"bits_per_second": 9.5e6}}})
    assert iperf3.parse(text) == Measured(goodput_bits_per_sec=9.5e6)


@pytest.mark.parametrize("module", programs.PROGRAMS, ids=lambda module: module.command)
@pytest.mark.parametrize("text", ["", "Connection refused\n", "{}", '"a","b"\n', "Totals\n", "[1, 2]"])
def test_text_that_says_nothing_gives_nothing(module: Any, text: str) -> None:
    assert module.parse(text) == Measured()


@pytest.mark.parametrize("module", programs.PROGRAMS, ids=lambda module: module.command)
def test_a_program_is_found_also_behind_others(module: Any) -> None:
    for command in ("{} -n 1", "/usr/bin/{} -x", "taskset -c 1 {}", "sh -c '{} | cat'"):
        assert programs.find(command.format(module.command)) is module


def test_a_program_that_nobody_knows_is_none() -> None:
    assert programs.find("curl http://10.77.0.1/redis-benchmark.txt") is None


def row(role: str, command: str, output: str, code: int | None = 0, signal: int | None = None) -> dict[str, Any]:
    return {"role": role, "command": command, "output": output, "exit_code": code, "signal": signal}


def test_what_clients_printed_becomes_columns_of_programs(tmp_path: Path) -> None:
    (tmp_path / "client.txt").write_text(PLAIN)
    (tmp_path / "server.txt").write_text(PLAIN)
    rows = [row("server", "redis-server", "server.txt"), row("client", "redis-benchmark -n 20000", "client.txt")]
    table, failures = programs.read(pa.Table.from_pylist(rows), tmp_path)
    assert table["requests_per_sec"].to_pylist() == [None, 87719.3]
    assert table["latency_us_p95"].to_pylist() == [None, 399.0]
    assert failures == []
    added = [table.schema.field(column["name"]) for column in columns.of_programs()]
    assert all(field.metadata[b"doc"] and field.metadata[b"source"] for field in added)


def test_a_client_that_failed_is_told_with_its_code_and_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("".join(f"line {i}\n" for i in range(20)) + "Connection refused\n")
    table = pa.Table.from_pylist([row("client", "curl x", "c.txt", code=7), row("server", "s", "s.txt", code=1)])
    _, [failure] = programs.read(table, tmp_path)
    assert "`curl x` ended with exit code 7" in failure
    assert "line 19 / Connection refused" in failure and "line 15" not in failure
    assert "output/c.txt" in failure


def test_a_client_that_was_not_done_in_time_is_told_so(tmp_path: Path) -> None:
    _, [failure] = programs.read(pa.Table.from_pylist([row("client", "c", "c.txt", None, 15)]), tmp_path)
    assert "signal 15, because it was not done when the duration was over" in failure
    assert "It printed nothing." in failure


def test_every_program_file_is_listed() -> None:
    folder = Path(programs.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "measured"}
    assert files == {module.__name__.rsplit(".", 1)[-1] for module in programs.PROGRAMS}
