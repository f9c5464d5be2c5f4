"""`knee compare`."""

from __future__ import annotations

import sys
from typing import Any

import click

from . import completion
from .options import SEED_MAX, Options, Whole, algorithms_argument, out_option, planning_options, running_options


@click.command("compare", short_help="Compare algorithms on one path.")
@algorithms_argument
@click.option("--rate", default="50Mbit/s", show_default=True, help="Rate of the bottleneck, or 'unlimited'.")
@click.option("--rtt", default="40ms", show_default=True, help="Base round-trip time.")
@click.option("--loss", help="Loss of data packets: 1.5% at random, 'gilbert 1% burst 5'; `knee list losses`.")
@click.option("--buffer", help="Size of the queue: 1bdp, 256KiB, 170packets, 20ms.  [default: 1bdp]")
@click.option("--queue", shell_complete=completion.of(completion.queues), help="Kind of queue; `knee list queues`.")
@click.option("--duration", default="30s", show_default=True, help="Length of each repetition.")
@click.option("--warmup", help="Left out of steady-state metrics.  [default: a sixth of the duration, at most 5s]")
@click.option("--repeat", default=5, show_default=True, type=Whole(1, 10_000), help="Repetitions of each cell.")
@click.option("--seed", default=1, show_default=True, type=Whole(0, SEED_MAX), help="Seed of all random draws.")
@click.option(
    "--workload", shell_complete=completion.of(completion.workloads), help="Kind of workload; `knee list workloads`."
)
@click.option("--alone", is_flag=True, help="Of files: do not run cubic, bbr1 and bbr3 beside them.")
@click.option(
    "--set",
    "set_",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.assignments,
    help="Any other key of a scenario, as in sender.initcwnd=20 or flow.bbr1.cwnd_gain=2,2.5.",
)
@out_option("Run folder; by default runs/compare-N.")
@planning_options
@running_options
def command(algorithms: tuple[str, ...], **given: Any) -> int:
    """Compare algorithms on one path.

    ALGO is a name, each run by itself, or one mix that shares the path: cubic:1,bbr1:2. A file in C stands where a name
    may (docs/your-algorithm.md); alone it is compared with cubic, bbr1 and bbr3. An option with a list
    (--rtt 10ms,100ms) is an axis.

    Example: knee compare cubic bbr1 --rate 50Mbit/s --rtt 100ms --loss 1.5%
    """
    from . import blas

    blas.import_numpy()
    from tcpknee import provenance
    from tcpknee.runs import api, compose

    from . import running
    from .named import by_option, of_compare, refuse_both

    settings: dict[str, Any] = {
        name: compose.axis(given.pop(name)) for name in ("rate", "rtt", "loss", "buffer", "queue")
    }
    settings |= {name: given.pop(name) for name in ("duration", "warmup", "repeat", "seed", "workload")}
    if given["kernel"]:
        settings["kernel"] = list(given["kernel"]) if len(given["kernel"]) > 1 else given["kernel"][0]
    settings["set"] = compose.assignments(given.pop("set_"))
    compared = algorithms if given.pop("alone") else compose.with_baselines(algorithms)
    options_of = {key: name for key, name in compose.ARGUMENTS.items() if name != "algorithms"}
    refuse_both("knee compare", options_of, settings["set"])
    options = Options(**given)
    for one in options.by_engine():
        api.check_engine(one.engines[0], **one.of_engine)
    with by_option("knee compare", of_compare(settings["set"])):
        text, file = compose.comparison(compared, in_guests_alone=options.in_guests_alone, **settings), "<command line>"
        scenario = api.parse(text, file, in_guests_alone=options.in_guests_alone)
    if options.dry_run:
        return running.dry_run([(scenario, file)], options)
    words = provenance.command_line("knee", *sys.argv[1:])
    job = running.Job(scenario, text, file, options.out, "compare", words)
    return running.run_all([job], options)
