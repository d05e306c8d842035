"""Runs CREATE and REPLACE TABLE, with or without a query, in a single commit of schema, data and properties."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine.commands.commit import commit, discarded_on_error, replaced_whole
from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.spark.partitions import check_partitionable
from dbt.adapters.silt.engine.commands.spark.types import column_type, query_schema
from dbt.adapters.silt.engine.commands.tables import clustering, content, stats_columns
from dbt.adapters.silt.engine.commands.target import (
    Outcome,
    TableLocation,
    WriteSettings,
    check_mode,
    ended_domains,
)
from dbt.adapters.silt.engine.commands.writing import files, generated, numbering
from dbt.adapters.silt.engine.commands.writing import rules as table_rules
from dbt.adapters.silt.engine.commands.writing.checks import table_checks
from dbt.adapters.silt.engine.commands.writing.files import Written
from dbt.adapters.silt.engine.commands.writing.store_assignment import Assigned, assign
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidPropertyError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.files import stats_json
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import storable_schema, type_widening
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata, Json, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.clustering import (
    CLUSTERING_DOMAIN,
    FEATURE,
    clustering_columns,
    clustering_domain,
    logical_paths,
    spelled,
)
from dbt.adapters.silt.engine.kernel.table.column_mapping import MAX_COLUMN_ID, mapped, succeeding, without_mapping
from dbt.adapters.silt.engine.kernel.table.features import (
    check_writable,
    merged,
    needed_features,
    protocol_for,
    upgraded,
)
from dbt.adapters.silt.engine.kernel.table.identity import HIGH_WATER_MARK, Identity, identities
from dbt.adapters.silt.engine.kernel.table.keys import Key, checked_keys, key_properties, of_a_copy
from dbt.adapters.silt.engine.kernel.table.properties import (
    CONSTRAINT_PREFIX,
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    FEATURE_PREFIX,
    IsolationLevel,
    TableProperties,
    checked,
    expectation_properties,
)
from dbt.adapters.silt.engine.kernel.table.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.table.storable_schema import check_storable
from dbt.adapters.silt.engine.kernel.transaction.changes import (
    DROPPED_PROPERTY,
    Changes,
    Operation,
    ReadSet,
    as_strings,
)
from dbt.adapters.silt.engine.kernel.transaction.row_tracking import COLUMN_NAMES, enabled, with_same_columns
from dbt.adapters.silt.engine.sql.ast import ColumnDefinition, CreateMode, IdentityClause, Name

_COMMANDS = frozenset(("delta.minreaderversion", "delta.minwriterversion", "delta.ignoreprotocoldefaults"))
"""Properties that act only once, and are not stored."""
_OF_ITS_LOG = frozenset((MAX_COLUMN_ID, ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP, DROPPED_PROPERTY, *COLUMN_NAMES))
"""Properties that describe the log and the files of one table, and no other table."""


@dataclass(frozen=True)
class Definition:
    """The definition of a table in a statement.

    Args:
        columns: the declared columns in order; empty if the query defines all columns. A query's columns are matched by
            position; it may omit generated and identity columns.
        constraints: the conditions of CHECK constraints in SQL, by name.
        keys: the keys by name.
        dropping: the names of the CHECK constraints that leave out the rows that break them.
        differences_by: the key by which only the rows that differ are written, if any.
        source: the table whose definition is copied; `properties` override its properties.
    """

    columns: tuple[ColumnDefinition, ...] = ()
    partition_columns: tuple[str, ...] = ()
    clustered_by: tuple[Name, ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Key] = field(default_factory=dict)
    dropping: Sequence[str] = ()
    differences_by: tuple[str, ...] = ()
    source: Snapshot | None = None


def create(
    spark: SparkSession,
    location: TableLocation,
    definition: Definition,
    query: DataFrame | None,
    mode: CreateMode,
    settings: WriteSettings,
) -> Outcome:
    """Creates or replaces a table.

    Args:
        query: the rows; None for an empty table.

    Raises:
        RelationExistsError, RelationNotFoundError: if `mode` does not allow the table.
        InvalidNameError, TypeMismatchError, ColumnNotFoundError, InvalidPropertyError, ...: if the definition is
            invalid.
        DataRejectedError: if a row breaks a rule of the definition.
        ConcurrentCreateError: if another writer created the table first.
    """
    name, base = location.log.name, location.base
    operation = _operation_name(mode, query)
    if base is not None and mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return Outcome(operation, name, base.version, rows_inserted=0, attempts=0)
    check_mode(location, mode)
    metadata, protocol = described(location, definition, query)
    schema = StructType.from_json(metadata.schema_string)
    generated.check_expressions(spark, schema, name)
    generated.check_defaults(spark, schema, name)
    table_rules.check_conditions(spark, schema, TableProperties(metadata.configuration).constraints, name)
    clustered = clustering_of(definition, metadata, name)
    written = None
    if query is not None:
        written, metadata = _write(location, metadata, query, clustered)
        if settings.build is not None and base is not None and base.protocol == protocol and not written.routed:
            with discarded_on_error(location.log, (written,)):
                found = content.compared(spark, location.log, base, metadata, written)
            settings = settings.with_commit_info(found.commit_info)
            if found.is_equal and clustered == clustering_columns(base.domains):
                return _commit_unchanged(location, base, metadata, written, operation, settings)
    return _commit(location, _New(metadata, protocol, clustered), written, operation, settings)


@dataclass(frozen=True)
class _New:
    """The new definition of a table."""

    metadata: Metadata
    protocol: Protocol
    clustered: tuple[Name, ...]

    def domains(self, base: Snapshot | None) -> tuple[DomainMetadata, ...]:
        """Returns the domains to set in a table that replaces `base`, if any."""
        own = (clustering_domain(self.clustered),) if self.clustered else ()
        ended = () if base is None else ended_domains(base)
        return (*own, *(each for each in ended if not (own and each.domain == CLUSTERING_DOMAIN)))


def _operation_name(mode: CreateMode, query: DataFrame | None) -> str:
    verb = (CreateMode.CREATE if mode is CreateMode.CREATE_IF_NOT_EXISTS else mode).value.upper()
    return f"{verb} TABLE" if query is None else f"{verb} TABLE AS SELECT"


def described(location: TableLocation, definition: Definition, query: DataFrame | None) -> tuple[Metadata, Protocol]:
    """Returns the new table's metadata, and the least protocol that supports it and the existing table, if any."""
    name, base, clock, source = location.log.name, location.base, location.log.clock, definition.source
    schema = _schema(definition, query, name) if source is None else _copied_schema(source, base, name)
    by = definition.partition_columns if source is None else source.partition_columns
    partition_columns = tuple(schema.require(column, name).name for column in by)
    check_partitionable(schema, partition_columns, name)
    if any(column in identities(schema) for column in partition_columns):
        raise InvalidStatementError("an identity column cannot be a partition column", table=name)
    named = {f"{FEATURE_PREFIX}{FEATURE}": "supported"} if definition.clustered_by else {}
    asked = (
        checked(definition.properties)
        | named
        | {f"{CONSTRAINT_PREFIX}{k}": v for k, v in definition.constraints.items()}
    )
    _check_features(asked, name)
    stats_columns.check(asked, schema, name)
    kept = {} if source is None else _copied_properties(source)
    kept |= {key: value for key, value in asked.items() if not _is_command(key)}
    kept |= key_properties(checked_keys(definition.keys, schema, name))
    kept |= expectation_properties(definition.dropping)
    described = Metadata(
        id=clock.new_id() if base is None else base.metadata.id,
        schema_string=schema.to_json(),
        partition_columns=partition_columns,
        configuration=kept,
        description=definition.comment if source is None else source.metadata.description,
        created_time=clock.now_ms(),
    )
    if base is not None:
        described = with_same_columns(succeeding(described, base.metadata), base.metadata)
    metadata = enabled(mapped(described, None, clock.new_id, name), (), clock.new_id, name)
    if base is None and source is None:
        return metadata, protocol_for(schema, asked)
    return metadata, upgraded(_merged_protocol(base, source), needed_features(schema, kept | asked))


