"""`knee list`: registries as text or JSON, without loading anything that runs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tcpknee import algorithms, say
from tcpknee.algorithms import naming
from tcpknee.errors import UsageError
from tcpknee.human import suggest

from . import completion, registries
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
    "metrics",
    "counters",
    "prometheus",
    "claims",
    "scenarios",
)
"""What `knee list` can print."""

_TOO_MANY = {
    "keys": "keys of scenario files",
    "metrics": "metrics of a run's flows",
    "counters": "counters of `knee profile`",
    "prometheus": "metrics of `knee export --prometheus`",
}
"""Of these the overview has the number alone."""

_FACTS = {
    "type": "type",
    "labels": "labels",
    "must_hold": "must hold",
    "figure": "printed",
    "ours": "ours",
    "verdict": "verdict",
    "article": "article",
    "engines": "engines",
    "limits": "limits",
    "netem": "netem",
}
"""Facts of an entry, and what they are called."""

_WIDTH = 100
_EVERY_ENGINE = "sim, kernel, guest, hosts"


@click.command(
    "list",
    short_help="List algorithms, queues, keys, metrics, claims and so on.",
)
@click.argument("what", required=False, shell_complete=completion.of(lambda: LISTED))
@click.argument(
    "names",
    metavar="[NAME]...",
    nargs=-1,
    shell_complete=completion.what_and_names(lambda what: _read(what)),
)
@json_option
def command(what: str | None, names: tuple[str, ...], json: bool) -> int:
    """List what tcpknee knows, by default the names of all.

    WHAT: algorithms, queues, losses, impairments, workloads, sizes, importers, rules, keys, tables, metrics, counters,
    prometheus, claims or scenarios. NAME: only these of them; of algorithms also a file of your own, ./mine.c. Tables
    are those of a run; `knee list tables record` lists those of `knee record`, and so do fleet, import, profile,
    snapshot and trace.

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
    elif what == "algorithms" and names:
        say.lines(line for entry in found for line in (_algorithm(entry) if "idea" in entry else _entry(entry)))
    elif what == "importers" and names:
        say.lines(line for entry in found for line in _importer(entry))
    else:
        say.lines([line for entry in found for line in _entry(entry)] or [f"no {what}"])


def _chosen(what: str, found: Any, names: Sequence[str]) -> Any:
    """What has those names; all without a name. Raises UsageError."""
    if not names:
        return found
    by_name = found if isinstance(found, Mapping) else {entry.get("name", entry.get("path")): entry for entry in found}
    if what == "tables":
        return _chosen_tables(by_name, names)
    if what == "algorithms":
        files = [name for name in names if naming.is_path(name)]
        of_files = [_of_file(name) for name in files]
        ours = [name for name in names if name not in files]
        of_ours = [by_name[name] for name in algorithms.chosen("knee list algorithms", ours)] if ours else []
        return of_ours + of_files
    if unknown := next((name for name in names if name not in by_name), None):
        raise UsageError(f'knee list {what}: got "{unknown}"; ' + suggest(unknown, list(by_name), "expected one of"))
    chosen = {name: by_name[name] for name in names}
    return chosen if isinstance(found, Mapping) else list(chosen.values())


def _of_file(path: str) -> Mapping[str, Any]:
    """An algorithm of a user's file, by its name in a scenario. Raises UsageError."""
    from tcpknee import _core
    from tcpknee.algorithms import building, naming

    (named,) = naming.named([building.build(path)])
    return _core.load_algorithm(named.built.so_path, named.built.digest, named.name)


