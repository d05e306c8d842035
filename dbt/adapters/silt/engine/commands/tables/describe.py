"""Answers DESCRIBE and SHOW of a table from its log: rows as plain values, without a Spark job."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dbt.adapters.silt.engine.commands.spark.types import spark_schema
from dbt.adapters.silt.engine.kernel.clock import utc_moment
from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list, string_literal
from dbt.adapters.silt.engine.kernel.log.history import Commit
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Json
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from dbt.adapters.silt.engine.kernel.table.features import features_of
from dbt.adapters.silt.engine.kernel.table.identity import identity_of
from dbt.adapters.silt.engine.kernel.table.keys import enforcement, table_keys
from dbt.adapters.silt.engine.kernel.table.properties import CONSTRAINT_PREFIX, EXPECT_PREFIX, KEY_PREFIX, is_settable
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    CURRENT_DEFAULT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

_logger = logging.getLogger(__name__)

_COLUMNS: Final = "col_name string, data_type string, comment string"
_HISTORY: Final = (
    "version bigint, timestamp timestamp, userId string, userName string, operation string, "
    "operationParameters map<string, string>, "
    "job struct<jobId: string, jobName: string, jobRunId: string, runId: string, jobOwnerId: string, "
    "triggerType: string>, "
    "notebook struct<notebookId: string>, clusterId string, "
    "readVersion bigint, isolationLevel string, isBlindAppend boolean, operationMetrics map<string, string>, "
    "userMetadata string, engineInfo string"
)
_JOB: Final = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
_NOTEBOOK: Final = ("notebookId",)
_DETAIL: Final = (
    "format string, id string, name string, description string, location string, createdAt timestamp, "
    "lastModified timestamp, partitionColumns array<string>, clusteringColumns array<string>, "
    "numFiles bigint, sizeInBytes bigint, "
    "properties map<string, string>, minReaderVersion int, minWriterVersion int, tableFeatures array<string>"
)
_CONSTRAINTS: Final = (CONSTRAINT_PREFIX, KEY_PREFIX, EXPECT_PREFIX)


@dataclass(frozen=True)
class Answer:
    """Rows, and their schema as DDL of Spark."""

    rows: tuple[tuple[object, ...], ...]
    schema: str


def columns(schema: StructType, partition_columns: tuple[str, ...] = ()) -> Answer:
    """Answers DESCRIBE TABLE: the columns, then the partition columns."""
    return Answer(tuple(_column_rows(schema, partition_columns)), _COLUMNS)


def extended(log: DeltaLog, snapshot: Snapshot) -> Answer:
    """Answers DESCRIBE TABLE EXTENDED: the columns, then further facts about the table."""
    return Answer(
        (
            *_column_rows(snapshot.schema, snapshot.partition_columns),
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            *((name, value, "") for name, value in _facts(log, snapshot)),
            *_constraint_rows(snapshot),
        ),
        _COLUMNS,
    )


def information(log: DeltaLog, snapshot: Snapshot) -> str:
    """Answers SHOW TABLE EXTENDED: facts about the table, a line each, and its schema as a tree."""
    lines = [f"{name}: {value}" for name, value in _facts(log, snapshot)]
    return "\n".join((*lines, f"Schema: {spark_schema(snapshot.schema).treeString()}"))


def history(log: DeltaLog, limit: int | None = None) -> Answer:
    """Answers DESCRIBE HISTORY: a row for each commit that the log still contains, the newest first.

    Args:
        limit: the most rows to return; by default all.

    Raises:
        NotATableError, TableDamagedError: if the log cannot be read.
    """
    start = 0 if limit is None else max(0, log.snapshot().version - limit + 1)
    commits = [] if limit == 0 else list(log.commits(start))
    if (future := log.in_future()) is not None:
        _logger.warning("%s: %s", log.name, future.note)
    return Answer(tuple(_history_row(commit) for commit in reversed(commits)), _HISTORY)


def detail(log: DeltaLog, snapshot: Snapshot) -> Answer:
    """Answers DESCRIBE DETAIL: a single row of facts."""
    metadata, protocol = snapshot.metadata, snapshot.protocol
    row = (
        "delta",
        metadata.id,
        log.name,
        metadata.description,
        log.store.root,
        _time(metadata.created_time),
        _time(log.committed_at(snapshot)),
        list(snapshot.partition_columns),
        clustered_by(snapshot.schema, snapshot.domains),
        snapshot.num_files,
        snapshot.size_in_bytes,
        dict(metadata.configuration),
        protocol.min_reader_version,
        protocol.min_writer_version,
        features_of(protocol),
    )
    return Answer((row,), _DETAIL)


def column_names(schema: StructType) -> Answer:
    """Answers SHOW COLUMNS."""
    return Answer(tuple((name,) for name in schema.names), "col_name string")


def properties(configuration: Mapping[str, str]) -> Answer:
    """Answers SHOW TBLPROPERTIES, sorted by name."""
    return Answer(tuple(sorted(configuration.items())), "key string, value string")


def create_statement(name: str, snapshot: Snapshot) -> Answer:
    """Answers SHOW CREATE TABLE: a statement that creates such a table, without rows.

    Args:
        name: the table's name in the statement.
    """
    metadata = snapshot.metadata
    entries = [_column_definition(field) for field in snapshot.schema]
    entries += [f"CONSTRAINT {quote(key)} {text}" for key, text in _checks(snapshot).items()]
    entries += [f"CONSTRAINT {quote(key)} {each.sql}" for key, each in table_keys(metadata.configuration).items()]
    lines = [f"CREATE TABLE {name} (", ",\n".join(f"  {entry}" for entry in entries) + ")", "USING delta"]
    if snapshot.partition_columns:
        lines.append(f"PARTITIONED BY ({quoted_list(snapshot.partition_columns)})")
    clustered = clustered_by(snapshot.schema, snapshot.domains)
    if clustered:
        lines.append(f"CLUSTER BY ({', '.join(clustered)})")
    if metadata.description is not None:
        lines.append(f"COMMENT {string_literal(metadata.description)}")
    kept = {k: v for k, v in metadata.configuration.items() if is_settable(k) and not k.startswith(_CONSTRAINTS)}
    if kept:
        pairs = ",\n".join(f"  {string_literal(key)} = {string_literal(value)}" for key, value in sorted(kept.items()))
        lines.append(f"TBLPROPERTIES (\n{pairs})")
    return Answer((("\n".join(lines),),), "createtab_stmt string")


def _facts(log: DeltaLog, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yields the facts about a table, except its columns, by Spark's names."""
    metadata = snapshot.metadata
    facts = {
        "Name": log.name,
        "Type": "TABLE",
        "Provider": "delta",
        "Location": log.store.root,
        "Comment": metadata.description,
        "Created Time": _text(_time(metadata.created_time)),
        "Last Modified": _text(_time(log.committed_at(snapshot))),
        "Version": str(snapshot.version),
        "Files": str(snapshot.num_files),
        "Size": f"{snapshot.size_in_bytes} bytes",
        "Table Properties": f"[{','.join(f'{k}={v}' for k, v in sorted(metadata.configuration.items()))}]",
    }
    yield from ((name, value) for name, value in facts.items() if value is not None)


