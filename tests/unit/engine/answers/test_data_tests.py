"""Data tests that are answered by Arrow have the row that Spark computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.answers.data_test_text import data_test, failing_rows
from dbt.adapters.silt.runs.fetch import fetchable
from tests.unit.engine.answers.test_connection import shown, without_spark

COLUMNS = {
    "b": "cast(id % 3 as tinyint)",
    "i": "cast(if(id = 7, null, id) as int)",
    "l": "if(id % 4 = 0, null, id % 5)",
    "n": "cast(id % 3 * 1.10 as decimal(20, 2))",
    "flag": "id % 2 = 0",
    "s": "if(id % 4 = 0, null, concat(if(id = 1, 'A', 'a'), id % 3))",
    "day": "date'1500-01-01' + cast(id % 3 as int)",
    "ts": "timestamp'2024-01-01 00:00:00.000001Z' + make_interval(0, 0, 0, 0, cast(id % 3 as int))",
    "ntz": "timestamp_ntz'2024-03-10 02:30:00'",
    "p": "if(id % 2 = 0, 'x', null)",
}
FLOATING = {"f": "if(id = 1, float('NaN'), id % 2 * -0.0F)"}
OTHERS = {"v": "cast('ab' as varchar(3))", "st": "named_struct('x', id)"}
VALUES = {"b": "0, 1", "n": "1.10, 2.20", "i": "1, 2", "l": "0", "s": "'a0', 'A1'", "p": "'x'", "day": "'1500-01-01'"}


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """A table of several files and partitions with deleted rows, a parent, and an empty table."""
    house = Warehouse(spark.newSession(), str(tmp_path_factory.mktemp("house")))
    listed = ", ".join(f"{value} as {name}" for name, value in (COLUMNS | FLOATING | OTHERS).items())
    kind = "partitioned by (p) tblproperties ('delta.enableDeletionVectors' = 'true')"
    for name, start in (("orders", 0), ("parents", 4)):
        house.sql(f"create table {name} {kind} as select {listed} from range({start}, {start + 6})")
        house.sql(f"insert into {name} select {listed} from range({start}, {start + 3})")
        house.sql(f"delete from {name} where i = {start + 2}")
    house.sql(f"create table empty as select {listed} from range(0)")
    house.sql("create table fixed (c char(3), d varchar(3))")
    house.sql("insert into fixed values ('a', 'a'), ('a', 'a  '), (null, null)")
    house.sql("create view seen as select * from orders")
    yield house


def framed(failing: str, warn: str = "!= 0", error: str = "!= 0") -> str:
    """Returns the query of a data test as dbt writes it."""
    return f"""
    select
      count(*) as failures,
      count(*) {warn} as should_warn,
      count(*) {error} as should_error
    from (
      {failing}
    ) dbt_internal_test"""


def not_null(column: str, source: str = "`silt`.`main`.`orders`") -> str:
    return f"\nselect {column}\nfrom {source}\nwhere {column} is null\n"


def unique(column: str, source: str = "`silt`.`main`.`orders`") -> str:
    return (
        f"\nselect\n    {column} as unique_field,\n    count(*) as n_records\n\nfrom {source}\n"
        f"where {column} is not null\ngroup by {column}\nhaving count(*) > 1\n"
    )


def accepted(column: str, values: str, source: str = "`silt`.`main`.`orders`") -> str:
    return (
        f"\nwith all_values as (\n    select\n        {column} as value_field,\n        count(*) as n_records\n\n"
        f"    from {source}\n    group by {column}\n\n)\n\nselect *\nfrom all_values\n"
        f"where value_field not in (\n    {values}\n)\n"
    )


def related(column: str, field: str, source: str = "silt.main.orders", parent: str = "`silt`.`main`.`parents`") -> str:
    return (
        f"\nwith child as (\n    select {column} as from_field\n    from {source}\n    where {column} is not null\n),\n"
        f"\nparent as (\n    select {field} as to_field\n    from {parent}\n)\n\nselect\n    from_field\n\n"
        "from child\nleft join parent\n    on child.from_field = parent.to_field\n\nwhere parent.to_field is null\n"
    )


CUT = "(select * from `silt`.`main`.`orders` where i > 2 and s is not null) dbt_subquery"
ANSWERED = [
    *(not_null(column) for column in (*COLUMNS, *FLOATING, "v", "`I`", "st")),
    *(unique(column) for column in (*COLUMNS, "v")),
    *(unique("d", "main.fixed"), accepted("d", "'a'", "main.fixed")),
    *(accepted(column, values) for column, values in VALUES.items()),
    *(related(column, column) for column in COLUMNS),
    *(related(column, field) for column, field in (("b", "l"), ("l", "i"), ("s", "v"))),
    *(test("s", source) for test in (not_null, unique) for source in (CUT, "main.empty")),
    *(accepted("s", "'a2'", source) for source in (CUT, "main.empty")),
    *(related("i", "i", CUT), related("i", "i", parent=CUT), related("i", "i", parent="main.orders")),
    *(related("i", "i", parent="main.empty"), related("i", "i", source="main.empty")),
]


@pytest.mark.parametrize("failing", ANSWERED)
def test_the_result_equals_sparks_result(warehouse: Warehouse, failing: str) -> None:
    text = framed(failing)
    found = without_spark(warehouse, text)
    assert found is not None
    assert shown(found) == shown(fetchable(warehouse.sql(text)).toArrow())


@pytest.mark.parametrize("compared", ["> 3", ">= 3", "< 3", "<= 3", "= 3", "== 3", "<> 3", "!= 3"])
def test_all_comparisons_of_warn_if_and_error_if_equal_sparks(warehouse: Warehouse, compared: str) -> None:
    text = framed(not_null("l"), compared, "> 0")
    found = without_spark(warehouse, text)
    assert found is not None
    assert shown(found) == shown(fetchable(warehouse.sql(text)).toArrow())


LEFT_TO_SPARK = [
    *(unique(column) for column in (*FLOATING, "st", "upper(s)", "missing", "null")),
    *(
        not_null("c", "main.fixed"),
        unique("c", "main.fixed"),
        accepted("c", "'a'", "main.fixed"),
        accepted("missing", "1"),
        accepted("n", "0, 1.10"),
    ),
    *(accepted("s", values) for values in ("upper('a')", "select s from main.orders")),
    *(related("f", "f"), related("c", "d", "main.fixed", "main.fixed"), related("d", "c", "main.fixed", "main.fixed")),
    *(related("n", "l"), related("s", "i"), related("ts", "ntz")),
    *(not_null("s", source) for source in ("orders", "main.seen", "silt.main.orders o", "main.orders version as of 0")),
    not_null("s", "(select * from main.orders where upper(s) = 'A') dbt_subquery"),
    not_null("s") + " limit 1",
    unique("s").replace("> 1", "> 2"),
    unique("s").replace("group by s", "group by i"),
    related("i", "i").replace("left join", "join"),
    "select * from main.orders",
]


@pytest.mark.parametrize("failing", LEFT_TO_SPARK)
def test_all_other_tests_are_left_to_spark(warehouse: Warehouse, failing: str) -> None:
    assert without_spark(warehouse, framed(failing)) is None


@pytest.mark.parametrize(
    "text",
    [
        framed(not_null("s")).replace("count(*) as", "sum(1) as"),
        framed(not_null("s")).replace("should_warn", "failures"),
        framed(not_null("s"), "!= 0.5"),
        framed(not_null("s"), "!= 0 or true"),
        framed(not_null("s"), "!="),
        framed(not_null("s")) + " where true",
        framed(""),
        "select count(*)",
        "",
    ],
)
def test_another_frame_is_not_the_query_of_a_data_test(text: str) -> None:
    assert data_test(text) is None


def test_queries_that_end_too_early_have_no_meaning() -> None:
    for text in (not_null("s"), unique("s", CUT), accepted("s", "'a'"), related("s", "s")):
        tokens = text.split()
        assert failing_rows(text) is not None
        assert all(failing_rows(" ".join(tokens[:end])) is None for end in range(len(tokens)))
