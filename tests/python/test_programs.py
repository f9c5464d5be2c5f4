"""Output of external programs: what is read from it, and what is said of a client that failed. The texts were printed
by the programs themselves (Redis 7.0.15, wrk 4.1, iperf3 3.12), cut to what matters; those of memtier_benchmark and
netperf are written after what their documentation and public reports show."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tcpknee import _core
from tcpknee.runs import programs
from tcpknee.runs.programs import iperf3, memtier_benchmark, netperf, redis_benchmark, wrk
from tcpknee.runs.programs.measured import Measured

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

MEMTIER = """\
Writing results to stdout
[RUN #1] Preparing benchmark client...
[RUN #1 100%,  10 secs]  0 threads:     1000000 ops,  100200 (avg:  100100) ops/sec, 7.36MB/sec

4         Threads
10        Connections per thread
10        Seconds


ALL STATS
============================================================================================================
Type         Ops/sec     Hits/sec   Misses/sec    Avg. Latency     p50 Latency     p99 Latency       KB/sec
------------------------------------------------------------------------------------------------------------
Sets        91000.25          ---          ---         0.39283         0.37500         0.68700      7000.00
Gets         9100.00      4000.00      5100.00         0.38283         0.36700         0.67900       350.00
Waits           0.00          ---          ---             ---             ---             ---          ---
Totals     100100.25      4000.00      5100.00         0.39183         0.37500         0.68700      7350.00
"""
MEMTIER_JSON = json.dumps(
    {
        "ALL STATS": {
            "Sets": {"Ops/sec": 91000.25},
            "Totals": {
                "Ops/sec": 100100.25,
                "Latency": 0.392,
                "Percentile Latencies": {
                    "p50.00": 0.375,
                    "p95.00": 0.551,
                    "p99.00": 0.687,
                    "Histogram log format": {"Compressed Histogram": "HISTFAAA"},
                },
            },
        }
    }
)
NETPERF_RR = """\
MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.77.0.1 () port 0 AF_INET : first burst 0
Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  131072 1        1       10.00    41234.56
16384  131072
"""
NETPERF_STREAM = """\
MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.77.0.1 () port 0 AF_INET
Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

131072  16384  16384    10.00    9388.50
"""
OMNI = """\
OMNI Send TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.77.0.1 () port 0 AF_INET
Throughput,Throughput Units,50th Percentile Latency Microseconds,99th Percentile Latency Microseconds
41234.56,Trans/s,23,61
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


def test_memtier_benchmark_is_read_from_its_table_and_its_json() -> None:
    assert memtier_benchmark.parse(MEMTIER) == Measured(100100.25, 375.0, None, 687.0)
    assert memtier_benchmark.parse(MEMTIER_JSON) == Measured(100100.25, 375.0, 551.0, 687.0)
    assert memtier_benchmark.parse(f"[RUN #1] Launching\n{MEMTIER_JSON}\n{MEMTIER}").latency_us_p95 == 551.0


def test_netperf_is_read_with_and_without_its_headings() -> None:
    transactions = Measured(requests_per_sec=41234.56)
    assert netperf.parse(NETPERF_RR) == transactions
    assert netperf.parse("\n".join(NETPERF_RR.splitlines()[-2:])) == transactions
    assert netperf.parse(NETPERF_STREAM) == Measured(goodput_bits_per_sec=9388.5e6)
    assert netperf.parse(NETPERF_STREAM.splitlines()[-1]) == Measured(goodput_bits_per_sec=9388.5e6)
    in_gigabits = NETPERF_STREAM.replace("10^6bits", "10^9bits").replace("9388.50", "9.39")
    assert netperf.parse(in_gigabits).goodput_bits_per_sec == pytest.approx(9.39e9)
    # netperf -f M, and a unit that it does not have.
    in_mebibytes = netperf.parse(NETPERF_STREAM.replace("10^6bits", "MBytes"))
    assert in_mebibytes == Measured(goodput_bits_per_sec=9388.5 * 8 * 2**20)
    assert netperf.parse(NETPERF_STREAM.replace("10^6bits", "TBytes")) == Measured()


@pytest.mark.parametrize(
    ("unit", "bits_per_sec"),
    [
        ("10^6bits/s", 117.5e6),
        ("MBytes  /s", 117.5 * 8 * 1024**2),
        ("GBytes  /s", 117.5 * 8 * 1024**3),
        ("TBytes  /s", None),
    ],
)
def test_netperf_with_processors_pads_its_unit(unit: str, bits_per_sec: float | None) -> None:
    """`netperf -c -C -f M`: `%-8.8s/s` of its source."""
    text = f"""MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.77.0.1 () port 0 AF_INET
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    {unit}  % S      % S      us/KB   us/KB

131072  16384   16384    10.00     117.50   1.05     2.01     0.700   1.300
"""
    assert netperf.parse(text).goodput_bits_per_sec == (bits_per_sec and pytest.approx(bits_per_sec))


def test_netperfs_omni_tests_are_read_as_csv_and_as_keywords() -> None:
    assert netperf.parse(OMNI) == Measured(41234.56, 23.0, None, 61.0)
    assert netperf.parse("41234.56,Trans/s\n") == Measured(41234.56)
    assert netperf.parse("9388.50,10^6bits/s\n") == Measured(goodput_bits_per_sec=9388.5e6)
    keywords = "THROUGHPUT=41234.56\nTHROUGHPUT_UNITS=Trans/s\nP50_LATENCY=23\nP99_LATENCY=61\n"
    assert netperf.parse(keywords) == Measured(41234.56, 23.0, None, 61.0)
    assert netperf.parse("THROUGHPUT=41234.56\n") == Measured()
    # The unit of transactions follows from the title.
    assert netperf.parse(f"{NETPERF_RR.splitlines()[0]}\nTHROUGHPUT=41234.56\n") == Measured(41234.56)


def test_of_udp_what_was_received_counts_and_processors_are_no_columns_too_many() -> None:
    udp = "MIGRATED UDP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 10.77.0.1 () port 0 AF_INET\n"
    table = (
        "212992    1024   10.00      492775      0     403.67\n212992           10.00      492201            403.20\n"
    )
    assert netperf.parse(udp + table) == Measured(goodput_bits_per_sec=403.2e6)
    with_processors = NETPERF_RR.replace("41234.56", "41234.56  1.5  2.5  3.1  4.2")
    assert netperf.parse(with_processors) == Measured(41234.56)


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
    added = [table.schema.field(column["name"]) for column in _core.tables("run")["client_output"]]
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


def test_of_an_output_without_end_only_the_end_is_read(tmp_path: Path) -> None:
    file = tmp_path / "client.txt"
    with file.open("wb") as held:
        held.truncate(1 << 43)
        held.seek(0, 2)
        held.write(b"\nthe last line\n")
    tracemalloc.start()
    table = pa.table(
        {
            "group": [0],
            "role": ["client"],
            "command": ["wrk"],
            "exit_code": [1],
            "signal": [None],
            "output": [file.name],
        }
    )
    _, (failure,) = programs.read(table, tmp_path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "the last line" in failure
    assert peak_bytes < 8 * programs.MOST_READ_BYTES
