"""The proof that an audit looks at each row by itself, by the form of its query."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit
from dbt.adapters.silt.engine.audits.row_tests import KeyTest, RowTest, key_test, row_test
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType

TABLE = ("silt", "main", "t")
COLUMNS = StructType(tuple(StructField(name, PrimitiveType("long")) for name in ("id", "v", "Order Id")))


def proved(query: str, **more: object) -> RowTest | None:
    return row_test(Audit("a", query, **more), TABLE, "UTC")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("select id from main.t where id is null", "id is null"),
        ("\n\n select id\nfrom `silt`.`main`.`t`\nwhere id is null\n\n", "id is null"),
        ("select * from t where v < 0 -- a remark", "v < 0"),
        ("select 1 from main.t where not(v > id)", "not(v > id)"),
        ("select a.* from main.t as a where a.v < 0 and A.id > 1", "`v` < 0 and `id` > 1"),
        ("select t.id from main.t where t.v < 0 or main.t.v > 9 or silt.main.t.v = 5", "`v` < 0 or `v` > 9 or `v` = 5"),
        ("select id, 'x' as x, 1.5 from main.t where v not in (1, 2)", "v not in (1, 2)"),
        ("select id from main.t where t.`Order Id` is null", "`Order Id` is null"),
        ("select id from main.t where lower(cast(v as string)) rlike 'x'", "lower(cast(v as string)) rlike 'x'"),
        ("select id from main.t", "true"),
    ],
)
def test_a_query_that_only_filters_the_table_is_a_row_test(query: str, condition: str) -> None:
    found = proved(query)
    assert found is not None and found.condition == condition
    assert found.fits(COLUMNS) and found.is_repeatable


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from main.t where v < 0",
        "select distinct id from main.t where v < 0",
        "select id from main.t where v < 0 group by id",
        "select id from main.t where v < 0 having count(*) > 1",
        "select id from main.t where v < 0 limit 5",
        "select id from main.t where v < 0 order by id limit 1",
        "select id from main.t where v < 0 qualify row_number() over (order by id) = 1",
        "select explode(array(1, 2)) from main.t where v < 0",
        "select id, row_number() over (order by id) from main.t where v < 0",
        "select id from main.t lateral view explode(array(1)) as x where v < 0",
        "select id from main.t, main.u where v < 0",
        "select id from main.t join main.u using (id) where v < 0",
        "select id from main.t where v < 0 union all select id from main.t where v > 9",
        "select id from main.t where v in (select v from main.t)",
        "select id from main.t where v = (select max(v) from main.u)",
        "select id from main.t where exists (select 1 from main.u)",
        "with a as (select * from main.t) select id from a where v < 0",
        "select id from (select * from main.t) as a where v < 0",
        "select id from main.t tablesample (5 rows) where v < 0",
        "select id from main.t as a (x, y) where x < 0",
        "select id from main.t version as of 1 where v < 0",
        "select id from main.u where v < 0",
        "select id from other.t where v < 0",
        "from main.t select id where v < 0",
        "select id from main.t where v < 0 |> limit 1",
        "select id from main.t where input_file_name() like '%x%'",
        "select id from main.t where _metadata.file_path is null",
        "select id from main.t where main.f(v)",
        "select id from main.t where own_function(v)",
        "values (1)",
        "select id from main.t where 'unclosed",
        "",
    ],
)
def test_any_other_query_is_not(query: str) -> None:
    assert proved(query) is None


def test_only_a_count_of_the_rows_is_a_row_test() -> None:
    query = "select v from main.t where v < 0"
    assert proved(query, fail_calc="COUNT( * )") is not None
    assert proved(query, limit=5) is not None
    assert proved(query, fail_calc="sum(v)") is None
    assert proved(query, limit=0) is None


@pytest.mark.parametrize("call", ["rand() < 0.5", "current_timestamp() is null", "v < now()"])
def test_a_row_test_whose_verdict_may_change_is_not_repeatable(call: str) -> None:
    found = proved(f"select id from main.t where {call}")
    assert found is not None and not found.is_repeatable


def test_a_row_test_of_the_day_is_not_repeatable() -> None:
    found = proved("select id from main.t where v > datediff(current_date(), date'2026-01-01')")
    assert found is not None and not found.is_repeatable


def test_a_row_test_does_not_fit_rows_without_its_columns_or_with_a_column_named_as_the_table() -> None:
    found = proved("select missing from main.t where t.v < 0")
    assert found is not None and not found.fits(COLUMNS)
    found = proved("select id from main.t where t.v < 0")
    assert found is not None
    assert not found.fits(COLUMNS.add(StructField("T", PrimitiveType("long"))))


def test_the_key_changes_with_the_audit_and_with_the_time_zone() -> None:
    audit = Audit("a", "select id from main.t where v < 0")
    others = (row_test(audit, TABLE, "UTC"), row_test(audit, TABLE, "Europe/Berlin"), proved(f"{audit.query} or v > 9"))
    assert len({each.key for each in others if each is not None}) == 3


def keyed(query: str, **more: object) -> KeyTest | None:
    return key_test(Audit("a", query, **more), TABLE, "UTC")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "columns", "condition"),
    [
        ("select id from main.t group by id having count(*) > 1", ("id",), "true"),
        (
            "\nselect\n id as unique_field,\n count(*) as n_records\n\nfrom `silt`.`main`.`t`\nwhere id is not null\n"
            "group by id\nhaving count(*) > 1\n",
            ("id",),
            "id is not null",
        ),
        ("select v, `Order Id` from t group by v, `Order Id` having COUNT( * )>1", ("v", "Order Id"), "true"),
    ],
)
def test_a_query_of_the_keys_that_occur_twice_is_proved(query: str, columns: tuple[str, ...], condition: str) -> None:
    found = keyed(query)
    assert found is not None and found.fits(COLUMNS)
    assert (found.columns, found.counted.condition) == (columns, condition)


@pytest.mark.parametrize(
    "query",
    [
        "select id from main.t group by id + 1 having count(*) > 1",
        "select distinct count(*) from main.t group by id having count(*) > 1",
        "select id from main.t group by id having count(*) > 2",
        "select id from main.t group by id having count(*) > 1 order by id",
        "select id from main.t group by all having count(*) > 1",
        "select id from main.t group by 1 having count(*) > 1",
        "select id from main.t group by rollup(id) having count(*) > 1",
        "select id from (select * from main.t) group by id having count(*) > 1",
        "select id from main.t where rand() < 1 group by id having count(*) > 1",
        "select id, max(v) over () from main.t group by id having count(*) > 1",
        "select id from main.u group by id having count(*) > 1",
        "select id from main.t, main.u group by id having count(*) > 1",
        "select id from main.t group by id",
    ],
)
def test_another_query_of_keys_is_not_proved(query: str) -> None:
    assert keyed(query) is None


def test_a_limit_and_another_calculation_are_not_proved() -> None:
    query = "select id from main.t group by id having count(*) > 1"
    assert keyed(query, limit=5) is None
    assert keyed(query, fail_calc="sum(id)") is None
    found = keyed(query)
    assert found is not None and not found.fits(StructType((StructField("v", PrimitiveType("long")),)))
