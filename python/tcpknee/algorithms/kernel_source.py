"""Compiles a congestion control of the Linux kernel as it is, against the headers of `cc/kernel`, into a shared object
like those of `compiler`.

What the simulator does not have stands in no header, so that the compiler does not know it; then the file is refused,
with its names and lines. Ops whose arguments were others once are told by what the compiler says of the file's table.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from tcpknee import say, writing
from tcpknee.errors import UsageError

from . import compiler, text

LINUX_STATE_BYTES = 104
"""ICSK_CA_PRIV_SIZE: what Linux gives an algorithm for a connection."""

_LARGER_STATE_BYTES = 512
_HEAP_BYTES = 8192
_HZ = 250

_FLAGS = (
    *(flag for flag in compiler.FLAGS if flag not in ("-shared", "-Wl,-z,defs")),
    "-g1",
    # A floating-point number that the compiler reckons with is none of the algorithm's, as in the kernel's own build.
    "-mgeneral-regs-only",
    "-fwrapv",
    "-fno-delete-null-pointer-checks",
    "-fno-common",
)
_LINK = ("-shared", "-nodefaultlibs", "-nostartfiles", "-Wl,-z,defs")

_FIRST = "knee_first.c"

_LOADER = b"""\
#include <dlfcn.h>

int main(int count, char **words)
{
	return count != 2 || !dlopen(words[1], RTLD_NOW);
}
"""
_LOAD_SECONDS = 5
"""For a module_init(), which takes some us."""

_STATE_TOO_LARGE = re.compile(r"static assertion failed.*ICSK_CA_PRIV_SIZE")
_NOT_CONSTANT = re.compile(
    r"is not constant|not a constant|not an integer constant|does not reduce to|variably modified|"
    r"constant expression|variable length array"
)
_OLD = {
    "KNEE_OLD_CONG_CONTROL": re.compile(r"\(struct sock \*, const struct rate_sample \*\)"),
    "KNEE_OLD_PKTS_ACKED": re.compile(r"type .*\(struct sock \*, (?:u32|__u32|unsigned int)[^,]*, (?:s32|__s32|int)\b"),
}
_ABSENT = (
    (re.compile(r"(?:implicit declaration of|call to undeclared) function '(\w+)'"), "{0}()"),
    (re.compile(r"'(?:const )?struct (\w+)'(?: \{aka[^}]*\})? has no member named '(\w+)'"), "{0}.{1}"),
    (re.compile(r"no member named '(\w+)' in 'struct (\w+)'"), "{1}.{0}"),
    (re.compile(r"'(\w+)' undeclared|use of undeclared identifier '(\w+)'"), "{0}"),
    (re.compile(r"unknown type name '(\w+)'"), "{0}"),
    (re.compile(r"(?:undefined|incomplete) (?:definition of )?type '(?:const )?(struct \w+)'"), "{0}"),
    (re.compile(r"(\S+): No such file or directory|'(\S+)' file not found"), "{0}"),
)
_FIXED = re.compile(
    r"(?:assignment of|increment of|decrement of|cannot assign to) (?:read-only|non-static data|variable) ?"
    r"(?:member|variable)? ?'(?:\w+\.)*(\w+)'"
)
_NUMBERS = ("bool", "byte", "short", "ushort", "int", "uint", "long", "ulong", "ullong")
"""The types of a module's parameters that are numbers."""

_STAND_IN = """\
#include <linux/module.h>
#include <net/tcp.h>
{params}
static struct tcp_congestion_ops stand_in = {{
	.name = "{name}",
	.ssthresh = tcp_reno_ssthresh,
	.undo_cwnd = tcp_reno_undo_cwnd,
	.cong_avoid = tcp_reno_cong_avoid,
}};

static int __init begin(void)
{{
	return tcp_register_congestion_control(&stand_in);
}}

module_init(begin);
"""
_UNDEFINED = re.compile(r"(?:(?P<file>[\w./-]+):(?P<line>\d+): )?undefined (?:reference to|symbol:) [`']?(?P<name>\w+)")


