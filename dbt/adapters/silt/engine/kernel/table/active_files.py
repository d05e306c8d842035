"""A table's active files and tombstones as Arrow columns, and their conversion from and to actions.

Each row is a logical file. The columns are the fields of the actions `add` and `remove` in snake case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector, RemoveFile
from dbt.adapters.silt.engine.kernel.table.paths import decode_path

STRING_MAP: Final = pa.map_(pa.string(), pa.string())
DELETION_VECTOR: Final = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline_dv", pa.string()),
        ("offset", pa.int32()),
        ("size_in_bytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILES: Final = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", STRING_MAP),
        ("size", pa.int64()),
        ("modification_time", pa.int64()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("clustering_provider", pa.string()),
    ]
)
TOMBSTONES: Final = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_timestamp", pa.int64()),
        ("extended_file_metadata", pa.bool_()),
        ("partition_values", STRING_MAP),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
    ]
)

# A removal copies only the batches that it changes; snapshots share the other batches.
_BATCH_ROWS = 65_536
_FEW_BATCHES = 8
_SMALL_BATCHES = 256
KEY_SEPARATOR: Final = "\x00"
"""Separates the path from the deletion vector in a `file_key`."""

# Long enough for the number and the id in the names of Spark's files.
_TAIL = 64


def files_table(adds: Iterable[AddFile]) -> pa.Table:
    """Returns the files as a table of schema FILES."""
    return _table(FILES, list(adds))


def tombstones_table(removes: Iterable[RemoveFile]) -> pa.Table:
    """Returns the removed files as a table of schema TOMBSTONES."""
    return _table(TOMBSTONES, list(removes))


def add_files(files: pa.Table) -> list[AddFile]:
    """Returns the rows of a table of schema FILES as actions, `data_change` false as in every snapshot's state."""
    return [
        AddFile(
            **{
                **row,
                "partition_values": dict(row["partition_values"] or ()),
                "tags": None if row["tags"] is None else dict(row["tags"]),
                "deletion_vector": None if row["deletion_vector"] is None else DeletionVector(**row["deletion_vector"]),
                "data_change": False,
            }
        )
        for row in files.select(FILES.names).to_pylist()
    ]


def size(files: pa.Table) -> int:
    """Returns the total size of the files in bytes."""
    return pc.sum(files["size"]).as_py() or 0


def camel(name: str) -> str:
    """Returns the name of a column as the specification spells it, in camel case."""
    if name == "path_or_inline_dv":
        return "pathOrInlineDv"
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def file_key(path: str, vector: DeletionVector | None) -> str:
    """Returns the key of a logical file (specification: "Action Reconciliation")."""
    return decode_path(path) if vector is None else f"{decode_path(path)}{KEY_SEPARATOR}{vector.unique_id}"


def without(table: pa.Table, keys: Collection[str]) -> pa.Table:
    """Returns the rows whose `file_key` is not among the keys; batches without these keys are shared, not copied."""
    if not keys or table.num_rows == 0:
        return table
    wanted = pa.array(sorted(keys), pa.string())
    names = _Names.of(keys)
    # Every append adds a small batch, and a batch costs more work than its rows.
    is_splintered = table["path"].num_chunks > _FEW_BATCHES and table.num_rows <= _BATCH_ROWS
    joined = table.combine_chunks() if is_splintered else table
    kept = [_batch_without(batch, wanted, names) for batch in joined.to_batches(max_chunksize=_BATCH_ROWS)]
    return pa.Table.from_batches([batch for batch in kept if batch.num_rows], schema=table.schema)


def appended(table: pa.Table, more: pa.Table) -> pa.Table:
    """Returns the rows of both tables, sharing the columns' memory if that remains cheap to read."""
    if more.num_rows == 0:
        return table
    both = pa.concat_tables([table, more])
    if both["path"].num_chunks <= _SMALL_BATCHES + both.num_rows // _BATCH_ROWS:
        return both
    return both.combine_chunks()


