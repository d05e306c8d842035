"""An error while rows are computed is an error of this engine, in all methods of their DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileMissingError,
    DataRejectedError,
    FunctionNotFoundError,
    InvalidStatementError,
    SiltError,
    StatementSyntaxError,
    ValueNotCastableError,
)
from tests.unit.engine.house import House


@pytest.fixture
def words(house: House) -> House:
    house.sql("create table words as select 1 as id, 'one' as s union all select 2, 'two'")
    return house


@pytest.mark.connect
@pytest.mark.parametrize(
    ("query", "kind", "said"),
    [
        pytest.param(
            "select cast(s as int) from words",
            ValueNotCastableError,
            r"\[CAST_INVALID_INPUT\] The value '(one|two)'",
            marks=pytest.mark.connect(gate=True),
        ),
        (
            "select 1 / (id - 1) from words",
            DataRejectedError,
            r"\[DIVIDE_BY_ZERO\] .* \(in `1 / \(id - 1\)`\)\. ",
        ),
        ("select raise_error('no!') from words", DataRejectedError, r"\[USER_RAISED_EXCEPTION\] no! Nothing was"),
        ("select (select id from words)", DataRejectedError, r"\[SCALAR_SUBQUERY_TOO_MANY_ROWS\] More than one row"),
        ("select to_date(s, 'yyyy') from words", DataRejectedError, r"\[CANNOT_PARSE_TIMESTAMP\]"),
        ("select id from words where regexp_like(s, '(')", InvalidStatementError, r"Unclosed group|\.PATTERN\]"),
        ("select format_string('%q', id) from words", InvalidStatementError, r"Conversion = 'q'"),
        ("select id from words group by s", InvalidStatementError, r"\[MISSING_AGGREGATION\] .* Add the columns"),
        ("select w.nope from words w", ColumnNotFoundError, r"\[UNRESOLVED_COLUMN[^(]*$"),
        (
            "select *\nfrom words where id = (select id,\n s from words where id = 1)",
            InvalidStatementError,
            r"must return only one column, but got 2 \(in `\(select id, s from .*words.* where id = 1\)`\)\. ",
        ),
        ("select *\nfrom words where\ncount(*) > 1", InvalidStatementError, r"\[INVALID_WHERE_CONDITION\] "),
        ("select date'2024-99-99'", InvalidStatementError, r"\[INVALID_TYPED_LITERAL\]"),
    ],
)
def test_an_error_while_rows_are_computed_has_a_code_and_sparks_condition_on_one_line(
    words: House, query: str, kind: type[SiltError], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        words.sql(query).collect()
    text = str(caught.value)
    assert type(caught.value) is kind
    assert "\n" not in text and "SQLSTATE" not in text and "@v" not in text and ".." not in text


FAILING = "select id, cast(s as int) as x from words"
METHODS: dict[str, Callable[[DataFrame], Any]] = {
    "first": lambda rows: rows.first(),
    "show": lambda rows: rows.show(),
    "toPandas": lambda rows: rows.toPandas(),
    "toArrow": lambda rows: rows.toArrow(),
    "toLocalIterator": lambda rows: list(rows.toLocalIterator()),
    "filter": lambda rows: rows.filter("x > 0").collect(),
    "[]": lambda rows: rows[rows.x > 0].collect(),
    "groupBy": lambda rows: rows.groupBy("id").agg({"x": "sum"}).collect(),
    "join": lambda rows: rows.join(rows.select("x"), "x").count(),
    "na": lambda rows: rows.na.fill(0).collect(),
    "randomSplit": lambda rows: [part.collect() for part in rows.randomSplit([1.0, 1.0], 1)],
    "write": lambda rows: rows.write.format("noop").mode("overwrite").save(),
}


@pytest.mark.connect
@pytest.mark.filterwarnings("ignore:toPandas attempted")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_rows_raises_that_error(words: House, method: str) -> None:
    with pytest.raises(ValueNotCastableError, match="CAST_INVALID_INPUT"):
        METHODS[method](words.sql(FAILING))


def test_every_way_to_get_rows_raises_that_error(words: House) -> None:
    words.sql("create view failing as " + FAILING)
    warehouse = words.warehouse
    result = warehouse.execute("select * from failing").dataframe
    assert result is not None
    for rows in (
        result,
        warehouse.table("failing"),
        warehouse.query("select * from failing where id > :id", {"id": 0}),
        *warehouse.tables(["failing"]),
    ):
        with pytest.raises(ValueNotCastableError, match="CAST_INVALID_INPUT"):
            rows.collect()


def test_the_rows_are_a_pyspark_dataframe(words: House) -> None:
    rows = words.sql("select * from words order by id")
    assert isinstance(rows, DataFrame)
    assert rows.columns == ["id", "s"] and rows.select("id").collect() == [(1,), (2,)]
    assert [row.s for row in rows.filter(rows.id > 1).toLocalIterator()] == ["two"]
    assert rows.cache() is rows and rows.unpersist() is rows
    words.warehouse.write(rows, "copy")
    assert words.rows("select * from copy") == words.rows("select * from words")


def test_a_wrong_call_of_the_rows_methods_is_an_error_of_python(words: House) -> None:
    rows = words.sql("select * from words")
    with pytest.raises(TypeError):
        rows.select(object()).collect()  # type: ignore[call-overload]
    with pytest.raises(AttributeError):
        _ = rows.there_is_no_such_column
    with pytest.raises(ColumnNotFoundError, match="UNRESOLVED_COLUMN"):
        rows.select("nope").collect()


@pytest.mark.connect
def test_a_mistake_in_the_sql_of_a_method_has_the_remedy_that_it_has_in_a_statement(words: House) -> None:
    rows = words.sql("select * from words")
    with pytest.raises(FunctionNotFoundError, match=r"the function `lenght` does not exist\. Did you mean .*`length`"):
        rows.selectExpr("lenght(s)").collect()
    with pytest.raises(StatementSyntaxError, match=r"PARSE_SYNTAX_ERROR.*in backticks, `x y`"):
        rows.selectExpr('s as "x y"').collect()


@pytest.mark.connect(gate=True)
def test_an_exception_in_a_python_function_is_reported_with_its_line(words: House) -> None:
    words.warehouse.spark.udf.register("of_python", lambda number: 1 // (number - 1), "int")
    with pytest.raises(InvalidStatementError, match=r"(?s)\[PYTHON_EXCEPTION\].*ZeroDivisionError: .*correct the fun"):
        words.sql("select of_python(id) from words").collect()


@pytest.mark.connect
def test_a_missing_file_is_named_with_its_table_and_version_and_without_the_advice_to_refresh(words: House) -> None:
    rows = words.sql("select * from words")
    for file in words.log("words").snapshot().files["path"].to_pylist():
        words.log("words").store.delete(file)
    with pytest.raises(DataFileMissingError, match=r"silt\.main\.words@v0: the data file \S* is missing") as caught:
        rows.filter("id > 0").collect()
    assert "VACUUM" in str(caught.value) and "REFRESH" not in str(caught.value)


def test_a_clone_whose_source_was_vacuumed_reports_it_when_its_rows_are_computed(words: House) -> None:
    words.sql("create table clone shallow clone words")
    words.sql("create or replace table words as select 3 as id, 'three' as s")
    words.sql("set silt.retentionDurationCheck.enabled = false")
    words.sql("vacuum words retain 0 hours")
    with pytest.raises(DataFileMissingError, match=r"silt\.main\.clone@v0: .*clone the source again"):
        words.sql("select * from clone").collect()
