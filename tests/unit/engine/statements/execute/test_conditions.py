"""Conditions that are not boolean are refused by name, and NULL conditions are never true."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from tests.unit.engine.house import House

ROWS = [(1, "a", True), (2, "b", None)]
MERGE = "merge into t using (select 1 as k union all select 3) s on "
STATEMENTS = {
    "ON": (MERGE + "{} when matched then delete", "ON"),
    "matched": (MERGE + "t.id = s.k when matched and {} then delete", "WHEN MATCHED"),
    "not matched": (MERGE + "t.id = s.k when not matched and {} then insert (id) values (s.k)", "WHEN NOT MATCHED"),
    "by source": (
        MERGE + "t.id = s.k when not matched by source and {} then delete",
        "WHEN NOT MATCHED BY SOURCE",
    ),
    "DELETE": ("delete from t where {}", "WHERE"),
    "UPDATE": ("update t set s = 'z' where {}", "WHERE"),
    "REPLACE WHERE": ("insert into t replace where {} select * from t limit 0", "WHERE"),
    "REPLACE ON": (
        "insert into t by name replace on ({}) (select 9 as id, 'z' as s, true as b limit 0) q",
        "REPLACE ON",
    ),
}


@pytest.fixture
def table(house: House) -> House:
    house.sql("create table t (id int, s string, b boolean)")
    house.sql("insert into t values (1, 'a', true), (2, 'b', null)")
    return house


@pytest.mark.connect
@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_condition_of_another_type_is_refused_by_name(table: House, kind: str) -> None:
    statement, name = STATEMENTS[kind]
    for condition, found in (("1", "int"), ("'true'", "string"), ("(1.5)", "decimal(2,1)"), ("array(1)", "array")):
        with pytest.raises(InvalidStatementError) as caught:
            table.sql(statement.format(condition))
        shown = f"({condition})" if name == "REPLACE ON" else condition
        said = f"silt.main.t: the condition of {name}, {shown}, is of type {found}"
        assert said in str(caught.value) and "not boolean. " in str(caught.value)
        assert "__silt" not in str(caught.value) and "\n" not in str(caught.value)
    assert table.rows("select * from t") == ROWS and table.log("t").snapshot().version == 1


@pytest.mark.connect
@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_condition_that_is_null_is_never_true(table: House, kind: str) -> None:
    statement, _ = STATEMENTS[kind]
    for condition in ("null", "(null)", "cast(null as boolean)", "null and 1 = 1"):
        table.sql(statement.format(condition))
        assert table.rows("select * from t") == ROWS


def test_a_merge_on_null_inserts_the_whole_source(table: House) -> None:
    table.sql(MERGE + "null when not matched then insert (id) values (s.k)")
    assert table.rows("select id from t") == [(1,), (1,), (2,), (3,)]


def test_a_boolean_column_is_a_condition(table: House) -> None:
    with pytest.raises(InvalidStatementError, match="the condition of WHERE, id, is of type int, not boolean"):
        table.sql("delete from t where id")
    table.sql(MERGE + "t.b when not matched by source and b is null then delete")
    table.sql("delete from t where b")
    assert table.rows("select * from t") == []


def test_a_check_constraint_of_another_type_is_refused_by_name(table: House) -> None:
    with pytest.raises(InvalidStatementError, match=r"constraint `c`, id \+ 1, is of type int, not boolean"):
        table.sql("alter table t add constraint c check (id + 1)")


@pytest.mark.parametrize(
    "statement",
    [
        MERGE + "t.id = s.k and 1 when matched then delete",
        MERGE + "t.id = s.nope when matched then delete",
        MERGE + "t.id = s.k when matched and nope then delete",
        MERGE + "t.id = s.k when matched then update set s = nope",
        "delete from t where id = 1 and 1",
        "update t set s = nope",
        "update t set s = 'x' where nope = 1",
    ],
)
def test_no_message_names_columns_that_this_engine_adds_internally(table: House, statement: str) -> None:
    with pytest.raises(InvalidStatementError) as caught:
        table.sql(statement)
    assert "__silt" not in str(caught.value) and "\n" not in str(caught.value) and "@v" not in str(caught.value)
