"""A damaged footer is refused before Arrow would end the process."""

from __future__ import annotations

import random
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.arrow.read import read
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import footers
from dbt.adapters.silt.engine.kernel.files.footer_check import field_id, read_footer
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from tests.unit.engine.kernel.log_builder import add, new_log, put

ROWS = {
    "int": pa.array([1, 2, None]),
    "text": ["a", "b", None],
    "double": [1.5, 2.5, None],
    "flag": [True, False, None],
    "bytes": pa.array([b"a", b"bb", None], pa.binary()),
    "fixed": pa.array([b"1234", b"5678", None], pa.binary(4)),
    "decimal": [Decimal("1.23")] * 3,
    "time": [datetime(2024, 1, 1)] * 3,
    "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
    "list": [[1], [2, None], None],
    "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
}
COLUMN_TYPE = b"\x15\x04"
"""The first field of a Thrift struct, with the number 2: the version of the footer, then INT64 as the type of the
column in the schema, and in the column chunk.
"""


def file_of(rows: pa.Table, **options: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return sink.getvalue().to_pybytes()


def of_another_type() -> bytes:
    """Returns a file whose only column chunk has values of another type than its column."""
    data = file_of(pa.table({"id": pa.array([1, 2])}))
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    _, _, at = [each.start() for each in re.finditer(re.escape(COLUMN_TYPE), data) if each.start() >= start][:3]
    return data[: at + 1] + b"\x0c" + data[at + 2 :]


def damaged(data: bytes, seed: int) -> bytes:
    """Returns the file with a few changed bits in its footer."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    chance, found = random.Random(seed), bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        found[chance.randrange(start, len(data) - 8)] ^= 1 << chance.randrange(8)
    return bytes(found)


def test_an_undamaged_footer_is_read_as_arrow_reads_it() -> None:
    data = file_of(pa.table(ROWS), row_group_size=2)
    assert read_footer(pa.BufferReader(data)).equals(pq.read_metadata(pa.BufferReader(data)))


def test_a_footer_that_is_longer_than_the_first_read_is_read() -> None:
    data = file_of(pa.table({f"column_{number}": [number] for number in range(1000)}))
    assert len(data) > 1 << 17
    assert read_footer(pa.BufferReader(data)).num_columns == 1000


def test_a_column_chunk_of_another_type_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="column id: it has values of the type BYTE_ARRAY instead of INT64"):
        read_footer(pa.BufferReader(of_another_type()))


def test_a_column_name_that_is_no_text_is_damage(tmp_path: Path) -> None:
    data = file_of(pa.table({"id": [1]})).replace(b"\x18\x02id", b"\x18\x02i\xff")
    with pytest.raises(pa.ArrowInvalid):
        read_footer(pa.BufferReader(data))
    store = LocalStore(str(tmp_path))
    log = new_log(store)
    (tmp_path / "part.parquet").write_bytes(data)
    put(log, 1, add("part.parquet", size=len(data)))
    with pytest.raises(TableDamagedError, match=r"part.parquet cannot be read"):
        read(str(tmp_path))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"\xff" * 40, b"x" * 20 + b"\xff\xff\xff\xffPAR1"])
def test_a_file_that_is_not_parquet_is_refused(data: bytes) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        read_footer(pa.BufferReader(data))


def test_a_damaged_footer_is_refused_or_can_be_used() -> None:
    data = file_of(pa.table(ROWS), row_group_size=2)
    refused = 0
    for seed in range(1000):
        try:
            footer = read_footer(pa.BufferReader(damaged(data, seed)))
        except pa.ArrowInvalid as error:
            refused += "the footer is damaged at the column" in str(error)
            continue
        except (pa.ArrowException, OSError):
            continue
        groups = (footer.row_group(number) for number in range(footer.num_row_groups))
        for group in groups:
            for number in range(footer.num_columns):
                assert group.column(number).statistics is None or group.column(number).physical_type
    assert refused > 5


def test_a_file_that_arrow_cannot_decode_is_reported_although_its_footer_is_damaged_too(tmp_path: Path) -> None:
    """A read without a condition does not check the footer, except to explain why Arrow failed."""
    rows = {"id": [1, 2, None], "day": ["a", "b", None]}
    data, log = file_of(pa.table(rows), row_group_size=2), new_log(LocalStore(str(tmp_path)))
    put(log, 1, add("part.parquet", size=len(data)))
    refused = 0
    for seed in range(500):
        (tmp_path / "part.parquet").write_bytes(damaged(data, seed))
        try:
            read(str(tmp_path))
        except (TableDamagedError, DataFileChangedError):
            refused += 1
    assert refused > 50


def test_the_check_of_a_table_reports_the_file(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    log = new_log(store)
    (tmp_path / "part.parquet").write_bytes(of_another_type())
    put(log, 1, add("part.parquet", size=len(of_another_type())))
    (problem,) = check_files(store, log.snapshot(), lambda _: None)
    assert "the footer is damaged at the column id" in str(problem)


def test_the_statistics_of_a_checked_footer_are_read() -> None:
    footer = read_footer(pa.BufferReader(file_of(pa.table(ROWS), row_group_size=2)))
    found = footers.read(footer, [("int",), ("struct", "a")])
    assert (found["int",].minimum, found["int",].maximum, found["struct", "a"].null_count) == (1, 2, 2)


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7), ("0", 0), ("x", None), ("", None), ("-1", None), ("1.5", None)]
)
def test_an_id_that_is_no_number_is_no_id(tmp_path: Path, text: str, expected: int | None) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": text})])
    pq.write_table(pa.table([pa.array([1])], schema=schema), tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as file:
        (field,) = read_footer(file).schema.to_arrow_schema()
    assert field_id(field) == expected
