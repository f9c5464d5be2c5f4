"""Builds a source as user-mode Linux: an ordinary program, whose clock is virtual and whose chance comes from a seed.

A build that was stopped goes on where it was. What is patched, and why, stands at each patch.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import resources
from pathlib import Path

from tcpknee import _core
from tcpknee.errors import KernelUnsupported, UsageError

from . import cache, debian, guest, modules, trees
from .cache import Kernel
from .trees import Tree

CONFIG = resources.files(__package__).joinpath("guest.config").read_text(encoding="utf-8")
OLDEST = (5, 4)
ONE_GENERATOR = (5, 19)
"""From here on netem's draws come from the generator that takes the seed; before, prandom_u32() had its own."""
TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "perl": "perl",
    "ip": "iproute2",
    "tc": "iproute2",
}
"""Commands that a build needs, and the last two the guests that run here, and their packages in Debian and Ubuntu."""

_HEADERS = {Path("/usr/include/stdio.h"): "libc6-dev"}
_LOCK = ".lock"
_MOST_LINES = 20
"""Of a compiler that stand in an error."""

_OF_A_MAKE = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "LDFLAGS"}
"""What a make that called us would say to that of the kernel."""

_ERROR = re.compile(r"\berror\b|Error|undefined reference|No space")

Phase = Callable[[str], AbstractContextManager[object]]
"""Tells that a step is under way which takes its time."""

_SEED = """static u64 knee_seed;
static bool knee_has_seed;

static int __init knee_take_seed(char *text)
{
	knee_has_seed = !kstrtou64(text, 0, &knee_seed);
	return 0;
}
early_param("knee_seed", knee_take_seed);

/* In the place of entropy, where the command line has a seed. */
static bool knee_extract(u8 *to, size_t bytes)
{
	static u64 extracted;
	u64 words[2] = { knee_seed, extracted++ };

	if (!knee_has_seed)
		return false;
	memset(to, 0, bytes);
	memcpy(to, words, min(bytes, sizeof(words)));
	return true;
}

"""


@dataclass(frozen=True)
class Patch:
    """A place of a source that is changed: what it is before, as a regular expression, and after."""

    file: str
    before: str
    after: str

    def of(self, text: str) -> str | None:
        """The text with the change; None where it has no such place."""
        changed, count = re.subn(self.before, self.after, text, count=1)
        return changed if count else None


PATCHES = (
    # HZ is 100 in user-mode Linux, and no option sets it; distributions have 250.
    Patch("arch/um/Kconfig", r"(config HZ\n\tint\n\tdefault) 100", r"\1 250"),
    # Room for a process's registers, in words. With AMX they are 11,008 bytes, and the host refuses a part of them.
    # 6.12 has 2,696 bytes, older kernels less. Since 6.13 the host says how many, and this line is not there.
    Patch(
        "arch/x86/um/user-offsets.c",
        r"DEFINE(?:_LONGS)?\(HOST_FP_SIZE, (?:sizeof\(struct _xstate\)[^)]*|2696)\);",
        "DEFINE(HOST_FP_SIZE, 1536);",
    ),
)
SEED = Patch(
    # All random numbers of a kernel since 5.18, and of its stable branches since 5.10.119, come from what this function
    # extracts.
    "drivers/char/random.c",
    r"(static void extract_entropy\(void \*(\w+), size_t (\w+)\)\n\{"
    r"(?:\n\t[^\n]*;|\n\tstruct \{(?:\n\t\t[^\n]*;)+\n\t\} \w+;)+\n)",
    _SEED + r"\1" + "\n\tif (knee_extract(\\2, \\3))\n\t\treturn;\n",
)

PATCHED = (*(patch.file for patch in PATCHES), SEED.file)
"""Files that a patch changes."""


def recipe() -> str:
    """The digest of what a build makes of a source: the settings of its configuration, and the patches."""
    settings = [line for line in CONFIG.splitlines() if "CONFIG_" in line]
    return hashlib.sha256("\n".join([*settings, *map(repr, (*PATCHES, SEED))]).encode()).hexdigest()


_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")


def doubt(kernel: Kernel) -> str | None:
    """What to know of a kernel that was built otherwise than one would be now."""
    if kernel.recipe == recipe():
        return None
    return (
        f"the guest kernel {kernel.name} was built by an older configuration, and its results may differ; build it "
        "again with `knee kernel add`"
    )


