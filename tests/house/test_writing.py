"""Files are written by one module per language (docs/architecture.md): another way is another chance to follow a link
that somebody put there."""

from __future__ import annotations

import re

from sources import files, read

PYTHON = re.compile(
    r"\.write_(text|bytes)\(|\bopen\([^)]*[\"'][waxr]?b?[wax+]|\.(mkdir|touch|unlink|rename|symlink_to|hardlink_to)\("
    r"|\bos\.(replace|rename|makedirs|mkdir|unlink|remove)\(|\bshutil\.(?!which\b)|\bOSFile\([^)]*[\"']w|\bmk[sd]temp\("
)
RUST = re.compile(r"\bFile::create\b|\bOpenOptions\b|\bfs::(write|rename|copy|hard_link|remove_\w+|create_dir\w*)\b")

# Who does it all the same, and on what.
ELSEWHERE = {
    "python/tcpknee/doctor/changes/change.py": "settings below /proc and /sys",
    "python/tcpknee/doctor/measure/ends.py": "/proc/sys of a lab's namespace",
    "python/tcpknee/doctor/persist.py": "folders below /etc that others than root read",
    "python/tcpknee/kernels/building.py": "the user's own cache of kernels, below a folder that `cache` has checked",
    "python/tcpknee/kernels/cache.py": "that cache",
    "python/tcpknee/kernels/debian.py": "packages in that cache",
    "python/tcpknee/kernels/modules.py": "sources in that cache, and the temporary folder of a module's build",
    "python/tcpknee/kernels/guest.py": "a private temporary folder of a guest",
    "python/tcpknee/kernels/trees.py": "copies of sources in that cache",
    "python/tcpknee/runs/guest.py": "the guest's folder",
    "python/tcpknee/runs/guestworker.py": "/proc/sys of the guest",
    "crates/hold/src/journal.rs": "root's of another host, where the store is not linked; follows no link",
    "crates/hold/src/sysctl.rs": "/proc/sys",
    "crates/hold/src/watchdog.rs": "/proc/self and /dev/null",
    "crates/store/src/segment/staged.rs": "takes an empty folder away again",
    "crates/lab/src/enter.rs": "/proc/self of a new user namespace",
    "crates/lab/src/namespace.rs": "/proc/sys of the lab's namespace",
    "crates/lab/src/nic.rs": "the sysfs of the lab's namespace",
    "crates/lab/src/run_as.rs": "/proc/sys of the lab's namespace",
    "crates/lab/src/settings.rs": "/proc/sys of the lab's namespace",
    "crates/lab/src/netem/router.rs": "/proc/sys of the lab's namespace",
    "crates/lab/src/shell/command.rs": "/proc/self of a new user namespace",
    "crates/lab/src/shell/supervise.rs": "/proc/sys of the lab's namespace",
    "crates/lab/src/shell/names.rs": "a tmpfs of the shell's own mount namespace",
    "crates/loader/src/lib.rs": "the BPF file system",
    "crates/loader/src/default_in.rs": "/proc/sys, and takes its notes in /run away again",
    "crates/link/src/tun.rs": "/dev/net/tun",
    "crates/traffic/src/program.rs": "what a program prints, a file that it is given open, by its descriptor",
}


def test_files_are_written_by_one_module() -> None:
    sources = [path for path in files() if path.parts[:2] == ("python", "tcpknee") and path.suffix == ".py"]
    rust = [path for path in files() if path.parts[0] == "crates" and path.suffix == ".rs" and path.parts[2] == "src"]
    sources += [path for path in rust if path.parts[1] != "fuzz" and path.stem != "tests"]
    found: dict[str, list[str]] = {}
    for path in sources:
        pattern = PYTHON if path.suffix == ".py" else RUST
        lines = [line.strip() for line in read(path).splitlines() if pattern.search(line)]
        if lines:
            found[str(path)] = lines
    assert {path: lines for path, lines in found.items() if path not in ELSEWHERE} == {}
    assert set(ELSEWHERE) == {path for path in found if path in ELSEWHERE}, "an exception that is none any more"


def test_the_patterns_know_what_they_look_for() -> None:
    for line in (
        'path.write_text("a")',
        'open(name, "w")',
        'path.open("ab")',
        "shutil.rmtree(x)",
        'pa.OSFile(p, "wb")',
    ):
        assert PYTHON.search(line), line
    for line in ('path.open("rb")', "shutil.which(x)", "api.open(run)", 'text.replace("a", "w")'):
        assert not PYTHON.search(line), line
