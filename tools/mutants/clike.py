"""Where C and Rust can be mutated: a small tokenizer is enough, since clang-format and rustfmt keep the layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mutant import COMPARISONS, CONNECTIVES, SUMS, Mutant, Places, other_numbers

TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<text>\b(?:br|b|r|c)?"(?:\\.|[^"\\])*"|\br(?P<hashes>\#+)".*?"(?P=hashes)|"(?:\\.|[^"\\])*")
    | (?P<char>b?'(?:\\(?:x\w\w|u\{\w+\}|.)|[^'\\\n])')
    | (?P<lifetime>'\w+)
    | (?P<number>0[xXbo][0-9a-fA-F_]+(?:_?[iu](?:8|16|32|64|128|size))?[uUlL]*
        |\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?:_?[iuf](?:8|16|32|64|128|size))?[uUlL]*)
    | (?P<word>[A-Za-z_]\w*!?(?!=))
    | (?P<preprocessor>\#[ \t]*(?:include|if|ifdef|ifndef|elif|else|endif|undef|pragma)\b[^\n]*)
    | (?P<operator><<=|>>=|\.\.=|\.\.\.|->|=>|<=|>=|==|!=|&&|\|\||<<|>>|\+=|-=|\*=|/=|%=|\|=|&=|\^=|\+\+|--|::|\.\.|.)
    """,
    re.X | re.S,
)
NUMBER = re.compile(r"(0[xXbo])?([0-9a-fA-F_]+?)((?:_?[iu](?:8|16|32|64|128|size))?[uUlL]*)$")
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
# Inside of these nothing is decided: they state what is true anyway, or are read by people.
TOLD = re.compile(
    r"(?:debug_)?assert(?:_eq|_ne)?!|panic!|unreachable!|unimplemented!|e?print(?:ln)?!|format(?:_args)?!|write(?:ln)?!"
    r"|expect|_Static_assert|CC_ALGORITHM|CC_GET_INFO|__builtin_offsetof"
)


@dataclass(frozen=True)
class Token:
    """A word, number or sign, and where it is."""

    kind: str
    text: str
    start: int
    end: int


def tokens(source: str) -> list[Token]:
    """Without comments and without the preprocessor's conditions."""
    found = []
    for match in TOKEN.finditer(source):
        kind = match.lastgroup if match.lastgroup != "hashes" else "text"
        if kind in {"comment", "preprocessor"} or match[0].isspace() or match[0] == "\\":
            continue
        found.append(Token(str(kind), match[0], match.start(), match.end()))
    return found


def closing(ts: list[Token], at: int) -> int:
    """The index of what closes the bracket at `at`."""
    depth = 0
    for i in range(at, len(ts)):
        depth += ts[i].text in OPENING
        depth -= ts[i].text in CLOSING
        if depth == 0:
            return i
    return len(ts) - 1


def is_binary(ts: list[Token], at: int) -> bool:
    """Whether an operator has an operand before it."""
    before = ts[at - 1]
    if before.kind == "word":
        return before.text not in {"return", "if", "else", "in", "match", "while", "case", "break"}
    return before.kind in {"number", "char"} or before.text in {")", "]"}


def spaced(source: str, token: Token) -> bool:
    """Both formatters set spaces around comparisons and sums, and none around generics and pointers."""
    return source[token.start - 1].isspace() and source[token.end : token.end + 1].isspace()


def numbers(text: str) -> list[str]:
    """Other numbers for this one, in the same notation."""
    if re.fullmatch(r"\d[\d_]*\.\d.*|\d[\d_]*(?:\.\d+)?[eE].*|\d[\d_]*(?:\.\d+)?_?f(?:32|64)", text):
        match = re.match(r"[\d_.]+(?:[eE][+-]?\d+)?", text)
        assert match is not None
        value, suffix = float(match[0].replace("_", "")), text[match.end() :].lstrip("_")
        return [f"{value * factor!r}{suffix}" for factor in (2, 0.5)] if value else [f"1.0{suffix}"]
    match = NUMBER.match(text)
    if match is None:
        return []
    base = {"0x": 16, "0b": 2, "0o": 8}.get((match[1] or "").lower(), 10)
    suffix = match[3]
    written = {16: "0x{:x}", 2: "0b{:b}", 8: "0o{:o}", 10: "{}"}[base]
    return [written.format(value) + suffix for value in other_numbers(int(match[2].replace("_", ""), base))]


def simple(source: str, ts: list[Token], i: int) -> list[str]:
    """What a single token can become."""
    token = ts[i]
    if token.kind == "number":
        # A field of a tuple is no number.
        return [] if i and ts[i - 1].text == "." else numbers(token.text)
    if token.kind != "operator" or i == 0:
        return []
    for others in (COMPARISONS, CONNECTIVES, SUMS):
        if token.text in others and spaced(source, token) and is_binary(ts, i):
            return [others[token.text]]
    return []