def add(what: str, *, name: str | None = None, package: Path | None = None, phase: Phase) -> Kernel:
    """Builds a kernel, of a version of Debian's or of a tree, and keeps it. Raises `KernelUnsupported`, `UsageError`,
    OSError."""
    tree = None if package else trees.named(what)
    called = name if name is not None else cache_name(tree) if tree else what
    if not tree and not _RELEASE.fullmatch(what):
        raise UsageError(f'kernel: got "{what}"; expected a release such as 6.12, or the path of a tree.')
    if _RELEASE.fullmatch(called) and called != what:
        raise UsageError(
            f'kernel: got the name "{called}" for {what}; expected none that is a release\'s. Give another with --name.'
        )
    if package and not package.is_file():
        raise UsageError(f"--deb: {package}: is no file; expected Debian's package linux-source-VERSION.")
    # Of the source, whatever the kernel is called.
    work = cache.home() / ".work" / (tree.key if tree else what)
    new = cache.new(called)
    try:
        _need_tools()
        # Whatever the umask is: make runs what is there.
        for folder in (work.parent, work):
            folder.mkdir(mode=0o700, exist_ok=True)
            cache.check_own(folder)
        with _locked(work, what):
            try:
                return _add(tree, what, called, package, new, work, phase)
            finally:
                # No source was found.
                if [one.name for one in work.iterdir()] == [_LOCK]:
                    shutil.rmtree(work)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def name_of(kernel: str, phase: Phase) -> str:
    """The name of a kernel that a command names: of a tree after it was built. Raises as `add`."""
    return add(kernel, phase=phase).name if trees.named(kernel) else kernel


def cache_name(tree: Tree) -> str:
    """What a tree's kernel is called where nobody says another name: none of two revisions alike."""
    revision = tree.revision or ""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", revision)
    if plain != revision or not cache.NAME.fullmatch(f"{tree.key}-{plain}"):
        plain = f"{plain[:12]}-{hashlib.sha256(revision.encode()).hexdigest()[:8]}"
    return f"{tree.key}-{plain}" if revision else tree.key


def _add(
    tree: Tree | None, what: str, called: str, package: Path | None, new: Path, work: Path, phase: Phase
) -> Kernel:
    source, build = work / "source", work / "build"
    if tree:
        with phase(f"Copying what changed in {tree.path}"):
            version = _version(trees.text_of(tree, "Makefile") or "", what)
            digest = trees.copy(tree, source, PATCHED)
            origin = trees.described(tree)
            is_repeatable = _patch(source, {name: trees.text_of(tree, name) for name in PATCHED})
    else:
        with phase(f"Fetching the source of Linux {what}"):
            file = package or debian.package(what, cache.home() / ".debs")
        with phase(f"Unpacking {file.name}"):
            digest, origin = hashlib.sha256(file.read_bytes()).hexdigest(), debian.unpack(file, source)
            version = _version(_text(source / "Makefile") or "", what)
            is_repeatable = _patch(source, {name: _text(source / name) for name in PATCHED})
    with phase(f"Building Linux {what} (minutes at first, seconds after a change)"):
        modules.forget(work)
        config = _configure(source, build, what)
        _make(source, build, what, f"-j{len(os.sched_getaffinity(0))}", "linux")
        _make(source, build, what, "modules_prepare")
        # What modules may use. It has none of its own; before 5.8 that file has its last name at once.
        if (build / "vmlinux.symvers").is_file():
            shutil.copyfile(build / "vmlinux.symvers", build / "Module.symvers")
        release = _make(source, build, what, "-s", "kernelrelease").strip().splitlines()[-1]
    with phase("Booting it once"):
        algorithms = guest.algorithms(build / "linux")
    facts = {
        "name": called,
        "release": release,
        "origin": origin,
        "digest": digest,
        "config": config,
        "recipe": recipe(),
        "compiler": _first_line(["gcc", "--version"]),
        "built": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        "is_repeatable": is_repeatable and version >= ONE_GENERATOR,
        "algorithms": algorithms,
        "work": work.name,
    }
    kept = cache.keep(new, build / "linux", facts)
    modules.note(work, kept)
    if not tree:
        modules.prune(source, build)
        if not package:
            file.unlink()
    return kept


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else None


