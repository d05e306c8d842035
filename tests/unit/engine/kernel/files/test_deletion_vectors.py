"""Deletion vectors and Z85, written and read: the specification's examples, files and inline text, damaged ones."""

from __future__ import annotations

import dataclasses
import random
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import (
    CorruptDeletionVectorError,
    DataFileMissingError,
    SiltError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.files import deletion_vectors, z85
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

TABLE = "main.orders"

# Single rows, runs, whole containers of 65,536 rows, and rows beyond 2**32.
ranges = st.tuples(st.integers(0, 1 << 35), st.integers(1, 5000)).map(lambda drawn: range(drawn[0], sum(drawn)))
bitmaps = st.lists(st.one_of(st.integers(0, 200_000).map(lambda row: range(row, row + 1)), ranges), max_size=8).map(
    lambda parts: BitMap64(row for part in parts for row in part)
)


def written(store: MemoryStore, *bitmaps: BitMap64) -> tuple[DeletionVector, ...]:
    return deletion_vectors.write(store, FixedClock(), bitmaps)


def read(store: MemoryStore | LocalStore, *vectors: DeletionVector) -> list[BitMap64]:
    found = deletion_vectors.read(store, vectors, TABLE)
    return [found[vector.unique_id] for vector in vectors]


def parquet_of(rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": range(rows)}), sink)
    return sink.getvalue().to_pybytes()


def add(path: str, vector: DeletionVector | None, stats: str | None = '{"numRecords":10}') -> AddFile:
    return AddFile(path, {}, 1, 0, stats=stats, deletion_vector=vector)


@given(st.binary(max_size=64).map(lambda data: data + bytes(-len(data) % 4)))
def test_z85_decodes_what_it_encoded(data: bytes) -> None:
    text = z85.encode(data)
    assert z85.decode(text) == data
    assert len(text) == len(data) // 4 * 5
    assert '"' not in text and "\\" not in text


@pytest.mark.parametrize(
    "last, data",
    [("###00", b"\0"), ("###30", b"\xff"), ("##093", b"\3\0"), ("##960", b"\xff\xff"), ("#0005", b"\0\0\5")],
)
def test_the_last_block_of_z85_may_be_padded_in_front(last: str, data: bytes) -> None:
    assert z85.decode("HelloWorld" + last) == bytes.fromhex("864FD26FB559F75B") + data


def test_z85_matches_its_specification() -> None:
    assert z85.encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"


@pytest.mark.parametrize("text", ["HelloWorl", "Hell~", "Hell,", "Hell\xe9", "#####", "####0", "##$$$", "##~00"])
def test_a_text_that_is_not_z85_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        z85.decode(text)


def test_the_file_of_a_vector_matches_the_specifications_examples() -> None:
    with_prefix = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, offset=4)
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert deletion_vectors.file_name(with_prefix) == f"ab/{name}"
    assert (
        deletion_vectors.file_name(dataclasses.replace(with_prefix, path_or_inline_dv="^-aqEH.-t@S}K{vb[*k^")) == name
    )
    absolute = DeletionVector("p", f"s3://mytable/a%20b/{name}", 40, 6, offset=4)
    assert deletion_vectors.file_name(absolute) == f"s3://mytable/a b/{name}"
    assert deletion_vectors.file_name(deletion_vectors.inline(BitMap64([3]))) is None


@given(st.lists(bitmaps, min_size=1, max_size=4))
def test_written_vectors_are_read_back_as_the_same_rows(given_bitmaps: list[BitMap64]) -> None:
    store = MemoryStore()
    vectors = written(store, *given_bitmaps)
    assert read(store, *vectors) == given_bitmaps
    assert [vector.cardinality for vector in vectors] == [len(bitmap) for bitmap in given_bitmaps]
    (file,) = store.list_from("")
    assert {deletion_vectors.file_name(vector) for vector in vectors} == {file.name}
    data = store.read(file.name)
    assert (data[0], vectors[0].offset) == (1, 1)
    assert len(data) == 1 + sum(vector.size_in_bytes + 8 for vector in vectors)


@given(bitmaps)
def test_an_inline_vector_is_read_back(bitmap: BitMap64) -> None:
    vector = deletion_vectors.inline(bitmap)
    assert DeletionVector.from_json(vector.to_json()) == vector
    assert vector.offset is None
    assert read(MemoryStore(), vector) == [bitmap]


@given(bitmaps.map(lambda bitmap: BitMap64(row % 100_000 for row in bitmap)))
def test_words_have_the_bits_of_the_rows(bitmap: BitMap64) -> None:
    words = deletion_vectors.words(bitmap)
    assert words.type == pa.int64()
    found = [64 * at + bit for at, word in enumerate(words.to_pylist()) for bit in range(64) if word >> bit & 1]
    assert found == list(bitmap)
    assert not len(words) or words[-1].as_py() != 0


@given(st.lists(st.integers(0, 1 << 40)), st.lists(st.integers(0, 1 << 40)))
def test_an_array_of_positions_is_converted_to_a_bitmap(before: list[int], positions: list[int]) -> None:
    values = pa.array([*before, *positions], pa.int64()).slice(len(before))
    assert deletion_vectors.of_positions(values) == BitMap64(positions)


def test_large_vectors_are_spread_over_files_that_a_reader_can_read_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_vectors, "_MOST_BYTES", 100)
    store = MemoryStore()
    given_bitmaps = [BitMap64(range(at, 4000, 7)) for at in range(3)] + [BitMap64([at]) for at in range(4)]
    vectors = written(store, *given_bitmaps)
    assert read(store, *vectors) == given_bitmaps
    assert len(store.list_from("")) == 5


