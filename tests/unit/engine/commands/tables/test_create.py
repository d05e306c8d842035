"""CREATE TABLE and REPLACE TABLE, with and without a query."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import Outcome, TableLocation
from dbt.adapters.silt.engine.kernel.errors import (
    CheckViolationError,
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConcurrentCreateError,
    InvalidNameError,
    InvalidPropertyError,
    InvalidStatementError,
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    StatementSyntaxError,
    TypeMismatchError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.sql.ast import ColumnDefinition, CreateMode
from tests.unit.engine.commands.spark_tables import PLAIN, Tables


def run(
    tables: Tables,
    log: DeltaLog,
    query: str | None,
    mode: CreateMode = CreateMode.CREATE,
    definition: Definition | None = None,
) -> Outcome:
    base = log.snapshot() if log.exists() else None
    frame = None if query is None else tables.spark.sql(query)
    return create.create(tables.spark, TableLocation(log, base), definition or Definition(), frame, mode, PLAIN)


def metadata(log: DeltaLog) -> Metadata:
    return log.snapshot().metadata


def test_an_empty_table_has_the_declared_columns_and_no_file(tables: Tables) -> None:
    log = tables.log()
    columns = (
        ColumnDefinition("id", "bigint", nullable=False, comment="the key"),
        ColumnDefinition("note", "varchar(5)"),
    )
    outcome = run(tables, log, None, definition=Definition(columns, comment="orders"))
    assert tables.rows(log) == []
    schema = log.snapshot().schema
    assert [(field.name, field.type.sql_name, field.nullable, field.comment) for field in schema] == [
        ("id", "bigint", False, "the key"),
        ("note", "string", True, None),
    ]
    assert schema.fields[1].metadata["__CHAR_VARCHAR_TYPE_STRING"] == "varchar(5)"
    assert metadata(log).description == "orders"
    assert (outcome.operation, outcome.version, outcome.rows_inserted) == ("CREATE TABLE", 0, 0)
    assert tables.data_files(log) == set()


def test_create_as_select_is_a_single_commit(tables: Tables) -> None:
    log = tables.log()
    definition = Definition(
        partition_columns=("G",),
        comment="what was sold",
        properties={"delta.checkpointInterval": "5", "owner": "me"},
        constraints={"positive": "id >= 0"},
    )
    outcome = run(tables, log, "select id, id % 2 g from range(4)", definition=definition)
    assert tables.rows(log) == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert (outcome.operation, outcome.version, outcome.rows_inserted) == ("CREATE TABLE AS SELECT", 0, 4)
    assert metadata(log).partition_columns == ("g",)
    assert metadata(log).configuration == {
        "delta.checkpointInterval": "5",
        "owner": "me",
        "delta.constraints.positive": "id >= 0",
    }
    assert log.snapshot().protocol.min_writer_version == 3
    info = tables.last_commit(log)
    assert info.operation_parameters == {
        "isManaged": "true",
        "description": "what was sold",
        "partitionBy": '["g"]',
        "clusterBy": "[]",
        "properties": json.dumps(dict(metadata(log).configuration)),
    }
    assert info.operation_metrics is not None and info.operation_metrics["numOutputRows"] == "4"


def test_a_query_is_matched_with_declared_columns_by_position(tables: Tables) -> None:
    log = tables.log()
    definition = Definition((ColumnDefinition("key", "int"), ColumnDefinition("label")))
    run(tables, log, "select '7' a, 'x' b", definition=definition)
    assert tables.rows(log) == [(7, "x")]
    assert log.snapshot().schema.names == ("key", "label")


def test_the_columns_of_a_query_are_nullable_and_keep_only_their_comments(tables: Tables) -> None:
    source = tables.log("source")
    columns = (ColumnDefinition("id", "bigint", nullable=False, comment="the key"),)
    run(tables, source, "select 1L", definition=Definition(columns))
    log = tables.log()
    frame = tables.read(source)
    create.create(tables.spark, TableLocation(log, None), Definition(), frame, CreateMode.CREATE, PLAIN)
    (field,) = log.snapshot().schema
    assert (field.nullable, dict(field.metadata)) == (True, {"comment": "the key"})


def test_replace_changes_schema_and_rows_in_one_commit_and_keeps_the_tables_identity(tables: Tables) -> None:
    log = tables.made("select id from range(3)", properties={"owner": "me"})
    old = metadata(log)
    outcome = run(tables, log, "select 'a' name", CreateMode.CREATE_OR_REPLACE)
    assert tables.rows(log) == [("a",)]
    assert (outcome.version, outcome.files_removed > 0) == (1, True)
    assert outcome.operation == "CREATE OR REPLACE TABLE AS SELECT"
    assert metadata(log).id == old.id
    assert metadata(log).configuration == {}
    assert log.snapshot_at(0).num_files == outcome.files_removed


@pytest.mark.parametrize("query", ["select id from range(0)", None])
def test_a_replacement_without_rows_reports_the_number_of_deleted_rows(tables: Tables, query: str | None) -> None:
    log = tables.made("select id from range(3)")
    columns = () if query else (ColumnDefinition("id", "bigint"),)
    outcome = run(tables, log, query, CreateMode.CREATE_OR_REPLACE, Definition(columns))
    assert (outcome.rows_inserted, outcome.rows_before) == (0, 3)


def test_a_replacement_with_rows_does_not_count_the_deleted_rows(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    assert run(tables, log, "select 1 id", CreateMode.CREATE_OR_REPLACE).rows_before is None


def test_a_table_may_be_replaced_by_a_query_on_itself(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    frame = tables.read(log).selectExpr("id * 2 as id")
    create.create(
        tables.spark, TableLocation(log, log.snapshot()), Definition(), frame, CreateMode.CREATE_OR_REPLACE, PLAIN
    )
    assert tables.rows(log) == [(0,), (2,), (4,)]


def test_replace_conflicts_with_rows_that_were_committed_while_it_ran(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    base = log.snapshot()
    tables.append(log, "select 3L")
    with pytest.raises(ConcurrentAppendError):
        create.create(
            tables.spark,
            TableLocation(log, base),
            Definition(),
            tables.spark.range(1),
            CreateMode.CREATE_OR_REPLACE,
            PLAIN,
        )
    assert len(tables.rows(log)) == 4


def test_create_fails_if_the_table_exists(tables: Tables) -> None:
    log = tables.made("select 1 id")
    with pytest.raises(RelationExistsError):
        run(tables, log, "select 2 id")


def test_create_if_not_exists_does_not_change_an_existing_table(tables: Tables) -> None:
    log = tables.made("select 1 id")
    outcome = run(tables, log, "select 2 id", CreateMode.CREATE_IF_NOT_EXISTS)
    assert (outcome.version, outcome.rows_inserted, outcome.attempts) == (0, 0, 0)
    assert tables.rows(log) == [(1,)]


def test_replace_requires_an_existing_table(tables: Tables) -> None:
    with pytest.raises(RelationNotFoundError):
        run(tables, tables.log(), "select 2 id", CreateMode.REPLACE)


def test_of_two_creators_one_fails_and_leaves_no_file(tables: Tables) -> None:
    log = tables.log()
    run(tables, log, "select 1 id")
    before = tables.data_files(log)
    with pytest.raises(ConcurrentCreateError):
        create.create(
            tables.spark,
            TableLocation(log, None),
            Definition(),
            tables.spark.range(1),
            CreateMode.CREATE_OR_REPLACE,
            PLAIN,
        )
    assert tables.data_files(log) == before


def test_rows_that_violate_a_declared_constraint_create_no_table(tables: Tables) -> None:
    log = tables.log()
    with pytest.raises(CheckViolationError):
        run(tables, log, "select -1 id", definition=Definition(constraints={"positive": "id > 0"}))
    assert tables.data_files(log) == set()
    with pytest.raises(NotATableError):
        log.snapshot()


@pytest.mark.parametrize(
    ("query", "definition", "error", "words"),
    [
        ("select 1 id, 2 ID", Definition(), InvalidNameError, "differ only in upper and lower case"),
        ("select 1 __silt_row", Definition(), InvalidNameError, "__silt_"),
        ("select 1 id, null nothing", Definition(), TypeMismatchError, "`nothing` has no type"),
        ("select interval 1 day i", Definition(), TypeMismatchError, "interval"),
        ("select 1 id", Definition(partition_columns=("nosuch",)), ColumnNotFoundError, "nosuch"),
        ("select 1 id", Definition(partition_columns=("id",)), UnsupportedStatementError, "all columns"),
        ("select array(1) a, 1 b", Definition(partition_columns=("a",)), UnsupportedStatementError, "array<int>"),
        ("select 1 a, 1 b", Definition(partition_columns=("a", "A")), InvalidStatementError, "`a`, `a` name a column"),
        ("select 1 as ``", Definition(), InvalidNameError, "an empty name"),
        (
            "select 1 id",
            Definition((ColumnDefinition("a"), ColumnDefinition("b"))),
            ColumnNotFoundError,
            "declares 2 columns",
        ),
        ("select 1 id", Definition((ColumnDefinition("a", "nosuchtype"),)), StatementSyntaxError, "nosuchtype"),
        ("select 1 id", Definition(properties={"delta.nosuch": "1"}), InvalidPropertyError, "delta.nosuch"),
        ("select 1 id", Definition(properties={"delta.checkpointInterval": "x"}), InvalidPropertyError, "`x`"),
        ("select 1 id", Definition(properties={"delta.feature.appendOnly": "no"}), InvalidPropertyError, "supported"),
        (None, Definition(), InvalidStatementError, "at least one column"),
        (None, Definition((ColumnDefinition("a"),)), InvalidStatementError, "`a` has no type"),
    ],
)
def test_an_invalid_table_is_refused(
    tables: Tables, query: str | None, definition: Definition, error: type[Exception], words: str
) -> None:
    log = tables.log()
    with pytest.raises(error, match=words):
        run(tables, log, query, definition=definition)
    assert tables.data_files(log) == set()
    assert not log.exists()


def test_requests_for_protocol_features_are_not_stored_as_properties(tables: Tables) -> None:
    log = tables.log()
    properties = {"delta.feature.appendOnly": "supported", "delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}
    run(tables, log, "select 1 id", definition=Definition(properties=properties))
    assert metadata(log).configuration == {}


def test_column_names_may_have_any_characters(tables: Tables) -> None:
    log = tables.made("select 1 `a b`, 2 `c.d`, 3 `select`, 4 `naïve;{}`, 5 `e``f`")
    tables.append(log, "select 6, 7, 8, 9, 10")
    assert tables.rows(log) == [(1, 2, 3, 4, 5), (6, 7, 8, 9, 10)]
