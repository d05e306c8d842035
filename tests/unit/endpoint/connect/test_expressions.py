"""Arguments and conditions of clients become SQL with the same meaning, in the places of parameters only."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.connect.proto import relations_pb2 as pr
from pyspark.sql.connect.proto.expressions_pb2 import Expression

from dbt.adapters.silt.endpoint.connect.expressions import bound, sql_of
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError


def literal(**value: Any) -> Expression:
    return Expression(literal=Expression.Literal(**value))


def call(name: str, *arguments: Expression) -> Expression:
    return Expression(unresolved_function=Expression.UnresolvedFunction(function_name=name, arguments=arguments))


def column(name: str) -> Expression:
    return Expression(unresolved_attribute=Expression.UnresolvedAttribute(unparsed_identifier=name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select :a, ':a', `:a`, \":a\" -- :a", "select 1, ':a', `:a`, \":a\" -- :a"),
        ("select v:a, v[0]:a, f(v):a, :a", "select v:a, v[0]:a, f(v):a, 1"),
        ("select :b, ::a, x::a", "select :b, ::a, x::a"),
        ("select '?'", "select '?'"),
    ],
)
def test_a_named_argument_takes_the_places_of_its_parameter_only(text: str, expected: str) -> None:
    assert bound(text, pr.SQL(named_arguments={"a": literal(integer=1)})) == expected


def test_positional_arguments_take_the_places_of_question_marks_in_order() -> None:
    given = pr.SQL(pos_arguments=[literal(string="it's ?"), literal(long=-2)])
    assert bound("select ?, '?', ?", given) == r"select 'it\'s ?', '?', (-2L)"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (literal(boolean=True), "true"),
        (literal(byte=1), "1Y"),
        (literal(binary=b"\x01\xff"), "X'01ff'"),
        (literal(double=1.5), "cast('1.5' as double)"),
        (
            literal(decimal=Expression.Literal.Decimal(value="1.50", precision=5, scale=2)),
            "cast('1.50' as decimal(5, 2))",
        ),
        (literal(date=19000), "date'2022-01-08'"),
        (literal(date=10**7), "date_from_unix_date(10000000)"),
        (literal(timestamp=5), "timestamp_micros(5L)"),
        (literal(timestamp_ntz=1), "timestamp_ntz'1970-01-01 00:00:00.000001'"),
        (call("array", literal(integer=1), literal(string="a")), "array(1, 'a')"),
        (call("and", call("==", column("a"), literal(integer=1)), call("not", column("b"))), "((a == 1) and (not b))"),
        (call("in", column("a"), literal(integer=1), literal(integer=2)), "(a in (1, 2))"),
        (call("when", column("a"), literal(integer=1), literal(integer=2)), "(case when a then 1 else 2 end)"),
        (Expression(expression_string=Expression.ExpressionString(expression="a > 1 -- b")), "(a > 1 -- b\n)"),
        (Expression(cast=Expression.Cast(expr=column("a"), type_str="int")), "cast(a as int)"),
    ],
)
def test_an_expression_is_written_as_sql(expression: Expression, expected: str) -> None:
    assert sql_of(expression) == expected


def test_an_expression_that_has_no_sql_is_refused_by_its_kind() -> None:
    with pytest.raises(UnsupportedStatementError, match="`lambda_function`"):
        sql_of(Expression(lambda_function=Expression.LambdaFunction(function=column("a"))))
