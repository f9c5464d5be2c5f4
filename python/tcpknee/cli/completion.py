"""`knee completion`, and what a shell may put where a command wants a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from tcpknee import say

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print what lets a shell complete commands.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print a script that lets bash, zsh or fish complete verbs, options and names.

    \b
      bash: knee completion bash > ~/.local/share/bash-completion/completions/knee
      zsh:  knee completion zsh > "${fpath[1]}/_knee"
      fish: knee completion fish > ~/.config/fish/completions/knee.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click has these three"
    say.lines(found(context.find_root().command, {}, "knee", "_KNEE_COMPLETE").source().strip().splitlines())
    return 0


def of(names: Callable[[], Iterable[str]], *, lists: bool = False, files: bool = False) -> Complete:
    """Completes to names that are read when they are wanted. `lists`: several of them, with commas between. `files`:
    or to a file, where something like a path is begun or no name fits."""

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        before, comma, last = begun.rpartition(",") if lists else ("", "", begun)
        taken = before.split(",")
        found = [
            CompletionItem(f"{before}{comma}{name}") for name in names() if name.startswith(last) and name not in taken
        ]
        return found or ([CompletionItem(begun, type="file")] if files else [])

    return complete


def assignments(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """KEY= of `--set`, and after it the names that the key takes."""
    key, sign, _ = begun.partition("=")
    if sign:
        last = key.rpartition(".")[2]
        names = {"algorithm": algorithms, "queue": queues, "ack_queue": queues, "workload": workloads}.get(last)
        return of(lambda: (f"{key}={name}" for name in (names() if names else ())))(context, parameter, begun)
    return of(lambda: (f"{path}=" for path in keys()))(context, parameter, begun)


def what_and_names(read: Callable[[str], Any]) -> Complete:
    """The entries of the registry that the command names before."""

    def names(what: str) -> Iterable[str]:
        found = read(what)
        return found if isinstance(found, dict) else (entry.get("name", entry.get("path")) for entry in found)

    def complete(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        what = context.params.get("what")
        return of(lambda: names(what) if what else ())(context, parameter, begun)

    return complete


def verbs(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The commands below those that stand before."""
    group: click.Command | None = context.find_root().command
    for word in context.params.get("words") or ():
        group = group.get_command(context, word) if isinstance(group, click.Group) else None
    return of(lambda: group.list_commands(context) if isinstance(group, click.Group) else ())(context, parameter, begun)


def algorithms() -> list[str]:
    from tcpknee import _core

    return [entry["name"] for entry in _core.algorithms()]


def queues() -> list[str]:
    from tcpknee import _core

    return [entry["name"] for entry in _core.queues()]


def workloads() -> list[str]:
    from tcpknee import _core

    return [entry["name"] for entry in _core.workloads()]


def keys() -> list[str]:
    """The keys of scenarios that stand in tables: the others are options."""
    from tcpknee import _core

    params = [f"flow.{entry['name']}.{one['name']}" for entry in _core.algorithms() for one in entry["params"]]
    known = _core.keys()
    return [path for entry in known if "." in (path := entry["path"])] + params


def releases() -> list[str]:
    """Those since which a rule of TCP holds."""
    from tcpknee import _core

    found = {change["since"] for rule in _core.kernel_rules() for change in rule["changes"]}
    return sorted(found, key=lambda release: [int(part) for part in release.split(".")])


def kernels() -> list[str]:
    """Those that were built."""
    from tcpknee.kernels import cache

    return [kernel.name for kernel in cache.kernels()]


def kernels_and_releases() -> list[str]:
    return sorted({*kernels(), *releases()})


def rules() -> list[str]:
    from tcpknee.doctor.rules import RULES

    return [rule.name for rule in RULES]


def claims() -> list[str]:
    from tcpknee.validation.claims import catalogue

    return list(catalogue.by_id())


def scenarios() -> list[str]:
    from tcpknee.runs import scenarios as gallery

    return list(gallery.names())


def suites() -> list[str]:
    from tcpknee.gate import suite

    return suite.names()
