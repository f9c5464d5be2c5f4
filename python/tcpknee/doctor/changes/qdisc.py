"""The queueing discipline of an interface: one at the root, or one below each queue of `mq`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tcpknee.errors import UsageError

from . import netlink
from .change import CannotChange, Change, State, interface_index, interface_name, whole_number

TC_H_ROOT = 0xFFFFFFFF
TC_H_INGRESS = 0xFFFFFFF1
TCA_KIND, TCA_OPTIONS = 1, 2
_TCMSG = struct.Struct("=BxHiIII")

OUR_HANDLE = 0x4B4E0000
"""Ours are recognised by it, also when a crash left no word of what came of an attempt; leaves count on from it."""

RESTORABLE = {"noqueue", "noop", "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "codel", "mq"}
"""Kinds that are the same again when the kernel gets back the options that it told."""

OPTIONS: dict[str, dict[str, int]] = {
    "fq": {"limit": 1, "flow_limit": 2, "horizon": 14},
    "fq_codel": {"limit": 2, "flows": 5},
    "pfifo": {"limit": 0},
    "bfifo": {"limit": 0},
    "pfifo_fast": {},
    "mq": {},
}
"""Kinds that can be asked for, with the attribute of each option; 0: the options are one number
(include/uapi/linux/pkt_sched.h). `horizon` counts microseconds, as `limit` of bfifo counts bytes."""

CODEL_TIMES = {"fq_codel": {1, 3, 7}, "codel": {1, 3, 5}}
"""Attributes of durations that CoDel stores in units of 1,024 ns, and tells rounded down to microseconds."""

FQ_CE_THRESHOLD = 12
FQ_NO_CE_THRESHOLD = (((1 << 64) - 1) // 1000) & ((1 << 32) - 1)
"""What fq tells when it has no threshold; given back, it would be one."""


@dataclass(frozen=True)
class Qdisc(Change):
    """`qdisc` at the root of the interface, or an `mq` with one below each of its transmit queues, of which there are
    `leaves`."""

    interface: str
    qdisc: str
    options: tuple[tuple[str, int], ...] = ()
    leaves: int = 0

    kind: ClassVar[str] = "qdisc"

    def __post_init__(self) -> None:
        interface_name(self.interface)
        # A journal's JSON has lists.
        object.__setattr__(self, "options", tuple((name, value) for name, value in self.options))
        if self.qdisc not in OPTIONS or (self.leaves and self.qdisc == "mq"):
            raise UsageError(f'change: got the qdisc "{self.qdisc}"; expected one of {", ".join(OPTIONS)}.')
        whole_number("leaves", self.leaves)
        for name, value in self.options:
            if name not in OPTIONS[self.qdisc]:
                raise UsageError(
                    f'change: {self.qdisc}: got the option "{name}"; expected {list(OPTIONS[self.qdisc]) or "none"}.'
                )
            whole_number(name, value)

    @property
    def target(self) -> str:
        return f"{self.interface} qdisc"

    def commands(self) -> list[list[str]]:
        if not self.leaves:
            return [self._command(["root"], OUR_HANDLE)]
        root = ["tc", "qdisc", "replace", "dev", self.interface, "root", "handle", f"{OUR_HANDLE >> 16:x}:", "mq"]
        below = (
            self._command(["parent", f"{OUR_HANDLE >> 16:x}:{queue + 1:x}"], _leaf_handle(queue))
            for queue in range(self.leaves)
        )
        return [root, *below]

    def _command(self, where: list[str], handle: int) -> list[str]:
        units = {"horizon": "us"}
        words = [word for name, value in self.options for word in (name, f"{value}{units.get(name, '')}")]
        place = [*where, "handle", f"{handle >> 16:x}:"]
        return ["tc", "qdisc", "replace", "dev", self.interface, *place, self.qdisc, *words]

    def told(self, state: State) -> str:
        """Kinds and handles: the options are bytes of the kernel's."""
        try:
            return ", ".join(f"{one['kind']} {one['handle'] >> 16:x}:" for one in state) or "none"
        except (KeyError, TypeError):
            # It comes from a journal, which may have been edited.
            return super().told(state)

    def _read(self) -> State:
        """Root and, where it is `mq`, leaves: kind, handle, parent, and the options as hexadecimal bytes."""
        index = interface_index(self.interface)
        found = []
        for body in netlink.dump(netlink.RTM_GETQDISC, _TCMSG.pack(0, 0, index, 0, 0, 0)):
            _, _, of, handle, parent, _ = _TCMSG.unpack_from(body)
            if of == index and parent != TC_H_INGRESS:
                told = netlink.attributes(body[_TCMSG.size :])
                options = netlink.first(told, TCA_OPTIONS) or b""
                name = netlink.text(netlink.first(told, TCA_KIND))
                found.append({"kind": name, "handle": handle, "parent": parent, "options": options.hex()})
        found.sort(key=lambda one: (one["parent"] != TC_H_ROOT, one["parent"]))
        return found

    def _goal(self, before: State) -> State:
        odd = {one["kind"] for one in before} - RESTORABLE
        if odd or (len(before) > 1 and before[0]["kind"] != "mq"):
            names = ", ".join(sorted(odd)) or before[0]["kind"]
            raise CannotChange(
                f"{self.target}: somebody set up {names} with classes or options that could not be put back exactly. "
                f"Remove it, or change it by hand: {' '.join(self.commands()[0])}"
            )
        options = self._packed_options().hex()
        if not self.leaves:
            return [{"kind": self.qdisc, "handle": OUR_HANDLE, "parent": TC_H_ROOT, "options": options}]
        queues = self._transmit_queues()
        if queues < 2:
            raise CannotChange(f"{self.target}: has one transmit queue, so that there is no mq; change its root.")
        root = {"kind": "mq", "handle": OUR_HANDLE, "parent": TC_H_ROOT, "options": ""}
        below = [
            {
                "kind": self.qdisc,
                "handle": _leaf_handle(queue),
                "parent": OUR_HANDLE + queue + 1,
                "options": options,
            }
            for queue in range(queues)
        ]
        return [root, *below]

    def _reached(self, goal: State, now: State) -> bool:
        # The kernel tells more options than it was given.
        return _shape(goal) == _shape(now)

    def midway(self, states: Sequence[State], now: State) -> bool:
        known = {one for state in states for one in _shape(state)}
        return all(handle == 0 or (kind, handle, parent) in known for kind, handle, parent in _shape(now))

    def _transmit_queues(self) -> int:
        from .queues import queue_numbers

        return len(queue_numbers(self.interface, "tx"))

    def _packed_options(self) -> bytes:
        attributes = OPTIONS[self.qdisc]
        if 0 in attributes.values():
            return struct.pack("=I", self.options[0][1]) if self.options else b""
        return netlink.packed((attributes[name], struct.pack("=I", value)) for name, value in self.options)

    def _apply(self, state: State) -> None:
        index = interface_index(self.interface)
        now = self._read()
        if now and now[0]["handle"] and (not state or state[0]["handle"] in (0, now[0]["handle"])):
            # The kernel then attaches its default, whose handle is 0. Any other qdisc takes the place of this one.
            netlink.act(netlink.RTM_DELQDISC, 0, _TCMSG.pack(0, 0, index, now[0]["handle"], TC_H_ROOT, 0))
        for one in state:
            if one["handle"]:
                self._create(index, one)

    def _create(self, index: int, one: dict[str, Any]) -> None:
        options = given_back(one["kind"], bytes.fromhex(one["options"]))
        attributes = [(TCA_KIND, one["kind"].encode() + b"\0")]
        if options:
            attributes.append((TCA_OPTIONS, options))
        head = _TCMSG.pack(0, 0, index, one["handle"], one["parent"], 0)
        flags = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
        try:
            netlink.act(netlink.RTM_NEWQDISC, flags, head + netlink.packed(attributes))
        except FileNotFoundError:
            raise CannotChange(
                f"{self.target}: this kernel has no {one['kind']}. Load it (modprobe sch_{one['kind']}), or choose a "
                "kernel that has it."
            ) from None


