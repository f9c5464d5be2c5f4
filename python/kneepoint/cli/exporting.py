"""`knee report` and `knee export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv

from kneepoint import api, tables
from kneepoint.errors import RunFolderError, UsageError
from kneepoint.folder import cannot_write


def report(
    run: Path,
    out: Path | None = None,
    figure: str | None = None,
    format: str = "svg",
    condition: int | None = None,
    to: IO[str] | None = None,
) -> None:
    """Writes the report, or one figure of it, and says where."""
    from kneepoint import report as reports
    from kneepoint.observe import trace

    if trace.is_trace(run):
        _trace_report(run, out, figure, format, to)
        return
    api.open(run)
    if figure is None:
        if condition is not None:
            raise UsageError(
                f"--condition: got {condition} without a figure; expected --figure NAME beside it. The whole report "
                "shows every condition."
            )
        target = out or run / "report.html"
        reports.write(run, target)
        print(f"Report: {target}", file=to or sys.stdout)
    else:
        target = out or run / f"{figure}.{format}"
        reports.save(run, figure, target, condition=condition or 0)
        print(f"Figure: {target}", file=to or sys.stdout)


def _trace_report(run: Path, out: Path | None, figure: str | None, format: str, to: IO[str] | None) -> None:
    """The figure of a trace, which is all of its report."""
    from kneepoint.observe import figure as figures
    from kneepoint.observe import trace

    if figure not in (None, "trace"):
        raise UsageError(f'{run}: is a trace, and got --figure "{figure}"; expected none, or "trace".')
    target = out or run / ("trace.html" if figure is None else f"trace.{format}")
    figures.save(trace.read(run), target)
    print(f"Figure: {target}", file=to or sys.stdout)


def csv(run: Path, out: Path) -> None:
    """Every table as OUT/TABLE.csv; units are part of the columns' names."""
    found = api.open(run)
    names = tables.of_engine(found.meta["engine"])
    if out.is_dir() and any(out.iterdir()):
        raise RunFolderError(f"{out}: is not empty; expected a free name for the CSV files. Choose another --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            temporary = out / f".{name}.csv.tmp"
            pyarrow.csv.write_csv(_plain(found.table(name).arrow()), temporary)
            temporary.replace(out / f"{name}.csv")
    except OSError as error:
        raise cannot_write(out, error) from None
    print(f"CSV: {', '.join(str(out / f'{name}.csv') for name in names)}")


def pcapng(run: Path, out: Path, cell: int, rep: int) -> None:
    """Simulates that repetition again, which gives the same packets, and writes them."""
    from kneepoint import record

    found = api.open(run)
    meta = found.meta
    if cell >= len(meta["cells"]) or rep >= meta["repeat"]:
        raise UsageError(
            f"{run}: got cell {cell}, repetition {rep}; expected a cell below {len(meta['cells'])} and a repetition "
            f"below {meta['repeat']}. `knee run --dry-run` prints the cells."
        )
    if meta["engine"] != "sim":
        raise UsageError(
            f"{run}: was run with --engine {meta['engine']}, which keeps no packets and cannot repeat them; expected a "
            "simulated run. `knee shell` gives a place behind the same link where tcpdump can run."
        )
    record.check_version(meta, run)
    output = api.parse(meta["scenario"], meta["file"]).run_cell(cell, rep, capture=True)
    try:
        output.write_pcapng(str(out))
    except OSError as error:
        raise cannot_write(out, error) from None
    print(f"pcapng: {out} (cell {cell}, repetition {rep}; headers only, sequence numbers and lengths are whole)")


def _plain(table: pa.Table) -> pa.Table:
    """CSV knows no dictionaries."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(field.type.value_type))
    return table
