"""Markdown of the generated parts."""

from __future__ import annotations

import re
from collections.abc import Iterable


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table; bars within cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def sentence(text: str) -> str:
    """The text with a capital first letter and nothing else changed."""
    return text[:1].upper() + text[1:]


def plain(text: str) -> str:
    """The text without the marks of code and links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
