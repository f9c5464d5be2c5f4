"""Changes of a host's settings: a file each, or one for those that are alike. `KINDS` lists them.

change = Sysctl("net.core.somaxconn", "4096")
before = change.read()
change.apply(change.goal(before))
change.apply(before)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .change import (
    BootCommands,
    BootFile,
    CannotChange,
    Change,
    NotPersistent,
    Persistence,
    State,
    SysctlLine,
)
from .channels import Channels
from .checked import checked
from .coalesce import Coalesce
from .masks import IrqAffinity, Rps, Xps
from .offload import Offload
from .qdisc import Qdisc
from .rfs import RfsEntries, RpsFlows
from .ring import Ring
from .route import RouteWindow
from .sysctl import Sysctl
from .txqueuelen import TxQueueLen

KINDS: tuple[type[Change], ...] = (
    Channels,
    Ring,
    Offload,
    Coalesce,
    TxQueueLen,
    Qdisc,
    Rps,
    RpsFlows,
    Xps,
    IrqAffinity,
    RouteWindow,
    RfsEntries,
    Sysctl,
)
"""In the order in which they are made: drivers set up queues anew, and a qdisc that is taken away is followed by the
one that a sysctl names, so the sysctl has to be back first."""


def change_of(found: Mapping[str, Any]) -> Change:
    """The change that `Change.json` gave. Raises KeyError, TypeError, UsageError."""
    kind = {kind.kind: kind for kind in KINDS}[found["kind"]]
    return kind(**checked(kind, {name: value for name, value in found.items() if name != "kind"}))


__all__ = [
    "KINDS",
    "BootCommands",
    "BootFile",
    "CannotChange",
    "Change",
    "Channels",
    "Coalesce",
    "IrqAffinity",
    "NotPersistent",
    "Offload",
    "Persistence",
    "Qdisc",
    "RfsEntries",
    "Ring",
    "RouteWindow",
    "Rps",
    "RpsFlows",
    "State",
    "Sysctl",
    "SysctlLine",
    "TxQueueLen",
    "Xps",
    "change_of",
    "checked",
]
