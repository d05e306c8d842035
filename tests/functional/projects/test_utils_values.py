"""The values of dbt's cross-database macros, beyond the cases of dbt's adapter suite."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest
from dbt.adapters.factory import get_adapter_by_type
from dbt.tests.util import run_dbt

JANUARY_31 = "timestamp'2024-01-31 22:59:58'"
MARCH_29 = "date'2026-03-29'"
A_AND_NULL = "values ('b'), ('a'), (null), ('a') as t(x)"


def at(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)  # type: ignore[arg-type]


def dateadd(part: str, interval: int | str, start: str = JANUARY_31) -> tuple[str, dict[str, Any]]:
    return "dateadd", {"datepart": part, "interval": interval, "from_date_or_timestamp": start}


def datediff(part: str, first: str, second: str) -> tuple[str, dict[str, Any]]:
    return "datediff", {"first_date": first, "second_date": second, "datepart": part}


VALUES: list[tuple[tuple[str, dict[str, Any]], Any]] = [
    (dateadd("year", 1), at(2025, 1, 31, 22, 59, 58)),
    (dateadd("quarter", 1), at(2024, 4, 30, 22, 59, 58)),
    (dateadd("month", 1), at(2024, 2, 29, 22, 59, 58)),
    (dateadd("week", -1), at(2024, 1, 24, 22, 59, 58)),
    (dateadd("day", 1), at(2024, 2, 1, 22, 59, 58)),
    (dateadd("hour", 2), at(2024, 2, 1, 0, 59, 58)),
    (dateadd("minute", -60), at(2024, 1, 31, 21, 59, 58)),
    (dateadd("second", "1 + 1"), at(2024, 1, 31, 23)),
    (dateadd("millisecond", 5), at(2024, 1, 31, 22, 59, 58, 5000)),
    (dateadd("microsecond", 5), at(2024, 1, 31, 22, 59, 58, 5)),
    (dateadd("day", 1, "'2024-02-28'"), at(2024, 2, 29)),
    (dateadd("day", 1, "cast(null as date)"), None),
    (datediff("year", "date'2023-12-31'", "date'2024-01-01'"), 1),
    (datediff("quarter", "date'2024-05-01'", "date'2023-12-31'"), -2),
    (datediff("month", "date'2024-01-31'", "date'2024-02-01'"), 1),
    (datediff("week", "date'2024-01-06'", "date'2024-01-07'"), 1),
    (datediff("week", "date'2024-01-07'", "date'2024-01-06'"), -1),
    (datediff("day", "timestamp'2024-01-01 23:59:59'", "timestamp'2024-01-02 00:00:00'"), 1),
    (datediff("day", "'2024-01-02'", "'2024-01-01'"), -1),
    (datediff("hour", "timestamp'2024-01-01 00:59:59'", "timestamp'2024-01-01 01:00:00'"), 1),
    (datediff("minute", "timestamp'2024-01-01 00:01:00'", "timestamp'2024-01-01 00:00:59'"), -1),
    (datediff("second", "timestamp'2024-01-01 00:00:00.9'", "timestamp'2024-01-01 00:00:01'"), 1),
    (datediff("millisecond", "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-01 00:00:01'"), 1000),
    (datediff("microsecond", "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-01 00:00:00.5'"), 500000),
    (datediff("day", "cast(null as date)", MARCH_29), None),
    (("date_trunc", {"datepart": "week", "date": MARCH_29}), at(2026, 3, 23)),
    (("date_trunc", {"datepart": "quarter", "date": "timestamp'2026-05-05 10:00:00'"}), at(2026, 4, 1)),
    (("last_day", {"date": "date'2024-02-10'", "datepart": "month"}), datetime.date(2024, 2, 29)),
    (("last_day", {"date": "date'2024-02-10'", "datepart": "quarter"}), datetime.date(2024, 3, 31)),
    (("last_day", {"date": "timestamp'2024-02-10 10:00:00'", "datepart": "year"}), datetime.date(2024, 12, 31)),
    (("date", {"year": 2024, "month": 2, "day": 9}), datetime.date(2024, 2, 9)),
    (("safe_cast", {"field": "'x'", "type": "int"}), None),
    (("safe_cast", {"field": "'99999999999'", "type": "int"}), None),
    (("safe_cast", {"field": "'2024-02-30'", "type": "date"}), None),
    (("safe_cast", {"field": "'1.239'", "type": "decimal(3, 2)"}), Decimal("1.24")),
    (("safe_cast", {"field": "'12345'", "type": "decimal(3, 2)"}), None),
    (("safe_cast", {"field": "'[1, null]'", "type": "array<int>"}), [1, None]),
    (("safe_cast", {"field": ["2024-02-09 10:00:00"], "type": "array<timestamp>"}), [at(2024, 2, 9, 10)]),
    (("safe_cast", {"field": {"a": 1.5}, "type": "struct<a: decimal(4, 2)>"}), {"a": Decimal("1.50")}),
    (("safe_cast", {"field": "'map(1, \\'it\\\\\\'s\\')'", "type": "map<int, string>"}), [(1, "it's")]),
    (("safe_cast", {"field": "'{\"a\": [1]}'", "type": "variant"}), '{"a":[1]}'),
    (("cast_bool_to_text", {"field": "1 = 1"}), "true"),
    (("concat", {"fields": ["'a'", "'b'", "'c'"]}), "abc"),
    (("hash", {"field": "cast(null as string)"}), None),
    (("hash", {"field": "1"}), "c4ca4238a0b923820dcc509a6f75849b"),
    (("length", {"expression": "'é🎉'"}), 2),
    (("position", {"substring_text": "'c'", "string_text": "'abc'"}), 3),
    (("position", {"substring_text": "'z'", "string_text": "'abc'"}), 0),
    (("replace", {"field": "'a.b.c'", "old_chars": "'.'", "new_chars": "'\\\\'"}), "a\\b\\c"),
    (("right", {"string_text": "'abc'", "length_expression": 0}), ""),
    (("right", {"string_text": "'abc'", "length_expression": 9}), "abc"),
    (("split_part", {"string_text": "'a.b.c'", "delimiter_text": "'.'", "part_number": -1}), "c"),
    (("split_part", {"string_text": "'a|b'", "delimiter_text": "'|'", "part_number": 3}), ""),
    (("array_append", {"array": "array(1)", "new_element": 2}), [1, 2]),
    (("array_concat", {"array_1": "array(1)", "array_2": "cast(null as array<int>)"}), None),
    (("array_construct", {"inputs": [], "data_type": "string"}), []),
    (("array_construct", {"inputs": ["'a'", "null"], "data_type": "string"}), ["a", None]),
]

AGGREGATES: list[tuple[tuple[str, dict[str, Any]], str, Any]] = [
    (("listagg", {"measure": "x", "delimiter_text": "'|'", "order_by_clause": "order by x"}), A_AND_NULL, "a|a|b"),
    (("listagg", {"measure": "distinct x", "order_by_clause": "order by x desc"}), A_AND_NULL, "b,a"),
    (("listagg", {"measure": "x", "order_by_clause": "order by x", "limit_num": 2}), A_AND_NULL, "a,a"),
    (("listagg", {"measure": "x", "order_by_clause": "order by x", "limit_num": 1}), "values ('a,b') as t(x)", "a,b"),
    (("listagg", {"measure": "x", "order_by_clause": "order by x"}), "values (2), (1) as t(x)", "1,2"),
    (("listagg", {"measure": "x"}), "values (cast(null as string)) as t(x)", None),
    (("bool_or", {"expression": "x = 'a'"}), A_AND_NULL, True),
    (("bool_or", {"expression": "x = 'z'"}), A_AND_NULL, False),
    (("any_value", {"expression": "x"}), "values (7) as t(x)", 7),
]

TEXTS = ["", "it's", "'", "back\\slash", "\\", "\\'", 'say "x"', "line\nbreak", "%_{{ }}", "日本 🎉", "\\u0041"]


class TestValues:
    @pytest.fixture(scope="class")
    def render(self, project: Any) -> Any:
        """Renders a macro of dbt's as a project does."""
        manifest = run_dbt(["parse"])
        adapter = get_adapter_by_type("silt")

        def rendered(macro: str, arguments: dict[str, Any]) -> str:
            return str(adapter.execute_macro(macro, manifest, "dbt", kwargs=arguments)).strip()

        return rendered

    @pytest.fixture(scope="class")
    def value_of(self, project: Any) -> Any:
        """Returns the value of a query with one row and one column."""

        def value(query: str) -> Any:
            literally = query.replace("{", "{{").replace("}", "}}")  # `run_sql` formats its argument
            [(found,)] = project.run_sql(literally, fetch="all")
            return found

        return value

    def test_each_macro_has_its_expected_value(self, render: Any, value_of: Any) -> None:
        rendered = [(render(*call), expected) for call, expected in VALUES]
        found = [(text, value_of(f"select {text}")) for text, _ in rendered]
        assert [pair for pair in zip(found, rendered, strict=True) if pair[0] != pair[1]] == []

    def test_each_aggregate_has_its_expected_value(self, render: Any, value_of: Any) -> None:
        rendered = [(render(*call), rows, expected) for call, rows, expected in AGGREGATES]
        found = [(text, rows, value_of(f"select {text} from ({rows})")) for text, rows, _ in rendered]
        assert [pair for pair in zip(found, rendered, strict=True) if pair[0] != pair[1]] == []

    def test_any_escaped_text_can_be_written_as_a_string_literal(self, render: Any, value_of: Any) -> None:
        for text in TEXTS:
            literal = render("string_literal", {"value": render("escape_single_quotes", {"expression": text})})
            assert value_of(f"select {literal}") == text, literal

    def test_a_long_series_of_integers_is_generated(self, render: Any, project: Any) -> None:
        series = render("generate_series", {"upper_bound": 10_001})
        query = f"select count(*), min(n), max(n), max(typeof(n)) from (select generated_number as n from ({series}))"
        assert project.run_sql(query, fetch="one") == (10_001, 1, 10_001, "int")

    def test_a_date_spine_contains_every_period_except_its_end(self, render: Any, project: Any) -> None:
        arguments = {"datepart": "month", "start_date": "date'2020-01-01'", "end_date": "date'2020-05-01'"}
        with get_adapter_by_type("silt").connection_named("spine"):
            spine = render("date_spine", arguments)
        assert project.run_sql(f"select date_month from ({spine}) order by 1", fetch="all") == [
            (at(2020, month, 1),) for month in range(1, 5)
        ]

    def test_except_and_intersect_compare_rows_as_sets(self, render: Any, value_of: Any) -> None:
        first, second = "select explode(array(1, 1, 2, null)) as n", "select explode(array(2, null)) as n"
        query = "select array_sort(collect_list(n)) from ({} {} {})"
        assert value_of(query.format(first, render("except", {}), second)) == [1]
        assert value_of(f"select count(*) from ({first} {render('intersect', {})} {second})") == 2

    def test_the_time_macros_return_the_current_time(self, render: Any, value_of: Any) -> None:
        for macro in ("current_timestamp", "snapshot_get_time", "current_timestamp_in_utc_backcompat"):
            found = value_of(f"select {render(macro, {})}")
            now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
            assert abs(found - now) < datetime.timedelta(minutes=5), macro
