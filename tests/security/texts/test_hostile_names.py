"""Names, values and texts that look like something else are taken literally in every statement."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.catalog.names.documents import View, serialize_view
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.identifiers import quote, string_literal
from tests.security.test_links import write_commit
from tests.unit.engine.house import House

pytestmark = pytest.mark.in_folders("the attacks look for files that were made next to the warehouse")

VALUES = (
    "../../../outside",
    "/etc/passwd",
    "%2e%2e%2f%2e%2e%2foutside",
    "%252e%252e/outside",
    "file:///etc/passwd",
    "_delta_log",
    ".hidden",
    "..",
    "a/b=c/d",
    "'; drop table other; --",
    "`; drop table other; --",
    "a\nb\r\nc",
    "${jndi:ldap://127.0.0.1:1/x}",
    "${system:user.home}",
    "${env:PATH}",
    "${spark:spark.app.name}",
    "${x}",
    "{{ 7 * 7 }}",
    "__HIVE_DEFAULT_PARTITION__",
    "\\",
    "*?[a]{b}",
    "<script>alert(1)</script>",
    "é\u202e😀",
)
NAMES = (
    "a`b",
    "a'b",
    'a"b',
    "a; drop table other; --",
    "a/../b",
    "../x",
    "a=b",
    "a%2fb",
    "a.b",
    "select",
    "${jndi:ldap://127.0.0.1:1/x}",
    "${env:PATH}",
    "${spark.app.name}",
    "${x}",
    "*",
    "<img src=x onerror=alert(1)>",
)
EXPECTED = {"main", ".silt.lock", ".gitignore"}
"""The files and folders of a warehouse."""


@pytest.fixture
def other(house: House) -> House:
    """A warehouse with the table that the attacks try to drop."""
    house.sql("create table other as select 1 as id")
    return house


def untouched(house: House) -> bool:
    """Returns whether the other table has its row, and nothing was created next to the schema or the warehouse."""
    made = {path.name for folder in (house.root, house.root.parent) for path in folder.iterdir()}
    strange = {name for name in made if "outside" in name} | {path.name for path in house.root.iterdir()} - EXPECTED
    return house.rows("select * from other") == [(1,)] and not strange


def test_partition_values_of_any_text_are_read_back_and_their_files_are_inside_the_table(other: House) -> None:
    rows = ", ".join(f"({number}, {string_literal(value)})" for number, value in enumerate(VALUES))
    other.sql("create table t (id int, p string) partitioned by (p)")
    other.sql(f"insert into t values {rows}")
    expected = list(enumerate(VALUES))
    assert sorted(other.rows("select id, p from t")) == expected
    alone = " union all ".join(f"select id, p from t where p = {string_literal(value)}" for value in VALUES)
    assert sorted(other.rows(alone)) == expected
    other.sql(f"delete from t where p = {string_literal(VALUES[0])}")
    other.sql(f"update t set id = id + 100 where p = {string_literal(VALUES[2])}")
    other.sql(f"insert into t replace where p = {string_literal(VALUES[1])} values (200, {string_literal(VALUES[1])})")
    other.sql("optimize t")
    found = {value: number for number, value in other.rows("select id, p from t")}
    assert found == {**{value: number for number, value in expected[1:]}, VALUES[1]: 200, VALUES[2]: 102}
    other.warehouse.spark.conf.set("silt.retentionDurationCheck.enabled", "false")
    other.sql("vacuum t retain 0 hours")
    assert len(other.rows("select id from t")) == len(VALUES) - 1
    assert untouched(other)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_columns_with_names_of_any_text_work_or_are_refused(other: House, mode: str) -> None:
    names = [quote(name) for name in NAMES if mode == "name" or is_taken(other, name)]
    assert len(names) == len(NAMES) if mode == "name" else names
    listed = ", ".join(names)
    columns = ", ".join(f"{name} int" for name in names)
    other.sql(f"create table t (id int, {columns}) tblproperties ('delta.columnMapping.mode' = '{mode}')")
    other.sql(f"insert into t (id, {listed}) values (1{', 2' * len(names)}), (2{', 3' * len(names)})")
    all_are = " and ".join(f"{name} = 3" for name in names)
    other.sql(f"update t set {', '.join(f'{name} = {name} + 1' for name in names)} where {all_are}")
    fives = ", ".join(f"5 as {name}" for name in names)
    other.sql(f"merge into t using (select 3 as id, {fives}) as n on t.id = n.id when not matched then insert *")
    found = other.rows(f"select id, {listed} from t where {' and '.join(f'{name} > 2' for name in names)} order by id")
    assert found == [(2, *(4 for _ in names)), (3, *(5 for _ in names))]
    assert untouched(other)


def is_taken(house: House, name: str) -> bool:
    """Returns whether a table without column mapping may have a column of this name; a refusal is not an internal
    error.
    """
    try:
        house.sql(f"create table asked (id int, {quote(name)} int)")
    except SiltError as error:
        assert error.code != "SILT_INTERNAL", (name, error)
        return False
    house.sql("drop table asked")
    return True


@pytest.mark.parametrize("text", VALUES)
def test_comments_properties_and_values_of_any_text_are_stored_unchanged(other: House, text: str) -> None:
    quoted = string_literal(text)
    other.sql(f"create table t (id int comment {quoted}, v string default {quoted}) comment {quoted}")
    other.sql(f"alter table t set tblproperties ('a' = {quoted})")
    other.sql("insert into t values (1, default)")
    assert other.rows("select v from t") == [(text,)]
    metadata = other.log("t").snapshot().metadata
    assert (metadata.description, metadata.configuration["a"]) == (text, text)
    assert other.log("t").snapshot().schema.fields[0].metadata["comment"] == text
    assert untouched(other)


SECOND = (
    "select 1 as id; drop table main.other",
    "select 1 as id; select 2 as id",
    "select 1 as id;",
    "drop table main.other",
    "insert into main.other values (2)",
    "with a as (select 1 as id) insert into main.other select * from a",
    "create table main.made as select 1 as id",
    "set spark.sql.ansi.enabled = false",
    "explain select 1",
    "from main.other insert into main.other select 2",
)


@pytest.mark.parametrize("text", SECOND)
def test_a_view_runs_a_single_query_and_no_other_statement(other: House, text: str) -> None:
    view = View(RelationName("silt", "main", "seen"), text, current_database="silt", current_schema="main")
    (other.root / "main" / "seen.view.json").write_bytes(serialize_view(view))
    reader = other.another()
    for statement in ("select * from main.seen", "describe main.seen", "select count(*) from main.seen"):
        try:
            reader.rows(statement)
        except Exception as error:
            assert "SILT_INTERNAL" not in str(error)
    assert reader.rows("select * from main.other") == [(1,)]
    assert not (other.root / "main" / "made").exists()
    assert untouched(reader)
    assert reader.rows("set spark.sql.ansi.enabled")[0][1] == "true"


def test_a_warehouses_functions_do_not_replace_built_in_functions(other: House) -> None:
    for name in ("abs", "count", "concat", "current_timestamp", "sum"):
        try:
            other.sql(f"create function main.{name}(x int) returns int return 666")
        except SiltError as error:
            assert error.code != "SILT_INTERNAL"
    assert other.rows("select abs(-1), count(1), concat('a', 'b'), sum(2)") == [(1, 1, "ab", 2)]
    other.sql("create table t (id int, constraint c check (abs(id) < 10))")
    other.sql("insert into t values (-3)")
    assert other.rows("select id from t where abs(id) = 3") == [(-3,)]


@pytest.mark.parametrize("form", ["{path}", "file:{path}", "%2F{path}", "../../../{name}", "{path}/../{name}"])
def test_no_change_file_outside_the_table_is_read(other: House, tmp_path: Path, form: str) -> None:
    outside = tmp_path / "cdc.parquet"
    other.sql("create table t (id int) tblproperties (delta.enableChangeDataFeed = true)")
    other.sql("insert into t values (1)")
    (own,) = Path(other.location("t")).rglob("*.parquet")
    pq.write_table(pq.read_table(own), outside)
    version = other.log("t").snapshot().version
    path = form.format(path=outside, name=outside.name)
    change = {"path": path, "partitionValues": {}, "size": outside.stat().st_size, "dataChange": False}
    write_commit(Path(other.location("t")), {"cdc": change})
    with pytest.raises(SiltError) as raised:
        other.another().rows(f"select * from table_changes('main.t', {version + 1})")
    assert raised.value.code in ("SILT_EXTERNAL_PATH", "SILT_DATA_FILE_MISSING", "SILT_TABLE_DAMAGED"), raised.value


@pytest.mark.parametrize("folder", ["p=..%2F..%2Foutside", "p=%2Fetc", "p=a/q=b", "p=", "x"])
def test_a_conversion_takes_folder_names_as_literal_partition_values_or_refuses_them(other: House, folder: str) -> None:
    target = other.root / "main" / "landed"
    (target / folder).mkdir(parents=True)
    (own,) = Path(other.location("other")).rglob("*.parquet")
    pq.write_table(pq.read_table(own), target / folder / "part.parquet")
    try:
        other.sql(f"convert to delta parquet.`{target}` partitioned by (p string)")
    except SiltError as error:
        assert error.code != "SILT_INTERNAL"
        assert not (target / "_delta_log").exists()
    else:
        (commit,) = (target / "_delta_log").glob("*.json")
        (add,) = [json.loads(line)["add"] for line in commit.read_text().splitlines() if '"add"' in line]
        assert add["partitionValues"]["p"] in ("../../outside", "/etc", None, "")
    assert untouched(other)
