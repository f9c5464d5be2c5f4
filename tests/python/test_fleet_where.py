"""`--where`: a condition over connections, and nothing that reads or changes anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from drawn_fleets import fleet, written
from support import Ended
from tcpknee import fleet as fleets
from tcpknee.errors import UsageError
from tcpknee.fleet import connections
from tcpknee.fleet.assign import running
from tcpknee.fleet.following import following
from tcpknee.fleet.following.guards import parse
from test_fleet_connections import recording, sample

Call = Callable[..., Ended]

SECRET = "of-another-file"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three connections, and beside them a file that is none of DATA."""
    (tmp_path / "secret.csv").write_text(f"word\n{SECRET}\n")
    return recording(tmp_path / "rec", [sample(at, cookie) for cookie in (1, 2, 3) for at in (0, 1)])


def cookies(data: Path, where: str) -> set[int]:
    return set(connections.read([data], ["cookie"], where=where)["cookie"].to_pylist())


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("cookie in (1, 3)", {1, 3}),
        ("cookie = 1 or cookie = 2 -- and no other", {1, 2}),
        ("cookie\n  > /* of all */ 2", {3}),
        ("algorithm like 'cub%' and remote_prefix = '192.0.2.0/24'", {1, 2, 3}),
        ("list_contains([1, 2], cookie)", {1, 2}),
        ("case when cookie = 2 then final is not true else false end", {2}),
    ],
)
def test_any_condition_over_the_columns_chooses_connections(data: Path, where: str, expected: set[int]) -> None:
    assert cookies(data, where) == expected


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("cookie in (select 1)", "has a query within it"),
        ("exists (from read_csv('{secret}'))", "has a query within it"),
        ("cookie = 1 and array(select word from '{secret}')[1] = 'a'", "has a query within it"),
        ("true union all select * from connections", "syntax error"),
        ("true) union all (select * from read_csv('{secret}')", "syntax error"),
        ("cookie = 1) or (cookie = 2", "syntax error"),
        ("cookie = 1; drop table boots", "SELECT"),
        ("cookie = 1; select 1", "syntax error"),
        ("cookie = 1; copy boots to '{secret}'", "SELECT"),
        ("true limit 1", "syntax error"),
        ("true group by all", "syntax error"),
        ("true qualify row_number() over () = 1", "syntax error"),
        ("cookie = '", "unterminated"),
        ("cookie = 1 /*", "unterminated"),
        ("cookie = $1", "parameter"),
        ("count(*) > 1", "aggregate"),
        ("rank() over () = 1", "window"),
        ("word = 1", "word"),
        ("st_area(cookie) > 1", "st_area"),
        ("read_text('{secret}') = 'a'", "read_text"),
    ],
)
def test_anything_else_is_refused_in_one_paragraph_with_the_columns(data: Path, where: str, said: str) -> None:
    asked = where.format(secret=data.parent / "secret.csv")
    with pytest.raises(UsageError) as refused:
        cookies(data, asked)
    told = str(refused.value)
    assert told.startswith(f'where: got "{asked}": ') and said.casefold() in told.casefold()
    assert "retransmit_pct" in told and "\n" not in told and SECRET not in told
    assert (data.parent / "secret.csv").read_text() == f"word\n{SECRET}\n"


def test_what_is_refused_ends_the_command_with_exit_code_2(call: Call, data: Path) -> None:
    secret = data.parent / "secret.csv"
    ended = call("fleet", "compare", str(data), "--where", f"exists (from '{secret}')")
    assert ended.code == 2 and "--where" in ended.err and "query within it" in ended.err


def test_the_database_of_data_opens_no_other_file_whatever_it_is_asked(data: Path) -> None:
    """Should a condition get past its check, it finds nothing to read or write."""
    secret = data.parent / "secret.csv"
    with connections.opened([data]) as opened:
        for query in (
            f"from read_csv('{secret}')",
            f"from read_text('{secret}')",
            f"from glob('{data.parent}/*')",
            f"attach '{secret}' as other",
            f"copy (select 1) to '{data.parent}/new.csv'",
            "load spatial",
            "install spatial",
        ):
            with pytest.raises(duckdb.PermissionException):
                opened.database.execute(query)
        for setting in ("enable_external_access = true", "allowed_paths = []", "autoload_known_extensions = true"):
            with pytest.raises(duckdb.InvalidInputException, match="locked"):
                opened.database.execute(f"set {setting}")
        # What is DATA can be read, which the rest stands on.
        assert opened.arrow(["cookie"]).num_rows == 3
    assert not (data.parent / "new.csv").exists()


def test_the_folder_that_is_written_to_is_the_only_one(data: Path, tmp_path: Path) -> None:
    with connections.opened([data], into=tmp_path / "out") as opened, pytest.raises(duckdb.PermissionException):
        opened.database.execute(f"copy (select 1) to '{tmp_path}/beside.parquet'")
    told = connections.write([data], tmp_path / "out", where="cookie <> 2")
    assert told["connections"] == 2 and cookies(tmp_path / "out", "") == {1, 3}


def test_a_guard_sees_no_more_than_the_assigned_however_the_condition_is_written(tmp_path: Path) -> None:
    """`or` in the condition does not bind weaker than what is asked besides."""
    columns = fleet(600) | {"arm": ["control" if one % 2 else None for one in range(600)], "final": [True] * 600}
    folder = written(tmp_path / "fleet", columns)
    about = {"schema": 1, "began": "", "is_over": False, "asked": {"arms": [{"name": "control"}]}}
    (folder / running.ABOUT).write_text(json.dumps(about))
    look = following.look([folder], [parse("srtt_us ratio <= 9")], where="bytes_acked > 0 or cookie >= 0")
    assert look.connections == {"control": 300}


def test_a_file_of_strata_names_its_column_as_it_likes(tmp_path: Path) -> None:
    """The name is the file's, which may be anybody's; it is a name, whatever it holds."""
    secret = tmp_path / "secret.csv"
    secret.write_text(f"word\n{SECRET}\n")
    name = f"x\\\" as varchar) from read_csv('{secret}') --".replace("\\", "")
    columns = fleet()
    prefixes = sorted(set(columns["remote_prefix"]))
    table = tmp_path / "strata.csv"
    quoted = name.replace('"', '""')
    rows = "".join(f"{prefix},{('JP', 'DE')[at % 2]}\n" for at, prefix in enumerate(prefixes))
    table.write_text(f'remote_prefix,"{quoted}"\n{rows}')
    found = fleets.compare(written(tmp_path / "fleet", columns), strata=[str(table)])
    assert {stratum.label for stratum in found.strata} == {"JP", "DE"}
