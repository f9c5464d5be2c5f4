"""`knee gate`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say

from . import completion
from .options import (
    PATH,
    SEED_MAX,
    Engines,
    Whole,
    foreign,
    foreign_files,
    is_given,
    json_option,
    name_list,
    names_of,
    quiet_option,
)

if TYPE_CHECKING:
    from tcpknee.gate.judging import Gate, Judged


@click.command("gate", short_help="Say what a change to congestion control does, row by row.")
@click.argument("algorithm", metavar="ALGO", shell_complete=completion.of(completion.algorithms, files=True))
@click.option(
    "--against",
    metavar="ALGO",
    default="cubic",
    show_default=True,
    shell_complete=completion.of(completion.algorithms, files=True),
    help="What it is measured beside: also the competitor whose harm is told.",
)
@click.option(
    "--suite",
    metavar="NAME|FILE",
    shell_complete=completion.of(completion.suites, files=True),
    help="Rows to run.  [default: rfc9743]",
)
@click.option("--row", "only", metavar="ROW[,ROW...]", multiple=True, help="Only these rows.")
@click.option("--rfc9743", is_flag=True, help="The criteria of RFC 9743 decide too, in the order of the RFC.")
@click.option(
    "--engine",
    type=Engines(("sim", "kernel", "guest")),
    default="sim",
    show_default=True,
    help="What runs the rows; several are told in turn.",
)
@click.option(
    "--kernel",
    metavar="NAMES",
    default="",
    callback=name_list,
    shell_complete=completion.of(completion.kernels_and_releases, lists=True),
    help="Whose rules hold, or with --engine guest which kernels boot.",
)
@click.option(
    "--against-kernel",
    metavar="NAME",
    default="",
    shell_complete=completion.of(completion.kernels_and_releases),
    help="The kernel of --against, beside the one of --kernel.",
)
@click.option("--seed", type=Whole(0, SEED_MAX), default=1, show_default=True, help="Of all chance, the same for both.")
@click.option("--budget", metavar="TIME", help="Begin no row after so long, such as 10min; missing rows fail.")
@click.option("--workers", type=Whole(min=1), help="Repetitions at once; by default one per processor.")
@click.option(
    "--out", "-o", metavar="DIR", type=PATH, help="Folder for the report and reproducers.  [default: runs/gate-ALGO-N]"
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the gate in --out, whose guests or kernel did not come to the end.",
)
@click.option("--junit", metavar="FILE", type=PATH, help="Write the rows as test cases of JUnit too.")
@click.option(
    "--format", "kind", type=click.Choice(("text", "md")), default="text", show_default=True, help="Of what is printed."
)
@foreign
@json_option
@quiet_option
@foreign_files
def command(
    algorithm: str,
    against: str,
    suite: str | None,
    only: tuple[str, ...],
    rfc9743: bool,
    engine: str,
    kernel: tuple[str, ...],
    against_kernel: str,
    seed: int,
    budget: str | None,
    workers: int | None,
    out: Path | None,
    resume: bool,
    junit: Path | None,
    kind: str,
    json: bool,
    quiet: bool,
) -> int:
    """Run an algorithm and another one through a suite, on the same seeds, and say what is worse.

    ALGO is a name, a file (./mine.c, a kernel's tcp_x.c), or a file of a git revision (./mine.c@HEAD~1). The exit code
    is 1 when a row is worse than with the other algorithm, when the algorithm crashed, or when the time did not do.

    \b
      knee gate ./mine.c --rfc9743
      knee gate ./tcp_cubic.c --against ./tcp_cubic.c@HEAD~1 --budget 10min --junit gate.xml
      knee gate cubic --engine guest --kernel ~/linux@HEAD --against-kernel ~/linux@HEAD~1
    """
    if rfc9743 and suite not in (None, "rfc9743"):
        raise click.UsageError(f"--rfc9743: got it with --suite {suite}; expected one of them.")
    if against_kernel and len(kernel) != 1:
        raise click.UsageError(
            f"--against-kernel {against_kernel}: got {len(kernel) or 'no'} kernels for --kernel; expected one."
        )
    begun = time.monotonic()
    from tcpknee import _core
    from tcpknee.gate import candidates, judging, report
    from tcpknee.gate import suite as suites
    from tcpknee.runs import engines as known
    from tcpknee.runs.folder import next_free
    from tcpknee.runs.progress import Line
    from tcpknee.writing import replacing

    from . import running

    if junit is not None and junit.exists():
        raise click.UsageError(f"--junit: {junit} is there already; expected a name that is free.")
    deadline = begun + _core.duration_ns("--budget", budget) / 1e9 if budget is not None else None
    rows = suites.find(suite or "rfc9743")
    names = names_of("--row", only, [row.name for row in rows.rows], f"expected rows of {rows.name}:") if only else ()
    stem = re.sub(r"[^\w.-]+", "-", Path(candidates.path_of(algorithm)).stem)
    engines = engine.split(",")
    own = [name for name in engines if known.in_real_time(name)]
    for option, given in (("--kernel", kernel and own == engines), ("--against-kernel", against_kernel and own)):
        if given:
            raise click.UsageError(
                f"{option}: got it with --engine {engine}; expected the engines sim or guest, as this host has its own "
                "kernel."
            )
    if resume:
        _check_resumed(out, engines, f"gate-{stem}")
    folder = out or next_free(running.RUNS, f"gate-{stem}")
    if not resume and folder.exists() and any(folder.iterdir()):
        raise click.UsageError(
            f"--out: {folder} is not empty; expected a new folder, so that no old finding stays in it."
        )
    if "guest" in engines:
        kernel, against_kernel = tuple(_built(one, quiet) for one in kernel), _built(against_kernel, quiet)
    new, base = candidates.of("knee gate", algorithm, against, in_guests_alone=engines == ["guest"])
    gates = [
        judging.Gate(
            rows,
            new,
            base,
            folder / name if len(engines) > 1 else folder,
            only=names,
            engine=name,
            # This host's own kernel is none that an option names, and stands beside those.
            kernels=() if name in own else kernel,
            base_kernel=against_kernel,
            seed=seed,
            deadline=deadline,
            workers=workers,
            resume=resume,
        )
        for name in engines
    ]
    done: list[tuple[Gate, list[Judged]]] = []
    objects = []
    again = ["knee", "gate", algorithm, *_again()]
    for gate in gates:
        gate.prepare()
    with running.interruptible(folder, f"**/{judging.RUNS}/*/run.json", again):
        for gate in gates:
            with Line(quiet=quiet, lines=True) as progress:
                done.append((gate, gate.run(progress)))
            objects.append(report.as_json(*done[-1], by_criteria=rfc9743))
            _write(*done[-1], objects[-1], by_criteria=rfc9743)
    if junit is not None:
        with replacing(junit, make=True) as file:
            file.write(report.junit(done, by_criteria=rfc9743))
    if json:
        say.json({"schema": report.SCHEMA, "gates": objects}, allow_nan=False)
    else:
        for number, (gate, found) in enumerate(done):
            if number:
                say.line("")
            if kind == "md":
                say.lines(report.markdown(gate, found, by_criteria=rfc9743))
            else:
                say.lines(report.lines(gate, found, say.room(), by_criteria=rfc9743))
        # A table that cannot be written is an error before the report is named.
        say.flush()
        say.warn(f"Report: {folder}, after {human.duration(int((time.monotonic() - begun) * 1e9))}.")
    return 0 if all(report.verdict(found, by_criteria=rfc9743)[0] for _, found in done) else 1


_ANOTHER_TIMES = {"algorithm", "budget", "out", "resume", "kind", "json", "quiet"}
"""Not what the command that goes on with a gate has to say again behind its algorithm."""


def _again() -> Iterator[str]:
    """The options that this command was given and that say what is run."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name and option.name not in _ANOTHER_TIMES and is_given(option.name):
            value = context.params.get(option.name, True)
            yield option.opts[0]
            if value is not True:
                yield ",".join(value) if isinstance(value, tuple) else str(value)


def _check_resumed(out: Path | None, engines: Sequence[str], stem: str) -> None:
    """Refuses a gate that there is not, or that keeps nothing."""
    from . import running

    if engines == ["sim"]:
        raise click.UsageError(
            "--resume: got it with the engine sim, whose rows are run in a minute or two and not kept; expected guest "
            "or kernel. Leave it out."
        )
    if out is None:
        raise running.no_folder("gate", stem)
    if not out.is_dir():
        raise click.UsageError(f"--resume: there is no folder {out}; expected that of a gate. Leave it out.")


def _built(kernel: str, quiet: bool) -> str:
    """The name of a kernel that guests can boot, which is built where it is a tree; of none none."""
    from tcpknee.kernels import building
    from tcpknee.runs.progress import Phase

    return building.name_of(kernel, lambda title: Phase(title, quiet=quiet, lines=True)) if kernel else ""


def _write(gate: Gate, found: Sequence[Judged], as_object: Mapping[str, Any], *, by_criteria: bool) -> None:
    """The files of its folder; `as_object`: what it found, for JSON."""
    from tcpknee.gate import report
    from tcpknee.pages import gate_page
    from tcpknee.writing import replacing

    written = {
        "report.html": gate_page.render(as_object).encode(),
        "gate.json": report.json_bytes(as_object),
        "junit.xml": report.junit([(gate, found)], by_criteria=by_criteria),
        "badge.json": report.badge(gate, found, by_criteria=by_criteria),
        "report.md": "\n".join([*report.markdown(gate, found, by_criteria=by_criteria), ""]).encode(),
    }
    for file_name, content in written.items():
        with replacing(gate.folder / file_name, make=True) as file:
            file.write(content)
