"""`knee calibrate`."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpknee import say
from tcpknee.errors import UsageError
from tcpknee.say import aligned

from .options import PATH, Whole, force_option, foreign, free, json_option, quiet_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpknee.calibration.calibrate import Calibration, Checked


@click.command("calibrate", short_help="Measure what operations cost on this host, for the simulator.")
@click.option(
    "--out", type=PATH, metavar="FILE.toml", help="The profile to write, by default this host's own (docs/host.md)."
)
@click.option("--rounds", type=Whole(min=2), default=5, show_default=True, help="How often each run is made.")
@click.option("--prior", default="published", show_default=True, help="The shipped profile to begin with.")
@click.option("--no-check", is_flag=True, help="Leave out the runs that the profile is held against.")
@click.option("--busy", is_flag=True, help="Also on a machine that has other work; intervals are wider then.")
@force_option
@foreign
@json_option
@quiet_option
def command(out: Path | None, rounds: int, prior: str, no_check: bool, busy: bool, json: bool, quiet: bool) -> int:
    """Measure what this host's operations cost, and write a profile that scenarios can name.

    \b
      knee calibrate --out this-host.toml
      [sender]
      costs = "file this-host.toml"

    Short runs on the real kernel, in a lab of two hosts joined by a veth pair, are made in turns: requests and streams
    of several sizes, depths and numbers of connections. What operations cost is fitted to them by way of the host
    model, and the result is held against runs that the fit has not seen. It takes about a minute a round, and needs a
    quiet machine with two processors.
    """
    if out is not None:
        free(out)
    from tcpknee import _core
    from tcpknee.calibration import calibrate as calibration
    from tcpknee.calibration import own, profile
    from tcpknee.runs.progress import Line

    names = [one["name"] for one in _core.cost_profiles()]
    if prior not in names:
        raise UsageError(f'knee calibrate --prior: got "{prior}"; expected one of {", ".join(names)}.')
    with Line(quiet=quiet or json) as line:

        def tell(done: int, of: int, what: str) -> None:
            line(f"{done} of {of} runs done; next: {what}")

        found = calibration.calibrate(rounds, prior, check=not no_check, busy=busy, tell=tell)
    how = f"fitted by knee calibrate {_core.version()} to {len(found.fitted)} kinds of runs, {rounds} rounds"
    if found.busy_share > calibration.BUSY_SHARE:
        how += f", beside other work ({found.busy_share:.0%} of the processors' time before)"
    text = profile.written(
        found.costs,
        title=f"This host, Linux {platform.release()}",
        kernel=platform.release(),
        machine=own.machine(),
        how=how,
        prior=prior,
    )
    out = out or own.place()
    profile.keep(out, text)
    if json:
        say.json(_object(found, out))
    else:
        _tell(found, out, prior)
    return 0


def _rows(checked: Sequence[Checked]) -> list[list[str]]:
    rows = []
    for one in checked:
        low, high = one.measured.interval
        rows.append(
            [
                one.measured.micro.name,
                f"{one.measured.ns:.4g}",
                f"[{low:.4g}, {high:.4g}]",
                f"{one.predicted_ns:.4g}",
                f"{one.error:+.1%}",
                f"{one.beyond:+.1%}",
            ]
        )
    return rows


def _not_seen(found: Calibration) -> list[str]:
    """Costs of which the runs say nothing."""
    return [name for name, cost in found.costs.items() if cost.ns > 0 and not cost.is_seen]


def _tell(found: Calibration, out: Path, prior: str) -> None:
    header = ["run", "measured ns", "95 %", "model ns", "error", "beyond 95 %"]
    tables = (
        ("Fitted to", found.fitted),
        ("Held back", found.checked),
        ("Neither, since the model does something else there (docs/host.md)", found.differs),
    )
    for title, checked in tables:
        if checked:
            say.line(title)
            say.lines(aligned([header, *_rows(checked)], left=[True, False, False, False, False, False]))
            say.line("")
    for title, checked in (("fitted to", found.fitted), ("held back", found.checked)):
        if checked:
            errors = sorted(abs(one.beyond) for one in checked)
            median, worst = errors[len(errors) // 2], errors[-1]
            say.line(f"{title}: beyond the measurement's own interval, median error {median:.1%}, worst {worst:.1%}")
    say.line(f"{found.rounds} rounds; the slowest was {found.spread:.2f} times the fastest")
    if names := _not_seen(found):
        say.line(f"not seen by these runs, and as in {prior}: {', '.join(names)}")
    say.line(f"profile: {out}")


def _object(found: Calibration, out: Path) -> dict[str, object]:
    def runs(checked: Sequence[Checked]) -> list[dict[str, object]]:
        return [
            {
                "run": one.measured.micro.name,
                "measured_ns": one.measured.ns,
                "low_ns": one.measured.interval[0],
                "high_ns": one.measured.interval[1],
                "model_ns": one.predicted_ns,
                "error": one.error,
                "error_beyond_interval": one.beyond,
            }
            for one in checked
        ]

    return {
        "schema": 1,
        "profile": str(out),
        "not_seen": _not_seen(found),
        "rounds": found.rounds,
        "round_spread": found.spread,
        "busy_share": found.busy_share,
        "costs": {name: {"ns": cost.ns, "low": cost.low, "high": cost.high} for name, cost in found.costs.items()},
        "fitted": runs(found.fitted),
        "held_back": runs(found.checked),
        "differs": runs(found.differs),
    }
