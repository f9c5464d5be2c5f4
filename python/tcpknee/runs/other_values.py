"""The text of a scenario with other values for some keys: the short form of a claim, another seed, one cell of many."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TABLE = re.compile(r"\[{1,2}([\w.]+)\]{1,2}\s*(?:#.*)?")


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Each key of `values` (`duration`, `path.rtt`), which the text has on a line of its own, with its value, which is
    TOML.

    Lines keep their numbers, so that an error points into the file that it is of.
    """
    table, missing, lines = "", dict(values), []
    for line in text.split("\n"):
        begun = _TABLE.fullmatch(line.strip())
        if begun:
            table = begun[1]
        key, sign, _ = line.partition("=")
        path = f"{table}.{key.strip()}" if table else key.strip()
        if sign and path in missing:
            line = f"{key}= {missing.pop(path)}"
        lines.append(line)
    assert not missing, f"the scenario does not set {', '.join(missing)}"
    return "\n".join(lines)
