"""`knee report` and `knee export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kneepoint import _core, api, human, say, tables
from kneepoint.errors import RunFolderError, UsageError
from kneepoint.folder import RunFolder
from kneepoint.progress import Phase
from kneepoint.writing import cannot_write, new_file, replacing


def report(
    run: Path,
    out: Path | None = None,
    figure: str | None = None,
    format: str = "svg",
    condition: int | None = None,
    tell: Callable[[str], None] = say.line,
    quiet: bool = False,
) -> None:
    """Writes the report, or one figure of it, and says where."""
    from kneepoint import report as reports
    from kneepoint.observe import trace

    if trace.is_trace(run):
        _trace_report(run, out, figure, format, condition, tell, quiet)
        return
    api.open(run)
    if figure is None:
        if condition is not None:
            raise UsageError(
                f"--condition: got {condition} without a figure; expected --figure NAME beside it. The whole report "
                "shows every condition."
            )
        target = out or run / "report.html"
        with Phase("Writing the report", quiet=quiet):
            reports.write(run, target)
        tell(f"Report: {target}")
    else:
        target = out or run / f"{figure}.{format}"
        with Phase("Drawing the figure", quiet=quiet):
            reports.save(run, figure, target, condition=condition or 0)
        tell(f"Figure: {target}")


def _trace_report(
    run: Path,
    out: Path | None,
    figure: str | None,
    format: str,
    condition: int | None,
    tell: Callable[[str], None],
    quiet: bool,
) -> None:
    """The figure of a trace, which is all of its report."""
    from kneepoint.observe import figure as figures
    from kneepoint.observe import trace

    if figure not in (None, "trace"):
        raise UsageError(f'{run}: is a trace, and got --figure "{figure}"; expected none, or "trace".')
    if condition is not None:
        raise UsageError(f"--condition: got {condition}; expected none, because {run} is a trace, which has none.")
    target = out or run / ("trace.html" if figure is None else f"trace.{format}")
    with Phase("Drawing the figure", quiet=quiet):
        figures.save(trace.read(run), target)
    tell(f"Figure: {target}")


def csv(folder: Path, out: Path, *, quiet: bool = False) -> None:
    """Every table of a run, a recording, an import or a trace as OUT/TABLE.csv; columns' names have their units."""
    from kneepoint.observe import sql

    asked: list[str] = []
    if (folder / "run.json").exists():
        asked = list(tables.of_engine(api.open(folder).meta["engine"]))
        for name in asked:
            RunFolder(folder).table_path(name)
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out}: is a file; expected a folder, or a name that is free. Choose another --out.")
    if out.is_dir() and any(out.iterdir()):
        raise RunFolderError(f"{out}: is not empty; expected a free name for the CSV files. Choose another --out.")
    # The statements are ours, and COPY writes.
    with sql.opened(folder, external=True) as database:
        names = asked or [name for (name,) in database.execute("show tables").fetchall()]
        try:
            held = _core.Folder(out)
            for name in names:
                with Phase(f"Writing {name}.csv", quiet=quiet), new_file(held, f"{name}.csv") as file:
                    sql.write_csv(database, name, file)
        except OSError as error:
            raise cannot_write(out, error) from None
    say.line(f"CSV: {', '.join(str(out / f'{name}.csv') for name in names)}")


def pcapng(run: Path, out: Path, cell: int, rep: int, *, quiet: bool = False) -> None:
    """Simulates that repetition again, which gives the same packets, and writes them."""
    from kneepoint import record

    found = api.open(run)
    meta = found.meta
    _check_cell(run, meta, cell, rep)
    if meta["engine"] != "sim":
        raise UsageError(
            f"{run}: was run with --engine {meta['engine']}, which keeps no packets and cannot repeat them; expected a "
            "simulated run. `knee shell` gives a place behind the same link where tcpdump can run."
        )
    record.check_version(meta, run)
    scenario = api.parse(meta["scenario"], meta["file"])
    with Phase("Simulating it again", quiet=quiet):
        output = scenario.run_cell(cell, rep, capture=True)
    try:
        output.write_pcapng(str(out))
    except OSError as error:
        raise cannot_write(out, error) from None
    say.line(f"pcapng: {out} (cell {cell}, repetition {rep}; headers only, sequence numbers and lengths are whole)")


def flent(run: Path, out: Path, cell: int, rep: int, step: str | None) -> None:
    """That repetition as flent's own test `tcp_nup` would have written it."""
    from kneepoint import flent as files

    found = api.open(run)
    _check_cell(run, found.meta, cell, rep)
    told = files.write(found, cell, rep, out, step or files.STEP)
    streams = human.counted(int(told["metadata"]["TEST_PARAMETERS"]["upload_streams"]), "flow")
    steps = f"{human.counted(len(told['x_values']), 'step')} of {told['metadata']['STEP_SIZE']:g} s"
    say.line(f"flent: {out} (cell {cell}, repetition {rep}; {streams}, {steps}). Plots: flent tcp_nup --list-plots")


def mahimahi(source: Path, out: Path, cell: int, rep: int) -> None:
    """The rate of a bottleneck as a trace for mm-link: what a run's delivered, or what a scenario's file says."""
    if source.is_dir():
        text, what = _delivered(source, cell, rep), f"what left the bottleneck in cell {cell}, repetition {rep}"
    else:
        text, what = _asked(source, cell), f"the rate that cell {cell} asks for"
    with replacing(out) as file:
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

    found = api.open(run)
    _check_cell(run, found.meta, cell, rep)
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


def _check_cell(run: Path, meta: Mapping[str, Any], cell: int, rep: int) -> None:
    _check_below("cell", cell, len(meta["cells"]), f"{run} has {human.counted(len(meta['cells']), 'cell')}")
    _check_below("rep", rep, meta["repeat"], f"{run} has {human.counted(meta['repeat'], 'repetition')} of each cell")


def _check_below(option: str, got: int, count: int, because: str) -> None:
    if got >= count:
        expected = f"0 to {count - 1}" if count > 1 else "0"
        raise UsageError(f"--{option}: got {got}; expected {expected}, because {because}.")
