"""`knee assign`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say
from tcpknee.errors import UsageError
from tcpknee.say import aligned

from .options import PATH, SEED_MAX, Whole, foreign, json_option, quiet_option
from .until import seconds, until_ctrl_c

if TYPE_CHECKING:
    from tcpknee.fleet.assign.plan import Plan
    from tcpknee.fleet.assign.running import Outcome

_DESIGNS = ("ab", "cluster", "switchback", "paired-link", "ramp")
_UNITS = ("prefix", "connection", "host")
_PERIODS_SHOWN = 8


@click.command("assign", short_help="Assign algorithms to connections of this host: an A/B test.")
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@click.option("--design", type=click.Choice(_DESIGNS), default="cluster", show_default=True, help="docs/assign.md.")
@click.option("--unit", type=click.Choice(_UNITS), help="What gets one arm as a whole.  [default: prefix, or host]")
@click.option("--prefix", metavar="V4,V6", help="Lengths of the clients' prefixes.  [default: 24,48]")
@click.option("--period", metavar="TIME", help="Of a switchback, or between two steps of a ramp: 10min.")
@click.option("--steps", metavar="SHARES", help="Of a ramp: shares of the first arm, 1%,10%,50%,100%.")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LINK=SHARE",
    help="Of a pair: share of the first arm on a device, a prefix of local addresses or netns:NAME.",
)
@click.option("--begin", metavar="TIME", help="When a ramp's first step begins, on many hosts: 2026-03-01T12:00Z.")
@click.option("--seed", type=Whole(0, SEED_MAX), help="Same seed, same arms, on every host.  [default: drawn]")
@click.option("--port", "ports", multiple=True, metavar="PORT", help="At either end: 443, 8000-8100.")
@click.option("--netns", metavar="NAME|PID", help="Only this network namespace.  [default: all]")
@click.option("--cgroup", metavar="PATH", help="Only this cgroup v2 and those below it.  [default: all]")
@click.option("--bpf", is_flag=True, help="Our build of each algorithm, also where the kernel has its own.")
@click.option("--for", "length", metavar="TIME", help="How long, as in 1h.  [default: until Ctrl-C]")
@click.option("--out", metavar="DIR", type=PATH, help="Folder for the log, which may hold a recording.")
@click.option("--dry-run", is_flag=True, help="Print the plan, and assign nothing.")
@click.option("--which", "clients", multiple=True, metavar="CLIENT", help="With --dry-run: the arm of this address.")
@foreign
@json_option
@quiet_option
def command(
    length: str | None,
    out: Path | None,
    dry_run: bool,
    clients: tuple[str, ...],
    cgroup: str | None,
    json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Give new TCP connections of this host the algorithms of an experiment, and log which got which.

    ARM is ALGORITHM, ALGORITHM=SHARE or NAME:ALGORITHM=SHARE. As in: knee assign bbr1=50% cubic=50% --port 443 --seed 7
    --for 1h --out rec

    It needs root and cgroup v2. When it ends, also by kill -9, nothing of it stays in the kernel (of Linux 6.1 to 6.3
    an algorithm that was loaded); connections keep the algorithm that they were given. Exit code 1: `knee fleet watch`
    ended it, because a guard was crossed.
    """
    from tcpknee.fleet.assign import cgroup as cgroups
    from tcpknee.fleet.assign import running
    from tcpknee.runs.progress import Line

    now_unix_ns = time.time_ns()
    plan = _plan(now_unix_ns, **given)
    if clients and not dry_run:
        raise UsageError("which: is for --dry-run, which assigns nothing.")
    if dry_run:
        return _shown(plan, now_unix_ns, clients, json=json)
    if out is None:
        raise UsageError("out: is missing; what is assigned is logged there.")
    wanted = seconds(length)
    progress = Line(quiet=quiet)
    if not quiet:
        for line in _warnings(plan):
            say.warn(f"knee assign: {line}")

    def tell(outcome: Outcome) -> None:
        progress(f"{human.counted(sum(outcome.assigned), 'connection')} assigned; Ctrl-C ends it")

    with until_ctrl_c() as stop, progress:
        outcome = running.assign(plan, out, cgroup=cgroups.folder(cgroup), seconds=wanted, stop=stop, progress=tell)
    if json:
        say.json({"schema": 1, "folder": str(out), **(running.read(out) or {})})
    else:
        say.lines(_told(plan, outcome, out))
    return 1 if outcome.guard is not None else 0


def _plan(
    now_unix_ns: int, *, arms: tuple[str, ...], seed: int | None, bpf: bool, begin: str | None, **given: Any
) -> Plan:
    from tcpknee.fleet.assign import plan

    return plan.make(
        arms,
        seed=secrets.randbelow(SEED_MAX) if seed is None else seed,
        now_unix_ns=now_unix_ns,
        begin_unix_ns=None if begin is None else plan.instant(begin),
        ours=bpf,
        **given,
    )


def _warnings(plan: Plan) -> Iterator[str]:
    from tcpknee.fleet.assign.plan import is_biased

    if is_biased(plan):
        yield (
            "connections of both arms share bottlenecks, so this shows who wins against the other at these shares, not "
            "what happens when all have it. `--unit prefix` or `--design switchback` do."
        )


def _shown(plan: Plan, now_unix_ns: int, clients: tuple[str, ...], *, json: bool) -> int:
    """`--dry-run`."""
    phases = [plan.phase(now_unix_ns)]
    while phases[-1].ends_unix_ns is not None and len(phases) < _PERIODS_SHOWN:
        phases.append(plan.phase(phases[-1].ends_unix_ns))
    which = dict(zip(clients, plan.arms_of(clients, now_unix_ns), strict=True)) if clients else {}
    if json:
        told = [{"period": phase.period, "shares_pct": phase.shares_pct} for phase in phases]
        say.json({"schema": 1, "seed": plan.timing.seed, "unit": plan.unit, "phases": told, "which": which})
        return 0
    names = [arm.name for arm in plan.arms]
    links = [link.name for link in plan.links] or [""]
    rows = [["period", "link", *names]]
    for phase in phases:
        for link, shares in zip(links, phase.shares_pct, strict=True):
            number = "" if phase.period is None else str(phase.period)
            rows.append([number, link, *(f"{share:g}%" for share in shares)])
    say.line(f"{plan.design.name} by {plan.unit}, seed {plan.timing.seed}; nothing is assigned")
    say.lines(aligned(rows, left=[False, True, *(False for _ in names)]))
    say.lines(f"{client}: {arm}" for client, arm in which.items())
    return 0


def _told(plan: Plan, outcome: Outcome, out: Path) -> Iterator[str]:
    from tcpknee.fleet.assign.running import TABLE

    total = sum(outcome.assigned)
    rows = [["arm", "algorithm", "connections", "share"]]
    for arm, count in zip(plan.arms, outcome.assigned, strict=True):
        share = f"{100 * count / total:.1f}%" if total else "-"
        rows.append([arm.name, outcome.algorithms[arm.algorithm], f"{count:,}", share])
    yield from aligned(rows, left=[True, True, False, False])
    yield (
        f"{plan.design.name} by {plan.unit}, seed {plan.timing.seed}, {human.duration(int(outcome.seconds * 1e9))}; "
        f"logged in {out} (table {TABLE})"
    )
    if outcome.refused:
        yield f"{human.counted(outcome.refused, 'connection')} kept their algorithm: the kernel refused the arm's"
    if outcome.lost:
        yield f"{human.counted(outcome.lost, 'connection')} left alone: too many at once to be logged"
    if outcome.guard is not None:
        yield f"Ended by a guard: {outcome.guard}"