def clustering_of(definition: Definition, metadata: Metadata, table: str) -> tuple[Name, ...]:
    """Returns the paths, by physical names, of the columns that the new table is clustered by; raises as `checked`."""
    columns, source = definition.clustered_by, definition.source
    if source is not None:
        columns = tuple(logical_paths(source.schema, clustering_columns(source.domains)))
    return clustering.checked(columns, metadata, table)


def _merged_protocol(base: Snapshot | None, source: Snapshot | None) -> Protocol:
    """Returns the protocol of a replaced table and of the table whose definition is copied."""
    first, *others = (each.protocol for each in (base, source) if each is not None)
    return merged(first, *others) if others else first


def _copied_schema(source: Snapshot, base: Snapshot | None, table: str) -> StructType:
    """Returns a table's columns with their rules and comments, as columns of another table that has no numbers yet."""
    check_writable(source.protocol, source.table, source.metadata)
    columns = type_widening.without_changes(source.schema if base is None else without_mapping(source.schema))
    schema = StructType(tuple(column.with_metadata(**{HIGH_WATER_MARK: None}) for column in columns))
    check_storable(schema, table)
    storable_schema.check_names(schema, table)
    return schema


def _copied_properties(source: Snapshot) -> dict[str, str]:
    return {key: value for key, value in of_a_copy(source.metadata.configuration).items() if key not in _OF_ITS_LOG}


