"""Scenario text from keyword arguments and command-line options; the parser reads it as it reads any file."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tcpknee.algorithms import naming
from tcpknee.errors import ScenarioError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENTRANT = re.compile(r"([A-Za-z0-9_-]+|[^:]*/[^:]*|[^:]*\.c)(?::(\d+))?")


def toml(settings: Mapping[str, Any]) -> str:
    """TOML of nested dicts: scalars, lists, tables, and lists of dicts as `[[tables]]`. Raises `UsageError`."""
    lines = [f"{_key(key)} = {_value(value, key)}" for key, value in settings.items() if not _is_table(value)]
    for key, value in settings.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *_pairs(value, key)]
        elif _is_table(value):
            for entry in value:
                lines += ["", f"[[{_key(key)}]]", *_pairs(entry, key)]
    return "\n".join(lines) + "\n"


def with_kernels(text: str, kernels: Sequence[str]) -> str:
    """A scenario without the key `kernel` with it."""
    return toml({"kernel": kernels if len(kernels) > 1 else kernels[0]}) + text


def without_kernels(text: str) -> str:
    """The same without: `with_kernels` and `comparison` write the first line that begins so."""
    return re.sub(r"^kernel = .*\n", "", text, count=1, flags=re.MULTILINE)


SETTINGS = ("loss", "buffer", "queue", "duration", "warmup", "repeat", "seed", "workload", "kernel", "set")
"""Arguments of `comparison` besides `rate` and `rtt`."""


def comparison(
    algorithms: Sequence[str],
    *,
    rate: str | Sequence[str],
    rtt: str | Sequence[str],
    loss: str | Sequence[str] | None = None,
    buffer: str | Sequence[str] | None = None,
    queue: str | Sequence[str] | None = None,
    duration: str | Sequence[str] = "30s",
    warmup: str | None = None,
    repeat: int = 5,
    seed: int = 1,
    workload: str | None = None,
    kernel: str | Sequence[str] | None = None,
    set: Mapping[str, Any] | None = None,
    in_guests_alone: bool = False,
) -> str:
    """The scenario of `knee compare`. `in_guests_alone`: as `naming.of_scenario` has it. Raises `UsageError` and
    `ScenarioError`.

    `("cubic", "bbr1")`: each algorithm in cells of its own. `("cubic:1,bbr1:2",)`: one cell whose flows share the path.
    `set` has further keys by their dotted path; `flow.` reaches every flow, a parameter of an algorithm those that have
    it. Without `warmup` a sixth of the duration is
    left out of steady-state metrics, at most 5 s.
    """
    if "flow.algorithm" in (set or {}):
        raise UsageError(
            f"compare: got algorithms ({', '.join(algorithms)}) and a set of flow.algorithm; expected one."
        )
    if "flow.count" in (set or {}) and any(":" in text for text in algorithms):
        raise UsageError(
            f"compare: got counts ({', '.join(algorithms)}) and a set of flow.count; expected one of them."
        )
    flows = _flows(algorithms)
    scenario: dict[str, Any] = {
        "title": " against ".join(algorithms),
        "duration": duration,
        "warmup": _warmup(duration) if warmup is None else warmup,
        "repeat": repeat,
        "seed": seed,
        **({"kernel": kernel} if kernel is not None else {}),
        "path": {"rate": rate, "rtt": rtt, "loss": loss, "buffer": buffer, "queue": queue},
        "flow": [{**flow, "workload": workload} for flow in flows],
    }
    has_parameters = any(path.startswith("flow.") and path.count(".") > 1 for path in set or {})
    names = _names_in_mix(flows, in_guests_alone) if has_parameters and len(flows) > 1 else {}
    for path, value in (set or {}).items():
        _put(scenario, path, value, names)
    scenario["path"] = {key: value for key, value in scenario["path"].items() if value is not None}
    scenario["flow"] = [{key: value for key, value in flow.items() if value is not None} for flow in scenario["flow"]]
    return toml(scenario)


BASELINES = ("cubic", "bbr1", "bbr3")
"""What a user's own algorithm is compared with unasked."""


def with_baselines(algorithms: Sequence[str]) -> Sequence[str]:
    """The same, and baselines where only files are compared, each by itself."""
    counts = {text.rpartition(":")[2] for text in algorithms if ":" in text}
    are_files = all("," not in text and naming.is_path(text.partition(":")[0]) for text in algorithms)
    if len(counts) > 1 or not are_files:
        return algorithms
    count = f":{counts.pop()}" if counts else ""
    return [*algorithms, *(f"{name}{count}" for name in BASELINES)]


ARGUMENTS = {
    **{f"path.{name}": name for name in ("rate", "rtt", "loss", "buffer", "queue")},
    **{name: name for name in ("duration", "warmup", "repeat", "seed", "kernel")},
    "flow.workload": "workload",
    "flow.algorithm": "algorithms",
    "flow.count": "algorithms",
}
"""What of a comparison sets which key."""


def argument(key: str, set_: Mapping[str, Any] | None) -> tuple[str, str]:
    """The argument of `comparison` that set a key of the scenario, and the key as `set` names it."""
    key = re.sub(r"^flow\.\d+\.", "flow.", key)
    return ("set" if key in (set_ or {}) else ARGUMENTS.get(key, "set")), key