class _Skipper:
    """Steps over what is not to be mutated; says the index after it, or the same index."""

    def __init__(self, ts: list[Token]) -> None:
        self.ts = ts

    def after(self, i: int) -> int:
        ts = self.ts
        if ts[i].kind == "word" and TOLD.fullmatch(ts[i].text) and i + 1 < len(ts) and ts[i + 1].text in OPENING:
            return closing(ts, i + 1) + 1
        if ts[i].text == "#" and i + 1 < len(ts) and ts[i + 1].text in {"[", "!"}:
            opened = i + 1 if ts[i + 1].text == "[" else i + 2
            ended = closing(ts, opened) + 1
            inside = "".join(t.text for t in ts[opened:ended])
            return self._item(ended) if inside == "[cfg(test)]" else ended
        return i

    def _item(self, i: int) -> int:
        """After the item that begins at `i`: its block, or its semicolon."""
        depth = 0
        while i < len(self.ts):
            text = self.ts[i].text
            if text == "{" and depth == 0:
                return closing(self.ts, i) + 1
            depth += text in OPENING
            depth -= text in CLOSING
            i += 1
            if text == ";" and depth == 0:
                break
        return i


def in_c(file: str, source: str) -> list[Mutant]:
    """All mutants of a C file."""
    ts = tokens(source)
    places, skipper = Places(file, source), _Skipper(ts)
    starts = [
        (m.start(), m[1]) for m in re.finditer(r"^(?:static [^;=]*?|u32 |void )(\w+)\([^;{]*\)\n\{", source, re.M)
    ]
    ends = [m.start() for m in re.finditer(r"^\}", source, re.M)]

    def function(at: int) -> str:
        for start, name in reversed(starts):
            if start <= at:
                return name if next((e for e in ends if e > start), 0) > at else ""
        return ""

    i = 0
    while i < len(ts):
        after = skipper.after(i)
        if after != i:
            i = after
            continue
        if ts[i].text == "if" and ts[i + 1].text == "(":
            end = closing(ts, i + 1)
            span = (ts[i + 1].end, ts[end].start)
            condition = source[slice(*span)]
            places.add(span, [f"!({condition})", "1", "0"], function(ts[i].start))
        places.add((ts[i].start, ts[i].end), simple(source, ts, i), function(ts[i].start))
        i += 1
    return places.found


@dataclass(frozen=True)
class Body:
    """The inside of the braces of an outermost Rust function."""

    name: str
    start: int
    end: int
    is_const: bool


def bodies(source: str) -> list[Body]:
    """Every outermost function of a Rust file that has a body."""
    return list(_bodies(tokens(source)))


def _bodies(ts: list[Token]) -> Iterator[Body]:
    skipper, i = _Skipper(ts), 0
    while i < len(ts):
        after = skipper.after(i)
        if after != i:
            i = after
            continue
        if ts[i].text == "fn" and ts[i + 1].kind == "word":
            opened, depth = i + 2, 0
            while not (depth == 0 and ts[opened].text in {"{", ";"}):
                depth += ts[opened].text in OPENING
                depth -= ts[opened].text in CLOSING
                opened += 1
            if ts[opened].text == "{":
                closed = closing(ts, opened)
                before = {t.text for t in ts[max(0, i - 2) : i]}
                yield Body(ts[i + 1].text, ts[opened].end, ts[closed].start, "const" in before)
                i = closed
        i += 1


def in_rust(file: str, source: str) -> list[Mutant]:
    """All mutants of a Rust file: of the bodies of functions, and of the values of constants."""
    ts = tokens(source)
    places, skipper = Places(file, source), _Skipper(ts)
    functions = list(_bodies(ts))
    i = 0
    constant_until, constant = 0, ""
    while i < len(ts):
        after = skipper.after(i)
        if after != i:
            i = after
            continue
        token = ts[i]
        body = next((b for b in functions if b.start <= token.start < b.end), None)
        if body is None and token.text in {"const", "static"} and ts[i + 1].kind == "word" and ts[i + 2].text == ":":
            end = i + 2
            while ts[end].text != ";":
                end = closing(ts, end) + 1 if ts[end].text in OPENING else end + 1
            while ts[i].text not in {"=", ";"}:
                i = closing(ts, i) + 1 if ts[i].text in OPENING else i + 1
            constant_until, constant = ts[end].start, ts[i - 1].text
            constant = re.findall(r"(?:const|static) (\w+)", source[token.start : ts[i].start])[0]
            continue
        if body is not None or token.start < constant_until:
            name = body.name if body is not None else constant
            chosen = body is not None and not body.is_const
            if token.text == "if" and ts[i + 1].text != "let":
                end = i + 1
                while ts[end].text not in {"{", "=>"}:
                    end = closing(ts, end) + 1 if ts[end].text in {"(", "["} else end + 1
                span = (ts[i + 1].start, ts[end - 1].end)
                if not any(t.text == "let" for t in ts[i:end]):
                    places.add(span, [f"!({source[slice(*span)]})", "true", "false"], name, chosen)
            places.add((token.start, token.end), simple(source, ts, i), name, chosen)
        i += 1
    return places.found
