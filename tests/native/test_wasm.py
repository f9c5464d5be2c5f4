"""The playground's engine, in node: every number of a cell's tables is the native module's, to the bit."""

from __future__ import annotations

import io
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from tcpknee import _core

pytestmark = pytest.mark.slow("the engine is built for another target")

HOST = Path(__file__).with_name("cell.mjs")
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


def answers(playground: Path, scenarios: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """What each cell of each scenario, of so many cells, gave."""
    done = subprocess.run(
        ["node", HOST, playground / "cell.wasm"],
        input=json.dumps(scenarios),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
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


def assert_equal_tables(playground: Path, *scenarios: str) -> None:
    natives = [_core.parse(scenario, "native.toml") for scenario in scenarios]
    asked = [(scenario, len(native.cells)) for scenario, native in zip(scenarios, natives, strict=True)]
    cells = [(native, index) for native in natives for index in range(len(native.cells))]
    for (native, index), answer in zip(cells, answers(playground, asked), strict=True):
        assert not answer["refused"], answer["refused"]
        here = native.run_cell(index, 0)
        for name in TABLES:
            expected = pa.record_batch(getattr(here, name))
            got = read_csv(answer["tables"][name], expected.schema)
            assert got.schema.names == expected.schema.names
            assert got.num_rows == expected.num_rows > 0
            for column in expected.schema.names:
                equal = as_numbers(got.column(column)).equals(as_numbers(expected.column(column)))
                assert equal, f"{native.cells[index]['axes']}: {name}.{column}"


def test_every_algorithm_has_the_tables_of_the_native_module(playground: Path) -> None:
    algorithms = ", ".join(f'"{algorithm["name"]}"' for algorithm in _core.algorithms())
    assert_equal_tables(playground, ALGORITHMS.format(algorithms=algorithms))


def test_every_queue_has_the_tables_of_the_native_module(playground: Path) -> None:
    queues = ", ".join(f'"{queue["name"]}"' for queue in _core.queues())
    assert_equal_tables(playground, QUEUES.format(queues=queues))


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 50), marks=pytest.mark.long)], ids=str)
def test_drawn_scenarios_have_the_tables_of_the_native_module(playground: Path, seeds: range) -> None:
    assert_equal_tables(playground, *map(drawn, seeds))


def drawn(seed: int) -> str:
    """A scenario of the playground's kind."""
    draw = random.Random(seed)
    algorithms = [algorithm["name"] for algorithm in _core.algorithms()]
    ecn = draw.choice((0, 1, 3))
    kernel = draw.choice(("", "4.19", "5.15", "6.12"))
    flows = "".join(
        f'[[flow]]\nalgorithm = "{draw.choice(algorithms)}"\nstart = "{start}s"\n'
        for start in range(draw.randint(1, 4))
    )
    return (
        f'duration = "5s"\nwarmup = "1s"\nseed = {seed}\n'
        + (f'kernel = "{kernel}"\n' if kernel else "")
        + f'[path]\nrate = "{draw.choice((8, 30, 100))}Mbit/s"\nrtt = "{draw.choice((10, 20, 80, 200))}ms"\n'
        + f'loss = "{draw.choice((0, 0, 0.1, 2))}%"\nbuffer = "{draw.choice((0.3, 1, 5))}bdp"\n'
        + f'queue = "{draw.choice([queue["name"] for queue in _core.queues()])}"\n'
        + f"[sender]\ntcp_ecn = {ecn}\n[receiver]\ntcp_ecn = {ecn}\n{flows}"
    )


def test_what_is_wrong_is_said(playground: Path) -> None:
    wrong, right = answers(playground, [("duration = 3", 1), (drawn(0), 1)])
    assert wrong["refused"].startswith("page:1: duration: got the bare number 3")
    assert not right["refused"], "the engine goes on after a refusal"
