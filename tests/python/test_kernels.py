"""Kernels that run as guests: what is built of which source, and whose program is run."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from support import knee, refused
from tcpknee.algorithms import building as algorithms
from tcpknee.algorithms import outline
from tcpknee.errors import KernelUnsupported, RunFolderError, UsageError
from tcpknee.kernels import building, cache, guest, modules, trees
from tcpknee.runs import guest as of_guests

MAKEFILE = "VERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = 0\n"
RANDOM = """static void extract_entropy(void *buf, size_t nbytes)
{
\tunsigned long flags;
\tstruct {
\t\tunsigned long rdseed[4];
\t\tsize_t counter;
\t} block;
\tsize_t i;

\tfor (i = 0; i < 4; i++)
\t\tblock.rdseed[i] = random_get_entropy();
}
"""
#: What `make` does here: a configuration that takes all, and a program that holds the file net/ipv4/tcp_input.c.
MAKE = """#!/bin/sh
for word; do case $word in O=*) O=${word#O=} ;; M=*) M=${word#M=} ;; esac; done
source=$2
for word; do case $word in
defconfig) echo >"$O/.config" ;;
olddefconfig) echo CONFIG_HZ=250 >>"$O/.config" ;;
kernelrelease) echo 6.12.1 ;;
linux) input="$source/net/ipv4/tcp_input.c"
       grep -q broken "$input" && { echo "$input:1:1: error: broken" >&2; exit 2; }
       echo tcp_slow_start >"$O/vmlinux.symvers"
       cat "$input" "$source/drivers/char/random.c" >"$O/linux" ;;
modules) name=$(head -1 "$M/Kbuild" | cut -d' ' -f3)
         grep -q absent "$M/s/tcp_half.c" &&
             { echo 'ERROR: modpost: "absent" [knee.ko] undefined!'; exit 2; }
         grep -q notlined "$M/s/tcp_half.c" && { echo "$source/include/net/tcp.h:7:1: error: macro"; exit 2; }
         grep -q outside "$M/s/tcp_half.c" && taken=/etc/hostname
         printf 'deps_s/tcp_half.o := \\\\\n  %s \\\\\n    $(wildcard include/config/X) \\\\\n  %s\n' \
             "s/tcp_half.c" "${taken:-$O/.config}" >"$M/s/.tcp_half.o.cmd"
         cat "$source/net/ipv4/tcp_input.c" "$M/s/tcp_half.c" >"$M/${name%.o}.ko" ;;
