"""What drawing a fleet costs: 1,000,000 connections as a density in each form, and as the whole page.

Prints for each file its time and size; less than 5 s and 3 MB are asked of a density.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import duckdb

from tcpknee.pages.fleet_report import FleetReport

CONNECTIONS = 1_000_000
NOON = 1_787_313_600_000_000_000

# Three access rates at four distances; a connection's own values follow from hashes of its number.
QUERY = f"""
    select 'id' || i % 40 as host_id, 'edge' || i % 40 as host, 'boot' || i % 40 as boot_id, i::ubigint as cookie,
           case when i % 40 < 20 then 'cubic' else 'bbr1' end as algorithm,
           '10.' || hash(i) % 200 || '.' || hash(i + 1) % 50 || '.0/24' as remote_prefix,
           {NOON} + i * 3600000 as begin_unix_ns, {NOON} + i * 3600000 + 10000000000 as end_unix_ns,
           1000000 + hash(i) % 9000000 as bytes_acked, srtt as srtt_us, least as min_rtt_us,
           srtt - least as queue_delay_us, rate as delivery_rate_bits_per_sec,
           greatest(rate * srtt / 1e6 / 11584, 1) as inflight_pkts, share * 2 as retransmit_pct,
           share * 10 as rwnd_limited_pct, i % 3 as reord_seen, true as triggered
    from (
        select i, share, least, least * (1 + share) as srtt,
               [8e6, 50e6, 300e6][1 + (hash(i + 4) % 3)::int] * (0.05 + hash(i + 5) % 1000 / 1000) as rate
        from (
            select range as i, hash(range + 2) % 1000 / 1000 as share,
                   [3e3, 18e3, 45e3, 15e4][1 + (hash(range + 3) % 4)::int] * (0.5 + hash(range + 6) % 1000 / 400)
                       as least
            from range({CONNECTIONS})
        )
    )
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        duckdb.sql(f"copy ({QUERY}) to '{folder}/connections.parquet'")
        begin = time.perf_counter()
        report = FleetReport(folder)
        print(f"{CONNECTIONS:,} connections compared in {time.perf_counter() - begin:.1f} s")
        for name in ("distance.svg", "distance.png", "inflight.svg", "fleet.html"):
            path = Path(folder) / name
            begin, used = time.perf_counter(), time.process_time()
            if path.suffix == ".html":
                report.save(path)
            else:
                report.figure(path.stem).save(path)
            took, used = time.perf_counter() - begin, time.process_time() - used
            print(f"{name}: {took:.1f} s ({used:.1f} s of processors), {path.stat().st_size / 1e6:.2f} MB")
        report.close()


if __name__ == "__main__":
    main()
