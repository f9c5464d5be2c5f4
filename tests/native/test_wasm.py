"""The facade as WebAssembly, in node: every number of a cell's tables is the native module's, to the bit."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from tcpknee import _core

pytestmark = pytest.mark.slow("the engine is built for another target")

ROOT = Path(__file__).resolve().parents[2]
HOST = Path(__file__).with_name("cell.mjs")
TARGET = "wasm32-unknown-unknown"
TABLES = ("flows", "samples", "queue", "events")

# Losses, jitter and marks take an algorithm through most of its states.
ALGORITHMS = """
duration = "3s"
seed = 5
[path]
rate = "20Mbit/s"
rtt = "30ms"
loss = "0.4%"
jitter = "2ms"
queue = "dualpi2"
[receiver]
tcp_ecn = 5
[[flow]]
algorithm = [{algorithms}]
"""

# What is drawn by logarithms, powers, exponentials and cosines; queues that hash, and that take square roots.
QUEUES = """
duration = "3s"
seed = 6
[path]
rate = "20Mbit/s"
rtt = "30ms"
loss = "gilbert 0.5% burst 4"
jitter = "1ms"
jitter_distribution = "normal"
queue = [{queues}]
[[flow]]
algorithm = "bbr3"
[[flow]]
algorithm = "cubic"
name = "heavy"
workload = "web"
load = "4Mbit/s"
sizes = "pareto"
[[flow]]
algorithm = "reno"
name = "pages"
workload = "web"
load = "2Mbit/s"
sizes = "lognormal"
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example `cell` of crates/engine, in the profile of the other tests."""
    clang = need_wasm(tmp_path_factory.mktemp("probes"))
    command = f"cargo build --quiet --locked --target {TARGET} -p knee-engine --example cell --message-format json"
    said = subprocess.run(
        command.split(),
        cwd=ROOT,
        env=os.environ | {"CC_wasm32_unknown_unknown": clang},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    built = [json.loads(line) for line in said.stdout.splitlines()]
    return next(
        Path(file) for made in built for file in made.get("filenames", ()) if file.endswith("/examples/cell.wasm")
    )


def need_wasm(folder: Path) -> str:
    """Skips where the machine cannot build for WebAssembly or run it; the C compiler that can."""
    if missing := [name for name in ("cargo", "rustc", "node") if not shutil.which(name)]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if not works(["rustc", "--target", TARGET, "--crate-type", "cdylib", "-o", str(folder / "nothing.wasm"), "-"]):
        pytest.skip(f"rustc cannot build for {TARGET}: rustup target add {TARGET}")
    compilers = (name for name in ("clang-16", "clang") if shutil.which(name))
    clang = next(
        (name for name in compilers if works([name, f"--target={TARGET}", "-c", "-x", "c", "-", "-o", "/dev/null"])),
        None,
    )
    if clang is None:
        pytest.skip(f"no clang for {TARGET}")
    return clang


def works(command: Sequence[str]) -> bool:
    """Whether a compiler takes an empty source."""
    return subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0


def answers(module: Path, scenario: str, cells: int) -> list[dict[str, str | bool]]:
    done = subprocess.run(
        ["node", HOST, module, str(cells)], input=scenario, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_numbers(column: pa.Array) -> pa.Array:
    """Floating-point numbers as their bits, so that 0 is not -0; names as text."""
    if pa.types.is_floating(column.type):
        return column.view(pa.int64())
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def read_csv(text: str, schema: pa.Schema) -> pa.RecordBatch:
    types = {field.name: pa.string() if pa.types.is_dictionary(field.type) else field.type for field in schema}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    table = pyarrow.csv.read_csv(io.BytesIO(text.encode()), convert_options=options)
    return table.combine_chunks().to_batches()[0]


def assert_equal_tables(module: Path, scenario: str) -> None:
    native = _core.parse(scenario, "native.toml")
    cells = native.cells
    there = answers(module, scenario, len(cells))
    assert len(there) == len(cells)
    for index, answer in enumerate(there):
        assert not answer["refused"], answer["text"]
        here = native.run_cell(index, 0)
        for name, text in zip(TABLES, str(answer["text"]).split("\n\n"), strict=True):
            expected = pa.record_batch(getattr(here, name))
            got = read_csv(text, expected.schema)
            assert got.schema.names == expected.schema.names
            assert got.num_rows == expected.num_rows > 0
            for column in expected.schema.names:
                equal = as_numbers(got.column(column)).equals(as_numbers(expected.column(column)))
                assert equal, f"{cells[index]['axes']}: {name}.{column}"


def test_every_algorithm_has_the_tables_of_the_native_module(module: Path) -> None:
    algorithms = ", ".join(f'"{algorithm["name"]}"' for algorithm in _core.algorithms())
    assert_equal_tables(module, ALGORITHMS.format(algorithms=algorithms))


def test_every_queue_has_the_tables_of_the_native_module(module: Path) -> None:
    queues = ", ".join(f'"{queue["name"]}"' for queue in _core.queues())
    assert_equal_tables(module, QUEUES.format(queues=queues))


def test_what_is_wrong_is_said(module: Path) -> None:
    (answer,) = answers(module, "duration = 3", 1)
    assert answer["refused"]
    assert str(answer["text"]).startswith("page:1: duration: got the bare number 3")