@contextmanager
def _locked(work: Path, what: str) -> Iterator[None]:
    lock = _core.Folder(work, make=False).lock(_LOCK)
    if lock is None:
        raise KernelUnsupported(f"kernel {what}: another process builds it; wait for its end.")
    try:
        yield
    finally:
        lock.release()


def _need_tools() -> None:
    """Installs what a build needs where root may, else names it."""
    # Those of the administrator are not in everybody's path.
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool, path=path) is None]
    missing += [package for path, package in _HEADERS.items() if not path.is_file()]
    if not missing:
        return
    missing = list(dict.fromkeys(missing))
    words = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
    raise KernelUnsupported(
        f"kernel: building one needs {', '.join(missing)}. Install: apt-get install {' '.join(missing)}"
    )


def _version(makefile: str, what: str) -> tuple[int, int]:
    """Raises `KernelUnsupported` where it is too old."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)$", makefile, re.MULTILINE))
    if len(found) < 2:
        raise KernelUnsupported(f"kernel {what}: its Makefile tells no version; expected a source of Linux.")
    version = int(found["VERSION"]), int(found["PATCHLEVEL"])
    if version < OLDEST:
        raise KernelUnsupported(
            f"kernel {what}: is Linux {version[0]}.{version[1]}; expected {OLDEST[0]}.{OLDEST[1]} or newer, whose "
            "user-mode Linux has a virtual clock."
        )
    return version


def _patch(source: Path, originals: Mapping[str, str | None]) -> bool:
    """Writes the patched files where they differ from what is there; whether the kernel takes a seed."""
    is_repeatable = False
    for patch in (*PATCHES, SEED):
        text = originals[patch.file]
        if text is None:
            continue
        changed = patch.of(text)
        is_repeatable |= patch is SEED and changed is not None
        path, after = source / patch.file, changed or text
        if not path.is_file() or path.read_text(encoding="utf-8", errors="surrogateescape") != after:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(after, encoding="utf-8", errors="surrogateescape")
    return is_repeatable


def _configure(source: Path, build: Path, what: str) -> str:
    """Configures a build, if it is not yet; the digest of its configuration."""
    build.mkdir(exist_ok=True)
    path, stamp = build / ".config", build / ".knee-config"
    if not path.is_file() or not stamp.is_file() or stamp.read_text(encoding="utf-8") != recipe():
        _make(source, build, what, "defconfig")
        with path.open("a", encoding="utf-8") as file:
            file.write(CONFIG)
    _make(source, build, what, "olddefconfig")
    got = set(path.read_text(encoding="utf-8").splitlines())
    needed = CONFIG.partition("# From here on, where this version has it.")[0].splitlines()
    refused = [line for line in (*needed, "CONFIG_HZ=250") if line.startswith("CONFIG_") and line not in got]
    if refused:
        raise KernelUnsupported(f"kernel {what}: its configuration did not take {', '.join(refused)}.")
    stamp.write_text(recipe(), encoding="utf-8")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _make(source: Path, build: Path, what: str, *words: str) -> str:
    """Runs make; its output. Raises `KernelUnsupported` with the compiler's own lines."""
    command = [*guest.contained(), "make", "-C", str(source), "ARCH=um", f"O={build}", *words]
    ours = {name: value for name, value in os.environ.items() if name not in _OF_A_MAKE}
    environment = {**ours, "LC_ALL": "C.UTF-8", "KBUILD_BUILD_TIMESTAMP": "2026-01-01"}
    # What a compiler that is killed leaves stays in the build's own folder.
    environment |= {"KBUILD_BUILD_USER": "knee", "KBUILD_BUILD_HOST": "guest", "TMPDIR": str(build)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise KernelUnsupported(
            f"kernel {what}: make {words[-1]} failed:\n{_telling(done.stdout + done.stderr, source)}"
        )
    return done.stdout


def _telling(said: str, source: Path) -> str:
    """The lines of a failed build that tell why: from the first error on."""
    lines = [line.replace(f"{source}/", "") for line in said.splitlines()]
    first = next((i for i, line in enumerate(lines) if _ERROR.search(line)), 0)
    return "\n".join(lines[max(first - 2, 0) :][:_MOST_LINES])


def _first_line(words: list[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0]
