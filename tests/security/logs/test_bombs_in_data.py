"""Small data files whose rows would take gigabytes are read in small parts, or refused."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt import engine
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError
from tests.security.attacks import limited, log_folder, put_commit, silt, with_two_tables
from tests.unit.cli.house import House

MEGABYTES: Final = 700
"""The additional memory that a command may take."""
ROWS: Final = 3_000
LONG: Final = "x" * (1 << 20)


def column(name: str, kind: object, **metadata: object) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


@dataclass(frozen=True)
class Bomb:
    """A table's columns, its only data file, and what the log says about the file."""

    columns: tuple[dict[str, Any], ...]
    rows: pa.Table
    partition: Mapping[str, str] = field(default_factory=dict)
    data: bytes | None = None

    def put(self, house: House) -> int:
        """Writes the table as the hostile table; returns the size of the data file in bytes."""
        log = log_folder(house)
        for name in log.iterdir():
            name.unlink()
        path = log.parent / "bomb.parquet"
        if self.data is None:
            pq.write_table(self.rows, path, compression="zstd", store_schema=False)
        else:
            path.write_bytes(self.data)
        schema = json.dumps({"type": "struct", "fields": self.columns})
        table = {"id": "b", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
        stats = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
        add = {"path": path.name, "partitionValues": dict(self.partition), "size": path.stat().st_size}
        put_commit(
            house,
            0,
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": {**table, "partitionColumns": list(self.partition), "configuration": {}, "createdTime": 1}},
            {"add": {**add, "modificationTime": 1, "dataChange": True, "stats": stats}},
        )
        return path.stat().st_size


def repeated(rows: int = ROWS, text: str = LONG) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))


def by_dictionary() -> Bomb:
    return Bomb((column("s", "string"),), pa.table({"s": repeated()}))


def of_bytes() -> Bomb:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([LONG.encode()]))
    return Bomb((column("s", "binary"),), pa.table({"s": values}))


_BY_PREFIXES = """
import sys
import pyarrow
import pyarrow.parquet
rows = pyarrow.table({"s": ["x" * 100_000] * 12_000})
encoding = {"s": "DELTA_BYTE_ARRAY"}
data = pyarrow.BufferOutputStream()
pyarrow.parquet.write_table(rows, data, compression="zstd", use_dictionary=False, column_encoding=encoding)
sys.stdout.buffer.write(data.getvalue())
"""


def by_prefixes() -> Bomb:
    """Written by another process, because the writer needs the memory."""
    data = subprocess.run([sys.executable, "-c", _BY_PREFIXES], check=True, capture_output=True).stdout
    return Bomb((column("s", "string"),), pa.table({}), data=data)


def in_a_struct() -> Bomb:
    kind = {"type": "struct", "fields": [column("a", "string")]}
    return Bomb((column("s", kind),), pa.table({"s": pa.StructArray.from_arrays([repeated()], names=["a"])}))


def in_a_list() -> Bomb:
    kind = {"type": "array", "elementType": "string", "containsNull": True}
    lists = pa.ListArray.from_arrays(pa.array([0, ROWS], pa.int32()), repeated())
    return Bomb((column("s", kind),), pa.table({"s": lists}))


def by_partition() -> Bomb:
    columns = (column("i", "long"), column("s", "string"))
    return Bomb(columns, pa.table({"i": [1] * ROWS}), partition={"s": LONG})


def by_blanks() -> Bomb:
    char = column("s", "string", __CHAR_VARCHAR_TYPE_STRING=f"char({1 << 20})")
    return Bomb((char,), pa.table({"s": ["x"] * ROWS}))


BOMBS: Final = (
    by_dictionary,
    of_bytes,
    by_prefixes,
    in_a_struct,
    in_a_list,
    by_partition,
    by_blanks,
)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return with_two_tables(tmp_path / "house")


@pytest.fixture
def within_memory() -> Iterator[None]:
    """Checks that the test takes little memory beyond what the process has taken before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
@pytest.mark.usefixtures("within_memory")
def test_commands_read_a_file_with_few_bytes_and_many_long_values_in_small_parts(
    bomb: Callable[[], Bomb], house: House
) -> None:
    assert bomb().put(house) < 2_000
    for command in (
        ("check", "main.hostile", "--data"),
        ("show", "main.hostile", "--rows", "1", "--json"),
        ("show", "main.hostile", "--rows", "1", "--where", "s is null"),
        *([] if bomb is by_blanks else [("sql", "select s from main.hostile limit 1")]),  # Spark reads a `char`
        ("report", "--output", str(house.folder.parent / "report.html")),
    ):
        said = silt(house, *command)
        assert "Traceback" not in said.all
        assert said.code == 0 or "bytes of memory: it is damaged or hostile" in said.all or "SILT_" in said.err, command
    assert silt(house, "show", "main.good", "--rows").code == 0


@pytest.mark.parametrize("bomb", [by_dictionary, by_prefixes, by_partition], ids=lambda bomb: bomb.__name__)
def test_a_whole_read_of_such_a_file_is_refused_before_it_takes_gigabytes(
    bomb: Callable[[], Bomb], house: House
) -> None:
    bomb().put(house)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with limited(), pytest.raises(TableDamagedError, match=r"main\.hostile.*damaged or hostile\).*read_batches"):
        engine.read("main.hostile", str(house.folder))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_800 << 10
    with limited():
        assert next(iter(engine.read_batches("main.hostile", str(house.folder)))).num_rows > 0


@pytest.mark.parametrize("value", [7, "x" * 50], ids=["number", "text"])
@pytest.mark.usefixtures("within_memory")
def test_an_honest_file_of_equal_values_is_read_however_few_bytes_it_has(value: object, house: House) -> None:
    rows = 2_000_000
    kind = "long" if isinstance(value, int) else "string"
    values = pa.repeat(value, rows) if kind == "long" else repeated(rows, str(value))
    assert Bomb((column("s", kind),), pa.table({"s": values})).put(house) < 20_000
    assert silt(house, "check", "main.hostile", "--data").code == 0
    found = engine.read_batches("main.hostile", str(house.folder))
    assert sum(batch.num_rows for batch in found) == rows
    assert engine.read("main.hostile", str(house.folder), columns=["s"]).num_rows == rows
