"""`knee watch`."""

from __future__ import annotations

import os
from typing import Any

import click

from tcpknee import say
from tcpknee.errors import UsageError

from .options import Whole, filter_options, is_given

SHORTEST_S = 0.1


@click.command("watch", short_help="Watch the TCP connections of this host, live.")
@click.option("--every", default="1s", show_default=True, metavar="TIME", help="Between two samples.")
@filter_options
@click.option("--sort", default="acked_bits_per_sec", show_default=True, metavar="COLUMN", help="Order of the rows.")
@click.option("--once", is_flag=True, help="Print one interval as text and end; needs no terminal.")
@click.option("--rows", default=20, show_default=True, type=Whole(min=0), help="With --once; 0: all.")
@click.option("--json", is_flag=True, help="With --once, which it implies: print one JSON object instead.")
def command(port: tuple[str, ...], address: tuple[str, ...], **given: Any) -> int:
    """Watch the TCP connections of this host: rates, windows, round-trip times, and what holds each back.

    Rates are those of the interval between two samples. Keys are on the page that `h` opens.

    Example: knee watch --port 443
    """
    if is_given("rows") and not given["once"] and not given["json"]:
        raise click.UsageError("--rows is for --once; the screen shows as many rows as it holds.")
    wanted = {"ports": port, "addresses": address, "algorithms": given.pop("algorithm"), "states": given.pop("state")}
    wanted |= {name: given.pop(name) for name in ("min_bytes", "mark", "cgroup")}
    return _watch({name: value for name, value in wanted.items() if value}, **given)


def _watch(
    wanted: dict[str, Any], *, netns: str | None, every: str, sort: str, rows: int, once: bool, json: bool
) -> int:
    from tcpknee import _core

    every_s = _core.duration_ns("--every", every) / 1e9
    if every_s < SHORTEST_S:
        raise UsageError(f'--every: got "{every}"; expected 100ms at least.')
    from tcpknee.live.watch import view
    from tcpknee.runs.progress import Phase

    if sort not in view.BY_NAME:
        raise UsageError(f'--sort: got "{sort}"; expected one of {", ".join(view.BY_NAME)}.')
    # The screen is written to stderr.
    if not once and not json and not say.is_interactive():
        raise UsageError(
            "knee watch: stdin, stdout or stderr is no terminal; expected all three to be one. `knee watch --once` "
            "prints one interval as text, `--json` as JSON, and `knee record` writes every interval to files."
        )
    if once or json:
        from tcpknee.live.watch import once as printing

        with Phase(f"Measuring for {every}"):
            sample = printing.measured({**wanted, "netns": netns}, every_s)
        show = printing.as_json if json else printing.as_text
        show(sample, {**wanted, "netns": netns}, sort, view.descends(sort), rows or None)
        return 0
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError(
            'knee watch: TERM is "dumb" or not set, and the screen needs a terminal that can move its cursor; expected '
            "such as TERM=xterm-256color. `knee watch --once` prints one interval as text."
        )
    from tcpknee.live.watch.app import Watch

    # The screen has no colours. Textual's way of taking colours out would make the terminal's own ones black on black.
    os.environ.pop("NO_COLOR", None)
    app = Watch(wanted, netns, every_s, sort)
    with app.ending:
        app.run()
    return app.return_code or 0
