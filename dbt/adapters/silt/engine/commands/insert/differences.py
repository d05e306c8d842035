"""Replaces a table by the rows that differ from its rows: CREATE OR REPLACE TABLE ... WRITE DIFFERENCES BY.

The new rows and the table's rows are paired by a key, and the pairs are merged. The result is exactly the query's rows
if no row of either side is in two pairs. Otherwise, and if the table gets another definition, all rows are
replaced, and the outcome says why.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.commit import commit, replaced_whole
from dbt.adapters.silt.engine.commands.merge import merge
from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality, MergePlan
from dbt.adapters.silt.engine.commands.rows import file_changes
from dbt.adapters.silt.engine.commands.spark.types import query_schema
from dbt.adapters.silt.engine.commands.tables import create
from dbt.adapters.silt.engine.commands.tables.create import Definition
from dbt.adapters.silt.engine.commands.target import (
    Outcome,
    TableLocation,
    Target,
    WriteSettings,
    check_mode,
    ended_domains,
)
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, MultipleSourceRowsError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import content_schema
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN, clustering_columns
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
    nullable,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet
from dbt.adapters.silt.engine.sql.ast import CreateMode, DeleteRow, InsertAll, MatchKind, MergeClause, UpdateAll

_TABLE, _QUERY = "__silt_table", "__silt_query"
_CLAUSES = (
    MergeClause(MatchKind.MATCHED, UpdateAll()),
    MergeClause(MatchKind.NOT_MATCHED, InsertAll()),
    MergeClause(MatchKind.NOT_MATCHED_BY_SOURCE, DeleteRow()),
)


def create_by_differences(
    spark: SparkSession,
    location: TableLocation,
    definition: Definition,
    query: DataFrame,
    mode: CreateMode,
    settings: WriteSettings,
) -> Outcome:
    """Creates a table, or replaces it by the rows that differ.

    Raises:
        InvalidStatementError: if a column of the key is missing, or its type cannot be compared.
        As `create.create` and `merge.compute`.
    """
    name, base = location.log.name, location.base
    metadata, protocol = create.described(location, definition, query)
    schema = StructType.from_json(metadata.schema_string)
    key = _checked_key(definition.differences_by, schema, name)
    if base is None or mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return create.create(spark, location, definition, query, mode, settings)
    check_mode(location, mode)
    reason = _obstacle(base, metadata, protocol, query, definition)
    if reason is None:
        target = Target(name, location.log, base, location.tests)
        outcome = _merged(spark, target, query.toDF(*schema.names), key, (metadata, settings))
        if outcome is not None:
            return outcome
        reason = f"the key ({', '.join(key)}) is not unique"
    outcome = create.create(spark, location, definition, query, mode, settings.with_commit_info({"rebuilt": reason}))
    return outcome if outcome.unchanged else replace(outcome, rebuilt=reason)


def _checked_key(names: tuple[str, ...], schema: StructType, table: str) -> tuple[str, ...]:
    key = tuple(schema.require(name, table).name for name in names)
    if len(set(key)) < len(key):
        raise InvalidStatementError("WRITE DIFFERENCES BY names a column twice", table=table)
    for column in key:
        if not _is_comparable(schema.require(column).type):
            raise InvalidStatementError(
                f"the column `{column}` of the key has a type whose values cannot be compared",
                remedy="Use a key of simple types",
                table=table,
            )
    return key


def _is_comparable(data_type: DataType) -> bool:
    return not isinstance(data_type, ArrayType | MapType | StructType) and data_type != PrimitiveType("variant")


def _obstacle(
    base: Snapshot, metadata: Metadata, protocol: Protocol, query: DataFrame, definition: Definition
) -> str | None:
    """Returns why all rows must be replaced although the table exists, if so."""
    before, schema = base.metadata, StructType.from_json(metadata.schema_string)
    if content_schema(before.schema_string) != content_schema(metadata.schema_string):
        return "the columns have changed"
    clustered_by = create.clustering_of(definition, metadata, base.table)
    layout = (before.partition_columns, clustering_columns(base.domains))
    if layout != (metadata.partition_columns, clustered_by) or _has_other_domains(base):
        return "the layout has changed"
    if before.configuration != metadata.configuration or base.protocol != protocol:
        return "the table properties or constraints have changed"
    if any(member.is_computed for member in schema):
        return "the table has computed columns"
    given = query_schema(query)
    if any(_has_other_fields(one.type, other.type) for one, other in zip(given, schema, strict=True)):
        return "the query returns structs with other fields than the table's"
    return None


def _has_other_domains(base: Snapshot) -> bool:
    return any(each.domain != CLUSTERING_DOMAIN for each in ended_domains(base))


def _has_other_fields(given: DataType, wanted: DataType) -> bool:
    """Returns whether a type may have structs with other fields, which a merge matches by name, and CREATE does not."""
    if isinstance(given, ArrayType | MapType | StructType):
        return nullable(given) != nullable(wanted)
    return False


def _merged(
    spark: SparkSession, target: Target, rows: DataFrame, key: tuple[str, ...], of: tuple[Metadata, WriteSettings]
) -> Outcome | None:
    """Merges the rows into the table; returns None, without a commit, if the key is not unique."""
    metadata, settings = of
    try:
        made = merge.compute(spark, target, rows, _plan(key))
    except MultipleSourceRowsError:
        return None
    if not made.pairs_each_source_row_once:
        for each in made.changes.uncommitted:
            each.discard(target.log)
        return None
    described = None if create.is_same(metadata, target.snapshot.metadata) else metadata
    changes = file_changes.changes_of(target, made.operation, made.changes, described)
    reads = ReadSet(whole_table=True, transactions=True)
    whole = replaced_whole(target.snapshot, changes, settings)
    committed = commit(target.log, target.snapshot, whole, reads, settings, made.changes.uncommitted)
    outcome = made.outcome(committed)
    return replace(outcome, unchanged=not (outcome.files_added or outcome.files_removed or made.changes.marked))


def _plan(key: tuple[str, ...]) -> MergePlan:
    condition, keys = "", []
    for column in key:
        condition += f"{' and ' if condition else ''}{_TABLE}.{quote(column)} <=> "
        source = f"{_QUERY}.{quote(column)}"
        keys.append(KeyEquality(Column((column,)), source, null_safe=True, start=len(condition)))
        condition += source
    return MergePlan(_TABLE, _QUERY, condition, _CLAUSES, skips_equal_rows=True, keys=tuple(keys), keys_only=True)
