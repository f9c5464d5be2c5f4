"""Options that commands of more than one module have."""

from __future__ import annotations

from typing import Any

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


class Whole(click.IntRange):
    """A whole number, whose refusal says so."""

    name = "whole number"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        try:
            number = int(super().convert(value, parameter, context))
        except click.BadParameter:
            to = f"to {self.max}" if self.max is not None else "on"
            self.fail(f'got "{value}"; expected a whole number from {self.min} {to}.', parameter, context)
        return number
