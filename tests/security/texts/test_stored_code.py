"""Views and SQL functions that another user stored: reading and describing them runs no code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError, SiltError, StoredCodeError
from dbt.adapters.silt.engine.sql.ast import Parameter
from dbt.adapters.silt.engine.sql.query.rule_texts import REFUSED, RUNS_CODE, WITH_OPTIONS_THAT_OPEN_FILES
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

pytestmark = pytest.mark.in_folders("the attacks run processes and write files on this machine")

TRUSTING = WarehouseSettings(stored_code=True, external_paths=True)
PROPERTY = "silt.attacked"
SECRET = "s3cr3t"

SCRIPTS = [
    "select transform(1) using 'touch {marker}; cat' as (a)",
    "select * from (from (select 1 as a) map a using 'touch {marker}; cat' as b)",
    'select * from (from (select 1 as a) reduce a using /* - */ "touch {marker}; cat" as b)',
    "with x as (select transform(1) u\u017f\u0131ng 'touch {marker}; cat' as (a)) select * from x",
]
CALLS = [
    "select reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes') as a",
    "select 1 as a where `Java_Method` /* ( */ ('java.lang.System', 'setProperty', 'silt.attacked', 'yes') is null",
    "select a from (select system.builtin.try_reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes') as a)",
    "with x as (select reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes') as a) select * from x",
]
OTHERS = {
    "select identifier('reflect')('java.lang.System', 'setProperty', 'silt.attacked', 'yes') as a": "runs",
    "select * from main.t timestamp as of reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes')": "runs",
    "select * from table_changes('t', reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes'))": "runs",
    "select * from main.t version as of (select len(max(value)) from text.`{secret}`)": "fails",
    "select * from jdbc.`x` with (url = 'jdbc:nothing:', dbtable = 't')": "fails",
    "select * from `org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider`.`x`": "fails",
    "select length, decode(content, 'UTF-8') from binaryFile.`{secret}`": "reads",
    "select decode(content, 'UTF-8') from read_files('{secret}', format => 'binaryFile')": "reads",
    "select * from read_files('{secret}', format => 'text', `fs.file.impl` => 'x')": "reads",
    "select * from text.`{folder}/empty` with (path = '{secret}')": "reads",
    "select like || '' from text.`{secret}` as t(like)": "reads",
}
"""Each with its effect if it is allowed: it fails by itself, runs code, or reads the secret."""

DOORS: dict[str, Callable[[House], object]] = {
    "select": lambda house: house.rows("select * from main.v"),
    "a view over it": lambda house: house.rows("select * from main.above"),
    "count": lambda house: house.rows("select count(*) from main.v"),
    "describe": lambda house: house.rows("describe main.v"),
    "describe extended": lambda house: house.rows("describe extended main.v"),
    "show columns": lambda house: house.rows("show columns in main.v"),
    "explain": lambda house: house.rows("explain select * from main.v"),
    "schema_of": lambda house: house.warehouse.schema_of("select * from main.v"),
    "create table as": lambda house: house.sql("create table main.copy as select * from main.v"),
    "create view": lambda house: house.sql("create view main.w as select * from main.v"),
    "temporary view": lambda house: house.sql("create temporary view w as select * from main.v"),
    "execute immediate": lambda house: house.rows("execute immediate 'select * from main.v'"),
    "insert": lambda house: house.sql("insert into main.t select 1 from main.v"),
    "condition": lambda house: house.sql("delete from main.t where exists (select 1 from main.v)"),
}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


@pytest.fixture
def attacked(house: House, marker: Path, tmp_path: Path) -> Iterator[Callable[[str], House]]:
    """A warehouse with a table, the view `v` that another user wrote, and a view over it."""
    (tmp_path / "id_rsa").write_text(SECRET)
    (tmp_path / "empty").write_text("")
    house.sql("create table main.t (id int)")
    house.sql("insert into main.t values (1)")

    def write(text: str) -> House:
        own = text.format(marker=marker, secret=tmp_path / "id_rsa", folder=tmp_path)
        for name, query in (("v", own), ("above", "select * from main.v")):
            view = View(RelationName("silt", "main", name), query, current_database="silt", current_schema="main")
            house.warehouse.catalog.put_view(view, replace=True)
        return house.another()

    yield write
    clear(house)


def clear(house: House) -> None:
    house.warehouse.spark.sql(f"select reflect('java.lang.System', 'clearProperty', '{PROPERTY}')").collect()


def ran(house: House, marker: Path) -> bool:
    """Returns whether the attack had its effect."""
    found = house.warehouse.spark.sql(f"select reflect('java.lang.System', 'getProperty', '{PROPERTY}')").collect()
    return marker.exists() or found[0][0] == "yes"


@pytest.mark.connect
@pytest.mark.parametrize("text", [SCRIPTS[0], pytest.param(CALLS[0], marks=pytest.mark.connect(gate=True))])
def test_no_statement_runs_the_code_of_a_stored_view(attacked: Callable[[str], House], marker: Path, text: str) -> None:
    house = attacked(text)
    for name, door in DOORS.items():
        with pytest.raises(StoredCodeError, match=r"SILT_STORED_CODE.*silt\.main\.v.*stored_code: true"):
            pytest.fail(f"{name}: {door(house)}")
    assert not ran(house, marker)


def names_builtins(house: House) -> bool:
    """Returns whether this Spark finds its functions in the schema `system.builtin`."""
    try:
        return house.rows("select system.builtin.abs(-1)") == [(1,)]
    except (SiltError, *SPARKS):
        return False


@pytest.mark.parametrize(("text", "does"), [*((text, "runs") for text in (*SCRIPTS, *CALLS)), *OTHERS.items()])
def test_a_view_that_may_run_code_is_refused_without_the_setting(
    attacked: Callable[[str], House], place: Place, marker: Path, text: str, does: str
) -> None:
    house = attacked(text)
    for door in ("select", "describe"):
        with pytest.raises(StoredCodeError, match="SILT_STORED_CODE"):
            DOORS[door](house)
    assert not ran(house, marker)
    rows: object = None
    with contextlib.suppress(SiltError, *SPARKS):
        rows = opened(house.warehouse.spark, place, TRUSTING).rows("select * from main.v")
    if "system.builtin" in text and not names_builtins(house):
        does = "fails"
    done = {"runs": ran(house, marker), "reads": SECRET in repr(rows)}
    assert [name for name, is_done in done.items() if is_done] == ([] if does == "fails" else [does])


@pytest.mark.parametrize("text", [SCRIPTS[0], CALLS[0], *list(OTHERS)[:1]])
def test_the_information_schema_lists_the_view_and_runs_nothing(
    attacked: Callable[[str], House], marker: Path, text: str
) -> None:
    house = attacked(text)
    columns = "select column_name from information_schema.columns where table_name in ('t', 'v')"
    assert house.rows(columns) == [("id",)]
    assert ("v",) in house.rows("select table_name from information_schema.views")
    assert not ran(house, marker)


@pytest.mark.parametrize("text", [SCRIPTS[0], CALLS[0], *list(OTHERS)[:1]])
def test_a_view_that_may_run_code_is_refused_at_its_creation(house: House, marker: Path, text: str) -> None:
    own = text.format(marker=marker, secret="")
    house.sql("create view main.w as select 1 as a")
    for statement in (f"create view main.v as {own}", f"alter view main.w as {own}"):
        with pytest.raises(StoredCodeError, match="SILT_STORED_CODE"):
            house.sql(statement)
    assert house.rows("select * from main.w") == [(1,)]
    assert not ran(house, marker)


CALL = "reflect('java.lang.System', 'setProperty', 'silt.attacked', 'yes')"


@pytest.mark.parametrize(
    "function",
    [
        Function(RelationName("silt", "main", "f"), (), CALL),
        Function(RelationName("silt", "main", "f"), (), f"(select {CALL})"),
        Function(RelationName("silt", "main", "f"), (Parameter("a", "string", CALL),), "a"),
        Function(RelationName("silt", "main", "f"), (Parameter("a", f"string default {CALL}"),), "a"),
        Function(RelationName("silt", "main", "f"), (), "1", f"string return {CALL} --"),
        Function(RelationName("silt", "main", "f"), (), f"select {CALL}", "table (a string)"),
    ],
    ids=["body", "subquery", "default", "type", "returns", "table"],
)
def test_no_call_of_a_stored_function_runs_code(house: House, place: Place, marker: Path, function: Function) -> None:
    house.warehouse.catalog.put_function(function, replace=True)
    call = "select * from main.f()" if (function.returns or "").startswith("table") else "select main.f()"
    view = View(RelationName("silt", "main", "v"), call, current_database="silt", current_schema="main")
    house.warehouse.catalog.put_view(view, replace=False)
    other = house.another()
    for text in (call, "select * from main.v", "describe main.v"):
        with pytest.raises(StoredCodeError, match=r"SILT_STORED_CODE.*silt\.main\.f"):
            other.rows(text)
    assert not ran(house, marker)
    opened(house.warehouse.spark, place, TRUSTING).rows(call)
    assert ran(house, marker)
    clear(house)


def test_a_function_that_runs_code_is_refused_at_its_creation(house: House) -> None:
    with pytest.raises(StoredCodeError, match="the function `reflect`"):
        house.sql(f"create function main.f() returns string return {CALL}")


@pytest.mark.parametrize("text", ["select * from nosuch.t", "select * from main.nosuch", "select * from a.b.c"])
def test_a_missing_relation_of_a_stored_view_is_reported_as_missing(
    attacked: Callable[[str], House], text: str
) -> None:
    with pytest.raises(SiltError, match=r"does not exist") as raised:
        attacked(text).rows("select * from main.v")
    assert not isinstance(raised.value, StoredCodeError)


def test_a_missing_table_of_a_missing_schema_is_reported_as_missing(attacked: Callable[[str], House]) -> None:
    with pytest.raises(RelationNotFoundError):
        attacked("select * from nosuch.t").rows("select * from main.v")


def test_ordinary_views_and_functions_work(house: House) -> None:
    house.sql("create table main.t (id int, xs array<int>)")
    house.sql("insert into main.t values (1, array(1, 2))")
    house.sql("create function main.f(a decimal(10, 2) default 1) returns decimal(10, 2) return a + 1")
    house.sql(
        "create view main.v as select main.f(id) as f, transform(t.xs, x -> x + 1) as ys, 'reflect(' as s "
        "from main.t version as of 1 join main.t u using (id)"
    )
    house.sql("create view main.i as select table_name from information_schema.tables where table_name = 't'")
    assert house.another().rows("select f, ys, s from main.v") == [(2, [2, 3], "reflect(")]
    assert house.another().rows("select * from main.i") == [("t",)]


def test_functions_that_run_code_are_refused_in_rules_too() -> None:
    assert RUNS_CODE | WITH_OPTIONS_THAT_OPEN_FILES.keys() <= REFUSED