esac; done
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(building, "TOOLS", {"make": "make"})
    monkeypatch.setattr(guest, "algorithms", lambda program: ("cubic", "reno"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source of Linux in git, with two revisions and a change since."""
    path = tmp_path / "my linux"
    files = {
        "Makefile": MAKEFILE.format(6, 12),
        "arch/um/Kconfig": "config HZ\n\tint\n\tdefault 100\n",
        "drivers/char/random.c": RANDOM,
        "net/ipv4/tcp_input.c": "one\n",
        "net/old.c": "old\n",
        ".gitignore": "*.o\n",
    }
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "init", "-q")
    commit(path)
    (path / "net/ipv4/tcp_input.c").write_text("two\n")
    (path / "net/old.c").unlink()
    commit(path)
    (path / "net/ipv4/tcp_input.c").write_text("three\n")
    (path / "net/built.o").write_text("object")
    return path


def git(path: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.invalid"]
    subprocess.run(["git", "-C", str(path), *who, *words], check=True, capture_output=True)


def commit(path: Path) -> None:
    git(path, "add", "-A")
    git(path, "commit", "-qm", "change")


def add(what: str, **options: str) -> cache.Kernel:
    return building.add(what, phase=lambda title: nullcontext(), **options)  # type: ignore[arg-type]


def test_a_tree_is_built_as_it_is_and_as_revisions_have_it(tree: Path) -> None:
    before = sorted(path.relative_to(tree) for path in tree.rglob("*"))
    for revision, text in (("", "three"), ("@HEAD", "two"), ("@HEAD~1", "one"), ("", "three")):
        found = add(f"{tree}{revision}")
        assert found.program.read_text().startswith(f"{text}\n")
        assert cache.find(found.name) == found
        source = cache.home() / ".work" / trees.Tree(tree, None).key / "source"
        assert (source / "net/old.c").exists() == (revision == "@HEAD~1")
        assert not (source / "net/built.o").exists()
    assert sorted(path.relative_to(tree) for path in tree.rglob("*")) == before, "the tree itself is not touched"
    assert len(list(cache.kernels())) == 3


def test_of_a_tree_without_git_all_but_what_a_build_made_is_copied(tree: Path) -> None:
    """As the tarballs of kernel.org are: the linker's scripts begin as what is linked does."""
    shutil.rmtree(tree / ".git")
    kept = ["arch/um/kernel/vmlinux.lds.S", "include/asm-generic/vmlinux.lds.h", "scripts/Makefile.vmlinux"]
    made = ["arch/um/kernel/vmlinux.lds", "vmlinux", "vmlinux.o", "vmlinux.unstripped", "vmlinux.map", ".config.old"]
    for name in (*kept, *made):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    add(str(tree))
    source = cache.home() / ".work" / trees.Tree(tree, None).key / "source"
    assert [name for name in (*kept, *made) if (source / name).exists()] == kept


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("6.12", "--name", ""), 'kernel: got the name ""'),
        (("6.12", "--name", "7.2"), 'kernel: got the name "7.2" for 6.12'),
        (("6.12", "--deb", "nowhere.deb"), "--deb: nowhere.deb: is no file"),
        (("abc",), 'kernel: got "abc"; expected a release such as 6.12, or the path of a tree'),
    ],
)
def test_what_cannot_be_built_is_refused_before_anything_is_made(
    tree: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """A name that is another kernel's release would take its place, and the folder that its modules are built in."""
    add(str(tree), name="mine")
    before = sorted(cache.home().rglob("*"))
    refused(knee("kernel", "add", *words, cwd=tmp_path), said)
    assert sorted(cache.home().rglob("*")) == before


def test_what_a_run_keeps_of_a_kernel_is_equal_when_it_is_read_again(tree: Path) -> None:
    """Or no run of a guest could be gone on with."""
    found = add(str(tree), name="mine")
    assert json.loads(json.dumps(found.facts())) == found.facts()


def test_a_kernel_without_its_build_is_listed_as_one_that_takes_no_modules(tree: Path, tmp_path: Path) -> None:
    found = add(str(tree), name="mine")
    assert "No algorithms of files" not in knee("kernel", "list", cwd=tmp_path).out
    modules.forget(found.built_in)
    assert "No algorithms of files run in mine until" in knee("kernel", "list", cwd=tmp_path).out
    refused(knee("kernel", "remove", "other", cwd=tmp_path), 'kernel: got "other"; expected one of mine.')


def test_a_change_of_one_file_is_all_that_is_copied_again(tree: Path) -> None:
    add(str(tree))
    source = cache.home() / ".work" / trees.Tree(tree, None).key / "source"
    times = {path: path.stat().st_mtime_ns for path in source.rglob("*") if path.is_file()}
    (tree / "net/ipv4/tcp_input.c").write_text("four\n")
    add(str(tree))
    changed = [path.name for path, then in times.items() if path.stat().st_mtime_ns != then]
    assert changed == ["tcp_input.c"], "patched files keep their time too, or all would be built again"


def test_a_kernel_takes_its_random_numbers_from_a_seed(tree: Path) -> None:
    found = add(str(tree))
    assert found.is_repeatable
    assert "if (knee_extract(buf, nbytes))\n\t\treturn;" in found.program.read_text()
    (tree / "drivers/char/random.c").write_text("void extract_crng(void) { }\n")
    assert not add(str(tree)).is_repeatable


def test_a_kernel_that_would_be_built_otherwise_today_is_said_to_be_one(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, config = add(str(tree), name="mine"), building.CONFIG
    assert building.doubt(found) is None
    assert "Warning" not in knee("kernel", "list", cwd=tmp_path).out
    for changed, is_another in ((f"{config}# Why.\n", False), (f"{config}CONFIG_WLAN=m\n", True)):
        monkeypatch.setattr(building, "CONFIG", changed)
        assert (building.doubt(found) is not None) == is_another
    [cell] = of_guests.cautioned([{"kernel": "mine", "cautions": ["first"]}])
    assert cell["cautions"] == ["first", building.doubt(found)]
    facts = json.loads((found.folder / "kernel.json").read_text())
    (found.folder / "kernel.json").write_text(json.dumps({**facts, "recipe": ""}))
    assert knee("kernel", "list", cwd=tmp_path).out.splitlines()[-1] == (
        "Warning: the guest kernel mine was built by an older configuration, and its results may differ; build it "
        "again with `knee kernel add`."
    )
    assert building.doubt(add(str(tree), name="mine")) is None, "built again"


HALF = """#include <net/tcp.h>
static u32 half(struct sock *sk) { return tcp_snd_cwnd(tcp_sk(sk)) / 2; }
static struct tcp_congestion_ops ops = {
	.ssthresh = half, .undo_cwnd = half, .cong_avoid = tcp_reno_cong_avoid, .name = "half", .owner = THIS_MODULE
};
static int __init begin(void) { return tcp_register_congestion_control(&ops); }
module_init(begin);
"""


def source_of(tmp_path: Path, text: str = HALF) -> algorithms.Built:
    file = tmp_path / "tcp_half.c"
    file.write_text(text)
    return algorithms.build(str(file))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_a_module_is_of_the_revision_that_its_kernel_was_built_of(tree: Path, tmp_path: Path) -> None:
    source = source_of(tmp_path)
    before = add(f"{tree}@HEAD~1")
    assert modules.module(before, source).read_text() == f"one\n{HALF}"
    after = add(f"{tree}@HEAD")
    assert modules.module(after, source).read_text() == f"two\n{HALF}"
    with pytest.raises(
        KernelUnsupported, match=rf"has nothing left .* knee kernel add '{re.escape(str(tree))}@HEAD~1'$"
    ):
        modules.module(before, source)
    assert modules.module(add(f"{tree}@HEAD~1"), source).read_text() == f"one\n{HALF}"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_what_is_no_module_of_a_kernel_is_refused(tree: Path, tmp_path: Path) -> None:
    kernel = add(str(tree), name="mine")
    (tmp_path / "mine.c").write_text(outline.of("mine"))
    with pytest.raises(KernelUnsupported, match=r"got an algorithm for the contract of cc\.h; expected"):
        modules.module(kernel, algorithms.build(str(tmp_path / "mine.c")))
    with pytest.raises(KernelUnsupported, match=r"the guest kernel mine does not let modules use absent\(\)\.$"):
        modules.module(kernel, source_of(tmp_path, f"{HALF}/* absent */"))
    with pytest.raises(KernelUnsupported, match=r"tcp_half\.c: macro \(include/net/tcp\.h:7\)$"):
        modules.module(kernel, source_of(tmp_path, f"{HALF}/* notlined */"))
    with pytest.raises(UsageError, match=r"includes /etc/hostname, which lies outside of its folder"):
        modules.module(kernel, source_of(tmp_path, f"{HALF}/* outside */"))
    with pytest.raises(KernelUnsupported, match="has nothing left that a module could be built with"):
        modules.module(replace(kernel, work=""), source_of(tmp_path))


def test_what_a_module_does_not_need_of_a_source_goes(tmp_path: Path) -> None:
    kept = ["Makefile", "include/net/tcp.h", "scripts/mod/modpost", "arch/um/include/a.h", "net/ipv4/tcp_dctcp.h"]
    for name in (*kept, "vmlinux.o", "net/ipv4/tcp.o", "arch/arm/include/a.h", "drivers/net/tun.c"):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).touch()
    (tmp_path / "build").mkdir()
    modules.prune(tmp_path / "source", tmp_path / "build")
    left = [path.relative_to(tmp_path / "source") for path in (tmp_path / "source").rglob("*") if path.is_file()]
    assert sorted(map(str, left)) == sorted(kept)


def test_the_folder_of_a_build_goes_with_the_last_of_its_kernels(tree: Path) -> None:
    first, second = add(f"{tree}@HEAD~1"), add(f"{tree}@HEAD")
    cache.remove(first.name)
    assert second.built_in.is_dir()
    cache.remove(second.name)
    assert not second.built_in.exists()


def test_a_build_that_fails_tells_the_compiler_s_own_lines_and_keeps_the_kernel_before(tree: Path) -> None:
    before = add(str(tree), name="mine")
    (tree / "net/ipv4/tcp_input.c").write_text("broken\n")
    with pytest.raises(KernelUnsupported, match=r"make linux failed:\nnet/ipv4/tcp_input\.c:1:1: error: broken$"):
        add(str(tree), name="mine")
    assert cache.find("mine") == before
    assert [path.name for path in cache.home().iterdir() if path.name.startswith(".mine")] == []


@pytest.mark.parametrize(
    "text, said",
    [
        ("/nosuch", "/nosuch is not there"),
        ("{tree}@nosuch", 'git knows no revision "nosuch"'),
    ],
)
def test_what_is_no_source_is_refused_by_name(tree: Path, text: str, said: str) -> None:
    with pytest.raises(KernelUnsupported, match=said):
        add(text.format(tree=tree))


def test_revisions_have_names_of_their_own(tree: Path) -> None:
    for path in (tree, Path("/") / ("long" * 30)):
        revisions = (None, "HEAD", "HEAD^2", "HEAD~2", "HEAD-2", "a/b", "a-b", "a" * 40, "a" * 41)
        names = [building.cache_name(trees.Tree(path, revision)) for revision in revisions]
        assert len(set(names)) == len(names) and all(map(cache.NAME.fullmatch, names)), names


def test_a_revision_without_git_is_told_to_need_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(KernelUnsupported, match=r"git is not installed, which knows revisions\."):
        trees.named(f"{tree}@HEAD")


def test_a_release_that_nobody_has_leaves_no_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(version: str, into: Path) -> Path:
        raise KernelUnsupported(f"kernel {version}: no suite of Debian has linux-source-{version}.")

    monkeypatch.setattr(building.debian, "package", nowhere)
    with pytest.raises(KernelUnsupported, match=r"no suite of Debian has linux-source-9\.99"):
        add("9.99")
    assert not list((cache.home() / ".work").iterdir())


def test_a_tree_that_is_too_old_is_refused(tree: Path) -> None:
    (tree / "Makefile").write_text(MAKEFILE.format(4, 19))
    with pytest.raises(KernelUnsupported, match=r"is Linux 4\.19; expected 5\.4 or newer"):
        add(str(tree))


def test_a_tree_that_takes_another_configuration_is_refused(tree: Path, tmp_path: Path) -> None:
    make = tmp_path / "bin/make"
    make.write_text(MAKE.replace("echo CONFIG_HZ=250", 'sed -i /CONFIG_TUN=/d "$O/.config"; echo CONFIG_HZ=250'))
    with pytest.raises(KernelUnsupported, match=r"its configuration did not take CONFIG_TUN=y\.$"):
        add(str(tree))


def test_tools_that_are_missing_are_named_in_one_line(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "TOOLS", {"nosuch-flex": "flex", "nosuch-bc": "bc", "nosuch-flexx": "flex"})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(KernelUnsupported, match=r"needs flex, bc\. Install: apt-get install flex bc$"):
        add(str(tree))


def test_a_full_disk_is_told_as_make_told_it(tree: Path, tmp_path: Path) -> None:
    full = 'echo "cc1: fatal error: $O/x.o: No space left on device" >&2; exit 2'
    (tmp_path / "bin/make").write_text(MAKE.replace('grep -q broken "$input"', f"{full};: "))
    with pytest.raises(KernelUnsupported, match=r"make linux failed:\n.*No space left on device$"):
        add(str(tree))


def test_a_builder_that_is_killed_anywhere_leaves_a_whole_cache(tree: Path, tmp_path: Path) -> None:
    """The kernel before stays until the new one is whole, and the next build clears what was left."""
    (tmp_path / "bin/make").write_text(
        MAKE.replace("for word; do case $word in O=", "sleep 0.05\nfor word; do case $word in O=", 1)
    )
    add(str(tree), name="mine")
    words = f"""
from contextlib import nullcontext
from tcpknee.kernels import building, guest
building.TOOLS = {{}}
guest.algorithms = lambda program: ("cubic",)
building.add({str(tree)!r}, name="mine", phase=lambda title: nullcontext())
"""
    chance = random.Random(1)
    for _ in range(12):
        (tree / "net/ipv4/tcp_input.c").write_text(f"{chance.random()}\n")
        process = subprocess.Popen([sys.executable, "-c", words])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.3 + 0.6 * chance.random())
        process.kill()
        process.wait()
        assert [kernel.name for kernel in cache.kernels()] == ["mine"]
        assert cache.find("mine").program.is_file()
    found = add(str(tree), name="mine")
    assert found.program.read_text().startswith((tree / "net/ipv4/tcp_input.c").read_text())
    assert sorted(path.name for path in cache.home().iterdir()) == [".work", "mine"]