def test_a_vector_without_an_offset_is_the_first_of_its_file() -> None:
    store = MemoryStore()
    first, _ = written(store, BitMap64([1, 2]), BitMap64([3]))
    assert read(store, dataclasses.replace(first, offset=None)) == [BitMap64([1, 2])]
    assert read(store, dataclasses.replace(first, offset=0)) == [BitMap64([1, 2])]


def test_vectors_with_a_prefix_or_an_absolute_path_are_found(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a table")
    store.make_folder("ab")
    (vector,) = deletion_vectors.write(store, FixedClock(), [BitMap64([7])])
    name = str(deletion_vectors.file_name(vector))
    store.put(f"ab/{name}", store.read(name))
    store.delete(name)
    assert read(store, dataclasses.replace(vector, path_or_inline_dv=f"ab{vector.path_or_inline_dv}")) == [
        BitMap64([7])
    ]
    spelled = f"file://{store.root}/ab/{name}".replace(" ", "%20")
    absolute = dataclasses.replace(vector, storage_type="p", path_or_inline_dv=spelled)
    assert read(store, absolute) == [BitMap64([7])]
    assert read(LocalStore(tmp_path / "clone"), absolute) == [BitMap64([7])]
    elsewhere = dataclasses.replace(absolute, path_or_inline_dv=f"s3://other/{name}")
    with pytest.raises(UnsupportedFeatureError, match="s3://other"):
        read(store, elsewhere)


def test_the_deleted_rows_are_returned_by_file_path() -> None:
    store = MemoryStore()
    one, two = written(store, BitMap64([1]), BitMap64([2, 9]))
    store.put("d", parquet_of(10))
    files = files_table([add("a%20b", one), add("c", None), add("d", two, stats=None)])
    assert deletion_vectors.read_all(store, files, TABLE) == {"a%20b": BitMap64([1]), "d": BitMap64([2, 9])}
    assert deletion_vectors.read_all(store, files.slice(1, 1), TABLE) == {}


def test_a_vector_that_deletes_rows_which_its_file_does_not_have_is_refused() -> None:
    store = MemoryStore()
    (vector,) = written(store, BitMap64([10]))
    with pytest.raises(CorruptDeletionVectorError, match=r"deletes row 10 of part-1, which has 10 rows"):
        deletion_vectors.read_all(store, files_table([add("part-1", vector)]), TABLE)


@pytest.mark.parametrize("stats", [None, "{}", '{"numRecords":99999999999}'])
def test_a_files_footer_is_read_if_the_log_has_no_reliable_row_count(stats: str | None) -> None:
    store = MemoryStore()
    store.put("part-1", parquet_of(10))
    (vector,) = written(store, BitMap64([10]))
    with pytest.raises(CorruptDeletionVectorError, match=r"deletes row 10 of part-1, which has 10 rows"):
        deletion_vectors.read_all(store, files_table([add("part-1", vector, stats)]), TABLE)


@pytest.mark.parametrize(
    "changes", [{"size_in_bytes": 1 << 62}, {"size_in_bytes": -5}, {"offset": 1 << 62}, {"offset": -1}]
)
def test_a_vector_of_an_absurd_size_or_offset_is_refused_unread(changes: dict[str, Any], tmp_path: Path) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path)):
        (vector,) = written(store, BitMap64([1]))  # type: ignore[arg-type]
        with pytest.raises(CorruptDeletionVectorError):
            read(store, dataclasses.replace(vector, **changes))


