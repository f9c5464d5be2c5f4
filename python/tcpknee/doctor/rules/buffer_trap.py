"""A buffer's bounds make no sense.

What it sees: tcp_rmem or tcp_wmem with a negative value, with values that do not ascend, with more than 1 GiB as the
most, or with 1 MiB and more as what each connection begins with.
Why it matters: TCP's window ends at 1 GiB, and the kernel's arithmetic at 2 GiB. A large second value is given to
every connection at once, whether it needs it or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

WINDOW_BYTES = 1 << 30
BEGIN_BYTES = 1 << 20
USUAL = {"net.ipv4.tcp_rmem": (4096, 131072, 6 << 20), "net.ipv4.tcp_wmem": (4096, 16384, 4 << 20)}
"""The kernel's defaults where memory is enough; since Linux 6.16 tcp_rmem ends at 32 MiB (572be9bf9d0d)."""
SANE_MOST = 64 << 20


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for name, usual in USUAL.items():
        found = facts.vector(snapshot, name)
        if found is None or len(found) != 3:
            continue
        wrong = _wrong(found)
        if wrong is None:
            continue
        critical, told = wrong
        findings.append(
            RULE.found(
                "critical" if critical else "warning",
                name,
                f"{name} {told}.",
                {"min_bytes": found[0], "default_bytes": found[1], "max_bytes": found[2]},
                confirm=[f"sysctl {name}"],
                changes=[Sysctl(name, " ".join(map(str, _mended(found, usual))), netns=snapshot.netns)],
                gain="Autotuning works within bounds that the kernel can compute with.",
            )
        )
    return findings


def _mended(found: Sequence[int], usual: Sequence[int]) -> tuple[int, int, int]:
    """Values that ascend, with what of those found may stay."""
    begin = found[1] if 0 < found[1] < BEGIN_BYTES else usual[1]
    least = found[0] if 0 < found[0] <= begin else min(usual[0], begin)
    if not 0 < found[2] <= WINDOW_BYTES:
        return least, begin, SANE_MOST
    return least, begin, found[2] if found[2] >= begin else usual[2]


def _wrong(found: list[int]) -> tuple[bool, str] | None:
    """(critical?, what is wrong)."""
    least, begin, most = found
    if min(found) <= 0:
        return True, "has a value that is not positive"
    if not least <= begin <= most:
        return True, "does not ascend"
    if most > WINDOW_BYTES:
        return False, f"lets a buffer grow to {most >> 20:,} MiB, and TCP's largest window is 1,024"
    if begin >= BEGIN_BYTES:
        return False, f"gives every connection {begin >> 10:,} KiB to begin with"
    return None


RULE = Rule(
    name="buffer-trap",
    group="buffers",
    summary="tcp_rmem or tcp_wmem has values that the kernel cannot use as meant",
    source="RFC 7323, section 2.3 (largest window); github.com/oracle/bpftune/issues/36 and 93 (negative, 2 GiB)",
    manual=__doc__,
    check=_check,
    needs=("sysctls",),
)