BUILDS = """
from contextlib import nullcontext
from tcpknee.kernels import building
building.TOOLS = {{}}
building.add({!r}, name="mine", phase=lambda title: nullcontext())
"""
HOLDS = "from tcpknee.kernels import guest\nwith guest.folder() as place:\n    print(place, flush=True)\n    input()\n"


def test_a_builder_that_is_killed_takes_its_compilers_along(tree: Path, tmp_path: Path) -> None:
    """Also one that another one of them started."""
    beat = tmp_path / "beat"
    never = f"sh -c 'while :; do echo x >>{beat}; sleep 0.05; done' & wait"
    (tmp_path / "bin/make").write_text(MAKE.replace('grep -q broken "$input"', f"{never};: "))
    builder = subprocess.Popen([sys.executable, "-c", BUILDS.format(str(tree))])
    until(beat.is_file, "no compiler ran")
    builder.kill()
    builder.wait()
    until(lambda: beats_no_more(beat), "a compiler goes on")
    assert list(cache.kernels()) == []


def until(holds: Callable[[], bool], what: str) -> None:
    """On a busy machine everything comes later."""
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def beats_no_more(beat: Path) -> bool:
    before = beat.stat().st_size
    time.sleep(0.5)
    return beat.stat().st_size == before


def test_the_folder_of_a_guest_goes_with_who_asked_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    place = Path(holder.stdout.readline().strip())
    assert place.parent == tmp_path
    assert place.stat().st_mode & 0o077 == 0
    (place / "written").write_text("by a guest")
    holder.kill()
    holder.communicate()
    until(lambda: not place.exists(), "the folder is there")


