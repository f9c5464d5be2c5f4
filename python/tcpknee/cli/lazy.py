"""Groups of commands that are found when they are needed."""

from __future__ import annotations

from collections.abc import MutableMapping

import click


class LazyGroup(click.Group):
    """A group that asks for its commands by name when click wants to see them: its help may do without."""

    def found(self) -> MutableMapping[str, click.Command]:
        raise NotImplementedError

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        return self.found()

    @commands.setter
    def commands(self, commands: MutableMapping[str, click.Command]) -> None:
        """click sets it when it makes a group."""
