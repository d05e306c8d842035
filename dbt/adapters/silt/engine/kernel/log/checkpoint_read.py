"""Reads a checkpoint: classic, in several parts, or V2 with sidecars; its top-level file is Parquet or JSON.

Source: the Delta specification, sections "Checkpoints" and "V2 Spec". File actions remain Arrow columns; only the
few other actions become Python values.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel import foreign_json
from dbt.adapters.silt.engine.kernel.errors import CorruptCheckpointError
from dbt.adapters.silt.engine.kernel.files.bounded_parquet import MOST_DECODED, BoundedParquet, opened, stats_texts
from dbt.adapters.silt.engine.kernel.files.plain_types import nulls
from dbt.adapters.silt.engine.kernel.files.table_files import (
    EARLY,
    ROW,
    WITHOUT_STATISTICS,
    KeptStatistics,
    TableFiles,
    action_batches,
)
from dbt.adapters.silt.engine.kernel.log.log_segment import CheckpointFiles
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing, Store, read_whole
from dbt.adapters.silt.engine.kernel.table.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.active_files import (
    DELETION_VECTOR,
    FILES,
    TOMBSTONES,
    camel,
    files_table,
    tombstones_table,
)
from dbt.adapters.silt.engine.kernel.table.paths import SIDECAR_FOLDER, decode_path, is_absolute

_HEADER_COLUMNS = (Protocol.key, Metadata.key, SetTransaction.key, DomainMetadata.key, "sidecar")
_FEW_ROWS = 32_768
"""For up to this many rows, statistics are read with the other columns, which costs less than a second read."""
_UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    ObjectMissing,
)


@dataclass(frozen=True)
class CheckpointHeader:
    """The actions of a checkpoint except the file actions.

    Args:
        file_paths: the Parquet and JSON files that hold its `add` and `remove` rows, relative to the root.
    """

    protocol: Protocol
    metadata: Metadata
    transactions: Mapping[str, SetTransaction]
    domains: Mapping[str, DomainMetadata]
    file_paths: tuple[str, ...]


def read_header(store: Store, checkpoint: CheckpointFiles, table: str) -> CheckpointHeader:
    """Reads all actions except the file actions.

    Raises:
        CorruptCheckpointError: if a part is missing or truncated, or has no protocol or metadata.
    """
    found = _Found()
    with _corrupt(checkpoint, table):
        for file in checkpoint.files:
            rows = _json_lines(store, file.path) if _is_json(file.path) else _parquet_header(store, file.path)
            for name, body in rows:
                found.take(name, body)
        return CheckpointHeader(
            Protocol.from_json(found.only(Protocol.key)),
            Metadata.from_json(found.only(Metadata.key)),
            {txn.app_id: txn for txn in map(SetTransaction.from_json, found.bodies.get(SetTransaction.key, ()))},
            {domain.domain: domain for domain in found.domains() if not domain.removed},
            tuple(file.path for file in checkpoint.files) + found.sidecars(),
        )


def read_files(store: Store, checkpoint: CheckpointFiles, header: CheckpointHeader, table: str) -> TableFiles:
    """Reads the checkpoint's active files. Raises as `read_header`."""
    corrupt = functools.partial(_corrupt, checkpoint, table)
    with corrupt():
        late, early, kept, rows = [FILES.empty_table()], [EARLY.empty_table()], [], 0
        for path in header.file_paths:
            data = _of_many_rows(store, path)
            if data is None:
                late.append(_files_of(store, path))
            else:
                early.append(_without_statistics(data, rows))
                kept.append(data)
                rows += early[-1].num_rows
        both = (_with_partition_values(pa.concat_tables(parts), header.metadata) for parts in (late, early))
        late_files, early_files = both
        return TableFiles(late_files, early_files, KeptStatistics(kept, corrupt) if kept else None)


def read_tombstones(store: Store, checkpoint: CheckpointFiles, header: CheckpointHeader, table: str) -> pa.Table:
    """Reads the checkpoint's removed files, schema `active_files.TOMBSTONES`. Raises as `read_header`."""
    with _corrupt(checkpoint, table):
        parts = [_tombstones_of(store, path) for path in header.file_paths]
        return pa.concat_tables([TOMBSTONES.empty_table(), *parts])


@dataclass
class _Found:
    """Collects the bodies of actions by name."""

    bodies: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def take(self, name: str, body: Mapping[str, Any]) -> None:
        self.bodies.setdefault(name, []).append(body)

    def only(self, name: str) -> Mapping[str, Any]:
        bodies = self.bodies.get(name, ())
        if len(bodies) != 1:
            raise ValueError(f"it has {len(bodies)} `{name}` actions instead of one")
        return bodies[0]

    def domains(self) -> Iterator[DomainMetadata]:
        return map(DomainMetadata.from_json, self.bodies.get(DomainMetadata.key, ()))

    def sidecars(self) -> tuple[str, ...]:
        return tuple(f"{SIDECAR_FOLDER}/{_in_folder(body['path'])}" for body in self.bodies.get("sidecar", ()))


def _in_folder(path: str) -> str:
    """Returns the decoded name of a sidecar, which must be in the folder of sidecars."""
    name = decode_path(path)
    if is_absolute(name) or ".." in name.split("/"):
        raise ValueError(f"its sidecar {path} is not in {SIDECAR_FOLDER}")
    return name


@contextlib.contextmanager
def _corrupt(checkpoint: CheckpointFiles, table: str) -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise CorruptCheckpointError(
            f"the checkpoint {checkpoint.name} cannot be read: {error!r}", table=table, version=checkpoint.version
        ) from error


def _is_json(path: str) -> bool:
    return path.endswith(".json")


