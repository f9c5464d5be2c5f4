"""What the text of a C file says before a compiler sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tcpknee.errors import UsageError

_COMMENT_OR_TEXT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,255})"', re.MULTILINE)
_FLOAT = re.compile(
    r"\b(?:float|double|_Float\w+|__float\w+|_Decimal\w+|_Complex)\b"
    r"|(?<![\w.])(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFlL]?"
    r"|(?<![\w.])[0-9]+[eE][+-]?[0-9]+[fFlL]?"
)


def without_comments(content: str, *, texts: bool = False) -> str:
    """The same with blanks in the place of comments, and of texts in quotes too unless `texts`; its lines stay."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if texts and found[0][0] in "\"'" else re.sub(r"[^\n]", " ", found[0])

    return _COMMENT_OR_TEXT.sub(blank, content)


def includes(content: str) -> list[str]:
    """The names that it includes in quotes."""
    return _INCLUDE.findall(without_comments(content, texts=True))


def refuse_floats(path: str, sources: Mapping[str, str]) -> None:
    """Raises `UsageError` for the first line with a floating-point type or number."""
    for position, (name, content) in enumerate(sources.items()):
        if found := _FLOAT.search(without_comments(content)):
            line = content.count("\n", 0, found.start()) + 1
            where = path if position == 0 else beside(path, name)
            raise UsageError(
                f'{where}:{line}: got "{found[0]}"; expected integers: the kernel has no floating point, so that no '
                "algorithm can use it there. Scale instead, as in cwnd * 717 / 1024 for 0.7 cwnd."
            )


def beside(path: str, name: str) -> str:
    """The path of another file, by its name in the folder of `path`."""
    return f"{path[: path.rfind('/') + 1]}{name}"
