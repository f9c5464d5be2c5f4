"""`knee export`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import human, say
from tcpknee.errors import RunFolderError, UsageError

from .options import (
    FILTERS,
    PATH,
    Whole,
    filter_options,
    force_option,
    foreign,
    foreign_files,
    free,
    is_given,
    quiet_option,
)

if TYPE_CHECKING:
    from tcpknee import _core
    from tcpknee.runs.results import Run


@click.command("export", short_help="Export a run for other tools, or this host's TCP for Prometheus.")
@click.argument("run", metavar="[RUN]", required=False, type=PATH)
@click.option(
    "--format",
    type=click.Choice(("csv", "flent", "pcapng", "mahimahi")),
    help="csv: every table, also of a recording, an import or a trace; flent: one repetition as a data file of flent; "
    "pcapng: the headers of its packets, simulated again or captured (--capture), or of a scenario's; mahimahi: the "
    "rate of its bottleneck, or of a scenario's, as a trace.",
)
@click.option("--out", metavar="PATH", type=PATH, help="A folder for csv, a file for the others.")
@click.option("--cell", default=0, show_default=True, type=Whole(min=0), help="All but csv: cell of the matrix.")
@click.option("--rep", default=0, show_default=True, type=Whole(min=0), help="All but csv: repetition, from 0.")
@click.option(
    "--host",
    type=click.Choice(("sender", "receiver")),
    default="sender",
    show_default=True,
    help="pcapng: whose device.",
)
@click.option("--step", metavar="TIME", help="flent: between two points.  [default: 200ms]")
@click.option(
    "--prometheus",
    metavar="[ADDRESS]:PORT",
    help="Without RUN: serve sums over this host's TCP sockets; by default on loopback.",
)
@click.option("--every", default="15s", show_default=True, metavar="TIME", help="Between two samples, whoever asks.")
@click.option(
    "--by",
    metavar="WHAT=A,B",
    help="A second label with these values and other: port=443,8000-8100, cgroup=PATH or process=NAME.",
)
@filter_options
@click.option("--grafana", metavar="FILE", type=PATH, help="Write a dashboard for what --prometheus serves.")
@click.option("--systemd", metavar="DIR", type=PATH, help="Write units of --prometheus and of record.")
@force_option
@foreign
@foreign_files
@quiet_option
def command(**given: Any) -> int:
    """Export a run for other tools: RUN with --format and --out.

    Or serve TCP of this host to Prometheus: `knee export --prometheus :9757`. --grafana and --systemd write the files
    that go with it.
    """
    ways = {
        "RUN": ("run", "format", "out", "cell", "rep", "step", "host", "quiet"),
        "--prometheus": ("prometheus", "every", "by", *FILTERS),
        "--grafana": ("grafana",),
        "--systemd": ("systemd",),
    }
    chosen = [way for way, names in ways.items() if given[names[0]] is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"got {' and '.join(chosen) or 'nothing'}; expected one of {', '.join(ways)}.")
    way = chosen[0]
    for other, names in ways.items():
        for name in names[1:] if other != way else ():
            if is_given(name):
                raise click.UsageError(f"--{name.replace('_', '-')} is for {other}, and got {way}.")
    if way == "RUN":
        for name in ("format", "out"):
            if given[name] is None:
                raise click.UsageError(f"Missing option '--{name}'.")
        return _export_run(*(given[name] for name in ways["RUN"]))
    from . import serving

    if way == "--prometheus":
        asked = {name: given[name] for name in ways[way][1:]}
        lists = {"port": "ports", "address": "addresses", "algorithm": "algorithms", "state": "states"}
        return serving.prometheus(given["prometheus"], {lists.get(name, name): asked[name] for name in asked})
    if way == "--grafana":
        serving.grafana(given["grafana"])
    else:
        serving.systemd(given["systemd"])
    return 0


def _export_run(
    run: Path, format: str, out: Path, cell: int, rep: int, step: str | None, host: str, quiet: bool
) -> int:
    if step is not None and format != "flent":
        raise click.UsageError(f"--step is for --format flent, and got {format}.")
    if is_given("host") and format != "pcapng":
        raise click.UsageError(f"--host is for --format pcapng, and got {format}.")
    # A trace of mahimahi may come of a scenario, which has cells and no repetitions yet.
    useless = ("cell", "rep") if format == "csv" else ("rep",) if format == "mahimahi" and run.is_file() else ()
    for name in useless:
        if is_given(name):
            what = "csv, which has every cell" if format == "csv" else "a scenario, of which nothing was repeated yet"
            raise click.UsageError(f"--{name} is not for {what}.")
    if format != "csv":
        free(out)
    if format == "csv":
        _csv(run, out, quiet=quiet)
    elif format == "flent":
        _flent(run, out, cell, rep, step)
    elif format == "mahimahi":
        _mahimahi(run, out, cell, rep)
    else:
        _pcapng(run, out, cell, rep, host, quiet=quiet)
    return 0


def _csv(folder: Path, out: Path, *, quiet: bool = False) -> None:
    """Every table of a run, a recording, an import or a trace as OUT/TABLE.csv; columns' names have their units. All of
    them get their names when all are whole."""
    from tcpknee import _core
    from tcpknee.datasets import sql
    from tcpknee.datasets.dataset import Dataset
    from tcpknee.runs import api, tables
    from tcpknee.runs.progress import Phase
    from tcpknee.writing import cannot_write, new_file

    asked: list[str] = []
    if (folder / "run.json").exists():
        run = api.open(folder)
        asked = list(tables.of_engine(run.meta["engine"]))
        for name in asked:
            run.table(name)
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out}: is a file; expected a folder, or a name that is free. Choose another --out.")
    if out.is_dir() and any(out.iterdir()) and not is_given("force"):
        raise RunFolderError(
            f"{out}: is not empty; expected a free name for the CSV files. Choose another --out, or write into it with "
            "--force."
        )
    # The statements are ours, and COPY writes.
    with sql.opened(Dataset(folder), external=True) as database:
        names = asked or [name for (name,) in database.execute("show tables").fetchall()]
        was_there = out.is_dir()
        try:
            held = _core.Folder(out)
            with ExitStack() as stack:
                files = {name: stack.enter_context(new_file(held, f"{name}.csv")) for name in names}
                for name, file in files.items():
                    with Phase(f"Writing {name}.csv", quiet=quiet):
                        sql.write_csv(database, name, file)
        except BaseException as error:
            if not was_there:
                with suppress(OSError):
                    out.rmdir()
            if isinstance(error, OSError):
                raise cannot_write(out, error) from None
            raise
    say.line(f"CSV: {', '.join(str(out / f'{name}.csv') for name in names)}")


def _pcapng(source: Path, out: Path, cell: int, rep: int, host: str, *, quiet: bool = False) -> None:
    """The packets that a run captured; else it simulates that repetition, of a run again, which gives the same ones."""
    from tcpknee import _core
    from tcpknee.runs import api, isolated
    from tcpknee.runs.progress import Phase
    from tcpknee.writing import cannot_write

    if not source.is_file() and (found := api.open(source)).meta["engine"] != "sim":
        _check_ran(found, cell, rep)
        _captured(found, out, cell, rep, host)
        return
    if host != "sender":
        raise UsageError(
            f"{source}: --host {host}: the packets of a simulation are those of the sender's device; expected sender."
        )
    if source.is_file():
        text, file = api.read_scenario(source)
        scenario = api.parse(text, file)
        _check_of(source, len(scenario.cells), scenario.repeat, cell, rep)
    else:
        text, file, scenario = _simulated_before(source, cell, rep)
    with Phase("Simulating it", quiet=quiet), isolated.Isolated(scenario, text, file) as simulator:
        try:
            _core.Folder(out.parent)
        except OSError as error:
            raise cannot_write(out, error) from None
        simulator.write_packets(cell, rep, out)
    say.line(f"pcapng: {out} (cell {cell}, repetition {rep}; headers only, sequence numbers and lengths are whole)")


def _captured(run: Run, out: Path, cell: int, rep: int, host: str) -> None:
    """What the device of a host had of a repetition of a real kernel."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tcpknee.runs import packets

    if not run.meta.get("capture"):
        raise UsageError(
            f"{run.folder}: was run with --engine {run.meta['engine']} and without --capture, so that it kept no "
            "packets; expected a run such as: knee run SCENARIO --engine kernel --capture 20MB."
        )
    rows = run.rows("packets", cell=cell, rep=rep)
    kept = rows.filter(pc.equal(rows["host"].cast(pa.string()), host))
    packets.write_captured(kept, host, out)
    say.line(
        f"pcapng: {out} (cell {cell}, repetition {rep}, the {host}'s device: "
        f"{human.counted(kept.num_rows, 'packet')}; headers only, sequence numbers and lengths are whole)"
    )
    of_it = [doubt.text for doubt in run.doubts if doubt.cell == cell and rep in doubt.reps]
    say.lines(f"Warning: {text}" for text in of_it)


