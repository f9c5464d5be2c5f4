"""`knee snapshot`."""

from __future__ import annotations

from pathlib import Path

import click

from tcpknee import say
from tcpknee.errors import UsageError
from tcpknee.human import counted

from . import until
from .options import PATH, force_option, foreign, free, json_option


@click.command("snapshot", short_help="Write down this host's settings and counters, for the doctor.")
@click.option("--out", metavar="FILE", type=PATH, help="Where to write it.  [default: stdout]")
@click.option("--netns", metavar="NAME|PID", help="Of this network namespace (root); by default of our own.")
@click.option("--for", "length", metavar="TIME", help="Count twice, this time apart as in 10s: what still goes on.")
@force_option
@foreign
@json_option
def command(out: Path | None, netns: str | None, length: str | None, json: bool) -> int:
    """Write down what this host is set to and has counted, as one JSON file that `knee doctor` judges anywhere.

    Nothing is changed or loaded, and root is not needed: what cannot be read is named. Addresses of connections, keys
    and passwords are left out. Example: knee snapshot --out web7.json; knee doctor --snapshot web7.json
    """
    from tcpknee.doctor import snapshot

    if json and out is None:
        raise UsageError("--json: got it without --out; expected both: without --out the snapshot itself is printed.")
    if out is not None:
        free(out)
    taken = snapshot.take_in(netns, until.seconds(length))
    if out is None:
        say.json(taken.json())
        return 0
    taken.write(out)
    rows = {name: len(rows) for name, rows in taken.tables.items()}
    if json:
        say.json({"schema": 1, "file": str(out), "rows": rows, "missing": taken.json()["missing"]})
        return 0
    say.line(f"Snapshot: {out} ({counted(out.stat().st_size, 'byte')}, {counted(sum(rows.values()), 'row')})")
    for one in taken.missing:
        say.line(f"Could not be read: {one.what}: {one.why}" + (f" (needs {one.needs})" if one.needs else ""))
    return 0
