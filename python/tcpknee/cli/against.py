"""`knee against`."""

from __future__ import annotations

import click

from tcpknee import say

from . import completion
from .options import Whole

_TAKEN = completion.of(completion.algorithms, files=True)


@click.command("against", short_help="Play the same ACKs to two algorithms.")
@click.argument("first", shell_complete=_TAKEN)
@click.argument("second", shell_complete=_TAKEN)
@click.option(
    "--random", "random_", type=Whole(0), metavar="N", help="Scenarios drawn.  [default: 200; 0 with --class]"
)
@click.option("--seed", type=Whole(0), default=1, show_default=True, help="Of the scenarios and of chance.")
@click.option("--class", "class_", metavar="TEXT", help="Only the classes with that in their name.")
@click.option("--only", type=Whole(1), metavar="SEED", help="Only the drawn scenario of that seed.")
@click.option(
    "--first", "of_first", multiple=True, metavar="NAME=VALUE", help="A parameter of the first, as it keeps it."
)
@click.option("--second", "of_second", multiple=True, metavar="NAME=VALUE", help="The same of the second.")
def command(
    first: str,
    second: str,
    random_: int | None,
    seed: int,
    class_: str | None,
    only: int | None,
    of_first: tuple[str, ...],
    of_second: tuple[str, ...],
) -> int:
    """Play the same drawn acknowledgements to two algorithms and say where they first part. Each is one of ours or a
    file, of the Linux kernel too. Both have cong_control, or neither has; for others see knee compare. The first
    one's window and rate decide what is sent, so A against B and B against A differ. Exit code 1 when they differ.

    Example: knee against ./tcp_bbr.c bbr1
    """
    from tcpknee.algorithms import against

    if random_ is None:
        random_ = 200 if class_ is None else 0
    words = ["--random", str(random_), "--seed", str(seed)]
    if class_ is not None:
        words += ["--class", class_]
    if only is not None:
        words += ["--only", str(only)]
    for option, values in (("--first", of_first), ("--second", of_second)):
        for value in values:
            words += [option, value]
    return against.play(first, second, words, say.line)
