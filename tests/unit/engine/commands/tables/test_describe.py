"""DESCRIBE of a table, its history and detail, from the log."""

from __future__ import annotations

from datetime import timezone

import pytest

from dbt.adapters.silt.engine.commands.tables import describe
from dbt.adapters.silt.engine.commands.tables.alter import add_constraint
from dbt.adapters.silt.engine.commands.tables.create import Definition, create
from dbt.adapters.silt.engine.commands.tables.describe import Answer
from dbt.adapters.silt.engine.commands.target import TableLocation
from dbt.adapters.silt.engine.kernel.errors import NotATableError
from dbt.adapters.silt.engine.sql.ast import ColumnDefinition, CreateMode
from tests.unit.engine.commands.spark_tables import PLAIN, Tables

DEFINITION = Definition(
    columns=(
        ColumnDefinition("id", "bigint", nullable=False, comment="the key"),
        ColumnDefinition("the name", "varchar(10)", comment="it's \\ quoted"),
        ColumnDefinition("s", "struct<a: int not null comment 'in', `b c`: array<map<string, decimal(5,2)>>>"),
        ColumnDefinition("grp", "date"),
    ),
    partition_columns=("grp",),
    comment="all\nof it",
    properties={"owner": "me"},
)


def as_rows(tables: Tables, answer: Answer) -> list[dict[str, object]]:
    """Returns the answer as the user sees it: as rows of a DataFrame."""
    return [row.asDict() for row in tables.spark.createDataFrame(list(answer.rows), answer.schema).collect()]


def test_columns_are_described_as_in_spark(tables: Tables) -> None:
    log = tables.log()
    create(tables.spark, TableLocation(log, None), DEFINITION, None, CreateMode.CREATE, PLAIN)
    snapshot = log.snapshot()
    rows = as_rows(tables, describe.columns(snapshot.schema, snapshot.partition_columns))
    assert [tuple(row.values()) for row in rows] == [
        ("id", "bigint", "the key"),
        ("the name", "varchar(10)", "it's \\ quoted"),
        ("s", "struct<a:int,`b c`:array<map<string,decimal(5,2)>>>", None),
        ("grp", "date", None),
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("grp", "date", None),
    ]
    extended = {row["col_name"]: row["data_type"] for row in as_rows(tables, describe.extended(log, snapshot))}
    assert extended["Location"] == log.store.root
    assert extended["Provider"] == "delta"
    assert extended["Comment"] == "all\nof it"
    assert extended["Table Properties"] == "[owner=me]"


def test_the_history_has_the_facts_of_each_commit_newest_first(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    tables.append(log, "select 9L")
    newest, oldest = as_rows(tables, describe.history(log))
    assert (newest["version"], newest["operation"], newest["readVersion"]) == (1, "WRITE", 0)
    assert (newest["isBlindAppend"], newest["isolationLevel"]) == (True, "Serializable")
    assert newest["operationParameters"]["mode"] == "Append"  # type: ignore[index]
    assert newest["operationMetrics"]["numOutputRows"] == "1"  # type: ignore[index]
    assert str(newest["engineInfo"]).startswith("dbt-silt/")
    assert (oldest["version"], oldest["operation"]) == (0, "CREATE TABLE AS SELECT")
    assert newest["timestamp"] > oldest["timestamp"]  # type: ignore[operator]


def test_the_history_may_be_limited(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    for value in range(3):
        tables.append(log, f"select {value}L")
    assert [row[0] for row in describe.history(log, 2).rows] == [3, 2]
    assert [row[0] for row in describe.history(log, 99).rows] == [3, 2, 1, 0]
    assert describe.history(log, 0).rows == ()


def test_a_commit_of_another_writer_without_commit_info_is_shown(tables: Tables) -> None:
    log = tables.made("select id from range(3)")
    log.store.put_if_absent("_delta_log/00000000000000000001.json", b'{"txn":{"appId":"a","version":1}}\n')
    newest = as_rows(tables, describe.history(log, 1))[0]
    assert (newest["version"], newest["operation"], newest["operationMetrics"]) == (1, None, None)


def test_a_folder_without_a_log_has_no_history(tables: Tables) -> None:
    with pytest.raises(NotATableError):
        describe.history(tables.log("nothing"), 1)


def test_the_detail_describes_the_table(tables: Tables) -> None:
    log = tables.made(
        "select id, id % 2 as grp from range(4)", partition_columns=("grp",), comment="c", properties={"a": "b"}
    )
    snapshot = log.snapshot()
    row = as_rows(tables, describe.detail(log, snapshot))[0]
    assert row["id"] == snapshot.metadata.id
    assert (row["format"], row["name"], row["description"]) == ("delta", "main.orders", "c")
    assert (row["location"], row["partitionColumns"]) == (log.store.root, ["grp"])
    assert (row["numFiles"], row["sizeInBytes"]) == (snapshot.num_files, snapshot.size_in_bytes)
    assert (row["minReaderVersion"], row["minWriterVersion"]) == (1, 2)
    assert row["tableFeatures"] == ["appendOnly", "invariants"]
    (answer,) = describe.detail(log, snapshot).rows
    assert answer[6].tzinfo is timezone.utc  # type: ignore[attr-defined]


def test_names_and_properties_are_shown(tables: Tables) -> None:
    log = tables.made("select 1L as b, 2L as a", properties={"z": "1", "delta.checkpointInterval": "5"})
    snapshot = log.snapshot()
    assert describe.column_names(snapshot.schema).rows == (("b",), ("a",))
    assert describe.properties(snapshot.metadata.configuration).rows == (("delta.checkpointInterval", "5"), ("z", "1"))


def test_show_create_table_creates_a_table_with_the_same_columns(tables: Tables) -> None:
    log = tables.log()
    create(tables.spark, TableLocation(log, None), DEFINITION, None, CreateMode.CREATE, PLAIN)
    add_constraint(tables.spark, tables.target(log), "positive", "id > 0", PLAIN)
    ((text,),) = describe.create_statement("`main`.`orders`", log.snapshot()).rows
    assert text == (
        "CREATE TABLE `main`.`orders` (\n"
        "  `id` BIGINT NOT NULL COMMENT 'the key',\n"
        "  `the name` varchar(10) COMMENT 'it\\'s \\\\ quoted',\n"
        "  `s` STRUCT<`a`: INT NOT NULL COMMENT 'in', `b c`: ARRAY<MAP<STRING, DECIMAL(5,2)>>>,\n"
        "  `grp` DATE,\n"
        "  CONSTRAINT `positive` CHECK (id > 0))\n"
        "USING delta\n"
        "PARTITIONED BY (`grp`)\n"
        "COMMENT 'all\nof it'\n"
        "TBLPROPERTIES (\n"
        "  'owner' = 'me')"
    )
