"""`knee conform`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from kneepoint import conform, human, progress, record, say
from kneepoint.conform import Compared, Verdict
from kneepoint.errors import UsageError
from kneepoint.folder import newest, next_free
from kneepoint.output import SCHEMA, aligned

_RUNS = Path("runs")


def conformance(out: Path | None, *, quick: bool, resume: bool, workers: int | None, json: bool, quiet: bool) -> int:
    """`knee conform`. Exit code 1 when something is outside its tolerance."""
    if resume and out is None:
        raise UsageError(_no_folder(quick=quick))
    folder, names = out or next_free(_RUNS, "conform"), conform.suites(quick=quick)
    pairs = conform.run(
        names,
        folder,
        resume=resume,
        workers=workers,
        say=(lambda text: None) if quiet else say.warn,
        watch=lambda: progress.watcher(quiet=quiet),
    )
    compared = conform.compare(pairs)
    judged = conform.verdicts(compared)
    from kneepoint.report import overlay

    with progress.Phase("Drawing the overlay", quiet=quiet):
        figures = overlay.write(pairs, folder)
    doubts = [f"{pair.suite}: {doubt.line}" for pair in pairs for doubt in pair.kernel.doubts]
    if json:
        found = {
            "schema": SCHEMA,
            "compared": [asdict(entry) for entry in compared],
            "verdicts": [{**asdict(verdict), "ok": verdict.ok} for verdict in judged],
            "warnings": doubts,
            "folder": str(folder),
        }
        say.json(found)
    else:
        say.lines(_table(compared))
        say.lines(["", "Over all cells"])
        say.lines(verdict_line(verdict) for verdict in judged)
        say.lines(f"* {doubt}" for doubt in doubts)
        say.lines(["", f"Overlay: {', '.join(str(figure) for figure in figures)}", f"Runs: {folder}"])
    return 0 if all(verdict.ok for verdict in judged) else 1


def _no_folder(*, quick: bool) -> str:
    """As `knee run --resume` says it, with the command for the newest."""
    text = "knee conform --resume: got no folder; expected --out DIR, the folder to go on with."
    found = newest(_RUNS, "conform")
    if found is None:
        return f"{text} There is none in {_RUNS}/: leave out --resume."
    words = record.command_line("knee", "conform", *(["--quick"] if quick else []), "--resume", "--out", str(found))
    return f"{text} The newest is {found}: `{words}`."


def _table(compared: list[Compared]) -> list[str]:
    rows = [["scenario", "cell", "metric", "sim", "kernel", "difference", "tolerance", ""]]
    for entry in compared:
        word = "ok" if entry.ok else "OUTSIDE"
        unit = f" {entry.unit}" if entry.unit else ""
        rows.append(
            [
                entry.suite,
                entry.label or str(entry.cell),
                entry.metric,
                value(entry.metric, entry.sim),
                value(entry.metric, entry.kernel),
                "-" if entry.difference is None else f"{entry.difference:+.2f}{unit}",
                entry.tolerance,
                word,
            ]
        )
    return aligned(rows, left=(True, True, True, False, False, False, True, True))


def value(metric: str, found: float | None) -> str:
    """Of a metric, with its unit."""
    if found is None:
        return "none"
    if metric.endswith("_bits_per_sec"):
        return human.quantity("rate", found)
    if "_us" in metric:
        return human.quantity("time", found)
    return f"{found:.3f}"


def verdict_line(verdict: Verdict) -> str:
    """What a tolerance over many cells came to."""
    unit = f" {verdict.unit}" if verdict.unit else ""
    word = "ok" if verdict.ok else "OUTSIDE"
    return (
        f"  {verdict.what}: {verdict.value:.3g}{unit} of {verdict.cells} cells, at most {verdict.limit:g}{unit}: {word}"
    )