def is_one(content: str) -> bool:
    """Is it a source of the kernel, and none for our contract?"""
    is_ours = re.search(r"\bCC_ALGORITHM\s*\(", content)
    return not is_ours and bool(re.search(r"\bstruct\s+tcp_congestion_ops\b", content))


def libraries(sources: Mapping[str, str]) -> list[str]:
    """Files that a source of the kernel may call: `tcp_vegas.c` of one that includes `tcp_vegas.h`."""
    if not are_of_kernel(sources):
        return []
    return [f"{name.removesuffix('.h')}.c" for name in sources if re.fullmatch(r"(?:.*/)?tcp_\w+\.h", name)]


def is_optional(name: str, sources: Mapping[str, str], headers: Path) -> bool:
    """Can a source of the kernel be compiled without that file of its folder?"""
    return are_of_kernel(sources) and (name in libraries(sources) or (headers / "kernel" / name).is_file())


def are_of_kernel(sources: Mapping[str, str]) -> bool:
    """Is the first of these, the algorithm's, a source of the kernel?"""
    return is_one(text.without_comments(next(iter(sources.values()))))


def shared_object(path: str, sources: Mapping[str, str], digest: str, headers: Path, *, may_be_quoted: bool) -> Path:
    """The shared object of sources, of which the first is the algorithm's; from the cache where it is there."""
    words = compiler.command(path)
    package = compiler.headers_digest(headers, *headers.glob("kernel/*.[ch]"), Path(__file__))
    made_of = (digest, package, *_FLAGS)

    def compile_in(folder: Path) -> None:
        _compile(path, sources, words, headers, folder, may_be_quoted)

    return compiler.cached(sources, words, made_of, compile_in)


def stand_in(sources: Mapping[str, str]) -> str | None:
    """A source with the name and the parameters of one that only its own kernel has what it takes for; None where its
    text does not tell the name. What it decides is Reno's."""
    bare = "\n".join(text.without_comments(content, texts=True) for content in sources.values())
    if (table := re.search(r"\btcp_register_congestion_control\s*\(\s*&\s*(\w+)", bare)) is None:
        return None
    fields = re.search(rf"\bstruct\s+tcp_congestion_ops\s+{table[1]}\b[^;{{}}]*=\s*\{{(.*?)\}}\s*;", bare, re.DOTALL)
    name = re.search(r'\.name\s*=\s*"(\w+)"', fields[1]) if fields else None
    found = re.findall(r"\bmodule_param(?:_named\s*\(\s*(\w+)\s*,|\s*\()\s*(\w+)\s*,\s*(\w+)\s*,", bare)
    params = {called or variable: kind for called, variable, kind in found if kind in _NUMBERS}
    lines = (
        f"static {'bool' if kind == 'bool' else 'long'} param_{param};\n"
        f"module_param_named({param}, param_{param}, {kind}, 0644);"
        for param, kind in params.items()
    )
    return _STAND_IN.format(name=name[1], params="\n".join(lines)) if name else None


def is_none(error: UsageError, path: str) -> UsageError:
    """Why a shared object of a source of the kernel was not taken."""
    if "says no name" in str(error):
        return UsageError(
            f"{path}: registers no congestion control; expected a module_init() that calls "
            "tcp_register_congestion_control() and returns 0."
        )
    return UsageError(f"{path}: {error}.")


