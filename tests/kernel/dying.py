"""Makes or takes back changes, and is killed at a point of it: dying.py JOURNAL POINT make|undo < CHANGES

Points are counted from 1, before and after each write of the journal and each step in which the kernel is changed. With
POINT 0 it lives to its end. Either way it says on stdout how many points there were, or what came of each change."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kneepoint.doctor import fix
from kneepoint.doctor.changes import change, change_of, ethtool, masks, netlink, rfs, sysctl, txqueuelen
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.journal import Journal, open_journal

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


def main(folder: str, point: int, what: str) -> None:
    Journal.write = mortal(Journal.write, point)  # type: ignore[method-assign]
    netlink.act = mortal(netlink.act, point)
    ethtool.set_numbers = mortal(ethtool.set_numbers, point)
    ethtool.set_features = mortal(ethtool.set_features, point)
    write = mortal(change.write_setting, point)
    for module in (sysctl, masks, rfs, txqueuelen):
        module.write_setting = write  # type: ignore[attr-defined]
    changes = [change_of(one) for one in json.load(sys.stdin)]
    with open_journal(Path(folder)) as journal:
        if what == "make":
            finding = Finding("a-rule", "advice", "host", "", {}, "", changes=changes)
            steps, results = fix.planned([finding])
            results += fix.made(steps, journal)
        else:
            results = fix.undone(journal)
    print(json.dumps({"points": passed, "results": [result.json() for result in results]}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