def axis(text: str | None) -> str | list[str] | None:
    """`10ms,100ms` as a list; a single value as it is."""
    parts = [part.strip() for part in text.split(",")] if text is not None else []
    return parts if len(parts) > 1 else text


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` of --set. A value that TOML reads is what TOML says; commas make a list; the rest is text."""
    found: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or any(not part for part in key.split(".")):
            raise UsageError(
                f'--set: got "{text}"; expected KEY=VALUE, as in sender.initcwnd=20. `knee list keys` prints the keys.'
            )
        if key.strip() in found:
            raise UsageError(f"--set: got {key.strip()} twice; expected it once, with commas between several values.")
        values = _read(value) or [part for text in value.split(",") for part in _read(text) or [text.strip()]]
        found[key.strip()] = values if len(values) > 1 else values[0]
    return found


def _read(text: str) -> list[Any] | None:
    """The values of TOML that stand in `text`, with commas between them; None where it is other text, as `10ms`."""
    try:
        found = tomllib.loads(f"values = [{text}]")
    except tomllib.TOMLDecodeError:
        return None
    # A day is text with TOML's look, and a line break could begin another key.
    values = found["values"] if len(found) == 1 else []
    return values if all(isinstance(value, bool | int | float | str | list) for value in values) else None


def _warmup(duration: str | Sequence[str]) -> str:
    """A sixth of the duration, of several of the shortest, at most 5 s. What is no time is left to the parser, which
    refuses it where it stands."""
    from tcpknee.evidence import expressions

    durations = [duration] if isinstance(duration, str) else duration
    try:
        seconds = min(float(expressions.parse_figure(one).quantity.values[0]) for one in durations)
    except (expressions.Problem, TypeError, ValueError):
        return "0s"
    return "5s" if seconds >= 30 else f"{seconds * 1000 / 6:.0f}ms"


def _flows(algorithms: Sequence[str]) -> list[dict[str, Any]]:
    if not algorithms:
        raise UsageError("compare: got no algorithm; expected one or more, as in `knee compare cubic bbr1`.")
    entrants = [[_entrant(part) for part in text.split(",")] for text in algorithms]
    if len(entrants) == 1 and len(entrants[0]) > 1:
        return [{"algorithm": name, "count": count} for name, count in entrants[0]]
    mixed = next((text for text, parts in zip(algorithms, entrants, strict=True) if len(parts) > 1), None)
    if mixed is not None:
        raise UsageError(
            f'compare: got the mix "{mixed}" beside other algorithms; expected one mix alone, or plain algorithms, '
            "each of which runs by itself. Compare the mixes one after the other."
        )
    counts = {count for [(_, count)] in entrants}
    if len(counts) > 1:
        raise UsageError(
            f"compare: got different counts ({', '.join(algorithms)}); expected the same count for each algorithm, or "
            f"a mix that shares the path: {','.join(algorithms)}."
        )
    names = [name for [(name, _)] in entrants]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f'compare: got "{twice}" twice; expected each algorithm once, or a mix that shares the path: '
            f"{','.join(names)}."
        )
    return [{"algorithm": names if len(names) > 1 else names[0], "count": counts.pop()}]


def _entrant(text: str) -> tuple[str, int]:
    """`bbr1:2` as (bbr1, 2)."""
    match = _ENTRANT.fullmatch(text)
    if match is None or match[2] == "0":
        raise UsageError(
            f'compare: got "{text}"; expected ALGORITHM or ALGORITHM:COUNT, as in cubic:1,bbr1:2. A file stands where '
            "a name may: ./mine.c:2."
        )
    return match[1], int(match[2] or 1)


def _names_in_mix(flows: Sequence[Mapping[str, Any]], in_guests_alone: bool) -> dict[str, str]:
    """What the algorithms that share a path are called: of a file as that says, others as they are named."""
    from tcpknee.algorithms.building import build

    words = dict.fromkeys(flow["algorithm"] for flow in flows)
    files = naming.named(build(word, in_guests_alone=in_guests_alone) for word in words if naming.is_path(word))
    return {word: word for word in words} | {one.built.path: one.name for one in files}


def _put(scenario: dict[str, Any], path: str, value: Any, names: Mapping[str, str]) -> None:
    """`names`: of the algorithms of a mix, by what stands in its flows."""
    head, _, rest = path.partition(".")
    if not rest:
        scenario[head] = value
    elif head == "flow":
        # A parameter goes to the flows that have its algorithm; what is no parameter of theirs to all.
        name = rest.partition(".")[0]
        having = [flow for flow in scenario["flow"] if names and name == names[flow["algorithm"]]]
        for flow in having or scenario["flow"]:
            flow[rest] = value
    else:
        table = scenario.setdefault(head, {})
        if not isinstance(table, dict):
            said = f"got a key of {head}, which is a value and no table. `knee list keys` prints the keys."
            raise ScenarioError.of("<command line>", [(1, path, said)])
        table[rest] = value


def _pairs(table: Mapping[str, Any], where: str, prefix: str = "") -> list[str]:
    lines = []
    for key, value in table.items():
        name = f"{prefix}{'.'.join(_key(part) for part in str(key).split('.'))}"
        if isinstance(value, Mapping):
            lines += _pairs(value, f"{where}.{key}", f"{name}.")
        else:
            lines.append(f"{name} = {_value(value, f'{where}.{key}')}")
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, Mapping) for entry in value)
    )


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else quoted(key)


def _value(value: Any, where: str) -> str:
    # Arrays, columns and numbers of numpy, pandas and pyarrow.
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise UsageError(f"{where}: got {value!r}; expected whole characters; this has half of one (a surrogate).")
        return quoted(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry, where) for entry in value) + "]"
    raise UsageError(
        f"{where}: got {value!r}; expected a text with its unit, a number, true or false, or a list of them."
    )


def quoted(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does, and DEL besides."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