def _simulated_before(run: Path, cell: int, rep: int) -> tuple[str, str, _core.Scenario]:
    """The scenario of a run, with its text and file. Raises `UsageError` where it cannot be simulated here."""
    from tcpknee.runs import api, manifest

    meta = api.open(run).meta
    _check_cell(run, meta, cell, rep)
    if names := [one["path"] for one in meta.get("algorithm_files", ())]:
        raise UsageError(
            f"{run}: has algorithms of files ({', '.join(map(say.printable, names))}), which a run's folder does not "
            "get compiled and run; expected the scenario's file in its place, or a run of built-in algorithms alone."
        )
    manifest.check_version(meta, run)
    return meta["scenario"], meta["file"], api.parse(meta["scenario"], meta["file"], stored=True)


def _flent(run: Path, out: Path, cell: int, rep: int, step: str | None) -> None:
    """That repetition as flent's own test `tcp_nup` would have written it."""
    from tcpknee.runs import api
    from tcpknee.runs import flent as files

    found = api.open(run)
    _check_ran(found, cell, rep)
    told = files.write(found, cell, rep, out, step or files.STEP)
    streams = human.counted(int(told["metadata"]["TEST_PARAMETERS"]["upload_streams"]), "flow")
    steps = f"{human.counted(len(told['x_values']), 'step')} of {told['metadata']['STEP_SIZE']:g} s"
    say.line(f"flent: {out} (cell {cell}, repetition {rep}; {streams}, {steps}). Plots: flent tcp_nup --list-plots")


