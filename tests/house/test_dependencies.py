"""Dependencies point one way (docs/architecture.md, "The rooms")."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources import ROOT, files, program, read

# A crate's row in the table of rooms of docs/architecture.md: its name, what is in it, what it imports of ours.
ROOM = re.compile(r"^\| (?:`cc/`, )?`(?:crates/)?([a-z]+)` \| [^|]+ \| ((?:`[a-z]+`(?:, )?)+|none) \|$", re.MULTILINE)
ROOMS = {
    f"knee-{name}": {f"knee-{each}" for each in re.findall(r"`(\w+)`", imports)}
    for name, imports in ROOM.findall(read(Path("docs/architecture.md")))
}
# Crates that are pure: none of these may stand in them.
PURE = ("units", "kit", "tables", "path", "scenario", "engine")
IMPURE = re.compile(r"std::(fs|net|thread|process|env)\b|\b(Instant|SystemTime)::now\b|\bthread_rng\b")
# Crates that compute a cell's tables, which are the same on every platform.
PORTABLE = ("units", "kit", "tables", "path", "host", "scenario", "tcp", "sim", "engine")
# What std leaves to the platform, whose last bits differ; sqrt, round and the like are exact everywhere.
OF_THE_PLATFORM = re.compile(
    r"(\.|\bf64::)(a?(sin|cos|tan)h?|sin_cos|atan2|cbrt|exp(2|_m1)?|hypot|ln(_1p)?|log(2|10)?|pow[if]|(ln_)?gamma)\("
)
# Distribution to the module that it installs, where they differ.
MODULES = {"prometheus-client": "prometheus_client", "vl-convert-python": "vl_convert"}


@pytest.fixture(scope="module")
def crates() -> dict[str, set[str]]:
    """Each crate of the workspace and the crates that its package depends on, tests and builds included."""
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = json.loads(metadata.stdout)["packages"]
    return {package["name"]: {needed["name"] for needed in package["dependencies"]} for package in packages}


def test_every_crate_has_its_place_in_the_order(crates: dict[str, set[str]]) -> None:
    """In the table of rooms, below all that it imports, and in the map of CONTRIBUTING.md."""
    assert set(crates) == set(ROOMS)
    order = list(ROOMS)
    for name, imports in ROOMS.items():
        assert all(order.index(each) < order.index(name) for each in imports), name
    mapped = re.findall(r"^crates/(\w+)/ ", read(Path("CONTRIBUTING.md")), re.MULTILINE)
    assert sorted(f"knee-{name}" for name in mapped) == sorted(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_a_crate_imports_what_the_table_of_rooms_says(crates: dict[str, set[str]], name: str) -> None:
    assert crates[name] & set(ROOMS) == ROOMS[name]


@pytest.mark.parametrize("crate", PURE)
def test_a_pure_crate_has_no_clock_file_socket_or_thread(crate: str) -> None:
    sources = [path for path in files() if path.parts[:3] == ("crates", crate, "src") and path.suffix == ".rs"]
    assert sources
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(read(path).splitlines(), 1)
        if IMPURE.search(line) and not line.lstrip().startswith("//")
    ]
    assert not found


@pytest.mark.parametrize("crate", PORTABLE)
def test_tables_are_computed_without_the_platforms_mathematics(crate: str) -> None:
    """But with the crate libm, which is Rust throughout."""
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in files()
        if path.parts[:3] == ("crates", crate, "src") and path.suffix == ".rs" and path.name != "tests.rs"
        for number, line in enumerate(program(path), 1)
        if OF_THE_PLATFORM.search(line)
    ]
    assert not found


def test_the_algorithms_include_only_headers_of_their_folder() -> None:
    """And so do the parts that algorithms share; the kernel's shell, cc_bpf*.h, is reached by cc_algorithm.h alone."""
    algorithms = re.findall(r"^CC_ALGORITHM_FILE\((\w+)\)", read(Path("cc/algorithms.def")), re.M)
    assert algorithms
    headers = {path.name for path in files() if path.parent == Path("cc") and path.suffix == ".h"}
    headers = {name for name in headers if not name.startswith("cc_bpf")}
    parts = {name for name in headers if not name.startswith("cc")}
    for name in [*(f"{name}.c" for name in algorithms), *sorted(parts)]:
        included = re.findall(r"^\s*#\s*include\s+(\S+)", read(Path("cc") / name), re.M)
        assert included, f"cc/{name} includes nothing, not even the contract"
        foreign = [header for header in included if header.strip('"') not in headers]
        assert not foreign, f"cc/{name} includes {foreign}"