def _column_rows(schema: StructType, partition_columns: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    for field in schema:
        yield _column_row(field)
    if partition_columns:
        yield "# Partition Information", "", ""
        yield "# col_name", "data_type", "comment"
        for name in partition_columns:
            yield _column_row(schema.require(name))


def _constraint_rows(snapshot: Snapshot) -> Iterator[tuple[object, ...]]:
    checks = _checks(snapshot)
    keys = table_keys(snapshot.metadata.configuration)
    if checks or keys:
        yield "", "", ""
        yield "# Constraints", "", ""
    yield from ((name, text, "enforced") for name, text in checks.items())
    for name, key in keys.items():
        yield name, key.sql, enforcement(key, snapshot.transactions, snapshot.version)


def _checks(snapshot: Snapshot) -> dict[str, str]:
    """Returns the CHECK constraints in SQL, by name."""
    left_out = snapshot.properties.expectations
    return {
        name: _expect(condition) if name in left_out else _check(condition)
        for name, condition in snapshot.properties.constraints.items()
    }


def _expect(condition: str) -> str:
    return f"{_check(condition).replace('CHECK', 'EXPECT', 1)} ON VIOLATION DROP ROW"


def _check(condition: str) -> str:
    # A line break ends a comment at the condition's end.
    return f"CHECK ({condition}\n)" if "--" in condition else f"CHECK ({condition})"


def _column_row(field: StructField) -> tuple[object, ...]:
    return field.name, field.sql_type, field.comment


def _history_row(commit: Commit) -> tuple[object, ...]:
    info = commit.info
    return (
        commit.version,
        _time(commit.timestamp_ms),
        _other(info, "userId"),
        _other(info, "userName"),
        info.operation,
        {key: _parameter(value) for key, value in info.operation_parameters.items()},
        _members(info, "job", _JOB),
        _members(info, "notebook", _NOTEBOOK),
        _other(info, "clusterId"),
        info.read_version,
        info.isolation_level,
        info.is_blind_append,
        None if info.operation_metrics is None else dict(info.operation_metrics),
        info.user_metadata,
        info.engine_info,
    )


def _parameter(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _other(info: CommitInfo, name: str) -> str | None:
    """Returns a field of `commitInfo` that only other writers set."""
    return _parameter(info.extra.get(name))


def _members(info: CommitInfo, name: str, members: tuple[str, ...]) -> tuple[str | None, ...] | None:
    value = info.extra.get(name)
    return tuple(_parameter(value.get(member)) for member in members) if isinstance(value, Mapping) else None


def _column_definition(field: StructField) -> str:
    type_text = field.metadata.get(CHAR_VARCHAR_KEY) or _type_text(field.type)
    return f"{quote(field.name)} {type_text}{_suffix(field)}"


def _type_text(data_type: DataType) -> str:
    """Returns the SQL of a type, including the comments and constraints of its members."""
    if isinstance(data_type, StructType):
        members = (f"{quote(member.name)}: {_type_text(member.type)}{_suffix(member)}" for member in data_type)
        return f"STRUCT<{', '.join(members)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{_type_text(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{_type_text(data_type.key_type)}, {_type_text(data_type.value_type)}>"
    return data_type.sql_name.upper()


def _suffix(field: StructField) -> str:
    comment = "" if field.comment is None else f" COMMENT {string_literal(field.comment)}"
    expression = field.generation_expression
    identity = identity_of(field)
    generated = "" if expression is None else f" GENERATED ALWAYS AS ({expression})"
    generated += "" if identity is None else f" {identity.sql}"
    default = f" DEFAULT {field.default}" if CURRENT_DEFAULT in field.metadata else ""
    return ("" if field.nullable else " NOT NULL") + generated + default + comment


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else utc_moment(milliseconds)


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(sep=" ", timespec="seconds")
