"""`knee list`: registries as text or JSON, without loading anything that runs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tcpknee import algorithms, say
from tcpknee.errors import UsageError
from tcpknee.human import suggest

from .options import json_option

LISTED = (
    "algorithms",
    "queues",
    "losses",
    "impairments",
    "workloads",
    "sizes",
    "importers",
    "rules",
    "keys",
    "tables",
    "scenarios",
)
"""What `knee list` can print."""

_WIDTH = 100


@click.command(
    "list",
    short_help="List algorithms, queues, losses, impairments, workloads, sizes, importers, rules, keys and so on.",
)
@click.argument("what", required=False)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def command(what: str | None, names: tuple[str, ...], json: bool) -> int:
    """List what tcpknee knows, by default the names of all.

    WHAT: algorithms, queues, losses, impairments, workloads, sizes, importers, rules, keys, tables or scenarios. NAME:
    only these of them.

    Example: knee list algorithms bbr1
    """
    if what is not None and what not in LISTED:
        raise UsageError(f'knee list: got "{what}"; ' + suggest(what, LISTED, "expected one of"))
    _show(what, names, json=json)
    return 0


def _show(what: str | None, names: Sequence[str], *, json: bool) -> None:
    """Prints one registry or what has those names in it, or the names of all."""
    if what is None:
        _overview(json=json)
        return
    found = _chosen(what, _read(what), names)
    if json:
        say.json({"schema": 1, what: found})
    elif what == "tables":
        for number, (name, columns) in enumerate(found.items()):
            say.lines([*([""] if number else []), *_table(name, columns)])
    elif what == "keys":
        say.lines(line for key in found for line in _key(key))
    else:
        say.lines([line for entry in found for line in _entry(entry)] or [f"no {what}"])


def _chosen(what: str, found: Any, names: Sequence[str]) -> Any:
    """What has those names; all without a name. Raises UsageError."""
    if not names:
        return found
    by_name = found if isinstance(found, Mapping) else {entry.get("name", entry.get("path")): entry for entry in found}
    if what == "algorithms":
        names = algorithms.chosen("knee list algorithms", names)
    if unknown := next((name for name in names if name not in by_name), None):
        raise UsageError(f'knee list {what}: got "{unknown}"; ' + suggest(unknown, list(by_name), "expected one of"))
    chosen = {name: by_name[name] for name in names}
    return chosen if isinstance(found, Mapping) else list(chosen.values())


def _overview(*, json: bool) -> None:
    from tcpknee import _core

    names = {
        what: list(found)
        if isinstance(found := _read(what), Mapping)
        else [e.get("name", e.get("path")) for e in found]
        for what in LISTED
        # There are too many keys to name.
        if what != "keys"
    }
    keys = len(_core.keys())
    if json:
        say.json({"schema": 1, **names})
        return
    for what, entries in names.items():
        say.line(f"{what:<11} {', '.join(entries) or '-'}")
    say.line(f"{'keys':<11} {keys} keys of scenario files")
    say.line()
    say.line("`knee list algorithms` and so on say more of each.")


def _read(what: str) -> Any:
    from tcpknee import _core
    from tcpknee.runs import columns, scenarios

    if what == "scenarios":
        return [
            {"name": name, "summary": _title(name), "file": str(scenarios.path(name))} for name in scenarios.names()
        ]
    if what == "tables":
        return columns.of_tables()
    if what == "rules":
        from tcpknee.doctor import told
        from tcpknee.doctor.rules import RULES

        return [told.rule_json(rule) for rule in RULES]
    found = getattr(_core, what)()
    if what == "algorithms":
        status = _core.in_kernel()
        return [{**entry, "kernel": status[entry["name"]]} for entry in found]
    return found


def _title(name: str) -> str:
    from tcpknee import _core
    from tcpknee.runs import scenarios

    file = scenarios.path(name)
    return _core.parse(file.read_text(encoding="utf-8"), f"gallery/{name}.toml").title


def _entry(entry: Mapping[str, Any]) -> list[str]:
    lines = [f"{entry['name']:<18} {entry['summary']}"]
    if entry.get("use_when"):
        lines += _wrapped(f"use when: {entry['use_when']}")
    if entry.get("source"):
        year = f" ({entry['year']})" if entry.get("year") else ""
        lines += _wrapped(f"source: {entry['source']}{year}")
    if entry.get("keys"):
        lines += _wrapped(f"keys: {', '.join(entry['keys'])}")
    if "kernel" in entry:
        lines += _wrapped(f"in this kernel: {_in_kernel(entry['kernel'])}")
    if "tables" in entry:
        lines += _wrapped(f"tables: {', '.join(table['name'] for table in entry['tables'])}")
    for param in entry.get("params") or ():
        counted = f", counted in {param['unit']}" if param["unit"] else ""
        bounds = f"{param['min']} to {param['max']}{counted}"
        meaning = "; ".join(text for text in (param["doc"], param["source"]) if text)
        lines += _wrapped(f"{entry['name']}.{param['name']} = {param['default']} ({bounds}); {meaning}")
    return lines


def _in_kernel(status: Mapping[str, Any]) -> str:
    """What the running kernel has of an algorithm, in words."""
    has = []
    if status["builtin"]:
        has.append(f"built in as {status['builtin']}")
    if status["loaded"]:
        has.append(f"ours is loaded as {status['loaded']}")
    elif status["loadable"]:
        has.append("ours can be loaded (`knee load`)")
    else:
        has.append(f"ours cannot be loaded: {status['not_loadable']}")
    return "; ".join(has)


def _key(key: Mapping[str, Any]) -> list[str]:
    default = f" = {key['default']}" if key.get("default") not in (None, "") else ""
    lines = [f"{key['path']}{default}", *_wrapped(f"{key['doc']} ({key['accepts']})", indent=4)]
    if key.get("source"):
        lines += _wrapped(f"source: {key['source']}", indent=4)
    return lines


def _table(name: str, columns: Sequence[Mapping[str, Any]]) -> list[str]:
    width = max(len(column["name"]) for column in columns)
    lines = [name]
    for column in columns:
        unit = f" [{column['unit']}]" if column["unit"] else ""
        source = f" ({column['source']})" if column["source"] != "tcpknee" else ""
        lines.append(f"  {column['name']:<{width}}  {column['doc']}{unit}{source}")
    return lines


def _wrapped(text: str, indent: int = 19) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))