def python_imports() -> Iterator[tuple[Path, ast.AST, str, bool]]:
    """(file, where, module, at the top level?) of each absolute import of the front."""
    for path in files():
        if path.parts[:2] != ("python", "tcpknee") or path.suffix != ".py":
            continue
        tree = ast.parse(read(path))
        top = set(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield path, node, alias.name, node in top
            elif isinstance(node, ast.ImportFrom):
                # `from . import x`, `from .x import y` and `from tcpknee import x` are ours.
                module = "tcpknee" if node.level else node.module or ""
                for alias in node.names:
                    yield path, node, f"{module}.{alias.name}", node in top


def test_the_front_imports_only_what_it_declares() -> None:
    project = read(Path("pyproject.toml")).split("[project.scripts]")[0]
    declared = {MODULES.get(name, name) for name in re.findall(r'"([a-z][a-z0-9-]*)>=', project)}
    known = declared | set(sys.stdlib_module_names) | {"tcpknee"}
    unknown = [
        f"{path}:{node.lineno}: {module}"  # type: ignore[attr-defined]
        for path, node, module, _ in python_imports()
        if module.split(".")[0] not in known
    ]
    assert not unknown, "imports that pyproject.toml does not declare"


def test_the_front_reaches_native_code_through_core_alone() -> None:
    ways = {"ctypes", "cffi", "importlib.machinery"}
    found = [
        f"{path}: {module}" for path, _, module, _ in python_imports() if module in ways or module.split(".")[0] in ways
    ]
    assert not found


def test_figures_read_tables_and_never_the_engine() -> None:
    found = [
        f"{path}: {module}"
        for path, _, module, _ in python_imports()
        if "pages" in path.parts and module.endswith("_core")
    ]
    assert not found


def test_the_front_starts_without_heavy_imports() -> None:
    """What `knee --help` imports, every verb among it, decides how long it takes (less than 0.3 s is asked)."""
    program = (
        "import sys, click; from tcpknee.cli.app import app; app.get_help(click.Context(app)); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "altair",
        "asyncio",
        "h11",
        "jinja2",
        "numpy",
        "pandas",
        "polars",
        "prometheus_client",
        "pyarrow",
        "scipy",
        "textual",
        "vl_convert",
    }
    assert not heavy & set(loaded)
    assert "tcpknee.cli.run" in loaded


def test_a_short_run_imports_and_starts_no_more_than_it_needs(tmp_path: Path) -> None:
    """What `knee run` of one repetition imports is most of its time (at most 0.25 s is asked, which nothing here can
    measure); no process is started for it. pandas is imported by some calls of pyarrow, wherever it is installed."""
    scenario = tmp_path / "small.toml"
    scenario.write_text('duration = "1s"\n[path]\nrate = "10Mbit/s"\nrtt = "40ms"\n[[flow]]\nalgorithm = "cubic"\n')
    program = (
        "import sys\n"
        "starting = {'subprocess.Popen', 'os.fork', 'os.forkpty', 'os.posix_spawn', 'os.exec', 'os.system'}\n"
        "started = []\n"
        "sys.addaudithook(lambda event, _: started.append(event) if event in starting else None)\n"
        "from tcpknee.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "print(f'started {started}', *sys.modules, file=sys.stderr)"
    )
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", scenario, "--out", out, "-q"], capture_output=True, text=True, check=True
    )
    assert "cubic" in ended.stdout and (out / "samples.parquet").is_file()
    assert ended.stderr.startswith("started [] ")
    loaded = set(ended.stderr.split())
    assert "tcpknee.runs.api" in loaded
    heavy = {
        "altair",
        "asyncio",
        "distributed",
        "duckdb",
        "fsspec",
        "importlib.metadata",
        "jinja2",
        "tcpknee.evidence.expressions",
        "tcpknee.pages",
        "tcpknee.runs.cluster",
        "tcpknee.runs.kernel",
        "tcpknee.runs.store",
        "multiprocessing",
        "pandas",
        "polars",
        "pyarrow.compute",
        "pyarrow.dataset",
        "rich",
        "scipy",
        "tempfile",
    }
    assert not heavy & loaded
