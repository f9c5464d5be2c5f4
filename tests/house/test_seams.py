"""Adding a thing is one new file and one line in a visible list (CONTRIBUTING.md, "Adding a thing").

A file that nobody listed would be silently absent from the product: these tests compare folders with lists. What each
thing must then satisfy is tested by the walk over its own list.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tcpknee
from sources import ROOT, files, read
from tcpknee import _core
from tcpknee.cli.app import VERBS
from tcpknee.imports import IMPORTERS


def stems(folder: str, suffix: str) -> set[str]:
    """Names of the files of that kind in the folder."""
    return {path.stem for path in files() if path.parent == Path(folder) and path.suffix == suffix}


def test_every_algorithm_file_is_listed() -> None:
    listed = re.findall(r"^CC_ALGORITHM_FILE\((\w+)\)", read(Path("cc/algorithms.def")), re.M)
    support = {"cc_native", "cc_replay", "cc_total"}
    assert stems("cc", ".c") - support == set(listed)
    assert [algorithm["name"] for algorithm in _core.algorithms()] == listed


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("path/src/queue", [queue["name"] for queue in _core.queues()]),
        ("path/src/loss", [loss["name"] for loss in _core.losses()]),
        ("path/src/impairment", [impairment["name"] for impairment in _core.impairments()]),
        ("scenario/src/workload", [workload["name"] for workload in _core.workloads()]),
    ],
)
def test_every_file_that_declares_a_kind_is_listed(folder: str, names: list[str]) -> None:
    base = f"crates/{folder}"
    kinds = {
        stem
        for stem in stems(base, ".rs")
        if re.search(r"\bstatic KIND\b|\bconst KIND\b", read(Path(f"{base}/{stem}.rs")))
    }
    registry = read(Path(f"{base}/mod.rs"))
    listed = set(re.findall(r"&(\w+)::KIND\b", registry))
    assert kinds == listed
    assert len(names) == len(listed) == len(set(names))


def test_every_cost_profile_is_listed() -> None:
    source = read(Path("crates/scenario/src/key/profile.rs"))
    assert stems("hosts", ".toml") == set(re.findall(r'include_str!\("[./]+/hosts/(.+)\.toml"\)', source))


def test_every_importer_is_listed_and_has_a_function() -> None:
    base = "crates/import/src"
    declaring = {
        path.relative_to(base).parts[0].removesuffix(".rs")
        for path in files()
        if path.is_relative_to(base) and path.suffix == ".rs" and "static KIND: Kind" in read(path)
    }
    assert declaring == set(re.findall(r"&(\w+)::KIND\b", read(Path(f"{base}/lib.rs"))))
    assert len(declaring) == len(IMPORTERS)
    for kind in IMPORTERS.values():
        function = getattr(tcpknee, kind.function)
        options = {option.name for option in kind.options}
        assert set(inspect.signature(function).parameters) == {"files", "strict", "anonymize", *options}
        assert kind.function in tcpknee.__all__


def test_every_figure_file_is_listed() -> None:
    for folder in ("python/tcpknee/pages/figures", "python/tcpknee/pages/figures/fleet"):
        listed = read(Path(f"{folder}/__init__.py"))
        assert not {stem for stem in stems(folder, ".py") - {"__init__"} if not re.search(rf"\b{stem}\b", listed)}


def test_every_verb_has_a_file_of_its_own_that_is_listed() -> None:
    folder = "python/tcpknee/cli"
    files = [found.partition(":")[0] for found in VERBS.values()]
    assert len(files) == len(set(files))
    commands = {
        stem
        for stem in stems(folder, ".py")
        if re.search(r"^@click\.(command|group)\(", read(Path(f"{folder}/{stem}.py")), re.M)
    }
    assert commands - {"app"} == set(files)


@pytest.mark.parametrize("kind", ["algorithms", "queues", "losses", "impairments", "workloads"])
def test_every_item_carries_its_own_summary(kind: str) -> None:
    for item in getattr(_core, kind)():
        assert item["name"]
        assert item["summary"]
        assert "\n" not in item["summary"]
        if kind != "workloads":
            assert item["source"], f"{item['name']} does not say where its definition comes from"


LEAST = 'duration = "1s"\n[path]\nrate = "10Mbit/s"\nrtt = "10ms"\n[[flow]]\n'


def test_every_parameter_says_what_it_is_and_has_a_default_within_its_bounds() -> None:
    for algorithm in _core.algorithms():
        for param in algorithm["params"]:
            # As a scenario takes them: what is outside its bounds is refused.
            for text in (param["min"], param["default"], param["max"]):
                line = f"{algorithm['name']}.{param['name']} = {text}"
                _core.parse(f'{LEAST}algorithm = "{algorithm["name"]}"\n{line}\n', "s.toml")
            assert param["doc"]
    for queue in _core.queues():
        for param in queue["params"]:
            for text in (param["min"], param["default"], param["max"]):
                path = f'[path]\nqueue = "{queue["name"]}"\n{queue["name"]}.{param["name"]} = {text}\n'
                _core.parse(f'{LEAST.replace("[path]", path)}algorithm = "reno"\n', "s.toml")
            assert param["doc"] and param["source"]


@pytest.mark.parametrize("of", ["run", "recording", "trace", "profile", "fleet", "snapshot"])
def test_every_column_has_doc_and_source_and_its_unit_in_its_name(of: str) -> None:
    in_name = {"ns": "_ns", "us": "_us", "bytes": "bytes", "bit/s": "_bits_per_sec", "%": "_pct", "1/s": "_per_sec"}
    for table, columns in _core.tables(of).items():
        assert _core.table_docs(of)[table].endswith(".")
        for column in columns:
            where = f"{table}.{column['name']}"
            assert column["doc"], where
            assert column["source"], where
            if column["unit"] in in_name:
                assert in_name[column["unit"]] in f"_{column['name']}", (
                    f"{where} does not carry its unit {column['unit']}"
                )


def test_a_table_that_several_write_is_one_table() -> None:
    """Whoever writes it, it has the same columns; but `connections` of a trace are not those of a fleet."""
    known: dict[str, list[dict[str, str]]] = {}
    for of in ("run", "recording", "profile", "fleet"):
        for table, columns in _core.tables(of).items():
            assert known.setdefault(table, columns) == columns, table
    assert {"assignments", "cpu", "cpu_time", "host_costs"} <= set(known)


SCENARIOS = sorted((ROOT / "gallery").glob("*.toml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_scenario_of_the_gallery_parses_and_tells_its_bdp_and_buffer(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#"), "a scenario begins with a comment that says what it is for"
    scenario = _core.parse(text, str(path))
    assert scenario.cells
    for cell in scenario.cells:
        told = {key for key, _, _ in cell["describe"]}
        hops = {key.rsplit(".", 1)[0] for key in told if key.startswith("hop.")} or {"path"}
        for hop in hops:
            assert f"{hop}.buffer" in told
            assert f"{hop}.bdp_bytes" in told or cell["rate_bits_per_sec"] is None


def test_the_gallery_is_package_data() -> None:
    packaged = Path(tcpknee.__file__).parent / "gallery"
    assert SCENARIOS
    assert {path.name for path in packaged.glob("*.toml")} == {path.name for path in SCENARIOS}
