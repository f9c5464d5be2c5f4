"""The process that `elsewhere` starts in a network namespace. It answers questions about changes in lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tcpknee.errors import TcpkneeError

from . import CannotChange, change_of


def main() -> int:
    """Answers until its standard input ends."""
    # The /sys that is there may be of this very namespace: the kernel then says that it is busy.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], stderr=subprocess.DEVNULL, check=False)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            returned = getattr(change_of(asked["change"]), asked["method"])(*asked["arguments"])
        except TcpkneeError as error:
            answer: dict[str, Any] = {
                "refused": str(error),
                "is_gone": isinstance(error, CannotChange) and error.is_gone,
            }
        else:
            answer = {"returned": returned}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
