"""Whether this machine can run a test, asked of the kernel and of what is installed, never of the product.

Each `need_` function skips the test when the answer is no. A product that fails therefore fails its test. What may be
skipped in CI stands in tests/allowed_skips.toml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from waiting import PATIENCE_SEC

BTF = Path("/sys/kernel/btf/vmlinux")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MOUNTS = Path("/proc/self/mountinfo")
NOBODY = 65534

# TUNSETIFF with IFF_TUN | IFF_NO_PI, as linux/if_tun.h numbers them.
_TUN = """
import fcntl, struct
with open("/dev/net/tun", "r+b", buffering=0) as device:
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"probe%d", 0x1001))
"""


def need_root(why: str) -> None:
    if os.geteuid() != 0:
        pytest.skip(f"{why} needs root")


def need_programs(*names: str) -> None:
    if missing := [name for name in names if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")


def need_processors(count: int) -> None:
    if (online := os.cpu_count() or 1) < count:
        pytest.skip(f"needs {count} processors, and this machine has {online}")


def need_header(path: str, package: str) -> None:
    if not Path("/usr/include", path).exists():
        pytest.skip(f"{path} is missing (Debian: {package})")


def need_sanitizers() -> None:
    """What clang-16 links for -fsanitize=address: a package of its own."""
    need_programs("clang-16")
    library = f"libclang_rt.asan-{os.uname().machine}.a"
    said = subprocess.run(["clang-16", f"-print-file-name={library}"], check=True, capture_output=True, text=True)
    if not Path(said.stdout.strip()).exists():
        pytest.skip("clang-16 has no sanitizers on this machine: install the package libclang-rt-16-dev")


def need_lab() -> None:
    """A lab takes namespaces and a TUN device."""
    need_programs("unshare")
    if reason := _lacking_for_a_lab():
        pytest.skip(f"no lab on this machine: {reason}")


def need_user_namespaces() -> None:
    need_programs("unshare")
    if reason := _failed("unshare", "--user", "--map-root-user", "true"):
        pytest.skip(f"no user namespaces on this machine: {reason}")


def need_struct_ops() -> None:
    """Our algorithms are structs of the kernel's type, whose cong_control takes four arguments."""
    need_root("loading BPF programs")
    _need_btf_of("bpf_struct_ops_tcp_congestion_ops", "struct_ops of TCP")
    release = os.uname().release
    if tuple(int(part) for part in release.split(".")[:2]) < (6, 10):
        pytest.skip(f"cong_control with four arguments needs Linux 6.10, this is {release}")


def need_cgroup2() -> None:
    """Programs can be attached to a cgroup v2."""
    need_root("assigning connections")
    if not any(line.split(" - ")[1].startswith("cgroup2 ") for line in MOUNTS.read_text().splitlines()):
        pytest.skip("no cgroup v2 is mounted on this machine")


def need_tracepoint(name: str) -> None:
    """A BPF program can be attached to the tracepoint by its BTF."""
    need_root("tracing")
    _need_btf_of(f"btf_trace_{name}", f"the tracepoint {name}")


def need_algorithm(name: str) -> None:
    if name not in AVAILABLE.read_text().split():
        pytest.skip(f"this kernel has no {name}")


def need_function(name: str) -> None:
    if not any(line.split()[2] == name for line in Path("/proc/kallsyms").read_text().splitlines()):
        pytest.skip(f"this kernel has no function {name}()")


def need_bpf_mount() -> None:
    need_root("mounting a BPF file system")
    if reason := _failed("unshare", "--mount", "mount", "-t", "bpf", "bpf", "/sys/fs/bpf"):
        pytest.skip(f"no BPF file system can be mounted: {reason}")


def need_qdisc(kind: str) -> None:
    if not has_qdisc(kind):
        pytest.skip(f"this kernel, {os.uname().release}, has no qdisc {kind}")


def need_no_qdisc(kind: str) -> None:
    if has_qdisc(kind):
        pytest.skip(f"this kernel, {os.uname().release}, has the qdisc {kind}")


@cache
def has_qdisc(kind: str) -> bool:
    """Asked of tc, in a network namespace of its own. A kind that is known may refuse for want of parameters."""
    need_programs("unshare", "tc")
    said = _failed(*_unshare("--net"), "tc", "qdisc", "add", "dev", "lo", "root", kind)
    return "kind is unknown" not in said and "Unknown qdisc" not in said


SETPRIV = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")


def as_nobody(become: Sequence[str] = SETPRIV) -> list[str]:
    """The words before the arguments of a Python that runs as the user nobody and finds tcpknee.

    The tree, the packages and the interpreter may lie in a folder that is closed to others, such as root's home. They
    are shown to nobody in a mount namespace of the process, which `become` then makes nobody's."""
    need_root("becoming another user")
    need_programs("unshare", "setpriv")
    package = Path(__file__).parents[2] / "python"
    libraries = Path(pytest.__file__).parents[1]
    show = (
        "mount -t tmpfs -o mode=755 tmpfs /mnt && cd /mnt && mkdir prefix package libraries && "
        f"mount --bind '{sys.base_prefix}' prefix && mount --bind '{package}' package && "
        f"mount --bind '{libraries}' libraries && "
        # As udev leaves it; a machine without udev keeps the device to root.
        "if [ -e /dev/net/tun ]; then mknod -m 666 tun c 10 200 && mount --bind tun /dev/net/tun; fi && "
        'cd "$OLDPWD" && exec "$@"'
    )
    python = Path(sys.executable).resolve().relative_to(sys.base_prefix)
    # A shared library of the interpreter is looked for in its closed place, and then in the system's.
    found = ["PYTHONPATH=/mnt/package:/mnt/libraries", "LD_LIBRARY_PATH=/mnt/prefix/lib", "PYTHONDONTWRITEBYTECODE=1"]
    inside = ["env", *found, f"/mnt/prefix/{python}"]
    return ["unshare", "--mount", "sh", "-ec", show, "sh", *become, *inside]


def folder_of_nobody(tmp_path: Path) -> Path:
    """A folder in `tmp_path` that the user nobody owns and can reach."""
    need_root("giving a folder to another user")
    shared = Path(tempfile.gettempdir())
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to(shared) and folder != shared:
            folder.chmod(folder.stat().st_mode | 0o055)
    own = tmp_path / "nobody"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    return own


def _need_btf_of(name: str, what: str) -> None:
    if not BTF.exists():
        pytest.skip("this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")
    if not _in_btf(name):
        pytest.skip(f"this kernel has no {what}")


@cache
def _in_btf(name: str) -> bool:
    return f"\0{name}\0".encode() in BTF.read_bytes()


@cache
def _lacking_for_a_lab() -> str:
    return _failed(*_unshare("--net", "--mount", "--pid", "--fork"), sys.executable, "-c", _TUN)


def _unshare(*namespaces: str) -> tuple[str, ...]:
    """Root needs no user namespace for the others."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *user, *namespaces)


def _failed(*command: str) -> str:
    """The last line that the command said when it failed, else nothing."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SEC, check=False)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
