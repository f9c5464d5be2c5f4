"""What is called bbr is not version 1.

What it sees: bbr in use, on a kernel whose build of it says another version, or has what only versions 2 and 3 have.
Why it matters: released kernels of Linux have version 1. Distributions such as xanmod, zen, liquorix, CachyOS and
OpenWrt ship version 3 under the same name: it answers loss and ECN, and what is said and measured of bbr is mostly of
version 1.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    version = snapshot.host["bbr_version"]
    if "bbr" not in facts.uses_bbr(snapshot) or version in (None, "1"):
        return []
    return [
        RULE.found(
            "advice",
            "bbr",
            f"bbr is version {version} on this host, not 1 as in released kernels of Linux.",
            {"bbr_version": version, "kernel": snapshot.host["kernel"], "algorithm": "bbr"},
            confirm=["cat /sys/module/tcp_bbr/version", "ss -tin state established"],
            advice="Compare with bbr3, and with what is written of BBRv3: knee compare bbr1 bbr3 cubic.",
            gain="Figures and advice that fit what runs.",
        )
    ]


RULE = Rule(
    name="bbr-is-another-version",
    group="algorithm",
    summary="bbr is version 2 or 3 under the name of version 1",
    source="google/bbr, branch v3: net/ipv4/tcp_bbr.c (MODULE_VERSION); Linux 7.2: net/ipv4/tcp_bbr.c, which has none",
    manual=__doc__,
    check=_check,
    needs=("host", "sockets", "sysctls"),
)
