"""A cell as a folder that a reference kernel boots with: the commands that build its path, and what carries its flows.

    s0 --[ l: loss ]-- b: queue, rate -- f: transmission, rtt/2 --[ j: rtt/2, jitter ]-- r0: rtt/2 of the way back

Namespaces: a sender and a receiver for each flow, and routers in a row between them; `l` and `j` only where there is
loss or jitter. `b` has the queue below HTB, which lets a packet go when the one before it is through; the packet's own
transmission takes place in `f`, whose netem has the same rate: it never finds a queue there. Bytes are those of IP
packets, without the 14 of Ethernet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tcpknee.evidence import expressions

SAMPLE_NS = 10_000_000
"""As a scenario's sample_interval."""

NO_LIMIT = 10_000_000
"""Packets; more than any path holds."""

ETHERNET = 14

LINUX_NAMES = {"bbr1": "bbr"}
"""Algorithms that the kernel calls otherwise."""


class Unsupported(Exception):
    """A setting that the path of a reference kernel does not have."""


def write(folder: Path, cell: Mapping[str, Any], program: Path) -> None:
    """`setup.sh` and `run.sh` of a cell of a parsed scenario. Raises `Unsupported`."""
    values = {key: text for key, text, _ in cell["describe"]}
    folder.mkdir(parents=True)
    lines = [*_links(values, len(cell["flows"])), *_hosts(values, len(cell["flows"])), *_path(cell, values)]
    (folder / "setup.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "run.sh").write_text(_run(cell, values, program) + "\n", encoding="utf-8")


def _routers(values: Mapping[str, str]) -> list[str]:
    return [*["l"] * _lossy(values), "b", "f", *["j"] * _jittery(values)]


def _links(values: Mapping[str, str], count: int) -> Iterator[str]:
    """Namespaces and the veth pairs between them. Both ends of a pair have one MAC address, so nobody asks by ARP."""
    routers = _routers(values)
    hosts = [f"{side}{i}" for side in "sr" for i in range(count)]
    for name in (*routers, *hosts):
        yield f"ip netns add {name}"
        yield f"ip -n {name} link set lo up"
    for name in routers:
        yield f"nsenter --net=/run/netns/{name} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'"
    pairs = [(f"s{i}", routers[0], f"10.0.{i}") for i in range(count)]
    pairs += [(left, right, f"10.2.{i}") for i, (left, right) in enumerate(pairwise(routers))]
    pairs += [(routers[-1], f"r{i}", f"10.1.{i}") for i in range(count)]
    for number, (left, right, net) in enumerate(pairs):
        mac = f"02:00:00:00:00:{number:02x}"
        yield (
            f"ip link add to-{right} address {mac} netns {left} type veth "
            f"peer name to-{left} address {mac} netns {right}"
        )
        for name, other, host in ((left, right, 1), (right, left, 2)):
            yield f"ip -n {name} addr add {net}.{host}/24 dev to-{other}"
            yield f"ip -n {name} link set to-{other} arp off up"
            # A packet enters the path as its segments.
            yield f"nsenter --net=/run/netns/{name} ethtool -K to-{other} tso off"
    for i in range(count):
        yield f"ip -n s{i} route add default via 10.0.{i}.2"
        yield f"ip -n r{i} route add default via 10.1.{i}.1"
    for i, (left, right) in enumerate(pairwise(routers)):
        yield f"ip -n {left} route add 10.1.0.0/16 via 10.2.{i}.2"
        yield f"ip -n {right} route add 10.0.0.0/16 via 10.2.{i}.1"


def _hosts(values: Mapping[str, str], count: int) -> Iterator[str]:
    """Settings of the hosts that a kernel has as sysctls."""
    for side, name in (("sender", "s"), ("receiver", "r")):
        texts = {
            f"tcp_{buffer}": " ".join(
                values[f"{side}.tcp_{buffer}_{size}"].removesuffix("B") for size in ("min", "default", "max")
            )
            for buffer in ("wmem", "rmem")
        }
        texts["tcp_limit_output_bytes"] = values[f"{side}.tcp_limit_output_bytes"].removesuffix("B")
        texts["tcp_ecn"] = values[f"{side}.tcp_ecn"]
        for i in range(count):
            commands = "; ".join(f"echo {text} >/proc/sys/net/ipv4/{key}" for key, text in texts.items())
            yield f"nsenter --net=/run/netns/{name}{i} sh -e -c '{commands}'"


def _path(cell: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[str]:
    """The qdiscs."""
    rate = cell["rate_bits_per_sec"]
    if _lossy(values):
        yield f"tc -n l qdisc add dev to-b root netem loss random {values['path.loss']} limit {NO_LIMIT}"
    if values["path.policer_rate"] != "unlimited":
        yield from _policer(values, len(cell["flows"]))
    transmission = "" if rate is None else f"rate {rate}bit -{ETHERNET}"
    last, jitter = _routers(values)[-1], ""
    if _jittery(values):
        if transmission:
            yield f"tc -n f qdisc add dev to-j root netem {transmission} limit {NO_LIMIT}"
        # With a rate, netem keeps the order: a packet arrives right behind the one before.
        transmission, jitter = "rate 1000gbit", f" {microseconds(values['path.jitter'])}us"
    if rate is not None:
        yield from _bottleneck(int(rate), values, cell)
    for i in range(len(cell["flows"])):
        half = f"delay {microseconds(values[f'flow.{i}.rtt']) // 2}us"
        yield f"tc -n {last} qdisc add dev to-r{i} root netem {half}{jitter} limit {NO_LIMIT} {transmission}"
        yield f"tc -n r{i} qdisc add dev to-{last} root netem {half} limit {NO_LIMIT}"


def _policer(values: Mapping[str, str], count: int) -> Iterator[str]:
    if count > 1:
        raise Unsupported("path.policer_rate: expected one flow, as a policer here stands at one link.")
    device = "to-l" if _lossy(values) else "to-s0"
    rate, burst = round(base_units(values["path.policer_rate"])), values["path.policer_burst"].removesuffix("B")
    yield f"tc -n b qdisc add dev {device} clsact"
    police = f"police rate {rate}bit burst {burst} conform-exceed drop/ok"
    yield f"tc -n b filter add dev {device} ingress matchall action {police}"


def _bottleneck(rate: int, values: Mapping[str, str], cell: Mapping[str, Any]) -> Iterator[str]:
    queue = values["path.queue"]
    if queue == "cake":
        if round(base_units(values["path.cake.bandwidth"])) != rate:
            raise Unsupported("path.cake.bandwidth: expected path.rate, because CAKE is the bottleneck's shaper here.")
        yield f"tc -n b qdisc add dev to-f root cake bandwidth {rate}bit overhead 0"
        return
    yield f"tc -n b qdisc add dev to-f root handle 1: stab overhead -{ETHERNET} linklayer ethernet htb default 1"
    # A burst of more than a byte would let two packets go at once after a pause.
    yield (
        f"tc -n b class add dev to-f parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit "
        "burst 1 cburst 1 quantum 1514"
    )
    yield f"tc -n b qdisc add dev to-f parent 1:1 handle 10: {_queue(queue, values, cell)}"


def _queue(queue: str, values: Mapping[str, str], cell: Mapping[str, Any]) -> str:
    def of(name: str) -> str:
        return values[f"path.{queue}.{name}"]

    def ecn() -> str:
        return "ecn" if of("ecn") == "true" else "noecn"

    bytes_, packets = cell["buffer_bytes"], cell["buffer_pkts"]
    if queue == "fifo":
        return f"bfifo limit {bytes_}" if bytes_ is not None else f"pfifo limit {packets}"
    if queue in ("fq_codel", "codel"):
        threshold = "" if of("ce_threshold") == "0s" else f" ce_threshold {of('ce_threshold')}"
        return f"{queue} limit {packets} target {of('target')} interval {of('interval')} {ecn()}{threshold}"
    if queue == "pie":
        if of("tupdate") != "20ms":
            raise Unsupported("path.pie.tupdate: expected 20ms, which is what Linux makes of 15ms at HZ 250.")
        return f"pie limit {packets} target {of('target')} {ecn()}"
    if queue == "red":
        mark = " ecn" if of("ecn") == "true" else ""
        limit = packets * 1500 if bytes_ is None else bytes_
        sizes = {name: of(name).removesuffix("B") for name in ("min", "max", "avpkt")}
        probability = float(of("probability").removesuffix("%")) / 100
        return (
            f"red limit {limit} min {sizes['min']} max {sizes['max']} avpkt {sizes['avpkt']} burst {of('burst')} "
            f"probability {probability:g} bandwidth {cell['rate_bits_per_sec']}bit{mark}"
        )
    raise Unsupported(f"path.queue: got {queue}; expected fifo, fq_codel, codel, pie, red or cake.")


def _run(cell: Mapping[str, Any], values: Mapping[str, str], program: Path) -> str:
    write_bytes = {values[f"flow.{i}.write"].removesuffix("B") for i in range(len(cell["flows"]))}
    if len(write_bytes) > 1:
        raise Unsupported("flow.write: expected the same for each flow.")
    words = [str(program), "samples.csv", str(cell["duration_ns"]), str(SAMPLE_NS), *write_bytes]
    far_end = linux_name(values["receiver.algorithm"])
    for i, flow in enumerate(cell["flows"]):
        start = microseconds(values[f"flow.{i}.start"]) * 1000
        words += [f"s{i}", f"r{i}", f"10.1.{i}.2", linux_name(flow["algorithm"]), far_end, str(start)]
    return " ".join(words)


def linux_name(algorithm: str) -> str:
    return LINUX_NAMES.get(algorithm, algorithm)


def microseconds(text: str) -> int:
    """Of a length of time as a scenario has it."""
    return round(base_units(text) * 1e6)


def base_units(text: str) -> float:
    """Of a quantity as a scenario has it: seconds, or bits per second."""
    return float(expressions.parse_figure(text).quantity.values[0])


def _lossy(values: Mapping[str, str]) -> bool:
    return values["path.loss"] != "0%"


def _jittery(values: Mapping[str, str]) -> bool:
    return values.get("path.jitter", "0s") != "0s"
