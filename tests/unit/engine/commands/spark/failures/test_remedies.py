"""The remedies for statements that Spark refuses, from the messages and parameters of Spark 4.1."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dbt.adapters.silt.engine.commands.spark.failures.causes import Cause
from dbt.adapters.silt.engine.commands.spark.failures.conditions import remedy_of
from dbt.adapters.silt.engine.commands.spark.failures.texts import quoted_sql
from dbt.adapters.silt.engine.sql.portable_types import type_remedy

_SYNTAX = """
[PARSE_SYNTAX_ERROR] Syntax error at or near 'AS'. SQLSTATE: 42601 (line 2, pos 17)

== SQL ==
select id,
  from `orders@v0` AS `orders`
-----------------^^^
where id > 1
"""


def _cause(condition: str, parameters: Mapping[str, object], message: str = "") -> Cause:
    return Cause(message, message, condition, parameters=parameters, sql=quoted_sql(message))


@pytest.mark.parametrize(
    ("condition", "parameters", "said"),
    [
        ("UNSUPPORTED_DATATYPE", {"typeName": '"NUMBER(10,2)"'}, "In Spark, the type is `decimal(10, 2)`"),
        (
            "TABLE_OR_VIEW_NOT_FOUND",
            {"relationName": "`public`.`orders`"},
            "The warehouse has no schema `public`: check the name, or read a model or a source",
        ),
        ("DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION", {"precision": "40"}, type_remedy("decimal(40)")),
        ("UNSUPPORTED_TIME_TYPE", {}, "In Spark, the type is `string`"),
        (
            "UNSUPPORTED_DATATYPE",
            {"typeName": '"OBJECT"'},
            "In Spark, the type is `map<string, string>`, `struct<name: type, ...>` or `variant`",
        ),
        (
            "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
            {"functionName": "`datediff`"},
            "Write the unit without quotes, as in `datediff(day, start, end)`",
        ),
        ("DATATYPE_MISSING_SIZE", {"type": '"VARCHAR"'}, "In Spark, the type is `string`"),
        (
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            {"functionName": "`to_varchar`", "expectedNum": "2", "actualNum": "1"},
            "In Spark, write cast(x as string); `to_varchar` needs a format",
        ),
        (
            "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN",
            {"c": "Y"},
            "Spark's patterns are those of Java, as in 'yyyy-MM-dd HH:mm:ss'",
        ),
        (
            "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
            {"functionName": "`dateadd`"},
            "Write the unit without quotes, as in `dateadd(day, 1, t)`",
        ),
        (
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            {"functionName": "`isnull`", "expectedNum": "1", "actualNum": "2"},
            "In Spark, write coalesce(a, b)",
        ),
        (
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            {"functionName": "`regexp_substr`", "expectedNum": "2", "actualNum": "6"},
            "In Spark, write regexp_extract(text, pattern, group)",
        ),
        ("INVALID_EXTRACT_FIELD", {"field": "`epoch`", "expr": '"ts"'}, "In Spark, write unix_timestamp(t)"),
        ("INVALID_EXTRACT_FIELD", {"field": "`date`", "expr": '"ts"'}, "In Spark, write to_date(t)"),
        (
            "INVALID_TYPED_LITERAL",
            {"valueType": '"TIMESTAMP"', "value": "'2026-01-01 00:00:00 PDT'"},
            "Write the zone as a name or an offset, such as `America/Los_Angeles` or `-08:00`",
        ),
        (
            "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
            {"sqlExpr": '"(a + name)"', "actualDataType": '"STRING"'},
            "To join texts, write `a || b`",
        ),
        (
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            {"sqlExpr": '"(ts + 1)"', "left": '"TIMESTAMP"', "right": '"INT"'},
            "Write `t + interval 1 day`",
        ),
        (
            "COLUMN_IS_NOT_VARIANT_TYPE",
            {},
            "For JSON in a string, write `get_json_object(x, '$.name')` or `parse_json(x):name`",
        ),
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`days`"},
            "Check the column's name; if `days` is a unit of time, write `date_trunc('day', t)` or "
            "`datediff(day, start, end)`",
        ),
        (
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            {"sqlExpr": "\"date_add(d, INTERVAL '1' DAY)\"", "inputType": '"INTERVAL DAY"'},
            "In Spark, write `d + interval 1 day`",
        ),
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`month`"},
            "Check the column's name; if `month` is a unit of time, write `date_trunc('month', t)` or "
            "`datediff(month, start, end)`",
        ),
    ],
)
def test_a_mistake_has_a_remedy(condition: str, parameters: Mapping[str, object], said: str) -> None:
    assert remedy_of(_cause(condition, parameters)) == said


@pytest.mark.parametrize(
    ("condition", "parameters"),
    [
        ("UNSUPPORTED_DATATYPE", {"typeName": '"BLUB"'}),
        ("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", {"functionName": "`to_varchar`", "actualNum": "3"}),
        ("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", {"functionName": "`if`", "actualNum": "1"}),
        ("INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME", {}),
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", {"objectName": "`o`.`idd`"}),
        ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", {"sqlExpr": '"date_add(d, x)"', "inputType": '"STRING"'}),
        ("DIVIDE_BY_ZERO", {}),
        ("INVALID_EXTRACT_FIELD", {"field": "`blub`"}),
        ("INVALID_TYPED_LITERAL", {"value": "'2026-01-01 25:00:00'"}),
        ("DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE", {"sqlExpr": '"(a * name)"', "actualDataType": '"STRING"'}),
    ],
)
def test_any_other_failure_has_no_remedy_of_its_own(condition: str, parameters: Mapping[str, object]) -> None:
    assert remedy_of(_cause(condition, parameters)) is None


def test_the_comma_before_from_is_found_in_the_sql_that_the_parser_quotes() -> None:
    assert quoted_sql(_SYNTAX) == "select id,\n  from `orders@v0` AS `orders`\nwhere id > 1"
    found = remedy_of(_cause("PARSE_SYNTAX_ERROR", {}, _SYNTAX))
    assert found == "Remove the comma before `from`, or add the missing words after it"


def test_a_message_without_sql_has_no_remedy() -> None:
    assert remedy_of(_cause("PARSE_SYNTAX_ERROR", {}, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'AS'.")) is None
