"""The actions of the Delta log as frozen values, and their JSON.

Source: the Delta specification, section "Actions". An absent or null field is None; unknown fields and unknown actions
are ignored, as the specification requires. A JSON number with a fraction becomes a Decimal, never a float.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.table import json_fields

Json: TypeAlias = Any


@dataclass(frozen=True)
class Protocol:
    """The versions and named features that a reader and a writer must know."""

    key: ClassVar[str] = "protocol"
    min_reader_version: int = 1
    min_writer_version: int = 2
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Json]:
        return _present(
            minReaderVersion=self.min_reader_version,
            minWriterVersion=self.min_writer_version,
            readerFeatures=None if self.reader_features is None else list(self.reader_features),
            writerFeatures=None if self.writer_features is None else list(self.writer_features),
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> Protocol:
        return cls(
            min_reader_version=_long(body, "minReaderVersion"),
            min_writer_version=_long(body, "minWriterVersion"),
            reader_features=json_fields.strings(body, "readerFeatures"),
            writer_features=json_fields.strings(body, "writerFeatures"),
        )


@dataclass(frozen=True)
class Metadata:
    """The table's identity, schema, partitioning and properties.

    `schema_string` is the Spark StructType JSON; `table.schema.StructType.from_json` reads it.
    """

    key: ClassVar[str] = "metaData"
    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        return _present(
            id=self.id,
            name=self.name,
            description=self.description,
            format={"provider": self.format_provider, "options": dict(self.format_options)},
            schemaString=self.schema_string,
            partitionColumns=list(self.partition_columns),
            configuration=dict(self.configuration),
            createdTime=self.created_time,
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> Metadata:
        file_format = json_fields.struct(body, "format") or {}
        schema_string = json_fields.text(body, "schemaString")
        return cls(
            id=_text(body, "id"),
            schema_string=_NO_COLUMNS if schema_string is None else schema_string,
            partition_columns=json_fields.strings(body, "partitionColumns") or (),
            configuration=json_fields.full_map(body, "configuration") or {},
            name=json_fields.text(body, "name"),
            description=json_fields.text(body, "description"),
            created_time=json_fields.long(body, "createdTime"),
            format_provider=json_fields.text(file_format, "provider") or "parquet",
            format_options=json_fields.full_map(file_format, "options") or {},
        )


@dataclass(frozen=True)
class DeletionVector:
    """The location of the bitmap of a file's deleted rows (specification: "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """The vector's part in the key of a logical file."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"

    def to_json(self) -> dict[str, Json]:
        return _present(
            storageType=self.storage_type,
            pathOrInlineDv=self.path_or_inline_dv,
            offset=self.offset,
            sizeInBytes=self.size_in_bytes,
            cardinality=self.cardinality,
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json] | None) -> DeletionVector | None:
        if body is None:
            return None
        return cls(
            storage_type=_text(body, "storageType"),
            path_or_inline_dv=_text(body, "pathOrInlineDv"),
            size_in_bytes=_long(body, "sizeInBytes"),
            cardinality=_long(body, "cardinality"),
            offset=json_fields.long(body, "offset"),
        )


@dataclass(frozen=True)
class AddFile:
    """A data file that belongs to the table from this version on.

    `path` is spelled as in the log: a URI, relative to the table's root. `stats` is the JSON text of the statistics.
    """

    key: ClassVar[str] = "add"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    def to_json(self) -> dict[str, Json]:
        return _present(
            path=self.path,
            partitionValues=dict(self.partition_values),
            size=self.size,
            modificationTime=self.modification_time,
            dataChange=self.data_change,
            stats=self.stats,
            tags=None if self.tags is None else dict(self.tags),
            deletionVector=None if self.deletion_vector is None else self.deletion_vector.to_json(),
            baseRowId=self.base_row_id,
            defaultRowCommitVersion=self.default_row_commit_version,
            clusteringProvider=self.clustering_provider,
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> AddFile:
        return cls(
            path=_text(body, "path"),
            partition_values=json_fields.text_map(body, "partitionValues") or {},
            size=_size(body),
            modification_time=json_fields.long(body, "modificationTime") or 0,
            data_change=json_fields.boolean(body, "dataChange") is not False,
            stats=json_fields.text(body, "stats"),
            tags=json_fields.text_map(body, "tags"),
            deletion_vector=DeletionVector.from_json(json_fields.struct(body, "deletionVector")),
            base_row_id=json_fields.long(body, "baseRowId"),
            default_row_commit_version=json_fields.long(body, "defaultRowCommitVersion"),
            clustering_provider=json_fields.text(body, "clusteringProvider"),
        )

    def remove(self, deletion_timestamp: int, data_change: bool = True) -> RemoveFile:
        """Returns the action that removes this file from the table."""
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
        )


