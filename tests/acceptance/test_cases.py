"""Published results are found in each form, and a wrong result is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt import engine as silt
from tests.acceptance.cases import Case, cases
from tests.acceptance.rows import assert_same_rows, plain_type, published
from tests.unit.cli.house import ARROW, House, rows

ROWS = pa.Table.from_pylist(rows(0, 5), ARROW)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `orders` with a table of two versions."""
    house = House(tmp_path / "house")
    log = house.create("main.orders", rows(0, 3))
    house.append(log, rows(3, 2))
    (tmp_path / "data" / "orders").mkdir(parents=True)
    (tmp_path / "house" / "main" / "orders").rename(tmp_path / "data" / "orders" / "delta")
    return tmp_path / "data"


def put_rows(folder: Path, table: pa.Table) -> None:
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-0.parquet")


def put_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def test_a_golden_table_has_the_newest_rows(folder: Path) -> None:
    put_rows(folder / "orders" / "expected", ROWS)
    assert list(cases(folder)) == [Case("orders", folder / "orders/delta", rows=folder / "orders/expected")]


def test_dat_has_rows_and_metadata_of_some_versions(folder: Path) -> None:
    for name, version, count in (("latest", 1, 5), ("v0", 0, 3)):
        expected = folder / "orders" / "expected" / name
        put_rows(expected / "table_content", ROWS[:count])
        stated = {"version": version, "properties": {}, "min_reader_version": 1, "min_writer_version": 2}
        put_json(expected / "table_version_metadata.json", stated)
    newest, first = cases(folder)
    assert (newest.version, newest.facts["version"], first.version) == (None, 1, 0)
    for case in (newest, first):
        assert case.rows is not None
        assert_same_rows(silt.read(str(case.table), version=case.version), published(case.rows))


def test_a_workload_has_reads_snapshots_and_errors(folder: Path) -> None:
    specs = folder / "orders" / "specs"
    read = {"type": "read", "version": 0, "predicate": "id > 0", "columns": ["id"], "expected": {"rowCount": 2}}
    put_json(specs / "read_two.json", read)
    put_json(specs / "late" / "spec.json", {"type": "read", "version": 7, "error": {"errorCode": "DELTA_LATE"}})
    put_json(specs / "snapshot.json", {"type": "snapshot", "expected": {"protocol": {"minReaderVersion": 1}}})
    put_json(specs / "write.json", {"type": "write"})
    put_rows(folder / "orders" / "expected" / "read_two" / "expected_data", ROWS[1:3].select(["id"]))
    late, two, snapshot = cases(folder)
    assert (late.version, late.error) == (7, "DELTA_LATE")
    assert (two.version, two.where, two.columns, two.row_count) == (0, "id > 0", ("id",), 2)
    assert snapshot.facts == {"protocol": {"minReaderVersion": 1}}


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:4],
        pa.Table.from_pylist(rows(1, 5), ARROW),
        ROWS.rename_columns([f"x{name}" for name in ROWS.column_names]),
        ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())),
    ],
)
def test_other_rows_names_or_types_are_noticed(other: pa.Table) -> None:
    assert_same_rows(ROWS, ROWS.take([4, 3, 2, 1, 0]))
    with pytest.raises(AssertionError):
        assert_same_rows(ROWS, other)


def test_rows_with_nan_are_the_same() -> None:
    assert_same_rows(pa.table({"x": [float("nan")]}), pa.table({"x": [float("nan")]}))


def test_types_that_differ_only_in_parquets_details_are_the_same() -> None:
    assert plain_type(pa.timestamp("us", "UTC")) == plain_type(pa.timestamp("us"))
    assert plain_type(pa.list_(pa.field("element", pa.int64()))) == plain_type(pa.large_list(pa.int64()))
    assert plain_type(pa.list_(pa.int64())) != plain_type(pa.list_(pa.int32()))
