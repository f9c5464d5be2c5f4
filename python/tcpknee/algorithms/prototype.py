"""Algorithms as classes in Python, to try an idea before it is C: slower by a factor of some tens.

    class Half:
        keep = 512                                  # a parameter: whole numbers of the class are

        def ssthresh(self, i, out):                 # `i`: struct cc_in of cc.h; `out`: struct cc_out
            return max(i.snd_cwnd * self.keep // 1024, 2)

A file whose name ends in .py has one class with `ssthresh`. It stands where a file in C may in a simulation: a shared
object takes its place, whose ops ask a process of their own (`cc/cc_prototype.h`). This module writes that object's
text, starts that process, and is what runs in it:

    python -m tcpknee.algorithms.prototype PATH PARENT < TEXT AND QUESTIONS

It ends with the process PARENT, which started it. What the class prints goes to standard error; the last line there
tells, behind `FAILED`, what went wrong.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import struct
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from types import FrameType, SimpleNamespace
from typing import IO, Any, NoReturn

from tcpknee import children, say
from tcpknee.errors import UsageError

from . import compiler

OPS = (
    "init",
    "ssthresh",
    "cong_avoid",
    "cong_control",
    "undo_cwnd",
    "set_state",
    "cwnd_event",
    "pkts_acked",
    "min_tso_segs",
    "sndbuf_expand",
    "in_ack_event",
    "skb_marked_lost",
)
"""As `enum cc_op_number` numbers them."""

_MOST_PARAMS = 64
_MOST = (1 << 32) - 1
_SECONDS = 1.0
"""Of processor time, for one op."""

_MOST_SECONDS, _MOST_BEGIN_SECONDS = 5.0, 60.0
"""Of the clock, for an op that waits, and until there is a class: what it imports may take long."""

FAILED = "prototype failed: "
_MOST_WORDS = 500

_HEAD = struct.Struct("=4IQ64I")
_FORMATS = {"u64": "Q", "s64": "q", "u32": "I", "s32": "i", "u16": "H", "u8": "B"}

_held: list[subprocess.Popen[bytes]] = []
"""Processes that answer; they end when this one does, which their input says."""


def is_one(path: str) -> bool:
    """Is that a prototype's file?"""
    return path.endswith(".py")


@dataclass(frozen=True)
class Prototype:
    """What its text says of it: the class and what tables call it, its ops, and its parameters with their defaults."""

    cls: str
    name: str
    ops: tuple[str, ...]
    params: Mapping[str, int]


def read(path: str, text: str) -> Prototype:
    """The class of a file, which is not run for it. Raises `UsageError`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"{path}{line}: {said}; expected a class in Python.") from None
    found = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            if "ssthresh" in methods:
                found.append((node, methods))
    if len(found) != 1:
        raise UsageError(
            f"{path}: got {len(found)} classes with a method ssthresh; expected one: an algorithm "
            "(docs/your-algorithm.md)."
        )
    (node, methods) = found[0]
    if missing := [op for op in ("undo_cwnd",) if op not in methods]:
        raise UsageError(f"{path}:{node.lineno}: {node.name} has no {missing[0]}; expected it, as Linux asks for it.")
    if not methods & {"cong_avoid", "cong_control"}:
        raise UsageError(
            f"{path}:{node.lineno}: {node.name} has neither cong_avoid nor cong_control; expected one, which sets the "
            "window."
        )
    name = node.name.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
        raise UsageError(
            f"{path}:{node.lineno}: got the class {say.printable(node.name)}; expected letters and digits."
        )
    params = {each: value for each, value in _params(node) if each not in methods}
    if len(params) > _MOST_PARAMS:
        raise UsageError(f"{path}: got {len(params)} parameters; expected {_MOST_PARAMS} at most.")
    return Prototype(node.name, name, tuple(op for op in OPS if op in methods), params)


def _params(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    for each in node.body:
        match each:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value))
            ):
                if type(value) is int and 0 <= value <= _MOST and re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name):
                    yield name, value


def place(digest: str) -> str:
    """The environment variable that tells the shared object whom to ask."""
    return f"KNEE_PROTOTYPE_{digest[:16]}"


def shim(path: str, text: str, digest: str) -> str:
    """The text in C of the shared object that stands for a prototype. Raises `UsageError`.

    No name of the prototype's is one in C, where it could be a keyword, a macro or a function: all stand in quotes."""
    found = read(path, text)
    count = len(found.params)
    params = " ".join(f'P({each}, {value}u, 0, {_MOST}u, "", "of the class")' for each, value in found.params.items())
    ops = [
        f"static void knee_prototype_{op}(struct knee_prototype *s, const struct cc_in *in, struct cc_out *out)\n"
        f"{{ cc_ask({OPS.index(op)}, s->params, {count}, &s->connection, in, out); }}"
        for op in found.ops
    ]
    return "\n".join(
        [
            '#include "cc_algorithm.h"',
            f'#define CC_PROTOTYPE_PLACE "{place(digest)}"',
            '#include "cc_prototype.h"',
            f"#define ITS_PARAMS(P) {params}",
            f"struct knee_prototype {{ u32 params[{max(count, 1)}]; u64 connection; }};",
            *ops,
            f"#define ITS_OPS(OP) {' '.join(f'OP(knee_prototype, {op})' for op in found.ops)}",
            "CC_ALGORITHM(knee_prototype, struct knee_prototype, ITS_PARAMS, ITS_OPS, 0,",
            f'    .name = "{found.name}", .kernel_name = "knee_{found.name}",',
            '    .summary = "a prototype in Python", .source = "its file", .use_when = "to try an idea", .year = 2026)',
            "",
        ]
    )


