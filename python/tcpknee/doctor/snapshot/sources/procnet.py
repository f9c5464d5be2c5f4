"""Counters of the protocols and of the receive path."""

from __future__ import annotations

from typing import Any

from tcpknee.doctor.snapshot.reader import Reader, whole

Rows = list[dict[str, Any]]

_BY_CPU = ("arp_cache", "ndisc_cache", "nf_conntrack")
"""Files of /proc/net/stat: a line of names, and a line of hexadecimal numbers for each processor."""

_OF_ALL = {"entries"}
"""Columns that every processor's line repeats."""


def read(reader: Reader) -> dict[str, Rows]:
    """The tables `counters` and `softnet`."""
    net = reader.roots.proc / "net"
    found: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        found |= _pairs(reader.text(net / name))
    found |= _snmp6(reader.text(net / "snmp6"))
    for name in ("sockstat", "sockstat6"):
        found |= _sockstat(reader.text(net / name))
    for name in _BY_CPU:
        found |= _by_cpu(name, reader.text(net / "stat" / name, f"/proc/net/stat/{name}"))
    if not found:
        reader.miss("counters", f"{net}/snmp is not there", "a mounted /proc")
    counters = [{"netns": reader.netns, "name": name, "value": value} for name, value in found.items()]
    return {"counters": counters, "softnet": _softnet(reader.text(net / "softnet_stat"))}


def _pairs(text: str | None) -> dict[str, int]:
    """Two lines for each protocol: names, then values."""
    lines = (text or "").splitlines()
    found = {}
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, rest = names.partition(":")
        same, _, numbers = values.partition(":")
        if protocol != same:
            continue
        for name, word in zip(rest.split(), numbers.split(), strict=False):
            if (number := whole(word)) is not None:
                found[f"{protocol}.{name}"] = number
    return found


def _snmp6(text: str | None) -> dict[str, int]:
    """`Ip6OutRequests  774`: a line for each; those of IPv6 itself are kept."""
    found = {}
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[0].startswith("Ip6") and (number := whole(words[1])) is not None:
            found[f"Ip6.{words[0][3:]}"] = number
    return found


def _sockstat(text: str | None) -> dict[str, int]:
    """`TCP: inuse 5 orphan 0 …`."""
    found = {}
    for line in (text or "").splitlines():
        protocol, _, rest = line.partition(":")
        words = rest.split()
        for name, word in zip(words[::2], words[1::2], strict=False):
            if (number := whole(word)) is not None:
                found[f"{protocol}.{name}"] = number
    return found


def _by_cpu(file: str, text: str | None) -> dict[str, int]:
    lines = (text or "").splitlines()
    names = lines[0].split() if lines else []
    found = dict.fromkeys((f"{file}.{name}" for name in names), 0)
    for line in lines[1:]:
        for name, word in zip(names, line.split(), strict=False):
            number = _hexadecimal(word)
            key = f"{file}.{name}"
            found[key] = number if name in _OF_ALL else found[key] + number
    return found if len(lines) > 1 else {}


def _softnet(text: str | None) -> Rows:
    """A line of hexadecimal numbers for each processor that is online; the 13th is its number since Linux 5.14."""
    rows = []
    for at, line in enumerate((text or "").splitlines()):
        numbers = [_hexadecimal(word) for word in line.split()]
        if len(numbers) < 3:
            continue
        numbers += [0] * (11 - len(numbers))
        rows.append(
            {
                "cpu": numbers[12] if len(numbers) > 12 else at,
                "processed": numbers[0],
                "dropped": numbers[1],
                "squeezed": numbers[2],
                "received_rps": numbers[9],
                "flow_limit_count": numbers[10],
            }
        )
    return rows


def _hexadecimal(word: str) -> int:
    try:
        return int(word, 16) & 0xFFFFFFFFFFFFFFFF
    except ValueError:
        return 0