def _schema(definition: Definition, query: DataFrame | None, table: str) -> StructType:
    given = None if query is None else query_schema(query)
    if definition.columns:
        schema = _declared(definition, given, table)
    elif given is not None:
        schema = given
    else:
        schema = StructType()
    if not len(schema):
        raise InvalidStatementError(
            "a table needs at least one column", remedy="Name its columns, or give a query", table=table
        )
    check_storable(schema, table)
    storable_schema.check_names(schema, table)
    return schema


def _declared(definition: Definition, given: StructType | None, table: str) -> StructType:
    columns = definition.columns
    if given is not None and len(given) != len(columns):
        columns = tuple(column for column in columns if column.generated is None and column.identity is None)
    if given is not None and len(given) != len(columns):
        raise ColumnNotFoundError(
            f"the statement declares {len(definition.columns)} columns, but its query returns {len(given)}",
            remedy="Declare as many columns as the query returns",
            table=table,
        )
    fields = []
    positions = {column.name: position for position, column in enumerate(columns)}
    # Spark reads each type once: a wide table has many columns and few types.
    types = {text: column_type(text, table) for text in dict.fromkeys(each.type for each in definition.columns) if text}
    for column in definition.columns:
        if column.type is not None:
            typed = types[column.type]
        elif given is not None and column.name in positions:
            typed = given.fields[positions[column.name]]
        else:
            raise InvalidStatementError(f"the column `{column.name}` has no type", table=table)
        declared = StructField(column.name, typed.type, column.nullable, typed.metadata)
        declared = declared if column.comment is None else declared.with_metadata(comment=column.comment or None)
        details = {CURRENT_DEFAULT: column.default, GENERATION_EXPRESSION: column.generated}
        declared = declared.with_metadata(**details)
        fields.append(declared if column.identity is None else _with_identity(declared, column.identity, table))
    return StructType(tuple(fields))


def _with_identity(column: StructField, clause: IdentityClause, table: str) -> StructField:
    identity = Identity(clause.start, clause.step, clause.by_default)
    if column.type != PrimitiveType("long") or column.is_computed or CURRENT_DEFAULT in column.metadata:
        raise InvalidStatementError(
            f"the identity column `{column.name}` must be a bigint, without a default or another rule for its values",
            remedy=f"Write `{column.name}` bigint {identity.sql}",
            table=table,
        )
    return column.with_metadata(**identity.metadata)


def _is_command(key: str) -> bool:
    return key.lower() in _COMMANDS or key.startswith(FEATURE_PREFIX)


def _check_features(asked: Mapping[str, str], table: str) -> None:
    for key, value in asked.items():
        if key.startswith(FEATURE_PREFIX) and value.lower() not in ("supported", "enabled"):
            raise InvalidPropertyError(f"the table property `{key}` cannot be `{value}`, only `supported`", table=table)


