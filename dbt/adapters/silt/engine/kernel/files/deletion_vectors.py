"""Reads and writes deletion vectors: the deleted rows of a data file, as bitmaps of positions counted from 0.

Source: the Delta specification, sections "Deletion Vectors" and "Deletion Vector Format". A vector is in a file in
the table's folder, which may hold several vectors, or as a Z85 string in the log itself:

    file version 1 (uint8), then for each vector the size of its data (uint32, big-endian), the data, its CRC-32
    data    1681511377 (uint32, little-endian), then the bitmap in Roaring's portable 64-bit format

An `offset` points at a size. The specification's default of 0, which is the position of the version, means the first
vector.
"""

from __future__ import annotations

import array
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.clock import Clock
from dbt.adapters.silt.engine.kernel.errors import CorruptDeletionVectorError, DataFileMissingError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import stats_json, z85
from dbt.adapters.silt.engine.kernel.files.data_files import located
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.storage.store import MOST_BYTES, ObjectMissing, Store
from dbt.adapters.silt.engine.kernel.table.actions import DeletionVector
from dbt.adapters.silt.engine.kernel.table.paths import decode_path

Positions: TypeAlias = Mapping[str, BitMap64]
"""Positions of rows, by the path of their data file as in the log."""

IN_FILE: Final = "u"
IN_FILE_OF_ABSOLUTE_PATH: Final = "p"
INLINE: Final = "i"

MOST_ROWS: Final = 1 << 32
"""The maximum number of rows of a file: a vector that deletes later rows is damaged or hostile."""

_TRUSTED_ROWS: Final = 1 << 26
"""If the log states more rows for a file, they are counted in its footer: a bitmap of so many rows takes memory."""
_LARGEST: Final = 512 << 20
"""The maximum size of a vector in bytes: enough for a bitmap of `MOST_ROWS` rows."""

_FILE_VERSION = b"\x01"
_MAGIC = (1681511377).to_bytes(4, "little")
_UUID_CHARACTERS = 20
_LENGTH_BYTES = 4
_MOST_BYTES = 16 << 20
# Reading a part within this distance needs no separate request.
_NEAR = 1 << 20
_READERS = 8


def file_name(vector: DeletionVector, table: str | None = None) -> str | None:
    """Returns the name of the vector's file, below the table's folder or absolute, or None for an inline vector.

    Raises:
        CorruptDeletionVectorError: if the descriptor does not name a file.
    """
    if vector.storage_type == INLINE:
        return None
    if vector.storage_type == IN_FILE_OF_ABSOLUTE_PATH:
        return decode_path(vector.path_or_inline_dv)
    prefix, encoded = vector.path_or_inline_dv[:-_UUID_CHARACTERS], vector.path_or_inline_dv[-_UUID_CHARACTERS:]
    try:
        if vector.storage_type != IN_FILE:
            raise ValueError(f"unknown storage type {vector.storage_type}")
        name = f"deletion_vector_{uuid.UUID(bytes=z85.decode(encoded))}.bin"
    except ValueError as error:
        raise _corrupt(vector, "", f"its descriptor cannot be read ({error})", table) from error
    return f"{prefix}/{name}" if prefix else name


def distant_files(files: pa.Table) -> Iterator[str]:
    """Yields the names (as from `file_name`) of deletion vectors' files that are not directly in the table's folder.

    Args:
        files: rows of `Snapshot.files`.

    Raises:
        CorruptDeletionVectorError: if the descriptor of such a vector does not name a file.
    """
    vectors = files["deletion_vector"].combine_chunks().drop_null()
    kinds, texts = (pc.struct_field(vectors, name) for name in ("storage_type", "path_or_inline_dv"))
    has_folder = pc.greater(pc.utf8_length(texts), _UUID_CHARACTERS)
    is_distant = pc.and_(pc.not_equal(kinds, INLINE), pc.or_(pc.equal(kinds, IN_FILE_OF_ABSOLUTE_PATH), has_folder))
    distant = (DeletionVector(**each) for each in vectors.filter(is_distant).to_pylist())
    yield from {name for name in map(file_name, distant) if name is not None}


def read_all(store: Store, files: pa.Table, table: str) -> dict[str, BitMap64]:
    """Reads the deleted rows of the data files that have a vector.

    Args:
        store: the table's folder.
        files: rows of `Snapshot.files`.

    Raises:
        CorruptDeletionVectorError: if a vector cannot be read, or differs from its descriptor in the log.
        DataFileMissingError: if a file of vectors is missing.
        ExternalPathError: if the table's log may not name files at the location of a file of vectors.
        UnsupportedFeatureError: if a file of vectors is in another storage than the table.
        StorageError: if the storage failed.
    """
    with_vectors = files.filter(pc.is_valid(files["deletion_vector"]))
    if with_vectors.num_rows == 0:
        return {}
    vectors = [DeletionVector(**each) for each in with_vectors["deletion_vector"].to_pylist()]
    found = read(store, vectors, table)
    paths = with_vectors["path"].to_pylist()
    records = stats_json.read(with_vectors["stats"].combine_chunks(), {stats_json.NUM_RECORDS: None})
    for path, vector, stated in zip(paths, vectors, records[stats_json.NUM_RECORDS].to_pylist(), strict=True):
        bitmap = found[vector.unique_id]
        if not bitmap:
            continue
        rows = stated if stated is not None and stated <= _TRUSTED_ROWS else _rows_of(store, path, table)
        if bitmap.max() >= min(rows, MOST_ROWS):
            raise _damaged(vector, f"it deletes row {bitmap.max()} of {path}, which has {rows} rows", table)
    return {path: found[vector.unique_id] for path, vector in zip(paths, vectors, strict=True)}


