"""The outline of a new algorithm: Reno, which is the shortest of ours, under another name, and without what is said of
Reno alone."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from .building import HEADERS

_HEAD = """\
 * {name} - To do: what it does, in a line.
 *
 * To do: the idea, in a paragraph. To begin with it is Reno: one segment more
 * per round trip, and half the window at a loss. HyStart++ (hystartpp.h) may
 * end its first slow start.
 *
"""

_SOURCE = """\
 * Source: To do: RFC, draft or paper, with revision and section.
 *
 * Differs from source:
 *	- To do
 */
"""

_SAYS = {
    "summary": "To do: what it does, in a line",
    "source": "To do: RFC, draft or paper, with section",
    "use_when": "To do: where it is the right choice",
}


def of(name: str) -> str:
    """The text of its file."""
    text = (HEADERS / "reno.c").read_text(encoding="utf-8")
    text = re.sub(r" \* Reno - .*?(?= \* Equations)", lambda _: _HEAD.format(name=name), text, count=1, flags=re.DOTALL)
    text = re.sub(r" \* Source: .*?\*/\n", lambda _: _SOURCE, text, count=1, flags=re.DOTALL)
    for key, said in _SAYS.items():
        text = re.sub(rf'\.{key} = ".*"', f'.{key} = "{said}"', text)
    text = re.sub(r"\.year = [0-9]+", f".year = {datetime.now(timezone.utc).year}", text)
    text = re.sub(r"\breno_", f"{name}_", text)
    text = re.sub(r"\bRENO_", f"{name.upper()}_", text)
    return re.sub(r"(struct |OP\(|CC_ALGORITHM\()reno\b", rf"\g<1>{name}", text)
