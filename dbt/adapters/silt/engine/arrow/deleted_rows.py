"""Finds the rows of a file that its deletion vector keeps."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.silt.engine.kernel.errors import CorruptDeletionVectorError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import AddFile

_BITS = 8


def kept_rows(file: AddFile, rows: int, store: Store, table: str) -> pa.BooleanArray | None:
    """Returns for each row of the file whether it is in the table, or None if all rows are.

    Args:
        rows: number of rows in the file.

    Raises:
        CorruptDeletionVectorError: if the vector cannot be read, or deletes rows that the file does not have.
        DataFileMissingError: if the file of the vector is missing.
        ExternalPathError: if that file is at a location that the table may not use.
        StorageError: if the storage failed.
    """
    vector = file.deletion_vector
    if vector is None:
        return None
    bitmap = deletion_vectors.read(store, [vector], table)[vector.unique_id]
    if bitmap and bitmap.max() >= rows:
        raise CorruptDeletionVectorError(
            f"a deletion vector cannot be used: it deletes row {bitmap.max()} of {file.path}, which has {rows} rows",
            table=table,
            details={"deletion_vector": vector.to_json()},
        )
    # The words have their bits in the order of Arrow's Booleans.
    words = deletion_vectors.words(bitmap)
    bits = words.buffers()[1].to_pybytes()[words.offset * _BITS :] if len(words) else b""
    padded = bits + bytes(max(0, rows // _BITS + 1 - len(bits)))
    return pc.invert(pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(padded)]))