def test_a_guest_that_can_have_no_folder_is_told_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/nosuch")
    with pytest.raises(KernelUnsupported, match="/nosuch: cannot have a folder for a guest"), guest.folder():
        pass


def test_what_was_killed_while_names_changed_is_put_right(tree: Path) -> None:
    found = add(str(tree), name="mine")
    found.folder.rename(cache.home() / ".mine~.4194305")
    (cache.home() / ".other.4194305").mkdir()
    assert list(cache.kernels()) == []
    add(str(tree), name="another")
    assert [kernel.name for kernel in cache.kernels()] == ["another", "mine"]
    assert not (cache.home() / ".other.4194305").exists()


def test_a_name_is_no_path(tree: Path) -> None:
    with pytest.raises(UsageError, match="expected letters"):
        add(str(tree), name="../../etc")
    with pytest.raises(KernelUnsupported, match="none was built yet"):
        cache.find("../x")


def test_a_program_that_others_may_write_is_not_run(tree: Path) -> None:
    found = add(str(tree), name="mine")
    found.program.chmod(0o777)
    with pytest.raises(KernelUnsupported, match="others may write it"):
        cache.find("mine")
    cache_again = add(str(tree), name="mine")
    assert cache.find("mine") == cache_again
    cache.remove("mine")
    assert list(cache.kernels()) == []