def _write(
    location: TableLocation, metadata: Metadata, query: DataFrame, clustered: Sequence[Name]
) -> tuple[Written, Metadata]:
    """Writes the query's rows, and returns the metadata with the high water marks of their numbers."""
    name = location.log.name
    schema = StructType.from_json(metadata.schema_string)
    given = None
    if len(query.columns) < len(schema):
        given = [member.name for member in schema if not member.is_computed]
    unnumbered = numbering.to_number(schema, schema.names if given is None else given, name)
    assigned: Assigned = assign(query, schema, name, columns=given)
    rules = table_checks(schema, TableProperties(metadata.configuration), name)
    rows, metadata = numbering.numbered(assigned.df, metadata, unnumbered)
    checks = (*assigned.checks, *rules)
    rows = frames.in_order(rows, logical_paths(schema, clustered))
    written = files.write(rows, location.log, metadata, checks, tests=location.tests, routable="true")
    return replace(written, is_new=True), metadata


def _commit(
    location: TableLocation, new: _New, written: Written | None, operation: str, settings: WriteSettings
) -> Outcome:
    base, log, metadata, protocol = location.base, location.log, new.metadata, new.protocol
    now = log.clock.now_ms()
    changes = Changes(
        operation=Operation(operation, _parameters(location, metadata, new.clustered), _metrics(written, base)),
        adds=() if written is None else written.adds,
        removes=() if base is None else tuple(add.remove(now) for add in base.add_files()),
        metadata=metadata,
        protocol=None if base is not None and protocol == base.protocol else protocol,
        domains=new.domains(base),
    )
    changes = replaced_whole(base, changes, settings)
    reads = ReadSet(whole_table=base is not None, transactions=base is not None)
    committed = commit(log, base, changes, reads, settings, () if written is None else (written,))
    rows = 0 if written is None else written.rows
    return Outcome(
        operation,
        log.name,
        committed.version,
        rows_inserted=rows,
        rows_before=None if rows or base is None else stats_json.row_count(base.files),
        files_added=len(changes.adds),
        files_removed=len(changes.removes),
        attempts=committed.attempts,
    )


def _commit_unchanged(
    location: TableLocation,
    base: Snapshot,
    metadata: Metadata,
    written: Written,
    operation: str,
    settings: WriteSettings,
) -> Outcome:
    """Commits that the table has these rows already, and deletes their new files."""
    log = location.log
    written.discard(log)
    changes = Changes(
        operation=Operation(operation, _parameters(location, metadata, clustering_columns(base.domains))),
        metadata=None if is_same(metadata, base.metadata) else replace(metadata, id=base.metadata.id),
    )
    reads = ReadSet(whole_table=True, transactions=True)
    # A row that another writer has added meanwhile would be a row that the build does not have.
    settings = replace(settings, commit=replace(settings.commit, isolation_level=IsolationLevel.SERIALIZABLE))
    committed = commit(log, base, replaced_whole(base, changes, settings), reads, settings)
    return Outcome(operation, log.name, committed.version, rows_inserted=0, attempts=committed.attempts, unchanged=True)


def is_same(one: Metadata, other: Metadata) -> bool:
    """Returns whether two definitions of a table differ at most in their time."""
    return replace(one, created_time=other.created_time) == other


def _parameters(location: TableLocation, metadata: Metadata, clustered: Sequence[Name]) -> dict[str, Json]:
    described = {} if metadata.description is None else {"description": metadata.description}
    return {
        "isManaged": str(location.is_managed).lower(),
        **described,
        "partitionBy": json.dumps(list(metadata.partition_columns), ensure_ascii=False),
        "clusterBy": json.dumps(spelled(StructType.from_json(metadata.schema_string), clustered), ensure_ascii=False),
        "properties": json.dumps(dict(metadata.configuration), ensure_ascii=False),
    }


def _metrics(written: Written | None, base: Snapshot | None) -> dict[str, str]:
    if written is None:
        return {}
    gone = {}
    if base is not None:
        gone = {"numRemovedFiles": base.num_files, "numRemovedBytes": base.size_in_bytes}
    return as_strings({**written.operation_metrics(), **gone})