def _chosen_tables(of_runs: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Tables of a run by their names, and those of a verb by the verb's. Raises UsageError."""
    by_verb = registries.tables()
    chosen: dict[str, Any] = {}
    for name in names:
        if name in by_verb:
            chosen |= {f"{name}.{table}": columns for table, columns in by_verb[name].items()}
        elif name in of_runs:
            chosen[name] = of_runs[name]
        else:
            verb, _, table = name.partition(".")
            if table not in by_verb.get(verb, {}):
                known = [*of_runs, *by_verb, *(f"{verb}.{table}" for verb in by_verb for table in by_verb[verb])]
                raise UsageError(f'knee list tables: got "{name}"; ' + suggest(name, known, "expected one of"))
            chosen[name] = by_verb[verb][table]
    return chosen


def _overview(*, json: bool) -> None:
    names = {
        what: list(found)
        if isinstance(found := _read(what), Mapping)
        else [e.get("name", e.get("path")) for e in found]
        for what in LISTED
        if what not in _TOO_MANY
    }
    counts = {what: len(_read(what)) for what in _TOO_MANY}
    if json:
        say.json({"schema": 1, **names})
        return
    for what, entries in names.items():
        say.line(f"{what:<11} {', '.join(entries) or '-'}")
    for what, of in _TOO_MANY.items():
        say.line(f"{what:<11} {counts[what]} {of}")
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
    if what in ("metrics", "counters", "prometheus", "claims"):
        return getattr(registries, what)()
    if what == "rules":
        from tcpknee.doctor import render
        from tcpknee.doctor.rules import RULES

        return [render.rule_json(rule) for rule in RULES]
    found = getattr(_core, what)()
    if what == "algorithms":
        status = _core.in_kernel()
        return [{**entry, **algorithms.manual(entry["name"]), "kernel": status[entry["name"]]} for entry in found]
    return found


def _title(name: str) -> str:
    from tcpknee import _core
    from tcpknee.runs import scenarios

    file = scenarios.path(name)
    return _core.parse(file.read_text(encoding="utf-8"), f"gallery/{name}.toml").title


def _entry(entry: Mapping[str, Any]) -> list[str]:
    unit = f" [{entry['unit']}]" if entry.get("unit") and "tables" not in entry else ""
    lines = textwrap.wrap(
        f"{entry['name']:<18} {entry['summary']}{unit}", _WIDTH + 20, subsequent_indent=" " * 19, break_long_words=False
    )
    for name, heading in _FACTS.items():
        if told := entry.get(name):
            lines += _wrapped(f"{heading}: {_in_words(told)}")
    if entry.get("use_when"):
        lines += _wrapped(f"use when: {entry['use_when']}")
    if entry.get("source"):
        year = f" ({entry['year']})" if entry.get("year") else ""
        lines += _wrapped(f"source: {entry['source']}{year}")
    if entry.get("keys"):
        lines += _wrapped(f"keys: {', '.join(entry['keys'])}")
    if "both_ways" in entry:
        lines += _wrapped(f"acts on: {'data and ACKs' if entry['both_ways'] else 'data'}")
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


def _in_words(told: object) -> str:
    if isinstance(told, Mapping):
        return "; ".join(f"{key}: {value}" for key, value in told.items())
    return ", ".join(told) if isinstance(told, list) else str(told)


def _algorithm(entry: Mapping[str, Any]) -> list[str]:
    """All that is known of an algorithm: the head of its file, too."""
    parts = [entry["idea"], entry["equations"], f"Differs from source:\n{entry['differs']}"]
    return [*_entry(entry), *(f"  {line}".rstrip() for part in parts for line in ("", *part.splitlines()))]


def _importer(kind: Mapping[str, Any]) -> list[str]:
    """All that an importer says of itself; `knee import NAME --help` has its options."""
    lines = [*_entry(kind), "", *kind["examples"], "", *kind["page"].strip().splitlines(), ""]
    for table in kind["tables"]:
        lines += [f"table {table['name']}: {table['rows']}"]
    for count in kind["counts"]:
        lines += _wrapped(f"count {count['name']}: {count['doc']}", indent=0)
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
    axis = "; a list is an axis" if key["axis"] else ""
    lines = [f"{key['path']}{default}", *_wrapped(f"{key['doc']} ({key['accepts']}{axis})", indent=4)]
    if key["engines"] != _EVERY_ENGINE:
        lines += _wrapped(f"engines: {key['engines']}", indent=4)
    if key.get("source"):
        lines += _wrapped(f"source: {key['source']}", indent=4)
    return lines


def _table(name: str, columns: Sequence[Mapping[str, Any]]) -> list[str]:
    width = max(len(column["name"]) for column in columns)
    sources = {column["source"] for column in columns}
    shared = sources.pop() if len(sources) == 1 else "tcpknee"
    lines = [name if shared == "tcpknee" else f"{name} ({shared})"]
    if _only_of_kernel(name):
        lines.append("  of real kernels only: --engine kernel, guest or hosts")
    for column in columns:
        unit = f" [{column['unit']}]" if column["unit"] else ""
        source = f" ({column['source']})" if column["source"] not in (shared, "tcpknee") else ""
        kernel = "; of real kernels only" if "engine" in column else ""
        lines.append(f"  {column['name']:<{width}}  {column['type']:<8}  {column['doc']}{unit}{source}{kernel}")
    return lines


def _only_of_kernel(name: str) -> bool:
    from tcpknee.runs import tables

    return name in tables.FROM_ENGINE["kernel"] and name not in tables.FROM_ENGINE["sim"]


def _wrapped(text: str, indent: int = 19) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))