def _rows_of(store: Store, path: str, table: str) -> int:
    """Reads a data file's row count from its footer. Raises as `read_all`, or TableDamagedError if it is unreadable."""
    where, own = located(store, decode_path(path))
    try:
        with where.open_input(own) as source:
            return int(read_footer(source).num_rows)
    except ObjectMissing as error:
        raise DataFileMissingError(f"the data file {path} is missing", table=table, details={"path": path}) from error
    except (pa.ArrowException, OSError) as error:
        raise TableDamagedError(f"the data file {path} cannot be read ({error})", table=table) from error


def read(store: Store, vectors: Iterable[DeletionVector], table: str) -> dict[str, BitMap64]:
    """Reads the bitmaps, by the vectors' `unique_id`. Raises as `read_all`."""
    by_file: dict[str | None, list[DeletionVector]] = defaultdict(list)
    for vector in vectors:
        by_file[file_name(vector, table)].append(vector)

    def of_file(name: str | None) -> dict[str, BitMap64]:
        if name is None:
            parts = [_inline_data(each, table) for each in by_file[name]]
        else:
            parts = _data(store, name, by_file[name], table)
        return {each.unique_id: _decoded(each, data, table) for each, data in zip(by_file[name], parts, strict=True)}

    with ThreadPoolExecutor(min(_READERS, max(len(by_file), 1))) as pool:
        return {unique_id: bitmap for found in pool.map(of_file, by_file) for unique_id, bitmap in found.items()}


def write(store: Store, clock: Clock, bitmaps: Sequence[BitMap64]) -> tuple[DeletionVector, ...]:
    """Writes the bitmaps durably to a file of vectors, or to several files if they are large.

    Returns:
        The descriptors, in the order of the bitmaps.

    Raises:
        ObjectMissing: if the table's folder does not exist.
        StorageError: if the storage failed.
    """
    return tuple(vector for group in _filled(bitmaps) for vector in _written(store, clock, group))


def inline(bitmap: BitMap64) -> DeletionVector:
    """Creates a descriptor that contains the bitmap inline."""
    data = _encoded(bitmap)
    padding = bytes(-len(data) % 4)
    return DeletionVector(INLINE, z85.encode(data + padding), len(data), len(bitmap))


def of_positions(positions: pa.Array) -> BitMap64:
    """Converts row positions, an array of int64 without nulls, to a bitmap."""
    start = positions.offset * 8
    values = array.array("Q")
    if len(positions):
        values.frombytes(memoryview(positions.buffers()[1])[start : start + len(positions) * 8])
    return BitMap64(values)