def _compile(
    path: str, sources: Mapping[str, str], words: Sequence[str], headers: Path, folder: Path, may_be_quoted: bool
) -> None:
    """Leaves the shared object in `folder`."""
    package = headers / "kernel"
    for name in _of_the_kernel(sources):
        # All that it declares is there before the file begins.
        with writing.replacing(folder / "headers" / name, make=True) as file:
            file.write(b"")
    search = [f"-I{package}", f"-I{headers}", "-Iheaders"]
    defines = _defines(sources)
    objects: list[str] = []
    first, *others = units(sources)
    with writing.replacing(folder / _FIRST, make=True) as file:
        file.write(_first(first, sources[first]).encode())
    for number, name in enumerate([f"./{_FIRST}", *map(compiler.in_folder, others)]):
        mine = ["-DKNEE_LIBRARY"] if number else []
        while True:
            flags = [*_FLAGS, *compiler.of_kind(words), *defines, *mine, "-include", "kernel.h", *search]
            further = ("-c", "-o", f"{number}.o")
            said = compiler.compiled(path, [*words, *flags], name, further, folder, may_be_quoted=may_be_quoted)
            if said is None:
                break
            remedy = None if number else _remedy(said, sources, defines)
            if remedy is None:
                raise UsageError(_refusal(path, sources, said, may_be_quoted))
            defines = [each for each in defines if each.partition("=")[0] != remedy.partition("=")[0]] + [remedy]
        objects.append(f"{number}.o")
    adapter = [str(package / name) for name in ("adapter.c", "offered.c")]
    flags = [*_FLAGS, *compiler.of_kind(words), *defines, *search, *_LINK]
    said = compiler.run([*words, *flags, *adapter, *objects, "-o", "object"], folder)
    if said is not None:
        raise UsageError(_refusal(path, sources, said, may_be_quoted))
    _load_once(path, words, folder)


def _load_once(path: str, words: Sequence[str], folder: Path) -> None:
    """Has a process of its own load the object, since its module_init() runs then. Raises `UsageError` where that does
    not end well."""
    with writing.replacing(folder / "load.c") as file:
        file.write(_LOADER)
    said = compiler.run([*words, "load.c", "-o", "load", "-ldl"], folder)
    if said is not None:
        raise UsageError(f"{path}: cannot be tried here: {say.printable(said.strip()[:300])}")
    words = ["/bin/sh", "-c", 'ulimit -c 0; ./load ./object; echo "code $?"']
    said = compiler.run(words, folder, of_compiler=False, seconds=_LOAD_SECONDS) or ""
    found = re.search(r"code (\d+)\n$", said)
    code = int(found[1]) if found else 0
    if found and not code:
        return
    name = signal.Signals(code - 128).name if code > 128 else "SIGXCPU" if not found else ""
    did = "does not end" if name in ("SIGXCPU", "SIGKILL") else compiler.DID.get(name, f"ended with code {code}")
    raise UsageError(f"{path}: its module_init() {did}; expected it to register its algorithm and return 0.")


def _first(name: str, content: str) -> str:
    """A text that includes the algorithm's file, and asks whether its state fits."""
    found = re.findall(
        r"\bstruct\s+(\w+)\s*\*\s*(?:const\s+)?\w+\s*=\s*inet_csk_ca\s*\(", text.without_comments(content)
    )
    lines = (f"BUILD_BUG_ON(sizeof(struct {each}) > ICSK_CA_PRIV_SIZE);" for each in dict.fromkeys(found))
    return "\n".join([f'#include "{compiler.in_folder(name)}"', *lines, ""])


def units(sources: Mapping[str, str]) -> list[str]:
    """The files that are compiled, the algorithm's first; not those that another one includes."""
    included = {
        str(PurePosixPath(name).parent / other) for name, content in sources.items() for other in text.includes(content)
    }
    first, *others = sources
    return [first, *(name for name in others if name.endswith(".c") and name not in included)]


def _defines(sources: Mapping[str, str]) -> list[str]:
    """What the texts ask for that no compiler would miss."""
    bare = "\n".join(text.without_comments(content) for content in sources.values())
    asked = {
        f"KNEE_HEAP_BYTES={_HEAP_BYTES}": r"\b(?:k[vmzc]?|v)[mzc]?alloc\w*\s*\(",
        "KNEE_TELLS_BBR": r"\bINET_DIAG_BBRINFO\b",
        "KNEE_OLD_MSTAMP": r"\bskb_mstamp\b",
        "KNEE_OLD_CONG_AVOID": r"cong_avoid\s*\(\s*struct\s+sock\s*\*\s*\w+\s*,\s*u32\s+\w+\s*,\s*u32\s+in_flight\s*\)",
        f"KNEE_HZ={_HZ}": r"(?m)^[ \t]*#[ \t]*(?:el)?if\b.*\bHZ\b",
    }
    found = [f"-D{name}" for name, pattern in asked.items() if re.search(pattern, bare)]
    return [f"-DKNEE_PRIVATE_BYTES={LINUX_STATE_BYTES}", *found]


