"""`ss-old-and-new`: the two sample lines of the article through the importer of dumps of ss."""

from __future__ import annotations

from tcpknee.imports.functions import import_ss
from tcpknee.writing import replacing

from .check import Found, Request, fact

_HEAD = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 192.0.2.1:443 198.51.100.7:50123\n"

_OLD = (
    "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 cwnd:106 ssthresh:52 bytes_acked:9067087 "
    "bytes_received:5775 segs_out:6327 segs_in:551 send 76.1Mbps lastsnd:14536 lastrcv:15584 lastack:14504 "
    "pacing_rate 98.5Mbps retrans:0/5 rcv_rtt:16.125 rcv_space:14400\n"
)
_NEW = (
    "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 pmtu:1500 rcvmss:1269 advmss:1428 cwnd:106 ssthresh:52 "
    "bytes_sent:9070462 bytes_retrans:3375 bytes_acked:9067087 bytes_received:5775 segs_out:6327 segs_in:551 "
    "data_segs_out:6315 data_segs_in:12 bbr:(bw:99.5Mbps,mrtt:1.912,pacing_gain:1,cwnd_gain:2) send 76.1Mbps "
    "lastsnd:9896 lastrcv:10944 lastack:9864 pacing_rate 98.5Mbps delivery_rate 27.9Mbps delivered:6316 busy:3020ms "
    "rwnd_limited:2072ms(68.6%) retrans:0/5 dsack_dups:5 rcv_rtt:16.125 rcv_space:14400 rcv_ssthresh:65535 "
    "minrtt:1.907\n"
)

_OF_BOTH = {
    "algorithm": "bbr",
    "rto_us": 220_000,
    "srtt_us": 16_139,
    "rttvar_us": 10_041,
    "snd_mss_bytes": 1448,
    "snd_cwnd": 106,
    "snd_ssthresh": 52,
    "bytes_acked": 9_067_087,
    "segs_out": 6327,
    "pacing_rate_bits_per_sec": 98_500_000,
    "total_retrans": 5,
    "rcv_rtt_us": 16_125,
}
_OF_NEW = {
    "bytes_sent": 9_070_462,
    "bytes_retrans": 3375,
    "data_segs_out": 6315,
    "bbr_bw_bits_per_sec": 99_500_000,
    "bbr_min_rtt_us": 1912,
    "bbr_cwnd_gain": 2.0,
    "delivery_rate_bits_per_sec": 27_900_000,
    "delivered": 6316,
    "busy_us": 3_020_000,
    "rwnd_limited_us": 2_072_000,
    "dsack_dups": 5,
    "min_rtt_us": 1907,
}
"""What the older line does not have."""


def check(request: Request) -> Found:
    """Each line is a row with the values that stand in it; what a line lacks is null."""
    outcomes, ours = [], []
    for name, line, absent in (("old", _OLD, _OF_NEW), ("new", _NEW, {})):
        path = request.folder / f"ss-{name}.txt"
        with replacing(path, make=True) as file:
            file.write((_HEAD + line).encode())
        rows = import_ss([path], strict=True).to_pylist()
        row = rows[0] if len(rows) == 1 else {}
        wanted = {**_OF_BOTH, **({} if absent else _OF_NEW)}
        wrong = [f"{key}={row.get(key)}" for key, value in wanted.items() if row.get(key) != value]
        filled = [f"{key}={row[key]}" for key in absent if row.get(key) is not None]
        outcomes.append(
            fact(
                f"the {name} line is one row with its {len(wanted)} values",
                len(rows) == 1 and not wrong,
                ", ".join(wrong) or f"{len(wanted)} of {len(wanted)} values",
            )
        )
        if absent:
            outcomes.append(
                fact(
                    "what it lacks is null",
                    bool(row) and not filled,
                    ", ".join(filled) or f"{len(absent)} of them null",
                )
            )
        ours.append((name, f"{sum(value is not None for value in row.values())} columns of {len(row)} filled"))
    return Found(outcomes, ours)
