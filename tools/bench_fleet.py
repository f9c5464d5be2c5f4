"""What comparing a fleet costs: makes recordings of hosts with that many samples, compares them, and
prints time and memory.

.venv/bin/python tools/bench_fleet.py --samples 10000000 --out /var/tmp/fleet-bench
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import duckdb

NOON = 1_787_313_600_000_000_000
HOSTS = 8
SAMPLES_EACH = 20
CODE = """
import json, resource, sys, time
from tcpknee import fleet
begin, used = time.perf_counter(), time.process_time()
found = fleet.compare(*sys.argv[1:], min_bytes="1MB")
took, used = time.perf_counter() - begin, time.process_time() - used
print(json.dumps({"seconds": took, "cpu_seconds": used, "kept": found.counts.kept,
                  "verdict": found.verdict("retransmit_pct").told,
                  "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def make(out: Path, samples: int) -> None:
    """Recordings of `HOSTS` hosts: each connection is sampled 20 times, a second apart, dump after dump."""
    each = samples // HOSTS // SAMPLES_EACH
    for host in range(HOSTS):
        folder = out / f"edge{host}"
        if (folder / "sockets-000001.parquet").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        # A connection's own values follow from hashes of its number, and grow with its samples.
        query = f"""
            copy (
                select {NOON} + (start + k)::bigint * 1000000000 + i % 1000000 as t_unix_ns,
                       (start + k)::bigint * 1000000000 + i % 1000000 as t_mono_ns, start + k as sample,
                       'edge{host}' as host, 'boot-of-edge{host}' as boot_id, null::varchar as netns, false as final,
                       'ESTAB' as state, '10.0.0.1' as local_addr, 443::integer as local_port,
                       '10.' || prefix // 250 || '.' || prefix % 250 || '.' || i % 200 as remote_addr,
                       (1024 + i % 60000)::integer as remote_port, ({host}::bigint * 1000000000 + i)::ubigint as cookie,
                       case arm when 0 then 'cubic' else 'bbr1' end as algorithm,
                       (k + 1) * rate // 10 as bytes_acked, (k + 1) * rate // 10 as bytes_sent,
                       (k + 1) * rate // 1000 as bytes_retrans, (k + 1) * rate // 14480 as data_segs_out,
                       (k + 1) * rate // 14480 * (1 + 2 * arm) * (i % 13) // 600 as total_retrans,
                       (k + 1) * rate // 14480 as delivered, 0 as delivered_ce, (k + 1) * 800000 as busy_us,
                       (k + 1) * 1000 * (i % 7) as rwnd_limited_us, 0 as sndbuf_limited_us, i % 3 as reord_seen,
                       0 as dsack_dups, least + least * (k % 5) // 10 as srtt_us, least as min_rtt_us,
                       least // 8 as rttvar_us, 10 + (i + k) % 90 as inflight, 10 + (i + k) % 90 as unacked,
                       20 + (i + k) % 90 as snd_cwnd, 1448 as snd_mss_bytes, rate * (90 + k % 20) // 100 * 8
                           as delivery_rate_bits_per_sec, k % 4 = 0 as delivery_rate_app_limited
                from (select i, k, hash(i) % 20000 as prefix, (i // 7) % 3600 as start, hash(i // 3) % 2 as arm,
                             5000 + hash(i, 1) % 80000 as least, 400000 + hash(i, 2) % 4000000 as rate
                      from range({each}) as connections(i), range({SAMPLES_EACH}) as samples(k))
                order by sample
            ) to '{folder}/sockets-000001.parquet' (format parquet, compression zstd)
        """
        with duckdb.connect() as database:
            database.execute("set memory_limit = '6GiB'")
            database.execute(f"set temp_directory = '{out}/spill'")
            database.execute(query)


def main() -> int:
    """Makes what is not there yet, then compares it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument(
        "--out", type=Path, required=True, help="where the recordings are made, some 30 bytes per sample"
    )
    given = parser.parse_args()
    folder = given.out / str(given.samples)
    begin = time.perf_counter()
    make(folder, given.samples)
    print(f"made {given.samples:,} samples in {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    done = subprocess.run([sys.executable, "-c", CODE, str(folder)], check=True, capture_output=True, text=True)
    print(json.dumps({"samples": given.samples, **json.loads(done.stdout)}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