@dataclass(frozen=True)
class RemoveFile:
    """A data file that no longer belongs to the table; a tombstone until VACUUM may delete the file."""

    key: ClassVar[str] = "remove"
    path: str
    deletion_timestamp: int | None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    def to_json(self) -> dict[str, Json]:
        return _present(
            path=self.path,
            deletionTimestamp=self.deletion_timestamp,
            dataChange=self.data_change,
            extendedFileMetadata=self.extended_file_metadata,
            partitionValues=None if self.partition_values is None else dict(self.partition_values),
            size=self.size,
            tags=None if self.tags is None else dict(self.tags),
            deletionVector=None if self.deletion_vector is None else self.deletion_vector.to_json(),
            baseRowId=self.base_row_id,
            defaultRowCommitVersion=self.default_row_commit_version,
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> RemoveFile:
        return cls(
            path=_text(body, "path"),
            deletion_timestamp=json_fields.long(body, "deletionTimestamp"),
            data_change=json_fields.boolean(body, "dataChange") is not False,
            extended_file_metadata=json_fields.boolean(body, "extendedFileMetadata"),
            partition_values=json_fields.text_map(body, "partitionValues"),
            size=json_fields.long(body, "size"),
            tags=json_fields.text_map(body, "tags"),
            deletion_vector=DeletionVector.from_json(json_fields.struct(body, "deletionVector")),
            base_row_id=json_fields.long(body, "baseRowId"),
            default_row_commit_version=json_fields.long(body, "defaultRowCommitVersion"),
        )


@dataclass(frozen=True)
class AddCDCFile:
    """A file of change data (specification: "Add CDC File")."""

    key: ClassVar[str] = "cdc"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None

    def to_json(self) -> dict[str, Json]:
        return _present(
            path=self.path,
            partitionValues=dict(self.partition_values),
            size=self.size,
            dataChange=self.data_change,
            tags=None if self.tags is None else dict(self.tags),
        )

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> AddCDCFile:
        return cls(
            path=_text(body, "path"),
            partition_values=json_fields.text_map(body, "partitionValues") or {},
            size=_long(body, "size"),
            tags=json_fields.text_map(body, "tags"),
        )


@dataclass(frozen=True)
class SetTransaction:
    """The latest version that an application has committed to the table (specification: "Transaction Identifiers")."""

    key: ClassVar[str] = "txn"
    app_id: str
    version: int
    last_updated: int | None = None

    def to_json(self) -> dict[str, Json]:
        return _present(appId=self.app_id, version=self.version, lastUpdated=self.last_updated)

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> SetTransaction:
        return cls(_text(body, "appId"), _long(body, "version"), json_fields.long(body, "lastUpdated"))


@dataclass(frozen=True)
class DomainMetadata:
    """A named piece of configuration that writers must preserve."""

    key: ClassVar[str] = "domainMetadata"
    domain: str
    configuration: str
    removed: bool = False

    def to_json(self) -> dict[str, Json]:
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> DomainMetadata:
        return cls(
            _text(body, "domain"),
            json_fields.text(body, "configuration") or "",
            json_fields.boolean(body, "removed") or False,
        )


@dataclass(frozen=True)
class CommitInfo:
    """The origin and the operation of a commit (free-form in the specification; the field names are delta-spark's).

    `operation_parameters` are raw JSON values, `operation_metrics` are numbers as text. Three fields belong to this
    engine: `read_versions` are the versions of each table that the statement read, by table name; `statement_attempts`
    counts the runs of the whole statement, `commit_attempts` the attempts to commit in its last run. `extra` holds the
    fields that have no attribute here: fields of other writers and this engine's run metadata. A field whose type
    differs from delta-spark's is kept there too and is not an error, because the state of a table does not depend on
    it.
    """

    key: ClassVar[str] = "commitInfo"
    timestamp: int | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, Json] = field(default_factory=dict)
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    in_commit_timestamp: int | None = None
    read_versions: Mapping[str, Sequence[int]] | None = None
    commit_attempts: int | None = None
    statement_attempts: int | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> dict[str, Json]:
        known = _present(
            inCommitTimestamp=self.in_commit_timestamp,
            timestamp=self.timestamp,
            operation=self.operation,
            operationParameters=dict(self.operation_parameters),
            readVersion=self.read_version,
            isolationLevel=self.isolation_level,
            isBlindAppend=self.is_blind_append,
            operationMetrics=None if self.operation_metrics is None else dict(self.operation_metrics),
            userMetadata=self.user_metadata,
            engineInfo=self.engine_info,
            txnId=self.txn_id,
            readVersions=None if self.read_versions is None else {k: list(v) for k, v in self.read_versions.items()},
            commitAttempts=self.commit_attempts,
            statementAttempts=self.statement_attempts,
        )
        return {**known, **{k: v for k, v in self.extra.items() if k not in known}}

    @classmethod
    def from_json(cls, body: Mapping[str, Json]) -> CommitInfo:
        known = {key: value for key, value in body.items() if _is_of(_COMMIT_INFO_TYPES.get(key), value)}
        read = known.get("readVersions", {}).values()
        if not all(isinstance(each, list) and all(type(version) is int for version in each) for each in read):
            del known["readVersions"]
        return cls(
            timestamp=known.get("timestamp"),
            operation=known.get("operation"),
            operation_parameters=dict(known.get("operationParameters") or {}),
            read_version=known.get("readVersion"),
            isolation_level=known.get("isolationLevel"),
            is_blind_append=known.get("isBlindAppend"),
            operation_metrics=known.get("operationMetrics"),
            user_metadata=known.get("userMetadata"),
            engine_info=known.get("engineInfo"),
            txn_id=known.get("txnId"),
            in_commit_timestamp=known.get("inCommitTimestamp"),
            read_versions=known.get("readVersions"),
            commit_attempts=known.get("commitAttempts"),
            statement_attempts=known.get("statementAttempts"),
            extra={key: value for key, value in body.items() if key not in known},
        )


