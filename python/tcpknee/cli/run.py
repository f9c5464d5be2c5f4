"""`knee run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tcpknee.errors import UsageError

from .named import of_kernels
from .options import PATH, Options, foreign_files, out_option, planning_options, running_options


@click.command("run", short_help="Run scenarios and say what came of them.")
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, type=PATH)
@out_option("Run folder; by default runs/NAME-N. With several scenarios: DIR/NAME each.")
@click.option("--resume", is_flag=True, help="Run only what the run in DIR still lacks.")
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Run it on the workers of the Dask scheduler at tls://HOST:PORT.",
)
@click.option(
    "--parts",
    metavar="URL",
    help="With --cluster: where its workers leave finished units, a folder or object store that all reach; with "
    "--resume also where earlier ones left them.  [default: in DIR]",
)
@foreign_files
@planning_options
@running_options
def command(scenarios: tuple[Path, ...], **options: Any) -> int:
    """Run scenario files (TOML; - is stdin) and say what came of them.

    Exit code 0, 1 when an [[expect]] of a scenario is not met, 2 when something is wrong with what was asked,
    or its output cannot be written.

    Example: knee run path.toml --report
    """
    return _run(scenarios, Options(**options))


def _run(files: Sequence[Path], options: Options) -> int:
    from . import blas

    blas.import_numpy()
    from tcpknee import provenance
    from tcpknee.runs import api

    from . import running

    if options.resume:
        return _resume(files, options)
    for one in options.by_engine():
        api.check_engine(one.engines[0], **one.of_engine)
    stems = [_stem(file) for file in files]
    if options.out and len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise UsageError(
            f'knee run: got two scenarios called "{twice}", which would both go to {options.out / twice}; expected '
            "different names below one --out. Run them one after the other."
        )
    if not files:
        raise UsageError(
            "knee run: got no scenario; expected a file, as in `knee run demo.toml`. "
            "`knee gallery` runs those that come with tcpknee."
        )
    texts = [api.read_scenario(file) for file in files]
    # All are parsed before the first is run: a mistake in the last one is said at once.
    if options.kernel:
        texts = [
            (api.with_kernels(text, name, options.kernel, in_guests_alone=options.in_guests_alone), name)
            for text, name in texts
        ]
    with of_kernels(options.kernel):
        scenarios = [api.parse(text, name, in_guests_alone=options.in_guests_alone) for text, name in texts]
    if options.dry_run:
        return running.dry_run(
            [(scenario, name) for scenario, (_, name) in zip(scenarios, texts, strict=True)], options
        )
    jobs = []
    for stem, scenario, (text, name) in zip(stems, scenarios, texts, strict=True):
        out = options.out / stem if options.out and len(files) > 1 else options.out
        words = provenance.command_line(
            "knee", "run", "-" if name == "<stdin>" else name, *running.engine_words(options)
        )
        jobs.append(running.Job(scenario, text, name, out, stem, words))
    return running.run_all(jobs, options)


def _stem(file: Path) -> str:
    """What its run folder is called."""
    return "stdin" if str(file) == "-" else file.stem


def _of_engines(out: Path) -> list[str]:
    """The engines whose runs are below a folder."""
    from tcpknee.runs import engines

    return [name for name in engines.NAMES if (out / name / "run.json").exists()]


def _resume(files: Sequence[Path], options: Options) -> int:
    from tcpknee.runs import api, progress

    from . import running

    if options.out is None:
        raise running.no_folder("run", _stem(files[0]) if len(files) == 1 else None)
    for name, given in (("--force", options.force), ("--dry-run", options.dry_run)):
        if given:
            raise UsageError(f"knee run: got --resume and {name}; expected one of them. --resume keeps what is there.")
    below = [] if (options.out / "run.json").exists() else _of_engines(options.out)
    if below or len(options.engines) > 1:
        raise UsageError(
            "knee run --resume: goes on with the run of one engine; expected --out with the folder of one, "
            f"as in {options.out / (below or options.engines)[0]}."
        )
    if len(files) > 1:
        raise UsageError(
            "knee run --resume: got several scenarios; expected one, or none to go on with the stored one."
        )
    others = running.Beside(options)
    with running.interruptible(options.out, command=running.again(options, str(files[0]) if files else None)):
        watcher = progress.watcher(quiet=options.quiet)
        scenario = files[0] if files else None
        found = api.run(
            scenario,
            out=options.out,
            resume=True,
            engine=options.engine,
            kernel=options.kernel or None,
            **options.of_engine,
            until_decided=options.until_decided,
            budget=options.budget,
            pause=options.pause,
            cluster=options.cluster,
            parts=options.parts,
            watcher=watcher,
        )
    others.put([found])
    running.show(found, options, first=True)
    return running.end([found], options)
