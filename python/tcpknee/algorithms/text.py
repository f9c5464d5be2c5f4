"""What the text of a C file says before a compiler sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import accumulate

from tcpknee import say
from tcpknee.errors import UsageError

_COMMENT_OR_TEXT = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,255})"', re.MULTILINE)
_NAME = re.compile(r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.+-]{1,255}")
_JOINED = r'(?:"\s*")*'
"""Where a text may end for another to go on."""
_NO_C = re.compile(
    r"(?P<word>\b(?:__)?asm(?:__)?(?:_inline|_volatile|_goto)?(?:_goto|_output)?\b)"
    r"|^[ \t]*(?:\#|%:)[ \t]*(?P<directive>(?:embed|import|include_next)\b|include\b(?![ \t]*[<\"]))"
    rf"|(?P<text>\.{_JOINED.join('incbin')}\b)",
    re.MULTILINE,
)
"""The kernel has macros that are assembly too: asm_inline, asm_goto_output. What a macro names is included unseen."""
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


def refuse_name(path: str, name: str, may_be_quoted: bool) -> None:
    """Raises `UsageError` for the name of a file, in the folder of `path`, that a compiler could take for more."""
    if not all(_NAME.fullmatch(part) for part in name.split("/")):
        got = f'"{say.printable(name)}"' if may_be_quoted else "a name with others"
        raise UsageError(f"{path}: the name of a file: got {got}; expected letters, digits and any of _ . + - only.")


def refuse_assembly(path: str, sources: Mapping[str, str], may_be_quoted: bool) -> None:
    """Raises `UsageError` for the first line that is none of C, and takes in what stands elsewhere."""
    for position, (name, content) in enumerate(sources.items()):
        lines = content.split("\\\n")
        joined = "".join(lines)
        bare, with_texts = without_comments(joined), without_comments(joined, texts=True)
        # A text in quotes is blank there, and the name of a header may have any word in it.
        named = re.compile(r"^[ \t]*(?:#|%:)[ \t]*include[ \t]*(?:<[^>\n]*>|\"[^\"\n]*\")", re.MULTILINE)
        for one in named.finditer(with_texts):
            bare = f"{bare[: one.start()]}{' ' * len(one[0])}{bare[one.end() :]}"
        found = [it for it in _NO_C.finditer(bare) if not it["text"]]
        found += [it for it in _NO_C.finditer(with_texts) if it["text"]]
        if found:
            at = found[0].start(found[0].lastgroup or 0)
            joints = sum(end <= at for end in accumulate(map(len, lines[:-1])))
            where = path if position == 0 else beside(path, name) if may_be_quoted else path
            raise UsageError(
                f'{where}:{joined.count(chr(10), 0, at) + joints + 1}: got "{found[0][0].strip()}"; expected C alone: '
                "assembly has no place in an algorithm, since nothing can check it, and files come in by name."
            )


def refuse_floats(path: str, sources: Mapping[str, str], may_be_quoted: bool = True) -> None:
    """Raises `UsageError` for the first line with a floating-point type or number."""
    for position, (name, content) in enumerate(sources.items()):
        if found := _FLOAT.search(without_comments(content)):
            line = content.count("\n", 0, found.start()) + 1
            where = path if position == 0 else beside(path, name)
            got = f'"{found[0]}"' if may_be_quoted else "floating point"
            raise UsageError(
                f"{where}:{line}: got {got}; expected integers: the kernel has no floating point, so that no "
                "algorithm can use it there. Scale instead, as in cwnd * 717 / 1024 for 0.7 cwnd."
            )


def beside(path: str, name: str) -> str:
    """The path of another file, by its name in the folder of `path`."""
    return f"{path[: path.rfind('/') + 1]}{name}"
