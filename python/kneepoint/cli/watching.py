"""`knee watch`."""

from __future__ import annotations

import os
from typing import Any

from kneepoint import _core, say
from kneepoint.errors import UsageError
from kneepoint.progress import Phase

SHORTEST_S = 0.1


def run(wanted: dict[str, Any], *, netns: str | None, every: str, sort: str, rows: int, once: bool, json: bool) -> int:
    """`knee watch`."""
    every_s = _core.duration_ns("--every", every) / 1e9
    if every_s < SHORTEST_S:
        raise UsageError(f'--every: got "{every}"; expected 100ms at least.')
    from kneepoint.observe.watch import view

    if sort not in view.BY_NAME:
        raise UsageError(f'--sort: got "{sort}"; expected one of {", ".join(view.BY_NAME)}.')
    # The screen is written to stderr.
    if not once and not json and not say.is_interactive():
        raise UsageError(
            "knee watch: stdin, stdout or stderr is no terminal; expected all three to be one. `knee watch --once` "
            "prints one interval as text, `--json` as JSON, and `knee record` writes every interval to files."
        )
    if once or json:
        from kneepoint.observe.watch import once as printing

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
    from kneepoint.observe.watch.app import Watch

    # The screen has no colours. Textual's way of taking colours out would make the terminal's own ones black on black.
    os.environ.pop("NO_COLOR", None)
    app = Watch(wanted, netns, every_s, sort)
    with app.ending:
        app.run()
    return app.return_code or 0
