"""Randomly changed deletion vectors with correct checksums: an error with a code, or deleted rows that exist."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace
from typing import Any

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

ROWS, MUTATIONS = 70_000, 3000
BEGINS = 5
BITMAPS = {
    "few": BitMap64([0, 4, 7]),
    "an array": BitMap64(range(0, ROWS, 31)),
    "a run": BitMap64(range(1000, 60_000)),
    "bits": BitMap64(position for position in range(ROWS) if position % 3),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Returns the file of a vector with changed bytes or length; most have a matching checksum."""
    size = int.from_bytes(data[1:BEGINS], "big")
    body = bytearray(data[BEGINS : BEGINS + size])
    for _ in range(chance.choice((1, 1, 2, 8))):
        # The header states the number and lengths of the containers; it is changed as often as the whole rest.
        where = chance.randrange(min(len(body), 24)) if chance.random() < 0.5 else chance.randrange(len(body))
        body[where] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    if chance.random() < 0.1:
        body = body[: chance.randrange(len(body))]
    if chance.random() < 0.1:
        body += chance.randbytes(chance.randrange(100))
    length = len(body) if chance.random() < 0.9 else chance.randrange(1 << 32)
    checksum = zlib.crc32(body) if chance.random() < 0.95 else 0
    return data[:1] + length.to_bytes(4, "big") + bytes(body) + checksum.to_bytes(4, "big")


@pytest.mark.parametrize("name", BITMAPS)
def test_a_changed_vector_is_refused_or_deletes_only_existing_rows(name: str) -> None:
    store = MemoryStore(FixedClock())
    store.make_folder("")
    (vector,) = deletion_vectors.write(store, FixedClock(), [BITMAPS[name]])
    path = str(deletion_vectors.file_name(vector))
    whole = store.read(path)
    chance = random.Random(name)
    for number in range(MUTATIONS // len(BITMAPS)):
        store.put(path, damaged(whole, chance))
        size = int.from_bytes(store.read(path)[1:BEGINS], "big")
        try:
            found = read(store, replace(vector, size_in_bytes=min(size, (1 << 31) - 1)))
        except SiltError as error:
            assert error.code != "SILT_INTERNAL", f"mutation {number}: {error}"
        else:
            assert not found or found.max() < ROWS


def read(store: MemoryStore, vector: DeletionVector) -> BitMap64:
    add = AddFile("a.parquet", {}, 6, 0, stats=f'{{"numRecords": {ROWS}}}', deletion_vector=vector)
    return deletion_vectors.read_all(store, files_table([add]), "main.t")["a.parquet"]


@pytest.mark.parametrize("name", BITMAPS)
def test_a_changed_inline_vector_is_refused_or_deletes_only_existing_rows(name: str) -> None:
    store = MemoryStore(FixedClock())
    vector = deletion_vectors.inline(BITMAPS[name])
    chance = random.Random(name)
    for _ in range(200):
        text = list(vector.path_or_inline_dv)
        for _ in range(chance.choice((1, 2, 8))):
            text[chance.randrange(min(len(text), 60))] = chance.choice("0a9Z.-:+=^!/*?&<>()[]{}@%$#\0é")
        fields: dict[str, Any] = {
            "path_or_inline_dv": "".join(text),
            "cardinality": chance.choice((vector.cardinality, 0, 1 << 62)),
            "size_in_bytes": chance.choice((vector.size_in_bytes, 0, 1, (1 << 31) - 1)),
        }
        try:
            found = read(store, replace(vector, **fields))
        except SiltError as error:
            assert error.code != "SILT_INTERNAL"
        else:
            assert not found or found.max() < ROWS
