"""Options that commands of more than one module have."""

from __future__ import annotations

import click


def _allow_foreign(context: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from kneepoint import writing

        writing.allow_foreign_folders()


foreign = click.option(
    "--allow-foreign-folder",
    is_flag=True,
    expose_value=False,
    callback=_allow_foreign,
    help="As root, write into a folder of another user, who can put anything in a file's place.",
)
"""Of every command that writes files."""