def _leaf_handle(queue: int) -> int:
    return OUR_HANDLE + (queue + 1 << 16)


def _shape(state: State) -> list[tuple[Any, ...]]:
    return [(one["kind"], one["handle"], one["parent"]) for one in state]


def given_back(kind: str, options: bytes) -> bytes:
    """The options to give to the kernel, so that it tells `options` afterwards."""
    if kind in CODEL_TIMES:
        return _each(options, lambda one, content: _codel_time(content) if one in CODEL_TIMES[kind] else content)
    if kind == "fq":
        found = netlink.attributes(options)
        none = struct.pack("=I", FQ_NO_CE_THRESHOLD)
        return netlink.packed(one for one in found if one != (FQ_CE_THRESHOLD, none))
    return options


def _each(options: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    return netlink.packed((kind, change(kind, content)) for kind, content in netlink.attributes(options))


def _codel_time(content: bytes) -> bytes:
    (told_us,) = struct.unpack("=I", content)
    given_us = next(us for us in range(told_us, told_us + 3) if codel_told_us(us) == told_us)
    return struct.pack("=I", given_us)


def codel_told_us(given_us: int) -> int:
    """What CoDel says of a duration that it was given (codel_time_to_us() in include/net/codel.h)."""
    return ((given_us * 1000 >> 10) << 10) // 1000
