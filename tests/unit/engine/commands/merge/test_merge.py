"""MERGE: clauses, changed rows, files opened, and conflicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge import join
from dbt.adapters.silt.engine.commands.merge.clauses import IN_SOURCE, IN_TARGET
from dbt.adapters.silt.engine.commands.merge.join import SOURCE_ROW, Matched
from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality
from dbt.adapters.silt.engine.commands.merge.source import stabilise
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    ConcurrentModificationError,
    InvalidNameError,
    InvalidStatementError,
    MultipleSourceRowsError,
    NotNullViolationError,
    TypeMismatchError,
    ValueNotCastableError,
)
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import (
    Assignment,
    ColumnDefinition,
    DeleteRow,
    InsertAll,
    InsertValues,
    MatchKind,
    MergeClause,
    UpdateAll,
    UpdateSet,
)
from tests.unit.engine.commands.merge.merging import (
    BY_ID,
    JOINED_WHOLE,
    STEP_BY_STEP,
    UPSERT,
    inserts,
    merge,
    plan,
    sets,
)
from tests.unit.engine.commands.spark_tables import BOTH_KINDS, VECTORS, Tables

ROWS = "select * from values (1, 'a'), (2, 'b'), (null, 'n') as x(id, name)"
NEW = "select * from values (2, 'B'), (3, 'C'), (null, 'N') as x(id, name)"
_OF_WAYS = {
    "at once": ({}, Limits()),
    "step by step": ({}, STEP_BY_STEP),
    "joined whole": ({}, JOINED_WHOLE),
    "marked": (VECTORS, Limits()),
}


def ways(*tested: str) -> pytest.MarkDecorator:
    """Runs a test in each way that a merge is carried out; all but the ways that are `tested` are marked long."""
    cases = [
        pytest.param(*case, id=way, marks=[] if way in tested else pytest.mark.long) for way, case in _OF_WAYS.items()
    ]
    return pytest.mark.parametrize(("tables", "limits"), cases, indirect=["tables"])


EVERY_WAY = ways(*_OF_WAYS)


@EVERY_WAY
def test_update_and_insert_by_star(tables: Tables, limits: Limits) -> None:
    log = tables.made(ROWS)
    outcome = merge(tables, log, NEW, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=limits)
    assert tables.rows(log) == [(1, "a"), (2, "B"), (3, "C"), (None, "N"), (None, "n")]
    assert (outcome.rows_updated, outcome.rows_inserted, outcome.rows_deleted) == (1, 2, 0)
    info = tables.last_commit(log)
    assert info.operation == "MERGE" and info.is_blind_append is False
    assert info.operation_parameters == {
        "predicate": '["t.id = s.id"]',
        "matchedPredicates": '[{"actionType":"update"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    metrics = info.operation_metrics or {}
    assert metrics["numTargetRowsInserted"] == "2" and metrics["numTargetRowsMatchedUpdated"] == "1"
    assert int(metrics["numTargetRowsCopied"]) + 3 == int(metrics["numOutputRows"])
    if limits is STEP_BY_STEP:
        assert metrics["numSourceRows"] == "3"


@BOTH_KINDS
def test_the_first_clause_whose_condition_is_true_is_applied(tables: Tables) -> None:
    log = tables.made("select id, 'old' name from range(4)")
    clauses = (
        MergeClause(MatchKind.MATCHED, DeleteRow(), "s.id = 0"),
        MergeClause(MatchKind.MATCHED, sets(name="s.name"), "s.id <= 1 -- and 0 too"),
        MergeClause(MatchKind.NOT_MATCHED, inserts(ID="s.id"), "s.name is null"),
        MergeClause(MatchKind.NOT_MATCHED, InsertAll()),
        MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, DeleteRow(), "t.id = 3"),
    )
    source = "select * from values (0L, 'x'), (1L, 'x'), (2L, 'x'), (7L, null), (8L, 'x') as v(id, name)"
    outcome = merge(tables, log, source, plan("t.id = s.id", *clauses))
    assert tables.rows(log) == [(1, "x"), (2, "old"), (7, None), (8, "x")]
    assert (outcome.rows_updated, outcome.rows_inserted, outcome.rows_deleted) == (1, 2, 2)
    metrics = tables.last_commit(log).operation_metrics or {}
    assert metrics["numTargetRowsMatchedDeleted"] == metrics["numTargetRowsNotMatchedBySourceDeleted"] == "1"
    described = json.loads(tables.last_commit(log).operation_parameters["matchedPredicates"])
    assert described[0] == {"predicate": "s.id = 0", "actionType": "delete"}


@ways("step by step")
def test_two_source_rows_for_one_target_row_are_refused_with_an_example_and_no_file_is_left(
    tables: Tables, limits: Limits
) -> None:
    log = tables.made(ROWS)
    files = tables.data_files(log)
    source = "select * from values (2, 'x'), (2, 'y'), (9, 'z') as x(id, name)"
    with pytest.raises(MultipleSourceRowsError, match=r'main\.orders: 1 row of the table is .*\{"id":"2"\} by 2'):
        merge(tables, log, source, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=limits)
    assert log.snapshot().version == 0 and tables.data_files(log) == files


@ways("joined whole")
def test_target_rows_with_several_matches_may_be_deleted_or_kept(tables: Tables, limits: Limits) -> None:
    twice = "select * from values (2, 'x'), (2, 'y'), (9, 'z'), (9, 'z') as x(id, name)"
    deleted, kept, unseen = tables.made(ROWS, "deleted"), tables.made(ROWS, "kept"), tables.made(ROWS, "unseen")
    delete, insert = MergeClause(MatchKind.MATCHED, DeleteRow()), MergeClause(MatchKind.NOT_MATCHED, InsertAll())
    outcome = merge(tables, deleted, twice, plan("t.id = s.id", delete, insert), limits=limits)
    assert tables.rows(deleted) == [(1, "a"), (9, "z"), (9, "z"), (None, "n")]
    assert (outcome.rows_deleted, outcome.rows_inserted) == (1, 2)
    never = MergeClause(MatchKind.MATCHED, UpdateAll(), "s.name > 'zz'")
    merge(tables, kept, twice, plan("t.id = s.id", never, insert), limits=limits)
    assert tables.rows(kept) == [(1, "a"), (2, "b"), (9, "z"), (9, "z"), (None, "n")]
    by_source = MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, sets(name="upper(name)"))
    merge(tables, unseen, twice, plan("t.id = s.id", by_source), limits=limits)
    assert tables.rows(unseen) == [(1, "A"), (2, "b"), (None, "N")]


_THRICE = "select * from values (2, 'x'), (2, 'y'), (2, 'z'), (9, 'w') as x(id, name)"


@EVERY_WAY
@pytest.mark.parametrize(
    "changes", [pytest.param("false", marks=pytest.mark.long), "true"], ids=["no feed", "change feed"]
)
def test_a_target_row_with_many_matches_is_changed_by_the_only_source_row_that_a_clause_applies_to(
    tables: Tables, limits: Limits, changes: str
) -> None:
    log = tables.made(ROWS, properties=tables.properties | {"delta.enableChangeDataFeed": changes})  # type: ignore[operator]
    clauses = (
        MergeClause(MatchKind.MATCHED, DeleteRow(), "s.name = 'nobody'"),
        MergeClause(MatchKind.MATCHED, UpdateAll(), "s.name = 'y'"),
        MergeClause(MatchKind.NOT_MATCHED, InsertAll()),
        MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, sets(name="upper(name)")),
    )
    outcome = merge(tables, log, _THRICE, plan("t.id = s.id", *clauses, keys=BY_ID), limits=limits)
    assert tables.rows(log) == [(1, "A"), (2, "y"), (9, "w"), (None, "N")]
    assert (outcome.rows_updated, outcome.rows_inserted, outcome.rows_deleted) == (3, 1, 0)
    again = (MergeClause(MatchKind.MATCHED, DeleteRow(), "s.name = 'x'"),)
    outcome = merge(tables, log, _THRICE, plan("t.id = s.id", *again, keys=BY_ID), limits=limits)
    assert tables.rows(log) == [(1, "A"), (9, "w"), (None, "N")]
    assert outcome.rows_deleted == 1


@ways("at once", "marked")
def test_two_applicable_source_rows_are_refused_in_every_combination_of_clauses(tables: Tables, limits: Limits) -> None:
    log = tables.made(ROWS)
    update = MergeClause(MatchKind.MATCHED, UpdateAll(), "s.name = 'x'")
    delete = MergeClause(MatchKind.MATCHED, DeleteRow(), "s.name = 'z'")
    deletes = MergeClause(MatchKind.MATCHED, DeleteRow(), "s.name <> 'x'")
    for clauses in ((update, delete), (deletes,)):
        with pytest.raises(MultipleSourceRowsError, match=r'\{"id":"2"\} by 2 of them'):
            merge(tables, log, _THRICE, plan("t.id = s.id", *clauses, keys=BY_ID), limits=limits)
    assert log.snapshot().version == 0


@ways("step by step")
def test_an_insert_only_merge_rewrites_no_file(tables: Tables, limits: Limits) -> None:
    log = tables.made("select id, 'a' name from range(0, 4, 1, 1)")
    before = {add.path for add in log.snapshot().add_files()}
    insert = MergeClause(MatchKind.NOT_MATCHED, InsertAll(), "name <> 'no'")
    source = "select * from values (3L, 'b'), (4L, 'b'), (5L, 'no'), (null, 'b') as x(id, name)"
    outcome = merge(tables, log, source, plan("t.id = s.id", insert, keys=BY_ID), limits=limits)
    assert (outcome.rows_inserted, outcome.files_removed) == (2, 0)
    assert before < {add.path for add in log.snapshot().add_files()}
    assert tables.rows(log)[-2:] == [(4, "b"), (None, "b")]


def test_files_outside_the_range_of_the_keys_are_not_changed(tables: Tables) -> None:
    log = tables.made("select id, 'a' name from range(0, 100, 1, 1)")
    tables.append(log, "select id, 'a' name from range(100, 200, 1, 1)")
    source = "select id, 'b' name from range(150, 250)"
    outcome = merge(tables, log, source, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=STEP_BY_STEP)
    assert (outcome.rows_updated, outcome.rows_inserted) == (50, 50)
    assert (outcome.files_removed, outcome.files_skipped) == (1, 1)


@pytest.mark.parametrize(
    "kind", ["date", "timestamp", "timestamp_ntz", "decimal(9,2)", "string", "double", "smallint", "boolean"]
)
def test_keys_of_every_type_match_their_rows_while_other_files_are_skipped(tables: Tables, kind: str) -> None:
    values = {
        "date": ("'1500-01-01'", "'2024-02-29'"),
        "timestamp": ("'1899-12-31 23:59:59.999999'", "'2024-11-03 01:30:00.000001'"),
        "timestamp_ntz": ("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"),
        "decimal(9,2)": ("-1.10", "1234567.89"),
        "string": ("''", "'zürich \U0001f600'"),
        "double": ("cast('NaN' as double)", "-0.0D"),
        "smallint": ("-32768", "32767"),
        "boolean": ("false", "true"),
    }[kind]
    log = tables.made(f"select cast({values[0]} as {kind}) id, 1 n")
    tables.append(log, f"select cast({values[1]} as {kind}) id, 1 n")
    source = f"select cast({values[1]} as {kind}) id, 2 n"
    outcome = merge(tables, log, source, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=STEP_BY_STEP)
    assert (outcome.rows_updated, outcome.rows_inserted, outcome.files_removed) == (1, 0, 1)
    assert tables.read(log).filter("n = 2").count() == 1


def test_a_key_compared_after_a_conversion_skips_no_file(tables: Tables) -> None:
    log = tables.made("select '07' id, 'a' name")
    keys = (KeyEquality(Column.of("id"), "s.id"),)
    outcome = merge(tables, log, "select 7 id, 'b' name", plan("t.id = s.id", *UPSERT, keys=keys), limits=STEP_BY_STEP)
    assert outcome.rows_updated == 1


@ways("marked")
def test_null_safe_and_composite_keys_match(tables: Tables, limits: Limits) -> None:
    log = tables.made("select * from values (1, 'x', 0), (1, null, 0), (null, 'x', 0) as v(a, b, n)")
    keys = (KeyEquality(Column.of("a"), "s.a"), KeyEquality(Column.of("b"), "s.b", null_safe=True))
    source = "select * from values (1, null, 5), (null, 'x', 6) as v(a, b, n)"
    merge(tables, log, source, plan("t.a = s.a and t.b <=> s.b", *UPSERT, keys=keys), limits=limits)
    assert tables.rows(log) == [(1, "x", 0), (1, None, 5), (None, "x", 0), (None, "x", 6)]


@ways("joined whole")
def test_empty_sources_and_empty_targets_are_merged(tables: Tables, limits: Limits) -> None:
    log = tables.made("select 1 id, 'a' name where false")
    nothing = "select 1 id, 'a' name where false"
    statement = plan("t.id = s.id", *UPSERT, keys=BY_ID)
    assert merge(tables, log, nothing, statement, limits=limits).version == 0
    assert merge(tables, log, "select 1 id, 'a' name", statement, limits=limits).rows_inserted == 1
    outcome = merge(tables, log, nothing, statement, limits=limits)
    assert (outcome.version, outcome.rows_updated, outcome.rows_inserted) == (1, 0, 0)
    clear = plan("t.id = s.id", MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, DeleteRow()))
    assert merge(tables, log, nothing, clear, limits=limits).rows_deleted == 1
    assert tables.rows(log) == []


@ways("at once")
def test_a_merge_without_changes_commits_its_transaction_and_leaves_no_files(tables: Tables, limits: Limits) -> None:
    log = tables.made(ROWS)
    files = tables.data_files(log)
    statement = plan("t.id = s.id", MergeClause(MatchKind.MATCHED, UpdateAll(), "s.name < t.name and s.id = 99"))
    assert merge(tables, log, NEW, statement, limits=limits).version == 0
    outcome = merge(tables, log, NEW, statement, WriteSettings(txn=("silt/x", 1)), limits)
    assert (outcome.version, outcome.files_added, outcome.files_removed) == (1, 0, 0)
    assert log.snapshot().transaction_version("silt/x") == 1
    assert tables.data_files(log) == files


@ways("step by step")
def test_a_nondeterministic_source_is_computed_once(tables: Tables, limits: Limits) -> None:
    log = tables.made("select id, 0.0D n, uuid() u from range(0, 50, 1, 1)")
    source = tables.spark.range(25, 75).select("id", F.rand().alias("n"), F.expr("uuid()").alias("u"))
    outcome = merge(tables, log, source, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=limits)
    assert (outcome.rows_updated, outcome.rows_inserted) == (25, 25)
    assert tables.read(log).select("u").distinct().count() == tables.read(log).count() == 75


@BOTH_KINDS
def test_all_rows_of_a_partitioned_table_can_be_deleted(tables: Tables) -> None:
    log = tables.made("select id, id % 2 part from range(4)", partition_columns=("part",))
    clauses = (
        MergeClause(MatchKind.MATCHED, DeleteRow(), "s.id < 9"),
        MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, DeleteRow()),
    )
    outcome = merge(tables, log, "select 1L id", plan("t.id = s.id", *clauses))
    assert (outcome.rows_deleted, outcome.files_added) == (4, 0)
    assert tables.rows(log) == []


@ways("step by step")
def test_files_of_partitioned_targets_are_skipped_and_updated_rows_move_between_partitions(
    tables: Tables, limits: Limits
) -> None:
    log = tables.made("select id, id % 3 part, 'a' name from range(9)", partition_columns=("part",))
    keys = (KeyEquality(Column.of("part"), "s.part"), *BY_ID)
    source = "select * from values (1L, 1L, 'b'), (100L, 4L, 'b') as x(id, part, name)"
    outcome = merge(tables, log, source, plan("t.id = s.id and t.part = s.part", *UPSERT, keys=keys), limits=limits)
    assert (outcome.rows_updated, outcome.rows_inserted) == (1, 1)
    if limits is STEP_BY_STEP:
        assert {dict(add.partition_values)["part"] for add in log.snapshot().add_files()} == {"0", "1", "2", "4"}
        assert outcome.files_skipped > 0
    merge(
        tables, log, "select 1L id", plan("t.id = s.id", MergeClause(MatchKind.MATCHED, sets(part="5"))), limits=limits
    )
    assert tables.read(log).filter("id = 1").select("part", "name").collect() == [(5, "b")]


def test_names_are_found_in_any_case_and_with_any_characters(tables: Tables) -> None:
    log = tables.made("select 1 `Order`, 'a' `größe [m]`, 2 `select`")
    source = "select 1 `ORDER`, 'b' `GRÖßE [M]`, 3 `SELECT` union all select 2, 'c', 4"
    statement = plan("t.`order` = s.`order`", *UPSERT, keys=(KeyEquality(Column.of("ORDER"), "s.`order`"),))
    merge(tables, log, source, statement)
    assert tables.rows(log) == [(1, "b", 3), (2, "c", 4)]
    values = InsertValues((("ORDER",), ("t", "select")), ("`Order` + 10", "s.`select`"))
    merge(tables, log, source, plan("false", MergeClause(MatchKind.NOT_MATCHED, values, "`select` = 4")))
    assert (12, None, 4) in tables.rows(log)


@BOTH_KINDS
def test_unqualified_names_mean_the_source_in_an_insert_and_the_target_in_a_by_source_clause(tables: Tables) -> None:
    log = tables.made(ROWS)
    clauses = (
        MergeClause(MatchKind.NOT_MATCHED, inserts(id="id", name="concat(name, '+', NAME)"), "id is not null"),
        MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, sets(name="concat(name, '-')"), "name <> 'n'"),
    )
    merge(tables, log, NEW, plan("t.id = s.id", *clauses))
    assert tables.rows(log) == [(1, "a-"), (2, "b"), (3, "C+C"), (None, "n")]
    with pytest.raises(ColumnNotFoundError, match="NOT MATCHED cannot refer to"):
        merge(tables, log, NEW, plan("t.id = s.id", MergeClause(MatchKind.NOT_MATCHED, inserts(id="t.id + 1"))))


@BOTH_KINDS
def test_conditions_may_contain_subqueries(tables: Tables) -> None:
    log = tables.made(ROWS)
    tables.spark.sql("select 2 id").createOrReplaceTempView("`main.allowed@v1`")
    clauses = (
        MergeClause(MatchKind.MATCHED, UpdateAll(), "s.id in (select id from `main.allowed@v1`)"),
        MergeClause(
            MatchKind.NOT_MATCHED, InsertAll(), "not exists (select 1 from `main.allowed@v1` a where a.id = s.id - 1)"
        ),
    )
    merge(tables, log, NEW, plan("t.id = s.id and s.id > (select min(id) - 1 from `main.allowed@v1`)", *clauses))
    assert tables.rows(log) == [(1, "a"), (2, "B"), (None, "N"), (None, "n")]


def test_struct_columns_are_matched_set_and_converted(tables: Tables) -> None:
    log = tables.made("select named_struct('id', 1L, 'x', 'a') k, named_struct('n', 1L, 'm', 2L) v")
    source = "select named_struct('id', 1L) k, named_struct('M', 9, 'N', 8) v"
    keys = (KeyEquality(Column.of("k", "id"), "s.k.id"),)
    update = MergeClause(MatchKind.MATCHED, UpdateSet((Assignment(("v",), "s.v"), Assignment(("k", "x"), "'z'"))))
    merge(tables, log, source, plan("t.k.id = s.k.id", update, keys=keys), limits=STEP_BY_STEP)
    assert tables.rows(log) == [({"id": 1, "x": "z"}, {"n": 8, "m": 9})]


def test_a_star_requires_every_column_of_the_table(tables: Tables) -> None:
    log = tables.made(ROWS)
    with pytest.raises(ColumnNotFoundError, match="lacks name"):
        merge(tables, log, "select 1 id", plan("t.id = s.id", *UPSERT))


@ways("at once")
def test_schema_evolution_adds_the_sources_columns_and_fields(tables: Tables, limits: Limits) -> None:
    log = tables.made("select 1 id, named_struct('a', 1) s, 'kept' name")
    source = "select * from values (1, named_struct('a', 2, 'b', 'new'), 5L), (2, named_struct('a', 3, 'b', 'x'), 6L)"
    evolving = plan("t.id = s.id", *UPSERT, keys=BY_ID, schema_evolution=True)
    merge(tables, log, f"{source} as x(id, s, extra)", evolving, limits=limits)
    assert log.snapshot().schema.names == ("id", "s", "name", "extra")
    assert tables.rows(log) == [
        (1, {"a": 2, "b": "new"}, "kept", 5),
        (2, {"a": 3, "b": "x"}, None, 6),
    ]
    only_named = plan("t.id = s.id", MergeClause(MatchKind.MATCHED, sets(more="s.more")), schema_evolution=True)
    merge(tables, log, "select 1 id, 'm' more, 'n' unused", only_named, limits=limits)
    assert log.snapshot().schema.names == ("id", "s", "name", "extra", "more")


@BOTH_KINDS
def test_values_are_converted_by_store_assignment_and_constraints_are_enforced(tables: Tables) -> None:
    log = tables.made(
        "select 1 id, 'a' name",
        columns=(ColumnDefinition("id", nullable=False), ColumnDefinition("name")),
        constraints={"short": "length(name) < 5"},
    )
    statement = plan("t.id = s.id", *UPSERT)
    merge(tables, log, "select 2L id, 5 name", statement)
    assert tables.rows(log) == [(1, "a"), (2, "5")]
    files = tables.data_files(log)
    for source, error in {
        "select 3000000000L id, 'b' name": ValueNotCastableError,
        "select cast(null as int) id, 'b' name": NotNullViolationError,
        "select 1 id, 'too long' name": CheckViolationError,
        "select 1 id, array(1) name": TypeMismatchError,
    }.items():
        with pytest.raises(error):
            merge(tables, log, source, statement)
    assert tables.data_files(log) == files and log.snapshot().version == 1


def test_invalid_combinations_of_clauses_are_refused(tables: Tables) -> None:
    log = tables.made(ROWS)
    for clauses in (
        (),
        (MergeClause(MatchKind.MATCHED, InsertAll()),),
        (MergeClause(MatchKind.NOT_MATCHED, DeleteRow()),),
        (MergeClause(MatchKind.MATCHED, DeleteRow()), MergeClause(MatchKind.MATCHED, UpdateAll())),
        (MergeClause(MatchKind.MATCHED, UpdateSet((Assignment(("id",), "1"), Assignment(("t", "ID"), "2")))),),
        (MergeClause(MatchKind.NOT_MATCHED, InsertValues((), ("1",))),),
    ):
        with pytest.raises(InvalidStatementError):
            merge(tables, log, NEW, plan("t.id = s.id", *clauses))
    with pytest.raises(InvalidNameError):
        merge(tables, log, "select 1 id, 'a' name, 2 __SILT_action", plan("t.id = s.id", *UPSERT))


def test_an_insert_without_columns_is_by_position(tables: Tables) -> None:
    log = tables.made(ROWS)
    merge(
        tables, log, NEW, plan("false", MergeClause(MatchKind.NOT_MATCHED, InsertValues((), ("7", "name")), "id = 2"))
    )
    assert (7, "B") in tables.rows(log)


@BOTH_KINDS
def test_concurrent_merges_conflict_only_on_the_same_keys(tables: Tables) -> None:
    log = tables.made("select id, 'a' name from range(0, 100, 1, 1)")
    tables.append(log, "select id, 'a' name from range(100, 200, 1, 1)")
    pinned = tables.target(log)
    statement = plan("t.id = s.id", *UPSERT, keys=BY_ID)
    low, high, between = (f"select id, 'b' name from range({a}, {b})" for a, b in ((0, 9), (190, 210), (205, 215)))
    merge(tables, pinned, low, statement, limits=STEP_BY_STEP)
    merge(tables, pinned, high, statement, limits=STEP_BY_STEP)
    assert tables.read(log).filter("name = 'b'").count() == 29
    files = tables.data_files(log)
    with pytest.raises(ConcurrentModificationError):
        merge(tables, pinned, between, statement, limits=STEP_BY_STEP)
    assert tables.data_files(log) == files


@BOTH_KINDS
def test_a_condition_of_on_about_the_target_alone_limits_what_the_merge_read(tables: Tables) -> None:
    log = tables.made("select id, id % 2 part, 'a' name from range(4)", partition_columns=("part",))
    pinned = tables.target(log)
    tables.append(log, "values (11L, 1L, 'x')")
    statement = plan("t.part = 0 and t.id = s.id", *UPSERT, target_predicate=Comparison("=", Column.of("part"), 0))
    merge(tables, pinned, "select 2L id, 0L part, 'b' name", statement)
    tables.append(log, "values (12L, 0L, 'x')")
    with pytest.raises(ConcurrentModificationError):
        merge(tables, pinned, "select 0L id, 0L part, 'b' name", statement)


def test_the_rows_of_a_small_file_keep_their_order_and_new_rows_come_last(tables: Tables) -> None:
    log = tables.made("select /*+ coalesce(1) */ id, 'old' name from values (5), (1), (4), (2), (3) as x(id)")
    merge(
        tables,
        log,
        "select * from values (9, 'new'), (4, 'new'), (0, 'new') as x(id, name)",
        replace(plan("t.id = s.id", *UPSERT), source_bytes=100),
    )
    rows = [tuple(row) for row in tables.read(log).collect()]
    assert rows[:5] == [(5, "old"), (1, "old"), (4, "new"), (2, "old"), (3, "old")]
    assert sorted(rows[5:]) == [(0, "new"), (9, "new")]


def test_a_merge_whose_second_join_matches_other_rows_than_its_first_uses_a_full_join(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tables.made(ROWS)
    monkeypatch.setattr(Matched, "is_same", lambda *_: False)
    outcome = merge(tables, log, NEW, plan("t.id = s.id", *UPSERT, keys=BY_ID), limits=STEP_BY_STEP)
    assert tables.rows(log) == [(1, "a"), (2, "B"), (3, "C"), (None, "N"), (None, "n")]
    assert (outcome.rows_updated, outcome.rows_inserted, outcome.rows_deleted) == (1, 2, 0)
    assert tables.data_files(log) == {add.path for version in (0, 1) for add in log.snapshot_at(version).add_files()}


def test_equal_numbers_of_matches_of_the_same_rows_are_the_same_matches(spark: SparkSession) -> None:
    def observed(*rows: int) -> Row:
        frame = spark.createDataFrame([(row,) for row in rows], f"{SOURCE_ROW} bigint")
        frame = frame.selectExpr("*", f"true as {IN_TARGET}", f"true as {IN_SOURCE}")
        return frame.selectExpr(*(f"{text} as {name}" for name, text in join.metrics().items())).collect()[0]

    found = Matched(spark.range(1).toDF(SOURCE_ROW), observed(1, 2, 2).asDict())
    assert found.is_same(observed(2, 1, 2).asDict())
    assert not found.is_same(observed(1, 2).asDict())
    assert not found.is_same(observed(1, 1, 2).asDict())
    assert not found.is_same(observed(1, 2, 3).asDict())


@pytest.mark.parametrize("text", ["'a' as x, 'b' as X", "'a' as x, 'b' as x"])
def test_the_size_of_a_source_with_duplicate_column_names_is_unknown(spark: SparkSession, text: str) -> None:
    assert stabilise(spark.sql(f"select {text}"), plan("true", *UPSERT), StructType()).size is None


def test_the_size_of_a_source_includes_its_strings(spark: SparkSession) -> None:
    rows = "select 1 as id, repeat('x', 1000) as `a b`, array('yy') as list, cast(null as string) as none"
    size = stabilise(spark.sql(rows), plan("true", *UPSERT), StructType()).size
    assert size is not None and 1000 < size < 1200
