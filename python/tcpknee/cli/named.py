"""Mistakes of a scenario that options composed, by the options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tcpknee.errors import ScenarioError, UsageError
from tcpknee.runs import compose

from .options import is_given


def refuse_both(command: str, options: Mapping[str, str], set_: Mapping[str, Any]) -> None:
    """Refuses a key that both an option and --set give. `options`: which parameter of the command sets which key."""
    if both := next((key for key in set_ if key in options and is_given(options[key])), None):
        option = options[both].replace("_", "-")
        raise UsageError(f"{command}: got --{option} and --set {both}; expected one of them, as they set the same.")


@contextmanager
def by_option(command: str, name: Callable[[str], str]) -> Iterator[None]:
    """Tells a mistake at a key as one of the option that `name` says: `knee compare: --rate: got "200Mb"; …`."""
    try:
        yield
    except ScenarioError as error:
        plain = [(line, key, _plain(said)) for line, key, said in error.mistakes]
        raise ScenarioError.of("", plain).renamed(command, name) from None


@contextmanager
def of_kernels(given: Sequence[str]) -> Iterator[None]:
    """Tells a mistake at a scenario's kernel as one of --kernel, where that was given."""
    try:
        yield
    except ScenarioError as error:
        said = next((said for _, key, said in error.mistakes if key == "kernel"), None)
        if not given or said is None:
            raise
        raise UsageError(f"--kernel: {said}") from None


def of_compare(set_: Mapping[str, Any]) -> Callable[[str], str]:
    """The option or the argument of `knee compare` that sets a key."""

    def name(key: str) -> str:
        argument, path = compose.argument(key, set_)
        return "ALGO" if argument == "algorithms" else f"--set {path}" if argument == "set" else f"--{argument}"

    return name


def of_shell(key: str) -> str:
    """The option of `knee shell` that sets a key."""
    option = {"flow.0.algorithm": "algorithm", "path.ack_loss": "ack-loss"}.get(key) or key.removeprefix("path.")
    return (
        f"--{option}"
        if option in ("rate", "rtt", "loss", "ack-loss", "buffer", "queue", "algorithm")
        else f"--set {key}"
    )


def _plain(said: str) -> str:
    """A sentence about a file as one about a command line, which has neither quotes nor tables."""
    said = said.replace(" with its unit, in quotes.", " with its unit.").replace("Write it without quotes.", "")
    return re.sub(r"Add ([^.]*) in \[{1,2}(\w+)\]{1,2}\.$", _added, said).rstrip()


def _added(found: re.Match[str]) -> str:
    """Keys that are to be added to a table, as options."""
    words, table = found.groups()
    return (
        "Add " + re.sub(r'(\w+) = "([^"]*)"', lambda key: _option(table, *key.groups()), words.removesuffix(",")) + "."
    )


def _option(table: str, key: str, value: str) -> str:
    return shlex.join(["--set", f"{table}.{key}={value}"])