def _remedy(said: str, sources: Mapping[str, str], defines: Sequence[str]) -> str | None:
    """What is defined to compile the file after that; None: nothing."""
    wanted = [f"-D{name}" for name, pattern in _OLD.items() if pattern.search(_plain(said))]
    if _STATE_TOO_LARGE.search(said):
        wanted.append(f"-DKNEE_PRIVATE_BYTES={_LARGER_STATE_BYTES}")
    if _NOT_CONSTANT.search(said) and any(re.search(r"\bHZ\b", content) for content in sources.values()):
        wanted.append(f"-DKNEE_HZ={_HZ}")
    return next((define for define in wanted if define not in defines), None)


def _of_the_kernel(sources: Mapping[str, str]) -> list[str]:
    """The kernel's headers that the texts include."""
    found: dict[str, None] = {}
    for content in sources.values():
        for name in re.findall(r"(?m)^[ \t]*#[ \t]*include[ \t]*<([^>\n]{1,255})>", content):
            if not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts:
                found[name] = None
    return list(found)


def _plain(said: str) -> str:
    """Without what a type is called else, and with plain quotes."""
    plain = re.sub(r" ?\{aka [^}]*\}", "", said.replace("‘", "'").replace("’", "'"))
    return re.sub(r"  +", " ", plain)


def _refusal(path: str, sources: Mapping[str, str], said: str, may_be_quoted: bool) -> str:
    """What the file uses that is not there, by its lines; else what the compiler has against them."""
    if not may_be_quoted:
        return compiler.said(path, sources, said, may_be_quoted, "")
    absent = dict.fromkeys(_absent(path, sources, _plain(said)))
    if not absent:
        return compiler.said(path, sources, said, may_be_quoted, "a source of the Linux kernel")
    lines = list(absent)
    shown = [line[:500] for line in lines[: compiler.MOST_LINES]]
    more = [f"and {len(lines) - len(shown)} more"] if len(lines) > len(shown) else []
    way = "A guest's kernel may have it: --engine guest --kernel 6.12 (docs/kernels.md)."
    further = [way] if stand_in(sources) else []
    what = f"{path}: is of the Linux kernel, and uses what the simulator does not have:"
    return "\n".join([what, *shown, *more, *further])


def _absent(path: str, sources: Mapping[str, str], said: str) -> Iterator[str]:
    seen = set()
    for line in said.splitlines():
        found = compiler.ERROR.match(line)
        what = _what(found["said"]) if found else None
        if found and what:
            name, number = compiler.source_of(found["file"]), found["line"]
        elif undefined := _UNDEFINED.search(line):
            is_float = re.fullmatch(r"__\w+[sdt]f\w*", undefined["name"])
            what = "uses floating point" if is_float else f"uses {undefined['name']}()"
            for library in (each for each in libraries(sources) if each not in sources):
                if undefined["name"].startswith(PurePosixPath(library).stem + "_"):
                    what = f"{undefined['name']}() is of {library}: put that file beside it"
            name, number = compiler.source_of(undefined["file"] or ""), undefined["line"] or ""
        if what and what not in seen:
            seen.add(what)
            where = text.beside(path, name) if name in list(sources)[1:] else path
            yield say.printable(f"{where}:{number}: {what}" if number else f"{where}: {what}")


def _what(said: str) -> str | None:
    for pattern, words in _ABSENT:
        if found := pattern.search(said):
            return f"uses {words.format(*(group for group in found.groups() if group))}"
    if re.search(r"SSE register|general-regs-only", said):
        return "uses floating point"
    if found := _FIXED.search(said):
        return f"sets {found[1]}, which an algorithm cannot set here"
    return None
