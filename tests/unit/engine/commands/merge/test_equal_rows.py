"""SKIP EQUAL ROWS: which values count as equal, and that equal rows are neither rewritten nor recorded."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge.equal_rows import same
from dbt.adapters.silt.engine.commands.reading import change_feed
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.spark.types import kernel_schema
from dbt.adapters.silt.engine.kernel.errors import MultipleSourceRowsError, ValueNotCastableError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan.change_feed import changes_after
from dbt.adapters.silt.engine.sql.ast import DeleteRow, MatchKind, MergeClause
from tests.unit.engine.commands.merge.merging import BY_ID, STEP_BY_STEP, UPSERT, merge, plan, sets
from tests.unit.engine.commands.spark_tables import VECTORS, Row, Tables, in_order

FEED = {"delta.enableChangeDataFeed": "true"}
KINDS = pytest.mark.parametrize("tables", [{}, VECTORS, FEED], ids=["plain", "vectors", "feed"], indirect=True)
EQUAL = plan("t.id <=> s.id", *UPSERT, keys=BY_ID, skips_equal_rows=True)
ROWS = "select * from values (1, 'a'), (2, 'b'), (null, null) as x(id, name)"


def changes(tables: Tables, log: DeltaLog, after: int) -> list[Row]:
    end = log.snapshot()
    found = change_feed.read(tables.spark, log, end, changes_after(log, after, end).versions)
    return in_order([tuple(row) for row in found.select("id", "name", "_change_type").collect()])


@KINDS
@pytest.mark.parametrize("limits", [Limits(), STEP_BY_STEP], ids=["at once", "step by step"])
def test_only_rows_that_differ_are_written(tables: Tables, limits: Limits) -> None:
    log = tables.made(ROWS)
    source = "select * from values (1, 'a'), (2, 'B'), (3, 'c'), (null, null) as x(id, name)"
    outcome = merge(tables, log, source, EQUAL, limits=limits)
    assert (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted) == (1, 1, 0)
    assert tables.rows(log) == [(1, "a"), (2, "B"), (3, "c"), (None, None)]
    if tables.properties == FEED:
        assert changes(tables, log, 0) == [
            (2, "B", "update_postimage"),
            (2, "b", "update_preimage"),
            (3, "c", "insert"),
        ]


@KINDS
@pytest.mark.parametrize("limits", [Limits(), STEP_BY_STEP], ids=["at once", "step by step"])
def test_a_file_of_which_only_equal_rows_match_is_kept(tables: Tables, limits: Limits) -> None:
    log = tables.made("select 1 id, 'a' name")
    tables.append(log, "select 2 id, 'b' name")
    kept = {add.path for add in log.snapshot().add_files() if '"id":1' in str(add.stats)}
    outcome = merge(tables, log, "select * from values (1, 'a'), (2, 'B') as x(id, name)", EQUAL, limits=limits)
    assert (outcome.rows_updated, outcome.files_removed, outcome.files_added) == (1, 1, 1)
    assert len(kept) == 1 and kept < {add.path for add in log.snapshot().add_files()}


@KINDS
def test_a_merge_of_equal_rows_only_changes_nothing(tables: Tables) -> None:
    log = tables.made(ROWS)
    before = tables.data_files(log)
    delete = MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, DeleteRow())
    whole = plan("t.id <=> s.id", *UPSERT, delete, skips_equal_rows=True)
    for each in (EQUAL, whole):
        outcome = merge(tables, log, ROWS, each)
        assert (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted) == (0, 0, 0)
    assert log.snapshot().version == 0
    assert tables.data_files(log) == before


@KINDS
def test_updates_of_single_columns_and_of_unmatched_rows_are_skipped_if_they_change_nothing(tables: Tables) -> None:
    log = tables.made("select id, name, id n from values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'x') as x(id, name)")
    clauses = (
        MergeClause(MatchKind.MATCHED, sets(name="'a'"), "s.name = 'first'"),
        MergeClause(MatchKind.MATCHED, sets(name="s.name", n="t.n")),
        MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, sets(name="'x'")),
    )
    source = "select * from values (1, 'first'), (2, 'b') as x(id, name)"
    outcome = merge(tables, log, source, plan("t.id = s.id", *clauses, keys=BY_ID, skips_equal_rows=True))
    assert outcome.rows_updated == 1
    assert tables.rows(log) == [(1, "a", 1), (2, "b", 2), (3, "x", 3), (4, "x", 4)]


def test_two_source_rows_for_a_row_of_the_table_are_refused_although_they_equal_it(tables: Tables) -> None:
    log = tables.made(ROWS)
    for second in ("b", "c"):
        with pytest.raises(MultipleSourceRowsError):
            merge(tables, log, f"select * from values (2, 'b'), (2, '{second}') as x(id, name)", EQUAL)
    assert log.snapshot().version == 0


def test_a_value_that_its_column_cannot_hold_is_refused_although_null_would_equal_the_row(tables: Tables) -> None:
    log = tables.made("select 1 id, cast(null as tinyint) small")
    with pytest.raises(ValueNotCastableError):
        merge(tables, log, "select 1 id, 1000 small", EQUAL)


def test_a_new_column_makes_rows_with_a_value_differ(tables: Tables) -> None:
    log = tables.made("select * from values (1, 'a'), (2, 'b') as x(id, name)")
    evolving = plan("t.id = s.id", *UPSERT, keys=BY_ID, skips_equal_rows=True, schema_evolution=True)
    outcome = merge(tables, log, "select * from values (1, 'a', 7), (2, 'b', null) as x(id, name, more)", evolving)
    assert outcome.rows_updated == 1
    assert tables.rows(log) == [(1, "a", 7), (2, "b", None)]


SAME = (
    "null and null",
    "double('NaN') and double('NaN')",
    "-0.0D and -0.0D",
    "array(1.5D, null) and array(1.5D, null)",
    "array('a', null) and array('a', null)",
    "named_struct('a', null) and named_struct('a', null)",
    "map('a', 1, 'b', null) and map('b', null, 'a', 1)",
    "map('a', array(0.0D)) and map('a', array(0.0D))",
    "map(named_struct('k', 1), map('x', 2)) and map(named_struct('k', 1), map('x', 2))",
    "array(map(1, 'a')) and array(map(1, 'a'))",
    "x'00' and x'00'",
    "timestamp'2024-01-01' and timestamp'2024-01-01'",
    "1.50BD and 1.50BD",
)
DIFFERENT = (
    "null and 1",
    "0.0D and -0.0D",
    "0.0F and -0.0F",
    "double('NaN') and 1.0D",
    "'a' and 'a '",
    "'a' and 'A'",
    "array(0.0D) and array(-0.0D)",
    "array(1, null) and array(1)",
    "array(1, 2) and array(2, 1)",
    "array() and null",
    "named_struct('a', cast(null as int)) and null",
    "named_struct('a', 0.0D) and named_struct('a', -0.0D)",
    "map('a', 1) and map('a', 1, 'b', 2)",
    "map('a', 1) and map('a', null)",
    "map('a', 1, 'b', 2) and map('a', 1, 'c', 2)",
    "map('a', 0.0D) and map('a', -0.0D)",
    "map() and null",
    "parse_json('1') and parse_json('1')",
)


def test_values_are_the_same_if_no_query_can_tell_them_apart(tables: Tables) -> None:
    pairs = [(text, text in SAME) for text in (*SAME, *DIFFERENT)]
    for text, expected in pairs:
        one, other = text.split(" and ")
        both = tables.spark.sql(f"select array({one}, {other}) both").selectExpr("both[0] one", "both[1] other")
        (member, _) = kernel_schema(both.schema)
        for left, right in (("one", "other"), ("other", "one")):
            found = both.select(same(F.col(left), F.col(right), member.type).alias("found")).first()
            assert found is not None and found["found"] is expected, text
