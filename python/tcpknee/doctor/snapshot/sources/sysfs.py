"""What /sys and /proc tell of interfaces: drivers, queues, interrupts, PCI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tcpknee.doctor.snapshot.reader import Reader, cpus_of_list, cpus_of_mask

Rows = list[dict[str, Any]]

MOST_QUEUES = 8_192
"""Queues that are read. A veth has one for each processor in each direction: thousands of them would take seconds."""


def add(reader: Reader, interfaces: Rows) -> dict[str, Rows]:
    """Adds to the rows of `interfaces`, and returns the tables `queues`, `irqs` and `pci`."""
    net = reader.roots.sys / "class/net"
    queues: Rows = []
    pci: Rows = []
    owned: dict[int, str] = {}
    for row in sorted(interfaces, key=lambda row: row["kind"] is not None):
        row |= dict.fromkeys(("driver", "bus", "address_on_bus"))
        folder = net / row["interface"]
        if not _is_ours(reader, folder, row):
            continue
        _settings(reader, folder, row)
        device = folder / "device"
        if device.exists():
            _device(reader, device, row)
            for number in _interrupts(reader, device):
                owned[number] = row["interface"]
            if row["bus"] == "pci":
                pci.append(_pci(reader, device, row["interface"]))
        if row["loopback"]:
            continue
        if len(queues) < MOST_QUEUES:
            queues += _queues(reader, folder, row)
        else:
            reader.miss("queues", f"of more than {MOST_QUEUES:,} queues the others were left out", "")
    return {"queues": queues, "irqs": _irqs(reader, owned, interfaces), "pci": pci}


def _is_ours(reader: Reader, folder: Path, row: dict[str, Any]) -> bool:
    """Whether /sys shows this namespace: it shows that of who mounted it."""
    if reader.number(folder / "ifindex") == row["ifindex"]:
        return True
    reader.miss(
        "drivers, queues, interrupts, PCI",
        f"{reader.roots.sys}/class/net is not there, or is that of another network namespace",
        "a /sys mounted in this namespace: `knee snapshot --netns` as root does it",
    )
    return False


def _device(reader: Reader, device: Path, row: dict[str, Any]) -> None:
    row["driver"] = reader.target(device / "driver")
    row["bus"] = reader.target(device / "subsystem")
    row["address_on_bus"] = device.resolve().name
    row["numa_node"] = reader.number(device / "numa_node")


def _settings(reader: Reader, folder: Path, row: dict[str, Any]) -> None:
    speed = reader.number(folder / "speed")
    row["speed_bits_per_sec"] = speed * 1_000_000 if speed is not None and 0 < speed < 1 << 31 else None
    duplex = reader.text(folder / "duplex")
    row["duplex"] = duplex if duplex in ("full", "half") else None
    threaded = reader.number(folder / "threaded")
    row["threaded"] = None if threaded is None else threaded != 0
    row["gro_flush_timeout_ns"] = reader.number(folder / "gro_flush_timeout")
    row["napi_defer_hard_irqs"] = reader.number(folder / "napi_defer_hard_irqs")


def _queues(reader: Reader, folder: Path, row: dict[str, Any]) -> Rows:
    rows = []
    for queue in reader.entries(folder / "queues"):
        direction, _, number = queue.name.partition("-")
        if not number.isdigit() or direction not in ("rx", "tx"):
            continue
        one: dict[str, Any] = {
            "netns": reader.netns,
            "interface": row["interface"],
            "direction": direction,
            "number": int(number),
        }
        if direction == "rx":
            one["rps_cpus"] = cpus_of_mask(reader.text(queue / "rps_cpus", "rps_cpus"))
            one["rps_flow_cnt"] = reader.number(queue / "rps_flow_cnt", "rps_flow_cnt")
        else:
            one["xps_cpus"] = cpus_of_mask(reader.text(queue / "xps_cpus", "xps_cpus"))
        rows.append(one)
    return rows


def _interrupts(reader: Reader, device: Path) -> list[int]:
    """A virtio device has its interrupts from the PCI device above it."""
    place = device.resolve()
    for folder in (place, place.parent):
        found = [int(path.name) for path in reader.entries(folder / "msi_irqs") if path.name.isdigit()]
        if found:
            return found
    return []


def read_counts(reader: Reader) -> dict[str, Rows]:
    """The table `irqs` with numbers and counts alone, of all devices."""
    return {"irqs": [{"number": number, "counts": counts} for number, _, counts in _interrupt_lines(reader)]}


def _irqs(reader: Reader, owned: dict[int, str], interfaces: Rows) -> Rows:
    names = sorted((row["interface"] for row in interfaces if row["driver"]), key=len, reverse=True)
    buses = {row["address_on_bus"]: row["interface"] for row in interfaces if row["bus"] == "virtio"}
    rows = []
    for number, name, counts in _interrupt_lines(reader):
        interface = owned.get(number) or _named(name, names, buses)
        if interface is None or name.endswith("-config"):
            continue
        folder = reader.roots.proc / "irq" / str(number)
        rows.append(
            {
                "number": number,
                "name": name,
                "interface": interface,
                "affinity": cpus_of_list(reader.text(folder / "smp_affinity_list", "affinity of interrupts")),
                "effective": cpus_of_list(reader.text(folder / "effective_affinity_list", "affinity of interrupts")),
                "counts": counts,
            }
        )
    return rows


def _interrupt_lines(reader: Reader) -> Iterator[tuple[int, str, dict[str, int]]]:
    """Number, name and counts by processor of each interrupt that has a number."""
    lines = (reader.text(reader.roots.proc / "interrupts", "/proc/interrupts") or "").splitlines()
    cpus = [int(word[3:]) for word in lines[0].split() if word[3:].isdigit()] if lines else []
    for line in lines[1:]:
        head, _, rest = line.partition(":")
        words = rest.split()
        if head.strip().isdigit() and len(words) > len(cpus):
            counts = zip(cpus, words, strict=False)
            yield int(head), words[-1], {str(cpu): int(word) for cpu, word in counts if word.isdigit() and word != "0"}


def _named(name: str, interfaces: Iterable[str], buses: dict[str, str]) -> str | None:
    """Drivers name their interrupts after the interface, `eth0-TxRx-0`; virtio after the device, `virtio0-input.0`."""
    device = re.match(r"virtio\d+", name)
    if device and device[0] in buses:
        return buses[device[0]]
    words = re.split(r"[-:@.]", name)
    return next((interface for interface in interfaces if interface in words), None)


def _pci(reader: Reader, device: Path, interface: str) -> dict[str, Any]:
    return {
        "interface": interface,
        "vendor": reader.text(device / "vendor"),
        "device": reader.text(device / "device"),
        "speed_gt_per_sec": _speed(reader.text(device / "current_link_speed")),
        "max_speed_gt_per_sec": _speed(reader.text(device / "max_link_speed")),
        "width": _width(reader.number(device / "current_link_width")),
        "max_width": _width(reader.number(device / "max_link_width")),
        "iommu_group": (device / "iommu_group").exists(),
        "iommu_type": reader.text(device / "iommu_group/type"),
    }


def _speed(text: str | None) -> float | None:
    found = re.match(r"(\d+(?:\.\d+)?) GT/s", text or "")
    return float(found[1]) if found else None


def _width(lanes: int | None) -> int | None:
    """255 and 0 stand for a device that is not behind a link, as in virtual machines."""
    return lanes if lanes is not None and 0 < lanes < 255 else None