@pytest.mark.parametrize("work", ["../../victim", "/victim", "..", ".", 7, "a/../../../victim"])
def test_a_folder_of_a_build_is_no_path(tree: Path, tmp_path: Path, work: object) -> None:
    found = add(str(tree), name="mine")
    victim = tmp_path / "cache" / "victim"
    (victim / "precious").mkdir(parents=True)
    facts = found.folder / "kernel.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"work": work}))
    with pytest.raises(RunFolderError, match=r"cannot be read .*; expected what `knee kernel add` wrote"):
        cache.remove("mine")
    assert (victim / "precious").is_dir() and (cache.home() / ".work").is_dir()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_make_runs_nothing_that_somebody_else_put_there(tree: Path, tmp_path: Path) -> None:
    kernel, source = add(str(tree), name="mine"), source_of(tmp_path)
    for place in (kernel.built_in, kernel.built_in.parent):
        os.chown(place, 12345, 12345)
        with pytest.raises(KernelUnsupported, match=f"{place}: belongs to another user"):
            modules.module(kernel, source)
        with pytest.raises(KernelUnsupported, match=f"{place}: belongs to another user"):
            add(str(tree), name="mine")
        os.chown(place, 0, 0)
    assert modules.module(kernel, source).is_file()


def test_parameters_of_linux_own_are_told_by_its_words_and_others_refused() -> None:
    words = of_guests._params("dctcp", {"shift_g": 5, "alpha_on_init": 0}, "x.toml")
    assert words == ["tcp_dctcp.dctcp_shift_g=5", "tcp_dctcp.dctcp_alpha_on_init=0"]
    with pytest.raises(KernelUnsupported, match=r"sets per_ack of cubic to a value that Linux's own has no parameter"):
        of_guests._params("cubic", {"per_ack": 1}, "x.toml")


def test_a_guest_that_is_not_built_is_said_before_another_engine_runs(tmp_path: Path) -> None:
    ended = knee("compare", "cubic", "--engine", "sim,guest", "--kernel", "6.9", "--duration", "2s", cwd=tmp_path)
    refused(ended, '--kernel: got "6.9"; none was built yet. Build it: knee kernel add 6.9')
    assert not (tmp_path / "runs").exists()
    ended = knee("compare", "cubic", "--engine", "sim,guest", "--duration", "2s", cwd=tmp_path)
    refused(ended, "kernel: got none; expected one of `knee kernel list`")
