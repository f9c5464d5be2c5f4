"""How many segments an ACK acknowledges, of a capture or a trace."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import marks, palette
from tcpknee.pages.observed import Observed
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "acks"
title = "Segments per ACK"
needs = "a capture or a trace"
summary = (
    "How many full segments each ACK of new data acknowledges, as a share of those ACKs: two with delayed ACKs, many "
    "where the receiver gathers packets (GRO, coalescing of interrupts). In a capture without handshakes a segment has "
    "1,448 bytes."
)
#: Of 64 KiB a little more than 45 segments of 1,448 bytes.
SEGMENTS_AT_MOST = 48
_MSS_BYTES = 1448
_COLUMNS = {
    "acks": {"t_ns", "cookie", "bytes_acked", "snd_mss_bytes"},
    "capture_acks": {"t_unix_ns", "connection", "local_addr", "local_port", "bytes_acked"},
}
"""What a query reads of its table."""
_QUERIES = {
    "acks": """
        select bytes_acked - lag(bytes_acked) over (partition by cookie order by t_ns) as bytes,
               snd_mss_bytes as mss
        from acks where bytes_acked is not null
    """,
    "capture_acks": """
        select bytes_acked - lag(bytes_acked) over (
            partition by connection, local_addr, local_port order by t_unix_ns
        ) as bytes, mss
        from capture_acks left join (
            select connection as number, max(mss_bytes) as mss from capture_connections group by all
        ) on number = connection
        where bytes_acked is not null
    """,
}


def applies(run: ReportRun | Observed) -> bool:
    return isinstance(run, Observed) and bool(_rows(run))


def chart(run: Observed, layout: Layout) -> Any:
    import altair as alt

    rows = _rows(run)
    names = list(dict.fromkeys(row["side"] for row in rows))
    scale = alt.Scale(domain=names, range=[palette.colour(place) for place in range(len(names))])
    legend = marks.legend(names, layout) if len(names) > 1 else None
    return (
        alt.Chart(marks.values(rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "segments:O",
                title=f"Segments acknowledged by one ACK ({SEGMENTS_AT_MOST} and more together)",
                scale=alt.Scale(domain=list(range(1, max(row["segments"] for row in rows) + 1))),
                axis=alt.Axis(labelAngle=0, labelOverlap="greedy"),
            ),
            xOffset=alt.XOffset("side:N", sort=names),
            y=alt.Y("pct:Q", title="ACKs of new data (%)"),
            color=alt.Color("side:N", scale=scale, legend=legend),
            tooltip=[
                alt.Tooltip("side:N", title="of"),
                alt.Tooltip("segments:O"),
                alt.Tooltip("n:Q", title="ACKs", format=","),
                alt.Tooltip("pct:Q", title="share (%)", format=".1f"),
            ],
        )
        .properties(width=layout.width, height=200)
    )


def _rows(found: Observed) -> list[dict[str, Any]]:
    """A row for each number of segments of each side: the folder, where there are several."""
    rows: list[dict[str, Any]] = []
    for side, dataset in found.sides:
        tables = (name for name in _QUERIES if name in dataset.tables)
        table = next((name for name in tables if _COLUMNS[name] <= {*dataset.table(name).columns}), None)
        if table is None or (table == "capture_acks" and "capture_connections" not in dataset.tables):
            continue
        query = f"""
            select least(ceil(bytes / coalesce(mss, {_MSS_BYTES})), {SEGMENTS_AT_MOST})::int as segments, count(*) as n
            from ({_QUERIES[table]}) where bytes > 0 group by all order by all
        """
        counts = dataset.sql(query).to_pylist()
        total = sum(row["n"] for row in counts)
        rows += [{"side": side or "ACKs", **row, "pct": 100.0 * row["n"] / total} for row in counts]
    return rows
