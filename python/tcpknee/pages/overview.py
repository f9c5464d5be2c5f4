"""What a recording, an import or a capture comes to: a sentence, and a row for each congestion control.

It counts what was seen: of a counter the difference of its last and first value, and the whole last value of a
connection that came later than the first sample, or the first rows. Of one that only these have, nothing can be said.
Those of a packet capture count from its begin, or from the connection's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import human

from . import sources

if TYPE_CHECKING:
    from .observed import Observed

LIMITED = ("rwnd_limited_us", "sndbuf_limited_us")
_COUNTERS = ("bytes_acked", "bytes_sent", "bytes_retrans", "total_retrans", "data_segs_out", "busy_us", *LIMITED)
"""Columns that only grow; a table has some of them."""


@dataclass(frozen=True)
class Overview:
    """`rows` have a cell for each of `heads`, the first of which is a name."""

    sentence: str
    heads: tuple[tuple[str, str], ...] = ()
    """(name, unit) of each column that somebody knows."""
    rows: tuple[tuple[str, ...], ...] = ()


def of(found: Observed) -> Overview:
    """What the table with the connections comes to; of a dataset without one, what it holds."""
    source = found.source
    if source is None or not source.sent or not source.sent_is_counter or not found.has_series:
        return Overview(_held(found))
    held = set(found.dataset.table(source.table).columns)
    if source.sent not in held:
        return Overview(_held(found))
    groups = found.dataset.sql(_query(found, held)).to_pylist()
    total = _sum(groups)
    seconds = total["seconds"]
    columns: list[tuple[tuple[str, str], list[float | None]]] = [
        (("acknowledged", "MB"), [(group["bytes_acked"] or 0) / 1e6 for group in groups]),
        (
            ("goodput", "Mbit/s"),
            [(group["bytes_acked"] or 0) * 8e-6 / seconds if seconds else None for group in groups],
        ),
        (("sent again", "%"), [_retransmit_pct(group) for group in groups]),
        (("srtt p50", "ms"), [group["srtt_us"] and group["srtt_us"] / 1e3 for group in groups]),
        (("rwnd-limited", "%"), [_share(group, "rwnd_limited_us") for group in groups]),
        (("sndbuf-limited", "%"), [_share(group, "sndbuf_limited_us") for group in groups]),
    ]
    known = [(head, values) for head, values in columns if any(value is not None for value in values)]
    what = "congestion control" if "algorithm" in held else ""
    heads = ((what, ""), (f"{source.of}s", ""), *(head for head, _ in known))
    rows = tuple(
        (
            group["name"] or "not told",
            f"{group['connections']:,}",
            *(_digits(values[at]) for _, values in known),
        )
        for at, group in enumerate(groups)
    )
    return Overview(_sentence(total, source.of, seconds), heads, rows)


def _query(found: Observed, held: set[str]) -> str:
    source = found.source
    assert source is not None
    keys = [name for name in source.key if name in held]
    name = "algorithm" if "algorithm" in held else "'all'"
    order = f"order by {source.time}"
    is_new = _is_new(found, held)
    grown = ", ".join(
        f"last({one} {order}) filter ({one} is not null) "
        f"- case when {is_new} then 0 else first({one} {order}) filter ({one} is not null) end as {one}"
        for one in _COUNTERS
        if one in held
    )
    sums = ", ".join(f"sum({one})::double as {one}" for one in _COUNTERS if one in held)
    median = "median(nullif(srtt_us, 0)) as srtt_us" if "srtt_us" in held else "null as srtt_us"
    return (
        f"with one as (select last({name} {order}) as name, min({source.time}) as first_ns, max({source.time}) as "
        f"last_ns, count(*) = 1 and not {is_new} as is_unknown, {median}, {grown} from {source.table} "
        f"where {source.time} is not null group by {', '.join(keys)}) "
        f"select name, count(*) as connections, count(*) filter (is_unknown) as unknown, "
        f"({_seconds(found, held)}) as whole, median(srtt_us) as srtt_us, {sums} "
        f"from one group by name order by bytes_acked desc nulls last, connections desc"
    )


def _is_new(found: Observed, held: set[str]) -> str:
    """Whether a connection began after the table did: of a recording that has its beginning, where no first sample has
    it, which may have had none at all; else where it came later than the first rows."""
    source = found.source
    assert source is not None
    if source is sources.CAPTURE:
        return "true"
    later = f"min({source.time}) > (select min({source.time}) from {source.table})"
    has_beginning = (Path(found.dataset.path) / f"{source.table}-000001.parquet").exists()
    if "sample" not in held or not has_beginning:
        return later
    # Rows of imports tell no sample.
    counts = f"(select count(sample) from {source.table}) > 0"
    return f"(case when {counts} then coalesce(min(sample), 1) > 0 else {later} end)"


def _seconds(found: Observed, held: set[str]) -> str:
    """How long the connections were seen. Those of a capture from their first packet; a row of an interval, which
    alone tells `rtt_samples`, has the time of its begin, a multiple of its length, and ends with the last packet."""
    rows = "select min(first_ns) as begin_ns, max(last_ns) as end_ns from one"
    tables = found.dataset.tables
    known = found.dataset.table("capture_connections").columns if "capture_connections" in tables else ()
    is_timed = "connection" in held and {"connection", "t_unix_ns", "duration_us"} <= set(known)
    if found.source is not sources.CAPTURE or not is_timed:
        return f"select (end_ns - begin_ns) / 1e9 from ({rows})"
    packets = (
        "select min(t_unix_ns) as begin_ns, max(t_unix_ns + 1000 * duration_us) as end_ns from capture_connections "
        "where connection in (select connection from capture_acks)"
    )
    end = "rows.end_ns"
    if "rtt_samples" in held:
        times = "list(distinct t_unix_ns) filter (rtt_samples is not null)"
        every = f"(select list_reduce({times}, lambda a, b: gcd(a, b)) from capture_acks)"
        end = f"case when {every} is null then rows.end_ns else least(rows.end_ns + {every}, packets.end_ns) end"
    return f"select ({end} - packets.begin_ns) / 1e9 from ({rows}) as rows, ({packets}) as packets"


def _sum(groups: list[dict[str, Any]]) -> dict[str, Any]:
    names = ["connections", "unknown", *(one for one in _COUNTERS if groups and one in groups[0])]
    total = {name: sum(group[name] or 0 for group in groups) for name in names}
    return {**total, "seconds": max((group["whole"] or 0 for group in groups), default=0)}


def _retransmit_pct(group: dict[str, Any]) -> float | None:
    """Of bytes where they are counted, else of segments."""
    for again, sent in (("bytes_retrans", "bytes_sent"), ("total_retrans", "data_segs_out")):
        if group.get(sent):
            return 100 * float(group[again] or 0) / float(group[sent])
    return None


def _share(group: dict[str, Any], limit: str) -> float | None:
    """Of the time in which something was under way."""
    busy, limited = group.get("busy_us"), group.get(limit)
    return 100 * limited / busy if busy and limited is not None else None


def _digits(value: float | None) -> str:
    return "–" if value is None else human.digits(value)


def _sentence(total: dict[str, Any], of: str, seconds: float) -> str:
    acked = total["bytes_acked"]
    who = human.counted(total["connections"], of)
    lasted = f"in {human.duration(round(seconds * 1e9))}" if seconds else "at one moment"
    if not acked:
        return f"{who} {lasted}: nothing was seen to be acknowledged."
    again = _retransmit_pct(total)
    if again:
        lost = f"; {human.digits(again)} % of what they sent was sent again"
    else:
        lost = "" if again is None or total["unknown"] else "; nothing was sent again"
    told = f" Nothing is known of {total['unknown']:,}, which only the first rows have." if total["unknown"] else ""
    amount = human.quantity("bytes", acked)
    if not seconds:
        return f"{who}, seen {lasted}, had {amount} acknowledged{lost}.{told}"
    rate = human.quantity("rate", acked * 8 / seconds)
    return f"{who} had {amount} acknowledged {lasted}, {rate} together{lost}.{told}"


def _held(found: Observed) -> str:
    """The tables by their rows, the longest first."""
    counts = [(len(found.dataset.table(name)), name) for name in found.dataset.tables]
    told = [f"{human.counted(rows, 'row')} of {name}" for rows, name in sorted(counts, reverse=True) if rows]
    return f"{', '.join(told[:4])}{', and more' if len(told) > 4 else ''}." if told else "No table has a row."