def serve(path: str, text: str, digest: str, *, printed: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Starts the process that the shared object asks, which ends with this one. What it prints goes into a file."""
    # A session of its own: Ctrl-C in a terminal reaches this process only.
    process = subprocess.Popen(
        children.command(__name__, path, str(os.getpid())),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=printed,
        env=children.environment(),
        start_new_session=True,
    )
    _held.append(process)
    content = text.encode()
    # One that died before it listened is missed by the first op.
    with suppress(BrokenPipeError):
        assert process.stdin is not None
        process.stdin.write(struct.pack("=Q", len(content)) + content)
        process.stdin.flush()
    os.environ[place(digest)] = " ".join(map(str, ends(process)))
    return process


def ends(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """The descriptors by which it is asked."""
    assert process.stdin is not None and process.stdout is not None
    return process.stdin.fileno(), process.stdout.fileno()


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends it at once."""
    _held.remove(process)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()


def did(printed: str) -> str:
    """What a prototype did that is gone, of what it printed."""
    found = re.findall(rf"^{FAILED}(.*)$", printed, re.MULTILINE)
    return f"raised an exception ({say.printable(found[-1])})" if found else "ended its process"


@cache
def _layout(block: str) -> tuple[struct.Struct, tuple[str, ...]]:
    """Of a struct of cc.h: as it lies in memory, and its fields."""
    header = (compiler.HEADERS / "cc.h").read_text(encoding="utf-8")
    body = header.split(f"struct {block} {{", 1)[1].split("\n};", 1)[0]
    fields = re.findall(r"^\s*(u64|s64|u32|s32|u16|u8) (\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL), re.M)
    # A struct of C ends where its widest field could begin again.
    return struct.Struct("@" + "".join(_FORMATS[kind] for kind, _ in fields) + "0Q"), tuple(name for _, name in fields)


def main(path: str, parent: str) -> int:
    """Answers until its input ends. Exit code 1 when the class or an op fails, which is said."""
    children.end_with(int(parent))
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the prototype prints is for people, and at once, as this process may be ended. There is nothing to read.
    os.dup2(2, 1)
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    signal.signal(signal.SIGPROF, _too_long)
    signal.signal(signal.SIGALRM, _too_long)
    head = questions.read(8)
    if len(head) < 8:
        return 0
    text = questions.read(*struct.unpack("=Q", head)).decode()
    try:
        found = read(path, text)
        scope: dict[str, Any] = {"__name__": "prototype"}
        with _limited(_MOST_BEGIN_SECONDS, _MOST_BEGIN_SECONDS):
            exec(compile(text, path, "exec"), scope)
        _answer(questions, answers, scope[found.cls], list(found.params))
    # Also SystemExit: what asks waits for an answer.
    except BaseException as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f"{path}:{frames[-1].lineno}" if frames else path
        why = say.printable(f"{where}: {type(error).__name__}: {error}"[:_MOST_WORDS])
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            os.write(2, f"\n{FAILED}{why}\n".encode())
        # Nothing is printed after that.
        os._exit(1)
    return 0


@contextmanager
def _limited(seconds: float = _SECONDS, most_seconds: float = _MOST_SECONDS) -> Iterator[None]:
    """What the class does meanwhile takes no longer than that of processor time, and of the clock."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, most_seconds)
    # It ends a process in which Python cannot raise, as in sum(range(10**12)).
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + most_seconds)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL, signal.ITIMER_VIRTUAL):
            signal.setitimer(timer, 0)


def _answer(questions: IO[bytes], answers: IO[bytes], cls: type, params: Sequence[str]) -> None:
    (as_in, of_in), (as_out, of_out) = _layout("cc_in"), _layout("cc_out")
    connections: list[Any] = []
    whole = _HEAD.size + as_in.size + as_out.size
    while len(question := questions.read(whole)) == whole:
        op, in_bytes, out_bytes, _, connection, *values = _HEAD.unpack_from(question)
        if (in_bytes, out_bytes) != (as_in.size, as_out.size):
            raise ValueError(f"cc.h has blocks of {as_in.size} and {as_out.size} bytes, the algorithm others")
        if not connection:
            with _limited():
                one = cls()
            for name, value in zip(params, values, strict=False):
                setattr(one, name, value)
            connections.append(one)
            connection = len(connections)
        shown = SimpleNamespace(**dict(zip(of_in, as_in.unpack_from(question, _HEAD.size), strict=True)))
        before = as_out.unpack_from(question, _HEAD.size + as_in.size)
        out = SimpleNamespace(**dict(zip(of_out, before, strict=True)))
        with _limited():
            result = getattr(connections[connection - 1], OPS[op])(shown, out)
        if result is not None:
            out.ret = result
        answers.write(struct.pack("=Q", connection) + _packed(as_out, of_out, out))
        answers.flush()


def _packed(layout: struct.Struct, fields: Sequence[str], out: SimpleNamespace) -> bytes:
    """What an op leaves, in whole numbers. Raises ValueError, which names what is none of the contract's."""
    left = vars(out)
    if unknown := left.keys() - set(fields):
        raise ValueError(f"out.{min(unknown)} is no field of struct cc_out; expected one of {', '.join(fields)}")
    values = [int(left[name]) for name in fields]
    try:
        return layout.pack(*values)
    except struct.error:
        sizes = {"Q": 64, "I": 32, "H": 16, "B": 8}
        codes = [code for code in layout.format.lstrip("@") if code in sizes]
        for name, value, code in zip(fields, values, codes, strict=False):
            if not 0 <= value < 1 << sizes[code]:
                raise ValueError(f"out.{name}: got {value}; expected 0 to {(1 << sizes[code]) - 1}") from None
        raise


def _too_long(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGPROF:
        raise TimeoutError("took more than a second of processor time")
    raise TimeoutError(f"took too long, waiting (an op has {_MOST_SECONDS:g} s)")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