def words(bitmap: BitMap64, rows: int = 0) -> pa.Array:
    """Converts the bitmap to int64 words: position p is bit p % 64 of word p // 64.

    Args:
        rows: the number of rows that determines the number of words, which is higher if the bitmap has later positions.
    """
    count = max(-(-rows // 64), bitmap.max() // 64 + 1 if bitmap else 0)
    if not bitmap:
        return pa.array([0] * count, pa.int64())
    positions = pa.Array.from_buffers(pa.uint64(), len(bitmap), [None, pa.py_buffer(bitmap.to_array())])
    bits = pc.shift_left(pa.scalar(1, pa.uint64()), pc.bit_wise_and(positions, pa.scalar(63, pa.uint64())))
    words_with_bits = pa.table({"word": pc.shift_right(positions, pa.scalar(6, pa.uint64())), "bits": bits})
    summed = words_with_bits.group_by("word").aggregate([("bits", "sum")])
    numbers = pa.array(range(count), pa.uint64())
    places = pc.index_in(numbers, value_set=summed["word"].combine_chunks())
    return pc.fill_null(summed["bits_sum"].combine_chunks().take(places), 0).view(pa.int64())


def _data(store: Store, name: str, vectors: Sequence[DeletionVector], table: str) -> list[bytes]:
    """Reads the data of vectors in the same file, and the file's version if it is near; reads no other parts."""
    for each in vectors:
        _check_place(each, table)
    starts = [max(each.offset or 0, len(_FILE_VERSION)) for each in vectors]
    ends = [start + each.size_in_bytes + 2 * _LENGTH_BYTES for start, each in zip(starts, vectors, strict=True)]
    is_near = min(starts) < _NEAR
    ranges = [*([(0, len(_FILE_VERSION))] if is_near else []), *zip(starts, ends, strict=True)]
    where, own = located(store, name)
    try:
        parts = where.read_ranges(own, ranges)
    except ObjectMissing as error:
        raise DataFileMissingError(
            f"the file of deletion vectors {name} is missing", table=table, details={"path": name}
        ) from error
    if is_near and (version := parts.pop(0)) != _FILE_VERSION:
        raise _damaged(vectors[0], f"its file begins with {version!r} instead of version 1", table)
    return [_checked(each, part, table) for each, part in zip(vectors, parts, strict=True)]


def _check_place(vector: DeletionVector, table: str) -> None:
    """Raises CorruptDeletionVectorError if the size or the offset is impossible."""
    if not (0 <= vector.size_in_bytes <= _LARGEST and 0 <= (vector.offset or 0) <= MOST_BYTES):
        raise _damaged(vector, f"its size of {vector.size_in_bytes} bytes, or its offset, is impossible", table)


def _checked(vector: DeletionVector, part: bytes, table: str) -> bytes:
    """Returns the data in a part of a file, after checking the length before it and the checksum after it."""
    length = int.from_bytes(part[:_LENGTH_BYTES], "big")
    if len(part) >= _LENGTH_BYTES and length != vector.size_in_bytes:
        raise _damaged(vector, f"its file has {length} bytes, but the log says {vector.size_in_bytes}", table)
    start = max(vector.offset or 0, len(_FILE_VERSION))
    end = start + vector.size_in_bytes + 2 * _LENGTH_BYTES
    if start + len(part) < end:
        ends = f"after {start + len(part)} bytes" if part else f"before byte {start}"
        raise _damaged(vector, f"its file ends {ends}, but the vector ends at byte {end}", table)
    data = part[_LENGTH_BYTES:-_LENGTH_BYTES]
    if int.from_bytes(part[-_LENGTH_BYTES:], "big") != zlib.crc32(data):
        raise _damaged(vector, "its checksum is wrong", table)
    return data


def _inline_data(vector: DeletionVector, table: str) -> bytes:
    try:
        data = z85.decode(vector.path_or_inline_dv)
    except ValueError as error:
        raise _damaged(vector, f"its inline data cannot be decoded ({error})", table) from error
    if not 0 <= len(data) - vector.size_in_bytes < _LENGTH_BYTES:
        raise _damaged(vector, f"it has {len(data)} bytes, but the log says {vector.size_in_bytes}", table)
    return data[: vector.size_in_bytes]


def _decoded(vector: DeletionVector, data: bytes, table: str) -> BitMap64:
    if data[: len(_MAGIC)] != _MAGIC:
        raise _damaged(vector, f"it begins with {data[: len(_MAGIC)].hex()} instead of {_MAGIC.hex()}", table)
    try:
        bitmap = BitMap64.deserialize(data[len(_MAGIC) :])
    except (ValueError, IndexError, MemoryError, OverflowError) as error:
        raise _damaged(vector, f"its bitmap cannot be read ({error})", table) from error
    if len(bitmap) != vector.cardinality:
        raise _damaged(vector, f"it deletes {len(bitmap)} rows, but the log says {vector.cardinality}", table)
    return bitmap


def _encoded(bitmap: BitMap64) -> bytes:
    packed = bitmap.copy()
    packed.run_optimize()
    return bytes(_MAGIC + packed.serialize())


def _filled(bitmaps: Iterable[BitMap64]) -> Iterator[list[tuple[bytes, int]]]:
    """Yields the vectors of each file to write; a vector is its data and the number of its rows."""
    group: list[tuple[bytes, int]] = []
    size = 0
    for bitmap in bitmaps:
        data = _encoded(bitmap)
        if group and size + len(data) > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append((data, len(bitmap)))
        size += len(data)
    if group:
        yield group


def _written(store: Store, clock: Clock, group: Sequence[tuple[bytes, int]]) -> Iterator[DeletionVector]:
    content = bytearray(_FILE_VERSION)
    file_id = z85.encode(uuid.UUID(clock.new_id()).bytes)
    vectors = []
    for data, cardinality in group:
        vectors.append(DeletionVector(IN_FILE, file_id, len(data), cardinality, offset=len(content)))
        content += len(data).to_bytes(_LENGTH_BYTES, "big") + data
        content += zlib.crc32(data).to_bytes(_LENGTH_BYTES, "big")
    store.put(str(file_name(vectors[0])), bytes(content))
    yield from vectors


def _damaged(vector: DeletionVector, what: str, table: str) -> CorruptDeletionVectorError:
    name = file_name(vector, table)
    return _corrupt(vector, " in the log" if name is None else f" in {name} at {vector.offset or 0}", what, table)


def _corrupt(vector: DeletionVector, place: str, what: str, table: str | None) -> CorruptDeletionVectorError:
    return CorruptDeletionVectorError(
        f"a deletion vector{place} cannot be used: {what}", table=table, details={"deletion_vector": vector.to_json()}
    )
