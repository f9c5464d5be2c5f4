"""Tables `connections` with known effects, drawn from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NOON = 1_787_313_600_000_000_000
HOUR = 3_600_000_000_000


def fleet(
    connections: int = 6000,
    prefixes: int = 300,
    *,
    seed: int = 1,
    hosts: int = 4,
    algorithms: tuple[str, ...] = ("cubic", "bbr1"),
    by: str = "prefix",
    rate: float = 1.3,
    retrans: float = 3.0,
    srtt: float = 1.0,
) -> dict[str, Any]:
    """Columns of connections: those of the second algorithm have `rate`, `retrans` and `srtt` times the others'.

    Clusters are heavy-tailed, and half of a value's spread is its cluster's. `by`: what is drawn, prefix or connection.
    """
    draw = np.random.default_rng(seed)
    sizes = draw.pareto(3, prefixes) + 0.5
    prefix = draw.choice(prefixes, connections, p=sizes / sizes.sum())
    own = draw.normal(0, 0.5, (4, prefixes))[:, prefix] + draw.normal(0, 0.5, (4, connections))
    drawn = draw.integers(0, len(algorithms), prefixes)[prefix] if by == "prefix" else None
    arm = draw.integers(0, len(algorithms), connections) if drawn is None else drawn
    treated = arm == 1
    host = prefix % hosts
    least = 20_000 * np.exp(own[0])
    speed = 20e6 * np.exp(own[1]) * np.where(treated, rate, 1.0)
    sent = np.maximum(3e6 * np.exp(draw.normal(0, 1, connections)), 30_000)
    segments = (sent / 1448).astype(np.int64) + 20
    lost = draw.binomial(segments, np.clip(0.004 * np.exp(own[2]) * np.where(treated, retrans, 1.0), 0, 0.5))
    begin = NOON + draw.integers(0, 6 * HOUR, connections)
    return {
        "host_id": [f"edge{one}" for one in host],
        "host": [f"edge{one}" for one in host],
        "boot_id": [f"boot{one}" for one in host],
        "cookie": np.arange(connections, dtype=np.uint64),
        "algorithm": [algorithms[one] for one in arm],
        "remote_prefix": [f"10.{one // 250}.{one % 250}.0/24" for one in prefix],
        "begin_unix_ns": begin,
        "end_unix_ns": begin + 10_000_000_000,
        "bytes_acked": sent.astype(np.int64),
        "data_segs_out": segments,
        "total_retrans": lost,
        "retransmit_pct": 100 * lost / segments,
        "delivery_rate_bits_per_sec": speed,
        "goodput_bits_per_sec": speed * 0.8,
        "min_rtt_us": least,
        "srtt_us": least * (1.1 + 0.2 * draw.random(connections)) * np.where(treated, srtt, 1.0),
        "inflight_pkts": np.maximum(1, speed * least / 8e6 / 1448),
        "app_limited_pct": np.where(draw.random(connections) < 0.3, 80.0, 5.0),
        "triggered": draw.random(connections) < 0.7,
    }


def written(folder: Path, columns: dict[str, Any], name: str = "connections") -> Path:
    """A folder with the table."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({key: pa.array(value) for key, value in columns.items()}), folder / f"{name}.parquet")
    return folder
