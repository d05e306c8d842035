"""ALTER TABLE on columns: added, dropped, renamed, moved and changed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.tables.alter import add_constraint
from dbt.adapters.silt.engine.commands.tables.alter_columns import add_columns, change_columns, drop_columns
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    InvalidNameError,
    InvalidStatementError,
    MetadataChangedError,
    NotNullViolationError,
    SiltError,
    StatementSyntaxError,
    TypeMismatchError,
    UnsupportedFeatureError,
    ValueNotCastableError,
)
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.sql.ast import ColumnChange, NewColumn, Position
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

NESTED = "select 1L as id, named_struct('a', 1, 'b', 'x') as s, array(named_struct('p', 1, 'q', 2)) as l"
MANY = "select id, cast(id % 3 as string) as grp, id * 2 as amount from range(10)"


def change(tables: Tables, log: DeltaLog, *path: str, **what: Any) -> Outcome:
    return change_columns(tables.spark, tables.target(log), [ColumnChange(path, **what)], PLAIN)


def drop(tables: Tables, log: DeltaLog, *paths: tuple[str, ...], if_exists: bool = False) -> Outcome:
    return drop_columns(tables.spark, tables.target(log), paths, if_exists, PLAIN)


def add(tables: Tables, log: DeltaLog, *columns: NewColumn, if_not_exists: bool = False) -> Outcome:
    return add_columns(tables.spark, tables.target(log), columns, if_not_exists, PLAIN)


# adding


def test_an_added_column_with_a_default_has_it_in_existing_and_later_rows(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    add(tables, log, NewColumn(("kind",), "varchar(10)", default="'plain'"))
    assert tables.rows(log) == [(1, "plain")]
    insertion.append(tables.target(log), tables.spark.sql("select 2L"), Placement(columns=("id",)), PLAIN)
    assert tables.rows(log) == [(1, "plain"), (2, "plain")]
    assert "allowColumnDefaults" in (log.snapshot().protocol.writer_features or ())


def test_an_added_column_is_null_in_existing_rows_and_rewrites_no_file(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    files = tables.data_files(log)
    outcome = add(tables, log, NewColumn(("note",), "string", comment="free text"))
    assert (outcome.operation, outcome.version, outcome.files_added) == ("ADD COLUMNS", 1, 0)
    assert tables.data_files(log) == files
    tables.append(log, "select 2L, 'two'")
    assert tables.rows(log) == [(1, None), (2, "two")]
    assert log.snapshot().schema.require("note").comment == "free text"


def test_columns_are_added_at_the_requested_positions(tables: Tables) -> None:
    log = tables.made("select 1L as id, 2L as n")
    add(
        tables,
        log,
        NewColumn(("x",), "int", position=Position()),
        NewColumn(("y",), "varchar(3)", position=Position("ID")),
    )
    assert log.snapshot().schema.names == ("x", "id", "y", "n")
    assert tables.rows(log) == [(None, 1, None, 2)]


def test_a_field_is_added_to_a_struct_and_to_the_elements_of_an_array(tables: Tables) -> None:
    log = tables.made(NESTED)
    add(tables, log, NewColumn(("s", "c"), "double"), NewColumn(("l", "element", "r"), "string", position=Position()))
    assert tables.rows(log) == [(1, {"a": 1, "b": "x", "c": None}, [{"r": None, "p": 1, "q": 2}])]


def test_an_existing_column_is_added_again_only_with_if_not_exists(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(InvalidStatementError, match=r"main\.orders: the column `ID` already exists"):
        add(tables, log, NewColumn(("ID",), "int"))
    outcome = add(tables, log, NewColumn(("ID",), "int"), if_not_exists=True)
    assert (outcome.version, log.snapshot().version) == (0, 0)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (NewColumn(("x",), "no type"), StatementSyntaxError),
        (NewColumn(("x",), "void"), TypeMismatchError),
        (NewColumn(("__silt_x",), "int"), InvalidNameError),
        (NewColumn(("x",), "int", position=Position("nope")), ColumnNotFoundError),
        (NewColumn(("nope", "x"), "int"), ColumnNotFoundError),
        (NewColumn(("id", "x"), "int"), ColumnNotFoundError),
        (NewColumn(("x",), "int", nullable=False), InvalidStatementError),
    ],
)
def test_an_invalid_column_is_refused_and_nothing_is_written(
    tables: Tables, column: NewColumn, error: type[SiltError]
) -> None:
    log = tables.made("select 1L as id")
    with pytest.raises(error):
        add(tables, log, column)
    assert log.snapshot().version == 0


def test_a_not_null_column_is_added_to_a_table_without_rows(tables: Tables) -> None:
    log = tables.made("select 1L as id where false")
    add(tables, log, NewColumn(("x",), "int", nullable=False))
    with pytest.raises(NotNullViolationError):
        tables.append(log, "select 2L, cast(null as int)")


def test_a_column_of_a_type_that_needs_a_feature_upgrades_the_protocol(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    add(tables, log, NewColumn(("at",), "timestamp_ntz"))
    assert "timestampNtz" in (log.snapshot().protocol.reader_features or ())


# dropping


def test_a_dropped_column_does_not_return_with_its_values(tables: Tables) -> None:
    log = tables.made(MANY)
    outcome = drop(tables, log, ("AMOUNT",))
    assert (outcome.operation, outcome.version) == ("DROP COLUMNS", 1)
    assert outcome.files_added > 0 and outcome.files_removed > 0
    assert tables.rows(log) == [(n, str(n % 3)) for n in range(10)]
    add(tables, log, NewColumn(("amount",), "bigint"))
    assert {row[2] for row in tables.rows(log)} == {None}


def test_fields_of_structs_are_dropped_and_null_structs_are_still_null(tables: Tables) -> None:
    log = tables.made(f"{NESTED} union all select 2L, null, null")
    drop(tables, log, ("s", "a"), ("l", "element", "q"))
    assert tables.rows(log) == [(1, {"b": "x"}, [{"p": 1}]), (2, None, None)]


def test_fields_of_the_keys_and_values_of_a_map_are_dropped(tables: Tables) -> None:
    log = tables.made("select map(named_struct('a', 1, 'b', 2), named_struct('c', 3, 'd', 4)) as m")
    drop(tables, log, ("m", "key", "b"), ("m", "value", "c"))
    assert tables.read(log).collect()[0]["m"] == {(1,): (4,)}


def test_a_partitioned_table_keeps_its_partitions_when_a_column_is_dropped(tables: Tables) -> None:
    log = tables.made(MANY, partition_columns=("grp",))
    drop(tables, log, ("amount",))
    assert {dict(values)["grp"] for values in log.snapshot().files["partition_values"].to_pylist()} == {"0", "1", "2"}
    assert tables.rows(log) == [(n, str(n % 3)) for n in range(10)]
    with pytest.raises(InvalidStatementError, match="partitioned by it"):
        drop(tables, log, ("grp",))


def test_the_last_column_and_a_missing_column_cannot_be_dropped(tables: Tables) -> None:
    log = tables.made("select 1L as id, named_struct('a', 1) as s")
    with pytest.raises(ColumnNotFoundError, match="the column `nope` does not exist"):
        drop(tables, log, ("nope",))
    with pytest.raises(InvalidStatementError, match=r"`s\.a` is the only column of its level"):
        drop(tables, log, ("s", "a"))
    with pytest.raises(InvalidStatementError, match="only column"):
        drop(tables, log, ("id",), ("s",))
    assert drop(tables, log, ("nope",), if_exists=True).version == 0


def test_a_column_that_a_constraint_uses_cannot_be_dropped_or_renamed(tables: Tables) -> None:
    log = tables.made(MANY)
    add_constraint(tables.spark, tables.target(log), "positive", "amount >= 0", PLAIN)
    for attempt in (lambda: drop(tables, log, ("amount",)), lambda: change(tables, log, "amount", new_name="sum")):
        with pytest.raises(
            InvalidStatementError, match="the check constraint `positive`, amount >= 0, uses the column"
        ):
            attempt()  # type: ignore[no-untyped-call]
    drop(tables, log, ("grp",))
    assert log.snapshot().schema.names == ("id", "amount")


def test_a_drop_conflicts_with_rows_that_were_committed_while_it_ran(tables: Tables) -> None:
    log = tables.made(MANY)
    target = tables.target(log)
    tables.append(log, "select 10L, '1', 20L")
    before = tables.data_files(log)
    with pytest.raises(ConcurrentAppendError):
        drop_columns(tables.spark, target, [("grp",)], False, PLAIN)
    assert len(tables.rows(log)) == 11
    assert tables.data_files(log) == before


# renaming


def test_a_renamed_column_keeps_its_values_its_position_and_its_comment(tables: Tables) -> None:
    log = tables.made(MANY)
    change(tables, log, "amount", comment="in cents")
    outcome = change(tables, log, "amount", new_name="total")
    assert (outcome.operation, outcome.version) == ("RENAME COLUMN", 2)
    assert log.snapshot().schema.names == ("id", "grp", "total")
    assert log.snapshot().schema.require("total").comment == "in cents"
    assert tables.rows(log) == [(n, str(n % 3), 2 * n) for n in range(10)]
    assert tables.last_commit(log).operation_parameters == {"oldColumnPath": "amount", "newColumnPath": "total"}


def test_a_field_of_a_struct_in_an_array_is_renamed(tables: Tables) -> None:
    log = tables.made(NESTED)
    change(tables, log, "l", "element", "q", new_name="z")
    change(tables, log, "s", "A", new_name="first")
    assert tables.rows(log) == [(1, {"first": 1, "b": "x"}, [{"p": 1, "z": 2}])]


def test_a_renamed_partition_column_still_partitions(tables: Tables) -> None:
    log = tables.made(MANY, partition_columns=("grp",))
    change(tables, log, "grp", new_name="bucket")
    assert log.snapshot().partition_columns == ("bucket",)
    assert tables.rows(log) == [(n, str(n % 3), 2 * n) for n in range(10)]


def test_a_rename_may_change_only_the_case_and_not_to_another_columns_name(tables: Tables) -> None:
    log = tables.made(MANY)
    change(tables, log, "amount", new_name="Amount")
    assert log.snapshot().schema.names == ("id", "grp", "Amount")
    with pytest.raises(InvalidStatementError, match="the column `GRP` already exists"):
        change(tables, log, "amount", new_name="GRP")
    assert change(tables, log, "amount", new_name="Amount").version == 1


def test_a_column_of_an_empty_table_is_renamed_without_a_job(tables: Tables) -> None:
    log = tables.made("select 1L as id, 2L as n where false")
    assert change(tables, log, "n", new_name="m").files_added == 0
    assert log.snapshot().schema.names == ("id", "m")


# changing


def test_comments_are_set_and_removed_without_rewriting_files_and_an_equal_comment_commits_nothing(
    tables: Tables,
) -> None:
    log = tables.made("select 1L as id, named_struct('a', 1) as s")
    files = tables.data_files(log)
    change(tables, log, "s", "a", comment="inner")
    assert change(tables, log, "id", comment="key").version == 2
    assert change(tables, log, "id", comment="key").version == 2
    assert change(tables, log, "id", comment="").version == 3
    assert log.snapshot().schema.require("id").comment is None
    assert '"comment":"inner"' in log.snapshot().metadata.schema_string
    assert tables.data_files(log) == files


def test_an_equal_comment_with_a_transaction_is_committed(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    settings = WriteSettings(txn=("app", 1))
    outcome = change_columns(tables.spark, tables.target(log), [ColumnChange(("id",), nullable=True)], settings)
    assert (outcome.version, log.snapshot().transaction_version("app")) == (1, 1)


def test_moved_columns_keep_their_values(tables: Tables) -> None:
    log = tables.made("select 1L as a, 2L as b, 3L as c")
    change(tables, log, "c", position=Position())
    change(tables, log, "a", position=Position("b"))
    assert log.snapshot().schema.names == ("c", "b", "a")
    assert tables.rows(log) == [(3, 2, 1)]
    with pytest.raises(InvalidStatementError, match="after itself"):
        change(tables, log, "a", position=Position("A"))


def test_a_type_changes_if_all_values_fit(tables: Tables) -> None:
    log = tables.made("select cast(id as int) as id, '7' as n from range(3)")
    change(tables, log, "id", type="bigint")
    change(tables, log, "n", type="decimal(5, 1)")
    assert [field.type.sql_name for field in log.snapshot().schema] == ["bigint", "decimal(5,1)"]
    assert [int(row[1]) for row in tables.rows(log)] == [7, 7, 7]


def test_a_type_change_that_would_lose_a_value_is_refused(tables: Tables) -> None:
    log = tables.made("select 'many' as n")
    files = tables.data_files(log)
    with pytest.raises(ValueNotCastableError):
        change(tables, log, "n", type="int")
    assert (log.snapshot().version, tables.data_files(log)) == (0, files)


def test_the_length_of_a_string_is_increased_without_rewriting_a_file(tables: Tables) -> None:
    log = tables.made("select cast('ab' as varchar(3)) as t")
    add(tables, log, NewColumn(("v",), "varchar(3)"))
    assert change(tables, log, "v", type="varchar(9)").files_added == 0
    assert change(tables, log, "v", type="string").files_added == 0
    assert change(tables, log, "v", type="string").version == log.snapshot().version


def test_not_null_is_set_from_statistics_alone_if_they_prove_it(tables: Tables) -> None:
    log = tables.made(MANY)
    for name in tables.data_files(log):
        log.store.put(name, b"unreadable")
    change(tables, log, "amount", nullable=False)
    assert not log.snapshot().schema.require("amount").nullable
    change(tables, log, "amount", nullable=True)
    assert log.snapshot().schema.require("amount").nullable


def test_not_null_is_refused_if_a_row_contains_a_null(tables: Tables) -> None:
    log = tables.made("select id, if(id = 3, null, id) as n, named_struct('a', if(id = 4, null, 1)) as s from range(6)")
    with pytest.raises(NotNullViolationError, match="1 row has a null in the NOT NULL column `n`, for example"):
        change(tables, log, "n", nullable=False)
    with pytest.raises(NotNullViolationError, match=r"`s\.a`"):
        change(tables, log, "s", "a", nullable=False)
    assert log.snapshot().version == 0


def test_setting_not_null_conflicts_with_a_null_committed_meanwhile(tables: Tables) -> None:
    log = tables.made("select 1L as id, 2L as n")
    target = tables.target(log)
    tables.append(log, "select 2L, cast(null as bigint)")
    with pytest.raises(ConcurrentAppendError):
        change_columns(tables.spark, target, [ColumnChange(("n",), nullable=False)], PLAIN)


def test_a_comment_conflicts_with_another_change_of_the_columns_but_not_with_new_rows(tables: Tables) -> None:
    log = tables.made("select 1L as id")
    target = tables.target(log)
    tables.append(log, "select 2L")
    change_columns(tables.spark, target, [ColumnChange(("id",), comment="key")], PLAIN)
    with pytest.raises(MetadataChangedError):
        change_columns(tables.spark, target, [ColumnChange(("id",), comment="other")], PLAIN)


def test_several_changes_of_one_statement_are_one_commit(tables: Tables) -> None:
    log = tables.made(MANY)
    changes = [
        ColumnChange(("id",), comment="key"),
        ColumnChange(("amount",), new_name="sum", type="double", position=Position("id")),
    ]
    change_columns(tables.spark, tables.target(log), changes, PLAIN)
    assert (log.snapshot().version, log.snapshot().schema.names) == (1, ("id", "sum", "grp"))
    assert tables.rows(log) == [(n, 2.0 * n, str(n % 3)) for n in range(10)]


def test_a_table_with_an_unsupported_feature_is_not_altered(tables: Tables) -> None:
    log = tables.made("select 1L as id", properties={"delta.feature.vacuumProtocolCheck": "supported"})
    add(tables, log, NewColumn(("x",), "int"))
    store = log.store
    path = "_delta_log/00000000000000000000.json"
    store.put(path, store.read(path).replace(b"vacuumProtocolCheck", b"featureOfTheFuture"))
    with pytest.raises(UnsupportedFeatureError, match="featureOfTheFuture"):
        add_columns(
            tables.spark, tables.target(DeltaLog(store, "main.orders")), [NewColumn(("y",), "int")], False, PLAIN
        )


# elements, keys and values

PARTS = (
    "select array(1, null) as l, map(1, cast(2 as float)) as m, named_struct('l', array(array(date'2024-01-01'))) as s,"
    " map('k', named_struct('x', 1)) as n"
)
WIDER = [
    ColumnChange(("l", "element"), type="bigint"),
    ColumnChange(("m", "key"), type="bigint"),
    ColumnChange(("M", "VALUE"), type="double"),
    ColumnChange(("s", "l", "element", "element"), type="timestamp_ntz"),
    ColumnChange(("n", "value", "x"), type="decimal(12, 1)"),
]


@pytest.mark.parametrize("widening", ["true", "false"])
def test_elements_keys_and_values_are_widened(tables: Tables, widening: str) -> None:
    log = tables.made(PARTS, properties={"delta.enableTypeWidening": widening})
    outcome = change_columns(tables.spark, tables.target(log), WIDER, PLAIN)
    assert outcome.files_added == (0 if widening == "true" else 1)
    assert ("delta.typeChanges" in log.snapshot().metadata.schema_string) == (widening == "true")
    tables.append(
        log,
        "select array(5000000000), map(5000000000, 0.5D), named_struct('l', array(array(timestamp_ntz'2024-01-01'))),"
        " map('k', named_struct('x', 0.5))",
    )
    first, second = sorted(tables.read(log).collect(), key=lambda row: len(row.l), reverse=True)
    day = datetime(2024, 1, 1)
    assert (first.l, first.m, first.s.l, first.n["k"].x) == ([1, None], {1: 2.0}, [[day]], Decimal("1.0"))
    assert (second.l, second.m, second.s.l) == ([5_000_000_000], {5_000_000_000: 0.5}, [[day]])


def test_a_type_change_of_a_nested_field_keeps_the_rest_of_its_column(tables: Tables) -> None:
    log = tables.made("select map('k', named_struct('x', 1)) as m, array(1) as l, 'note' as t")
    change(tables, log, "m", "value", "x", comment="inner")
    change(tables, log, "m", "key", type="varchar(9)")
    change(tables, log, "l", "element", type="string")
    assert "inner" in log.snapshot().metadata.schema_string
    assert log.snapshot().schema.require("m").sql_type == "map<varchar(9),struct<x:int>>"
    row = tables.read(log).collect()[0]
    assert (row.m["k"].x, row.l) == (1, ["1"])
    assert tables.last_commit(log).operation == "CHANGE COLUMN"


def test_elements_and_values_become_not_null_if_they_contain_no_nulls(tables: Tables) -> None:
    log = tables.made(PARTS)
    with pytest.raises(NotNullViolationError, match=r"`l\.element`"):
        change(tables, log, "l", "element", nullable=False)
    change(tables, log, "m", "value", nullable=False)
    change(tables, log, "m", "key", nullable=False)
    with pytest.raises(NotNullViolationError, match=r"`m\.value`"):
        tables.append(log, "select array(1), map(1, cast(null as float)), null, null")
    change(tables, log, "m", "value", nullable=True)
    tables.append(log, "select array(1), map(1, cast(null as float)), null, null")
    assert tables.read(log).count() == 2


@pytest.mark.parametrize(
    ("path", "what", "error"),
    [
        (
            ("l", "element"),
            {"comment": "x"},
            r"`l\.element` is a part of a column, not a column: it cannot have a comment",
        ),
        (("m", "value"), {"new_name": "x"}, "cannot have another name"),
        (("m", "key"), {"position": Position()}, "cannot have a position"),
        (("m", "key"), {"nullable": True}, "cannot have nulls"),
        (("l", "element"), {"default": "1"}, "cannot have a default"),
        (("l", "key"), {"type": "bigint"}, r"the column `l\.key` does not exist"),
        (("id", "element"), {"type": "bigint"}, "`id` is not a struct"),
        (("id", "element"), {"comment": "x"}, "`id` is not a struct"),
    ],
)
def test_unsupported_changes_of_a_nested_field_are_refused(
    tables: Tables, path: tuple[str, ...], what: dict[str, Any], error: str
) -> None:
    log = tables.made("select 1 as id, array(1) as l, map(1, 2) as m")
    with pytest.raises((InvalidStatementError, ColumnNotFoundError), match=error):
        change(tables, log, *path, **what)
    assert log.snapshot().version == 0
