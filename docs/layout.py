"""Markdown of the generated parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

LANGUAGES = {".c": "c", ".h": "c", ".rs": "rust", ".py": "python", ".toml": "toml", ".sh": "sh", ".json": "json"}
"""Of the files that pages show, by their endings."""


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table; bars within cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def listing(file: Path) -> str:
    """A file as it is."""
    return f"```{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(encoding='utf-8').rstrip()}\n```"


def sentence(text: str) -> str:
    """The text with a capital first letter and nothing else changed."""
    return text[:1].upper() + text[1:]


def plain(text: str) -> str:
    """The text without the marks of code and links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