def _mahimahi(source: Path, out: Path, cell: int, rep: int) -> None:
    """The rate of a bottleneck as a trace for mm-link: what a run's delivered, or what a scenario's file says."""
    from tcpknee.writing import replacing

    if source.is_dir():
        text, what = _delivered(source, cell, rep), f"what left the bottleneck in cell {cell}, repetition {rep}"
    else:
        text, what = _asked(source, cell), f"the rate that cell {cell} asks for"
    with replacing(out, make=True) as file:
        file.write(text.encode("ascii"))
    seconds = int(text.rsplit(maxsplit=1)[-1]) / 1e3
    packets = human.counted(text.count("\n"), "packet")
    say.line(f"mahimahi: {out} ({what}: {packets} of {OPPORTUNITY_BYTES} bytes in {seconds:g} s)")


OPPORTUNITY_BYTES = 1504
"""A line of a trace: 1500 bytes and the four of the TUN device's header."""

MOST_OPPORTUNITIES = 50_000_000
"""Some 400 MB of text."""


def _delivered(run: Path, cell: int, rep: int) -> str:
    """The bytes that left the first bottleneck, in packets of a trace: each when the last of its bytes had left, on the
    line between two rows of `queue`."""
    import numpy as np

    from tcpknee.runs import api

    found = api.open(run)
    _check_ran(found, cell, rep)
    queue = found.rows("queue", ["t_ns", "sent_bytes"], cell=cell, rep=rep, hop=0)
    t_ms = np.append(0.0, queue["t_ns"].to_numpy() / 1e6)
    sent = np.append(0.0, queue["sent_bytes"].to_numpy())
    count = int(sent[-1] // OPPORTUNITY_BYTES)
    if not count:
        raise UsageError(
            f"{run}: nothing left the bottleneck in cell {cell}, repetition {rep}; expected a packet at least. A path "
            'whose rate is "unlimited" has no bottleneck.'
        )
    # Where nothing was sent the line is level, and what follows has left at its end.
    rises = np.append(True, np.diff(sent) > 0)
    rises[:-1] |= rises[1:]
    earned = np.interp(np.arange(1, count + 1) * OPPORTUNITY_BYTES, sent[rises], t_ms[rises])
    return _lines(np.maximum(np.ceil(earned), 1).astype(int))


def _asked(file: Path, cell: int) -> str:
    from tcpknee.runs import api

    text, name = api.read_scenario(file)
    scenario = api.parse(text, name)
    found = scenario.cells
    _check_below("cell", cell, len(found), f"{file} has {human.counted(len(found), 'cell')}")
    rate, duration_ns = found[cell]["rate_bits_per_sec"], found[cell]["duration_ns"]
    if rate and rate * duration_ns / 8e9 / OPPORTUNITY_BYTES > MOST_OPPORTUNITIES:
        raise UsageError(
            f"{file}: cell {cell} has more than {MOST_OPPORTUNITIES} packets in its duration; expected fewer, as each "
            "is a line of the trace. Set a shorter duration: mm-link begins the trace anew at its end."
        )
    trace = scenario.rate_trace(cell)
    if trace is None:
        raise UsageError(
            f"{file}: path.rate of cell {cell} lets no packet leave in its duration, or is unlimited; expected a rate "
            "or a trace."
        )
    return trace


def _lines(numbers: Any) -> str:
    return "\n".join(map(str, numbers.tolist())) + "\n"


def _check_ran(run: Run, cell: int, rep: int) -> None:
    """Refuses what the run does not have: it may have ended before its last repetition, or not be finished."""
    assert run.folder is not None
    _check_cell(run.folder, run.meta, cell, rep)
    ran = sorted(run.rows("runs", ["rep"], cell=cell)["rep"].to_pylist())
    if rep not in ran:
        some = f"{', '.join(map(str, ran[:_LISTED]))}{' and so on' if len(ran) > _LISTED else ''}"
        raise UsageError(
            f"--rep: got {rep}; expected {some or 'another cell'}, because repetition {rep} of cell {cell} was not run."
        )


_LISTED = 10
"""Repetitions that a refusal names."""


def _check_cell(run: Path, meta: Mapping[str, Any], cell: int, rep: int) -> None:
    _check_of(run, len(meta["cells"]), meta["repeat"], cell, rep)


def _check_of(source: Path, cells: int, repeat: int, cell: int, rep: int) -> None:
    _check_below("cell", cell, cells, f"{source} has {human.counted(cells, 'cell')}")
    _check_below("rep", rep, repeat, f"{source} has {human.counted(repeat, 'repetition')} of each cell")


def _check_below(option: str, got: int, count: int, because: str) -> None:
    if got >= count:
        expected = f"0 to {count - 1}" if count > 1 else "0"
        raise UsageError(f"--{option}: got {got}; expected {expected}, because {because}.")