def test_a_missing_file_of_vectors_is_named() -> None:
    store = MemoryStore()
    (vector,) = written(store, BitMap64([10]))
    name = str(deletion_vectors.file_name(vector))
    store.delete(name)
    with pytest.raises(DataFileMissingError, match=name):
        read(store, vector)


def damaged(vector: DeletionVector) -> Iterable[tuple[str, DeletionVector]]:
    yield "2 rows, but the log says 3", dataclasses.replace(vector, cardinality=3)
    yield "bytes, but the log says", dataclasses.replace(vector, size_in_bytes=vector.size_in_bytes + 1)
    yield "bytes, but the log says", dataclasses.replace(vector, offset=7)
    yield "its file ends", dataclasses.replace(vector, offset=1 << 30)
    yield "unknown storage type x", dataclasses.replace(vector, storage_type="x")
    yield "descriptor cannot be read", dataclasses.replace(vector, path_or_inline_dv="abc")
    yield "descriptor cannot be read", dataclasses.replace(vector, path_or_inline_dv="~" * 20)


@pytest.mark.parametrize("at", range(7))
def test_a_descriptor_that_does_not_match_its_file_is_refused(at: int) -> None:
    store = MemoryStore()
    (vector,) = written(store, BitMap64([1, 2]))
    what, wrong = list(damaged(vector))[at]
    with pytest.raises(CorruptDeletionVectorError, match=what) as refused:
        read(store, wrong)
    assert refused.value.table == TABLE


@given(st.randoms(use_true_random=False), bitmaps)
def test_a_file_with_changed_bytes_is_never_read_wrongly(chance: random.Random, bitmap: BitMap64) -> None:
    store = MemoryStore()
    (vector,) = written(store, bitmap)
    name = str(deletion_vectors.file_name(vector))
    data = bytearray(store.read(name))
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    store.put(name, bytes(data[: chance.choice((len(data), at))]))
    with pytest.raises(CorruptDeletionVectorError):
        read(store, vector)


@given(st.randoms(use_true_random=False), bitmaps)
def test_an_inline_vector_with_changed_bytes_is_read_or_refused_by_name(
    chance: random.Random, bitmap: BitMap64
) -> None:
    text = deletion_vectors.inline(bitmap)
    characters = list(text.path_or_inline_dv)
    characters[chance.randrange(len(characters))] = chance.choice("0aA#~")
    try:
        (found,) = read(MemoryStore(), dataclasses.replace(text, path_or_inline_dv="".join(characters)))
    except SiltError as error:
        assert isinstance(error, CorruptDeletionVectorError)
    else:
        assert len(found) == text.cardinality


def test_the_old_format_of_the_specifications_inline_example_is_refused() -> None:
    old = DeletionVector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
    with pytest.raises(CorruptDeletionVectorError, match=r"in the log.*begins with"):
        read(MemoryStore(), old)


def test_the_name_of_a_written_file_contains_a_new_id() -> None:
    store = MemoryStore()
    (vector,) = written(store, BitMap64([1]))
    name = str(deletion_vectors.file_name(vector))
    assert name.startswith("deletion_vector_") and name.endswith(".bin")
    assert uuid.UUID(name.removeprefix("deletion_vector_").removesuffix(".bin")).version == 4
