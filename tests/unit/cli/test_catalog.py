"""`silt catalog duckdb` writes a file of DuckDB whose views have the rows of the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.duckdb_file.types import partition_literal, type_of, value_of
from dbt.adapters.silt.engine.kernel.errors import UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.table.schema import (
    CHAR_VARCHAR_KEY,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from tests.unit.cli.house import House, rows

STRING, LONG = PrimitiveType("string"), PrimitiveType("long")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "tables.duckdb"


def query(file: Path, sql: str) -> list[Any]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_each_table_is_a_view_in_its_schema(house: House, as_json: Callable[..., Any], target: Path) -> None:
    house.create("main.orders", rows(0, 3))
    house.append(house.create("raw.ünï xy", rows(5, 2)), rows(7, 1))
    found = as_json("catalog", "duckdb", str(target))
    assert [(each["table"], each["version"]) for each in found["tables"]] == [
        ("silt.main.orders", 0),
        ("silt.raw.ünï xy", 1),
    ]
    assert query(target, "SELECT id, name FROM main.orders ORDER BY id") == [(n, f"name {n}") for n in range(3)]
    assert query(target, 'SELECT id FROM raw."ünï xy" ORDER BY id') == [(5,), (6,), (7,)]


def test_names_of_another_writer_are_names_and_never_sql(house: House, silt: Callable[..., str], target: Path) -> None:
    house.catalog.create_schema("silt", "main", if_not_exists=True)
    column = "a\" FROM x); DROP SCHEMA main; -- '${HOME}"
    write_deltalake(house.folder / "main" / "foreign", pa.table({column: [1], "p": ["it's"]}), partition_by=["p"])
    silt("catalog", "duckdb", str(target))
    assert [row[0] for row in query(target, "DESCRIBE main.foreign")] == [column, "p"]
    assert query(target, "SELECT * FROM main.foreign") == [(1, "it's")]


def test_deleted_rows_are_missing(house: House, silt: Callable[..., str], target: Path) -> None:
    log = house.create("main.orders", rows(0, 4))
    house.mark(log, [0, 2])
    house.append(log, rows(10, 1))
    silt("catalog", "duckdb", str(target))
    assert query(target, "SELECT id FROM main.orders ORDER BY id") == [(1,), (3,), (10,)]


def test_an_empty_table_has_its_columns(house: House, silt: Callable[..., str], target: Path) -> None:
    house.create("main.orders")
    silt("catalog", "duckdb", str(target))
    assert query(target, "SELECT * FROM main.orders") == []
    assert [row[:2] for row in query(target, "DESCRIBE main.orders")] == [
        ("id", "BIGINT"),
        ("name", "VARCHAR"),
        ("price", "DECIMAL(12,2)"),
        ("sold", "TIMESTAMP WITH TIME ZONE"),
    ]


def test_a_warehouse_whose_folder_looks_like_a_pattern_is_read(tmp_path: Path, target: Path) -> None:
    house = House(tmp_path / "a[1]*?")
    house.folder.mkdir()
    house.create("main.orders", rows(0, 2))
    (tmp_path / "a1bc").mkdir()
    assert main(["catalog", "duckdb", str(target), "--warehouse", str(house.folder)]) == 0
    assert query(target, "SELECT count(*) FROM main.orders") == [(2,)]


def test_the_file_shows_its_versions_until_it_is_written_again(
    house: House, silt: Callable[..., str], target: Path
) -> None:
    log = house.create("main.orders", rows(0, 2))
    silt("catalog", "duckdb", str(target))
    house.append(log, rows(2, 1))
    with duckdb.connect(str(target), read_only=True) as earlier:
        assert earlier.execute("SELECT count(*) FROM main.orders").fetchall() == [(2,)]
        silt("catalog", "duckdb", str(target))
        assert earlier.execute("SELECT count(*) FROM main.orders").fetchall() == [(2,)]
    assert query(target, "SELECT count(*) FROM main.orders") == [(3,)]
    assert query(target, "SELECT * FROM _silt.tables") == [("main", "orders", 1)]
    assert [each.name for each in target.parent.iterdir() if "duckdb" in each.name] == [target.name]


def test_a_table_that_cannot_be_read_is_left_out_with_the_reason(
    house: House, as_json: Callable[..., Any], target: Path
) -> None:
    house.create("main.good", rows(0, 1))
    damaged = house.create("main.damaged", rows(0, 1))
    missing = house.create("main.missing", rows(0, 1))
    for log, change in ((damaged, lambda path: path.write_bytes(b"PAR1")), (missing, Path.unlink)):
        (add,) = log.snapshot().add_files()
        change(Path(log.store.root) / add.path)
    found = as_json("catalog", "duckdb", str(target))
    assert [each["table"] for each in found["tables"]] == ["silt.main.good"]
    reasons = {each["relation"]: each["reason"] for each in found["left_out"]}
    assert "has 4 bytes" in reasons["silt.main.damaged"]
    assert "No files found" in reasons["silt.main.missing"]
    assert query(target, "SELECT view_name FROM duckdb_views() WHERE NOT internal") == [("good",)]


def test_a_table_with_a_damaged_log_is_left_out(house: House, as_json: Callable[..., Any], target: Path) -> None:
    house.create("main.good", rows(0, 1))
    damaged = house.create("main.damaged", rows(0, 1))
    (Path(damaged.store.root) / "_delta_log" / f"{0:020}.json").write_text("{")
    found = as_json("catalog", "duckdb", str(target))
    assert [each["table"] for each in found["tables"]] == ["silt.main.good"]
    assert [each["relation"] for each in found["left_out"]] == ["silt.main.damaged"]


def test_a_data_file_that_is_a_link_is_not_read(
    house: House, as_json: Callable[..., Any], target: Path, tmp_path: Path
) -> None:
    log = house.create("main.orders", rows(0, 1))
    (add,) = log.snapshot().add_files()
    path = Path(log.store.root) / add.path
    secret = path.rename(tmp_path / "secret.parquet")
    path.symlink_to(secret)
    found = as_json("catalog", "duckdb", str(target))
    assert found["tables"] == []


@pytest.mark.parametrize("content", [b"", b"my notes", None])
def test_a_file_of_another_program_is_not_replaced(
    house: House, capsys: pytest.CaptureFixture[str], target: Path, content: bytes | None
) -> None:
    if content is None:
        with duckdb.connect(str(target)) as connection:
            connection.execute("CREATE TABLE mine AS SELECT 1")
    else:
        target.write_bytes(content)
    before = target.read_bytes()
    assert main(["catalog", "duckdb", str(target), "--warehouse", str(house.folder)]) == 2
    assert "is not a file of `silt catalog`" in capsys.readouterr().err
    assert target.read_bytes() == before


def test_a_file_with_changes_that_another_program_has_not_merged_is_not_replaced(
    house: House, silt: Callable[..., str], capsys: pytest.CaptureFixture[str], target: Path
) -> None:
    silt("catalog", "duckdb", str(target))
    Path(f"{target}.wal").write_bytes(b"changes")
    silt("catalog", "duckdb", str(target), code=2)


def test_a_folder_that_cannot_be_written_is_an_error(house: House, silt: Callable[..., str], tmp_path: Path) -> None:
    silt("catalog", "duckdb", str(tmp_path / "missing" / "tables.duckdb"), code=2)


NESTED = StructField(
    "n",
    StructType(
        (
            StructField("a b", LONG, metadata={"delta.columnMapping.physicalName": "p1"}),
            StructField(
                "list",
                ArrayType(StructType((StructField("c", STRING, metadata={"delta.columnMapping.physicalName": "p2"}),))),
                metadata={"delta.columnMapping.physicalName": "p3"},
            ),
            StructField("m", MapType(STRING, StructType((StructField("v", LONG),)))),
        )
    ),
)
STORED = StructField(
    "n",
    StructType(
        (
            StructField("p1", LONG),
            StructField("p3", ArrayType(StructType((StructField("p2", STRING),)))),
            StructField("m", MapType(STRING, StructType((StructField("w", LONG),)))),
        )
    ),
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            "{'p1': 1, 'p3': [{'p2': 'x'}, NULL], 'm': MAP {'k': {'w': 2}}}",
            {"a b": 1, "list": [{"c": "x"}, None], "m": {"k": {"v": 2}}},
        ),
        ("{'p1': NULL, 'p3': NULL, 'm': NULL}", {"a b": None, "list": None, "m": None}),
        ("NULL", None),
    ],
)
def test_members_have_the_names_of_the_table(value: str, shown: Any) -> None:
    kind = "STRUCT(p1 BIGINT, p3 STRUCT(p2 VARCHAR)[], m MAP(VARCHAR, STRUCT(w BIGINT)))"
    sql = f"SELECT {value_of(NESTED, STORED)} FROM (SELECT CAST({value} AS {kind}) AS n)"
    assert duckdb.sql(sql).fetchall() == [(shown,)]  # type: ignore[union-attr]


def test_a_char_is_padded_and_a_longer_value_is_whole() -> None:
    field = StructField("c", STRING, metadata={CHAR_VARCHAR_KEY: "char(3)"})
    sql = f"SELECT {value_of(field, field)} FROM (VALUES ('a'), ('abcd'), (NULL)) AS t(c)"
    assert duckdb.sql(sql).fetchall() == [("a  ",), ("abcd",), (None,)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("it's", "string", "it's"),
        ("2020-02-03", "date", "2020-02-03"),
        ("2020-02-03 04:05:06", "timestamp", "2020-02-03 04:05:06+00"),
        ("2020-02-03 04:05:06.000001", "timestamp_ntz", "2020-02-03 04:05:06.000001"),
        ("1.5", "double", "1.5"),
        ("true", "boolean", "true"),
        ("\x00é", "binary", "\\x00\\xC3\\xA9"),
        ("", "string", None),
        (None, "long", None),
    ],
)
def test_a_partition_value_is_a_literal_of_its_type(text: str | None, kind: str, shown: str | None) -> None:
    sql = f"SELECT CAST({partition_literal(text, StructField('p', PrimitiveType(kind)))} AS VARCHAR)"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    assert connection.execute(sql).fetchall() == [(shown,)]


@pytest.mark.parametrize("kind", [PrimitiveType("variant"), ArrayType(PrimitiveType("void"))])
def test_a_type_that_duckdb_lacks_is_refused(kind: DataType) -> None:
    with pytest.raises(UnsupportedFeatureError, match="DuckDB has no type"):
        type_of(kind)
