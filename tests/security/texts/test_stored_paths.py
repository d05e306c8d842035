"""Views and SQL functions that another user stored read no files that the session has not named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ExternalPathError, SiltError
from dbt.adapters.silt.engine.statements.resolve.stored_code import MARKER, is_exported
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

pytestmark = pytest.mark.in_folders("the attacks read files of this machine")

SECRET = "s3cr3t"
TEXTS = [
    "select * from read_files('{secret}', format => 'text')",
    "select * from text.`{secret}`",
    "select * from CSV . /* x */ `{secret}`",
    "select (select max(value) from text.`file://{secret}`) as value",
    "with x as (table text.`{secret}`) from x select *",
    "select * from (values (1)) t join lateral (select * from text.`{secret}`)",
    "select * from read_files('{house}/../id_rsa', format => 'text')",
    "select * from read_files('{pattern}/\\\\.\\\\./id_rsa', format => 'text')",
    "select * from read_files('{pattern}/link', format => 'text')",
    "select * from read_files('{house}/{{x,../id_rsa}}', format => 'text')",
    "select * from delta.`{table}`",
    "select * from delta.`{house}/linked`",
    "select * from table_changes_by_path('{table}', 0)",
]
DOORS = ("select * from main.v", "select count(*) from main.v", "describe main.v", "show columns in main.v")


@pytest.fixture
def hostile(house: House, place: Place, tmp_path: Path) -> Callable[[str], House]:
    """A warehouse with the view `v`, which another user wrote, next to a secret file and a secret table."""
    (tmp_path / "id_rsa").write_text(SECRET)
    house.sql("create table main.t (id int)")
    table = tmp_path / "secret table"
    house.sql(
        f"create table delta.`{table}` tblproperties (delta.enableChangeDataFeed = true) as select '{SECRET}' as v"
    )
    (place.folder / "link").symlink_to(tmp_path / "id_rsa")
    (place.folder / "linked").symlink_to(table)

    def write(text: str) -> House:
        pattern = str(place.folder).replace("[", r"\\[").replace("]", r"\\]")
        own = text.format(secret=tmp_path / "id_rsa", house=place.folder, table=table, pattern=pattern)
        view = View(RelationName("silt", "main", "v"), own, current_database="silt", current_schema="main")
        house.warehouse.catalog.put_view(view, replace=True)
        return house.another()

    return write


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=pytest.mark.connect(gate=text == TEXTS[0]) if text in TEXTS[:2] else ())
        for text in TEXTS
    ],
)
def test_a_stored_view_reads_no_file_outside(hostile: Callable[[str], House], place: Place, text: str) -> None:
    house = hostile(text)
    for door in DOORS:
        with pytest.raises(ExternalPathError, match=r"SILT_EXTERNAL_PATH.*silt\.main\.v.*external_paths: true"):
            house.rows(door)
    assert house.rows("select column_name from information_schema.columns where table_name = 'v'") == []
    allowed = opened(house.warehouse.spark, place, WarehouseSettings(external_paths=True))
    assert SECRET in repr(allowed.rows("select * from main.v"))


def test_a_stored_function_reads_no_file_outside(house: House, place: Place, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text(SECRET)
    body = f"(select max(value) from text.`{tmp_path}/id_rsa`)"
    house.warehouse.catalog.put_function(Function(RelationName("silt", "main", "f"), (), body, "string"), replace=False)
    with pytest.raises(ExternalPathError, match=r"silt\.main\.f"):
        house.another().rows("select main.f()")
    allowed = opened(house.warehouse.spark, place, WarehouseSettings(external_paths=True))
    assert allowed.rows("select main.f()") == [(SECRET,)]


def test_a_provider_is_refused_even_if_its_paths_are_allowed(hostile: Callable[[str], House], place: Place) -> None:
    house = hostile("select * from binaryFile.`{secret}`")
    allowed = opened(house.warehouse.spark, place, WarehouseSettings(external_paths=True))
    with pytest.raises(SiltError, match="SILT_STORED_CODE"):
        allowed.rows("select * from main.v")


def test_files_that_a_program_names_in_its_own_statement_are_read(house: House, place: Place, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("id\n2\n")
    for name in ("a", "b"):
        text = f"select * from read_files('{tmp_path}/{name}.csv', header => true)"
        view = View(RelationName("silt", "main", name), text, current_database="silt", current_schema="main")
        house.warehouse.catalog.put_view(view, replace=False)
    above = View(RelationName("silt", "main", "above"), "select * from a", current_schema="main")
    house.warehouse.catalog.put_view(above, replace=False)
    named = opened(house.warehouse.spark, place, WarehouseSettings(file_locations={f"{tmp_path}/a.csv"}))
    assert named.rows("select * from above") == [(1,)]
    with pytest.raises(ExternalPathError, match=r"b\.csv"):
        named.rows("select * from b")


def test_files_of_a_view_that_this_process_creates_are_read(house: House, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    house.sql(f"create view a as select * from read_files('{tmp_path}/a.csv', header => true)")
    assert house.another().rows("select * from a") == [(1,)]


def test_naming_a_view_does_not_allow_the_files_that_it_reads(hostile: Callable[[str], House]) -> None:
    house = hostile("select * from text.`{secret}`")
    with pytest.raises(ExternalPathError):
        house.sql("create view main.w as select * from main.v")
    with pytest.raises(ExternalPathError):
        house.rows("select * from main.v")


def test_tables_of_the_warehouse_can_be_read_by_their_paths_in_a_view(house: House) -> None:
    house.sql("create table main.t as select 1 as id")
    text = f"select * from delta.`{house.location('t')}`"
    view = View(RelationName("silt", "main", "v"), text, current_database="silt", current_schema="main")
    house.warehouse.catalog.put_view(view, replace=False)
    assert house.another().rows("select * from main.v") == [(1,)]


def test_the_sessions_own_statements_read_any_file(house: House, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text(SECRET)
    assert house.rows(f"select * from text.`{tmp_path}/id_rsa`") == [(SECRET,)]
    assert house.rows(f"select * from read_files('{tmp_path}/id_rsa', format => 'text')") == [(SECRET,)]


def test_the_folder_of_an_external_model_is_read_unless_it_contains_a_link(house: House, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text(SECRET)
    folder = tmp_path / "exported"
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=1" / "a.csv").write_text("id\n1\n")
    text = f"select id from read_files('{folder}', format => 'csv', header => true)"
    view = View(RelationName("silt", "main", "v"), text, current_database="silt", current_schema="main")
    house.warehouse.catalog.put_view(view, replace=False)
    with pytest.raises(ExternalPathError):
        house.rows("select * from main.v")
    (folder / MARKER).write_text("{}")
    assert house.rows("select * from main.v") == [(1,)]
    (folder / "day=1" / "b.csv").symlink_to(tmp_path / "id_rsa")
    with pytest.raises(ExternalPathError):
        house.rows("select * from main.v")


def test_a_session_that_reuses_tables_lists_no_files_that_a_log_names(house: House, tmp_path: Path) -> None:
    build = "create or replace table main.t as select 1 as id"
    house.sql("set silt.reuse = unchanged")
    house.sql(build)
    assert house.sql(build).collect()[0]["skipped"]
    os.utime(tmp_path, ns=(1, 2))
    log = house.log("t")
    commit = Path(log.store.root, "_delta_log", f"{log.snapshot().version:020d}.json")
    commit.write_text(commit.read_text().replace('"files":{}', json.dumps({"files": {f"{tmp_path}/": "x"}})[1:-1]))
    other = house.another()
    other.sql("set silt.reuse = unchanged")
    assert not other.sql(build).collect()[0]["skipped"]
    assert os.stat(tmp_path).st_atime_ns == 1


@pytest.mark.parametrize("part", ["..", "*", "link", "\\x"])
def test_only_a_plain_folder_counts_as_the_folder_of_an_external_model(tmp_path: Path, part: str) -> None:
    (tmp_path / "exported").mkdir()
    (tmp_path / "exported" / MARKER).write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "exported")
    assert is_exported(f"{tmp_path}/exported")
    assert not is_exported(f"{tmp_path}/exported/{part}")
    assert not is_exported(f"{tmp_path}/{part}")