def keys_of(batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """Returns the `file_key` of each row, computed on columns; only quoted paths pass through Python."""
    keys = _decoded(batch.column("path"))
    vectors = batch.column("deletion_vector")
    if vectors.null_count == len(vectors):
        return keys
    part = {name: pc.struct_field(vectors, name) for name in ("storage_type", "path_or_inline_dv", "offset")}
    at = pc.binary_join_element_wise("@", pc.cast(part["offset"], pa.string()), "")
    unique = pc.binary_join_element_wise(
        part["storage_type"], part["path_or_inline_dv"], pc.coalesce(at, pa.scalar("")), ""
    )
    with_vector = pc.binary_join_element_wise(keys, unique, KEY_SEPARATOR)
    return pc.if_else(pc.is_null(vectors), keys, with_vector)


def _batch_without(batch: pa.RecordBatch, keys: pa.Array, names: _Names) -> pa.RecordBatch:
    paths = batch.column("path")
    candidates = pc.is_in(paths, value_set=names.paths)
    spelled = _spelled(paths)
    if pc.any(spelled).as_py():
        candidates = pc.or_(candidates, pc.replace_with_mask(spelled, spelled, names.may_be(paths.filter(spelled))))
    if not pc.any(candidates).as_py():
        return batch
    gone = pc.is_in(keys_of(batch.filter(candidates)), value_set=keys)
    return (
        batch.filter(pc.invert(pc.replace_with_mask(candidates, candidates, gone))) if pc.any(gone).as_py() else batch
    )


@dataclass(frozen=True)
class _Names:
    """The decoded paths in keys, and their last characters."""

    paths: pa.Array
    tails: pa.Array

    @classmethod
    def of(cls, keys: Collection[str]) -> _Names:
        paths = {key.partition(KEY_SEPARATOR)[0] for key in keys}
        return cls(pa.array(sorted(paths), pa.string()), pa.array(sorted({path[-_TAIL:] for path in paths})))

    def may_be(self, spelled: pa.Array) -> pa.Array:
        """Returns whether each path may have one of these names.

        Only the ends of the paths are compared: decoding whole paths is slow, and does not change an unquoted end.
        """
        # The tail may begin in the middle of a quoted character, or of the scheme.
        longer = pc.utf8_slice_codeunits(spelled, start=-_TAIL - len("file:///"))
        tail = pc.utf8_slice_codeunits(longer, start=-_TAIL)
        return pc.or_(_spelled(longer), pc.is_in(tail, value_set=self.tails))


def _spelled(paths: pa.Array) -> pa.Array:
    """Returns whether a path may differ from its decoded form."""
    return pc.or_(pc.match_substring(paths, "%"), pc.starts_with(paths, "file:"))


def _decoded(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if isinstance(paths, pa.ChunkedArray):
        return pa.chunked_array([_decoded(chunk) for chunk in paths.chunks], paths.type)
    spelled = _spelled(paths)
    if not pc.any(spelled).as_py():
        return paths
    values = [decode_path(path) for path in paths.filter(spelled).to_pylist()]
    return pc.replace_with_mask(paths, spelled, pa.array(values, paths.type))


def _table(schema: pa.Schema, actions: Sequence[AddFile | RemoveFile]) -> pa.Table:
    return pa.Table.from_arrays([_column(member, actions) for member in schema], schema=schema)


def _column(member: pa.Field, actions: Sequence[AddFile | RemoveFile]) -> pa.Array:
    values = list(map(attrgetter(member.name), actions))
    if values.count(None) == len(values):
        return pa.nulls(len(values), member.type)
    if pa.types.is_map(member.type):
        values = [None if value is None else list(value.items()) for value in values]
    elif pa.types.is_struct(member.type):
        values = [
            None if value is None else {name: getattr(value, name) for name in DELETION_VECTOR.names}
            for value in values
        ]
    return pa.array(values, member.type)
