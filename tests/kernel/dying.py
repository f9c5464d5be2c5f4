"""Makes or takes back changes, and says on stdout what came of each: dying.py JOURNAL make|undo < CHANGES

After `mortals` a process is killed at a point of it. Points are counted from 1, before and after each write of the
journal and each step in which the kernel is changed."""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tcpknee import _core
from tcpknee.doctor import fix
from tcpknee.doctor.changes import Change, change, change_of, masks, netlink, rfs, sysctl, txqueuelen
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.journal import Journal, open_journal

passed = 0


def mortal(act: Callable[..., Any], point: int) -> Callable[..., Any]:
    """`act`, before and after which the process may be killed."""

    def die_if_due() -> None:
        global passed
        passed += 1
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def done(*arguments: Any, **named: Any) -> Any:
        die_if_due()
        result = act(*arguments, **named)
        die_if_due()
        return result

    return done


def mortals(point: int) -> None:
    """From here on this process may be killed wherever it writes the journal or changes the kernel."""
    Journal.write = mortal(Journal.write, point)  # type: ignore[method-assign]
    netlink.act = mortal(netlink.act, point)
    _core.set_ethtool_numbers = mortal(_core.set_ethtool_numbers, point)
    _core.set_ethtool_features = mortal(_core.set_ethtool_features, point)
    write = mortal(change.write_setting, point)
    for module in (sysctl, masks, rfs, txqueuelen):
        module.write_setting = write  # type: ignore[attr-defined]


def finding_of(changes: Sequence[Change]) -> Finding:
    """A finding with these changes, about which nothing else matters."""
    return Finding("a-rule", "advice", "host", "", {}, "", changes=changes)


def make(changes: Sequence[Change], journal: Path) -> list[fix.Result]:
    with open_journal(journal) as book:
        steps, others = fix.planned([finding_of(changes)])
        return [*others, *fix.made(steps, book)]


def undo(journal: Path) -> list[fix.Result]:
    with open_journal(journal) as book:
        return fix.undone(book)


def main(folder: str, what: str) -> None:
    changes = [change_of(one) for one in json.load(sys.stdin)]
    results = make(changes, Path(folder)) if what == "make" else undo(Path(folder))
    print(json.dumps({"results": [result.json() for result in results]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
