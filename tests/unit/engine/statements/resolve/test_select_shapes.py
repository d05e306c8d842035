"""Which SELECTs a table's log may answer."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.sql.conditions.predicates import Relation
from dbt.adapters.silt.engine.sql.query.references import scanned, table_references
from dbt.adapters.silt.engine.statements.resolve.metadata_answers import Question, questions

SCHEMA = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("at", PrimitiveType("timestamp")),
        StructField("inner", StructType((StructField("id", PrimitiveType("long")),))),
        StructField("code", PrimitiveType("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
    )
)


def asked(text: str) -> tuple[Question, ...]:
    relations = {
        each: Relation(SCHEMA, ("silt", "main", "t")) for each in table_references(text) if each.parts[-1] == "t"
    }
    return questions(scanned(text), relations, "UTC")


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from t",
        "select COUNT(1) as n, max(id), min(main.t.at) earliest from main.t",
        "select coalesce(max(q.at), timestamp '1900-01-01') - interval 3 days as since from t as q",
        "select max(id) from t where id > 5",
        "with newest as (select max(at) as at from t) select * from newest, other",
        "select * from other where id > (select max(id) from t)",
        "select * from other where at between (select min(at) from t) and current_timestamp()",
        "select max(`id`) from t -- the newest",
    ],
)
def test_a_select_of_extremes_and_counts_of_one_table_may_be_answered(text: str) -> None:
    assert len(asked(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "select max(id) from t group by at",
        "select max(id) from t having max(id) > 1",
        "select max(id) from t order by 1",
        "select max(id) from t limit 0",
        "select max(id), at from t",
        "select distinct max(id) from t",
        "select max(distinct id) from t",
        "select max(id) over (partition by at) from t",
        "select max(id) filter (where id < 3) from t",
        "select sum(id), max(id) from t",
        "select max(id) + rand() as x from t",
        "select max(id + 1) from t",
        "select count(id) from t",
        "select count(distinct id) from t",
        "select max(inner.id) from t",
        "select max(code) from t",
        "select max(nothing) from t",
        "select max(t.id) from t as q",
        "select max(id) from t, t as u",
        "select max(id) from t join other using (id)",
        "select max(id) from t tablesample (10 percent)",
        "select max(a) from t as q(a, b, c, d)",
        "select max(id) from t lateral view explode(array(1, 2)) x as y",
        "select max(id) from t |> where id > 3",
        "select max(id) from other",
        "select max(id), max(at) + interval 1 day from t",
        "select *, max(id) from t",
        "select (select 1) + max(id) as x from t",
        "from t select max(id)",
        "select 1 as one from t",
    ],
)
def test_any_other_select_is_not_answered(text: str) -> None:
    assert asked(text) == ()


def test_scalar_subqueries_are_distinguished_from_subqueries_that_return_rows() -> None:
    value, rows = asked("select * from other where id > (select max(id) from t) and 1 in (select max(id) from t)")
    assert (value.is_scalar, rows.is_scalar) == (True, False)


def test_an_item_without_an_alias_has_sparks_name() -> None:
    (question,) = asked("select COUNT(*), max(t.ID) from t")
    assert [item.name for item in question.items] == ["`count(1)`", "`max(ID)`"]
