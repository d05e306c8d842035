"""Parts of SQL that may have other values in the next execution, over the same tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.sql.query.rule_texts import DETERMINISTIC, OF_CHANCE, REFUSED
from dbt.adapters.silt.engine.sql.query.unrepeatable import OF_THE_DAY, REPEATABLE, UNREPEATABLE, unrepeatable
from dbt.adapters.silt.engine.sql.tokens import normal_text

WITHOUT_CLASS = {"case"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("select rand() as x", ["rand()"]),
        ("select RAND ( 7 ) as x", ["RAND()".lower()]),
        ("select `uuid`()", ["uuid()"]),
        ("select current_timestamp", ["current_timestamp"]),
        ("select current_timestamp()", ["current_timestamp()"]),
        ("select now(), current_user", ["now()", "current_user"]),
        ("select unix_timestamp()", ["unix_timestamp()"]),
        ("select unix_timestamp(at) from t", []),
        ("select builtin.rand()", ["rand()"]),
        ("select system.builtin.abs(1)", []),
        ("select main.f(1)", ["f()"]),
        ("select my_function(1)", ["my_function()"]),
        ("select '${day}' as x", []),
        ("select timestamp 'now', date '2026-01-01'", ["timestamp 'now'"]),
        ("select timestamp 'yesterday UTC'", ["timestamp 'yesterday UTC'"]),
        ("select * from t tablesample (5 percent)", ["TABLESAMPLE"]),
        ("select transform (a) using 'script.sh' from t", ["a script"]),
        ("select transform(a, x -> x + 1) from t", []),
        ("select _metadata.file_path from t", ["_metadata"]),
        ("select input_file_name() from t", ["input_file_name()"]),
        ("select reflect('java.lang.System', 'nanoTime')", ["reflect()"]),
        ("select identifier('rand')()", ["identifier()"]),
        ("select a, uuid() as (b, c) from t", ["uuid()"]),
        ("select 'rand()' as x -- rand()", []),
        ("select t.user, x as user, user.name from t", []),
        ("with a (x) as (select 1), b (y) as (select 2) select * from a, b", []),
        ("select * from values (1) as t (x), (values (2)) u (y)", []),
        ("select cast(a as decimal(10, 2)), count(*), first(b) over (partition by (c) order by d) from t", []),
        ("select a from t where b in (1) and exists (select 1) or not (c) group by rollup (a) having max(b) > (2)", []),
        ("select * from t lateral view explode(a) x as y join u using (id) pivot (sum(b) for c in (1, 2))", []),
        ("select id from range(3) union all (select 1) except (select 2) order by (id) limit (3)", []),
        (
            "select try_cast(a as int), timestampadd(day, 1, b), timestampdiff(day, b, c), timediff(hour, b, c) from t",
            [],
        ),
        ("select * from t unpivot include nulls (value for name in (a, b))", []),
        ("select case when (a) then (b) else (c) end, interval '1' day, array(1), map(1, 2), struct(1) from t", []),
    ],
)
def test_the_parts_that_may_differ_are_named(text: str, parts: list[str]) -> None:
    assert list(unrepeatable(text).parts) == parts
    assert not unrepeatable(text).depends_on_day


@pytest.mark.parametrize(
    "text", ["select current_date", "select current_date()", "select curdate() as d", "where d = CURRENT_DATE"]
)
def test_the_current_date_is_the_same_for_a_day(text: str) -> None:
    assert unrepeatable(text).parts == ()
    assert unrepeatable(text).depends_on_day


def test_a_call_of_a_warehouses_function_is_judged_by_its_body() -> None:
    text = "select main.f(1), g(2)"
    assert unrepeatable(text, frozenset((text.index("main"), text.index("g(")))).parts == ()


def test_an_unreadable_text_may_differ() -> None:
    assert unrepeatable("select 'open").parts == ("SQL that cannot be read",)


def test_each_function_belongs_to_one_kind() -> None:
    assert not REPEATABLE & UNREPEATABLE
    assert REPEATABLE | UNREPEATABLE | OF_THE_DAY >= DETERMINISTIC | OF_CHANCE | REFUSED


def test_no_function_listed_as_repeatable_is_nondeterministic_in_spark(spark: SparkSession) -> None:
    """Nondeterministic means Spark's classes of such expressions, and of those that it replaces by the statement's own
    time.
    """
    java = spark._jvm.java.lang.Class  # type: ignore[union-attr]
    prefix = "org.apache.spark.sql.catalyst.expressions"
    kinds = [java.forName(f"{prefix}.{name}") for name in ("Nondeterministic", "CurrentTimestampLike")]
    names = {row[0] for row in spark.sql("show system functions").collect()} & REPEATABLE
    wrong = set()
    for name in names:
        described = {row[0] for row in spark.sql(f"describe function `{name}`").collect()}
        found = next((text.partition(": ")[2].strip() for text in described if text.startswith("Class: ")), None)
        assert found is not None or name in WITHOUT_CLASS, name
        if found is not None and any(kind.isAssignableFrom(java.forName(found)) for kind in kinds):
            wrong.add(name)
    assert not wrong


def test_comments_and_white_space_do_not_change_the_normalized_text() -> None:
    text = "select a, -- first\n  /* second */ b\nfrom t"
    assert normal_text(text) == normal_text("select a,b from t")
    assert normal_text(text) != normal_text("select a, B from t")
    assert normal_text("select 'a  b'") != normal_text("select 'a b'")
