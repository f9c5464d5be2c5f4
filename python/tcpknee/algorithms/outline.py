"""The outline of a new algorithm: Reno, which is the shortest of ours, under another name."""

from __future__ import annotations

import re

from .building import HEADERS


def of(name: str) -> str:
    """The text of its file."""
    text = (HEADERS / "reno.c").read_text(encoding="utf-8")
    text = text.replace(
        " * Reno - additive", f" * {name} - what it does, in a line. To begin with it is Reno: additive", 1
    )
    text = re.sub(r"\breno_", f"{name}_", text)
    text = re.sub(r"\bRENO_", f"{name.upper()}_", text)
    return re.sub(r"(struct |OP\(|CC_ALGORITHM\()reno\b", rf"\g<1>{name}", text)