def _json_lines(store: Store, path: str) -> Iterator[tuple[str, Any]]:
    for line in read_whole(store, path).decode().split("\n"):
        if line.strip():
            yield from foreign_json.loads_exactly(line).items()


def _parquet_header(store: Store, path: str) -> Iterator[tuple[str, Any]]:
    with _parquet(store, path) as file:
        present = [name for name in _HEADER_COLUMNS if name in file.schema.names]
        rows = [row for batch in (file.batches(present) if present else ()) for row in _header_rows(batch)]
    # In the order of the columns, as if each column was read in turn.
    for name in present:
        yield from (row for row in rows if row[0] == name)


def _header_rows(batch: Mapping[str, pa.Array]) -> Iterator[tuple[str, Any]]:
    for name, values in batch.items():
        for body in values.drop_null().to_pylist():
            yield name, {key: value for key, value in body.items() if value is not None}


def _files_of(store: Store, path: str) -> pa.Table:
    if _is_json(path):
        return files_table(AddFile.from_json(body) for name, body in _json_lines(store, path) if name == AddFile.key)
    with _parquet(store, path) as file:
        return _checked(_rows(file, AddFile.key, FILES), ("path", "size"))


def _of_many_rows(store: Store, path: str) -> pa.Buffer | None:
    """Reads the Parquet file, or returns None if it has few rows or no `add` column, or is JSON."""
    if _is_json(path):
        return None
    with _parquet(store, path) as file:
        is_large = AddFile.key in file.schema.names and file.metadata.num_rows > _FEW_ROWS
    return pa.py_buffer(store.read(path)) if is_large else None


def _without_statistics(data: pa.Buffer, first_row: int) -> pa.Table:
    """Reads the files without statistics, schema `EARLY`, with rows numbered from `first_row`."""
    found = _checked(_rows(BoundedParquet(pa.BufferReader(data)), AddFile.key, WITHOUT_STATISTICS), ("path", "size"))
    return found.append_column(EARLY.field(ROW), pa.array(range(first_row, first_row + found.num_rows), pa.int32()))


def _tombstones_of(store: Store, path: str) -> pa.Table:
    if _is_json(path):
        removes = (body for name, body in _json_lines(store, path) if name == RemoveFile.key)
        return tombstones_table(map(RemoveFile.from_json, removes))
    with _parquet(store, path) as file:
        return _checked(_rows(file, RemoveFile.key, TOMBSTONES), ("path",))


def _with_partition_values(files: pa.Table, metadata: Metadata) -> pa.Table:
    """Replaces null maps by empty maps; in a table without partition columns both are valid."""
    values = files["partition_values"]
    if not values.null_count:
        return files
    if metadata.partition_columns:
        raise ValueError(f"{values.null_count} files have no partitionValues")
    filled = pa.array([value or () for value in values.to_pylist()], values.type)
    return files.set_column(files.schema.get_field_index("partition_values"), "partition_values", filled)


def _checked(rows: pa.Table, required: Sequence[str]) -> pa.Table:
    """Returns the rows after checks that Parquet omits: valid UTF-8, no null in required columns, possible sizes."""
    rows.validate(full=True)
    for name in required:
        if rows[name].null_count:
            raise ValueError(f"{rows[name].null_count} files have no {name}")
    least, greatest = (each.as_py() for each in pc.min_max(rows["size"]).values())
    if "size" in required and rows.num_rows and not 0 <= least <= greatest < 1 << 53:
        raise ValueError(f"a file has {least if least < 0 else greatest} bytes, which is impossible")
    return rows


@contextlib.contextmanager
def _parquet(store: Store, path: str) -> Iterator[BoundedParquet]:
    with store.open_input(path) as source, opened(source) as file:
        yield file


def _rows(file: BoundedParquet, action: str, schema: pa.Schema) -> pa.Table:
    """Reads the rows of a file action, its fields cast to `schema`; fields missing from the file are null."""
    names = file.schema.names
    if action not in names:
        return schema.empty_table()
    present = {member.name for member in file.schema.field(action).type}
    wanted = [camel(name) for name in schema.names if camel(name) in present]
    table = _read(file, action, wanted, schema)
    if "stats" in schema.names and "stats_parsed" in present and table["stats"].null_count == table.num_rows:
        return _read(file, action, [*(name for name in wanted if name != "stats"), "stats_parsed"], schema)
    return table


def _read(file: BoundedParquet, action: str, members: Sequence[str], schema: pa.Schema) -> pa.Table:
    batches, size = [], 0
    for rows in action_batches(file, action, members):
        batches.append(_converted(rows, schema))
        size += batches[-1].nbytes
        if size > MOST_DECODED:
            raise ValueError(f"its files take more than {size} bytes of memory: it is damaged or hostile")
    return pa.Table.from_batches([batch for batch in batches if batch.num_rows], schema=schema)


def _converted(rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    members = {member.name: rows.field(index) for index, member in enumerate(rows.type)}
    if "stats_parsed" in members:
        members["stats"] = stats_texts(members["stats_parsed"])
    columns = [_column(members.get(camel(member.name)), member, len(rows)) for member in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: pa.Array | None, member: pa.Field, length: int) -> pa.Array:
    if values is None:
        return nulls(length, member.type)
    if member.type == DELETION_VECTOR:
        return _vectors(values)
    return values.cast(member.type)


def _vectors(values: pa.StructArray) -> pa.Array:
    if values.null_count == len(values):
        return nulls(len(values), DELETION_VECTOR)
    present = [member.name for member in values.type]
    parts: Sequence[pa.Array] = [
        pc.struct_field(values, camel(member.name)).cast(member.type)
        if camel(member.name) in present
        else nulls(len(values), member.type)
        for member in DELETION_VECTOR
    ]
    return pa.StructArray.from_arrays(parts, fields=list(DELETION_VECTOR), mask=pc.is_null(values))