_SIZES = range(1 << 53)

# Old versions of delta-rs leave out the schema of an empty table.
_NO_COLUMNS = '{"type":"struct","fields":[]}'

Action: TypeAlias = (
    Protocol | Metadata | AddFile | RemoveFile | AddCDCFile | SetTransaction | DomainMetadata | CommitInfo
)


def changes_rows(actions: Iterable[Action]) -> bool:
    """Returns whether actions add or remove rows; OPTIMIZE, ALTER TABLE, a comment and an empty commit do not."""
    return any(isinstance(action, AddFile | RemoveFile) and action.data_change for action in actions)


_TYPES: Mapping[str, Any] = {
    kind.key: kind
    for kind in (
        Protocol,
        Metadata,
        AddFile,
        RemoveFile,
        AddCDCFile,
        SetTransaction,
        DomainMetadata,
        CommitInfo,
    )
}
_COMMIT_INFO_TYPES: Mapping[str, type] = {
    "timestamp": int,
    "operation": str,
    "operationParameters": dict,
    "readVersion": int,
    "isolationLevel": str,
    "isBlindAppend": bool,
    "operationMetrics": dict,
    "userMetadata": str,
    "engineInfo": str,
    "txnId": str,
    "inCommitTimestamp": int,
    "readVersions": dict,
    "commitAttempts": int,
    "statementAttempts": int,
}


def serialize(actions: Iterable[Action]) -> bytes:
    """Returns the bytes of a commit file: a JSON object per line, in UTF-8.

    Raises:
        InvalidArgumentError: if a value, for example the user's metadata, contains half of a surrogate pair.
    """
    lines = (
        json.dumps({a.key: a.to_json()}, ensure_ascii=False, separators=(",", ":"), default=_number) for a in actions
    )
    try:
        return ("\n".join(lines) + "\n").encode()
    except UnicodeEncodeError as error:
        nearby = error.object[max(0, error.start - 30) : error.end + 10]
        raise InvalidArgumentError(
            f"the commit cannot be written in UTF-8: its text contains half of a surrogate pair near `{nearby}`"
        ) from error


def _number(value: Decimal) -> float | str:
    """Returns a number of the facts of a commit, which are read exactly, as JSON can state it."""
    number = float(value)
    return number if math.isfinite(number) else str(value)


def parse(data: bytes, with_info: bool = True) -> list[Action]:
    """Returns the actions of a commit file without unknown actions.

    Args:
        with_info: whether to return the `commitInfo`, which does not change the state of the table.

    Raises:
        ValueError: if a line is not JSON, or an action lacks a field or has a field of another type; the caller names
            the file.
    """
    found: list[Action] = []
    for line in data.decode().split("\n"):
        if line.strip():
            found.extend(_parse_line(_loaded(line), with_info))
    return found


_COMMIT_INFO = '{"commitInfo":'
"""The beginning of a line with the facts of a commit, which are shown, but not copied to another commit."""


def _loaded(line: str) -> Mapping[str, Json]:
    wrapper = foreign_json.loads_exactly(line, is_only_shown=line.startswith(_COMMIT_INFO))
    if not isinstance(wrapper, dict):
        raise ValueError("it is not a JSON object")
    return wrapper


def _parse_line(wrapper: Mapping[str, Json], with_info: bool) -> Sequence[Action]:
    known = [(_TYPES[key], json_fields.struct(wrapper, key)) for key in wrapper if key in _TYPES]
    return [kind.from_json(body) for kind, body in known if body is not None and (with_info or kind is not CommitInfo)]


def _present(**fields: Json) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if value is not None}


def _text(body: Mapping[str, Json], key: str) -> str:
    return json_fields.required(json_fields.text(body, key), key)


def _long(body: Mapping[str, Json], key: str) -> int:
    return json_fields.required(json_fields.long(body, key), key)


def _size(body: Mapping[str, Json]) -> int:
    size = _long(body, "size")
    if size not in _SIZES:
        raise ValueError(f"`size` is {size}, which no file can have")
    return size


def _is_of(kind: type | None, value: Json) -> bool:
    """Returns whether a field is known and has its type."""
    return kind is not None and isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
