"""Floating-point columns that may contain a zero or NaN, by the statistics of files."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.files.bounds import uncertain_floats
from dbt.adapters.silt.engine.kernel.files.statistics import TRUSTED
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.expressions import Column
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, PrimitiveType, StructField, StructType

DOUBLE, FLOAT = PrimitiveType("double"), PrimitiveType("float")


def metadata(*members: StructField, partition_columns: tuple[str, ...] = ()) -> Metadata:
    return Metadata("id", StructType(members).to_json(), partition_columns)


def add(stats: str | None, tags: dict[str, str] | None = TRUSTED, **partition: str | None) -> AddFile:  # type: ignore[assignment]
    return AddFile("a.parquet", partition, 1, 0, stats=stats, tags=tags)


def bounds(low: Any, high: Any, nulls: int = 0) -> str:
    parts = ['"numRecords":10', f'"nullCount":{{"a":{nulls}}}']
    parts += [] if low is None else [f'"minValues":{{"a":{low}}}']
    parts += [] if high is None else [f'"maxValues":{{"a":{high}}}']
    return "{" + ",".join(parts) + "}"


def found(*adds: AddFile, kind: PrimitiveType = DOUBLE) -> list[Column]:
    return uncertain_floats(files_table(adds), metadata(StructField("a", kind)))


@pytest.mark.parametrize("kind", [DOUBLE, FLOAT])
@pytest.mark.parametrize("stats", [bounds(0.5, 2.0), bounds(-2.0, -0.5), bounds(None, -0.5), bounds(None, None, 10)])
def test_bounds_on_one_side_of_zero_exclude_zero_and_nan(kind: PrimitiveType, stats: str) -> None:
    assert found(add(stats), kind=kind) == []


@pytest.mark.parametrize(
    "stats",
    [
        None,
        bounds(-1.0, 1.0),
        bounds(0.0, 1.0),
        bounds(-1.0, -0.0),
        bounds(1.0, None),
        bounds(None, 1.0),
        bounds(1.0, '"NaN"'),
        bounds(None, None, 9),
    ],
)
def test_a_zero_between_the_bounds_or_an_unknown_bound_is_uncertain(stats: str | None) -> None:
    assert found(add(stats)) == [Column.of("a")]


def test_another_writers_maximum_does_not_exclude_nan() -> None:
    assert found(add(bounds(1.0, 2.0), tags=None)) == [Column.of("a")]


def test_one_uncertain_file_of_many_makes_the_column_uncertain() -> None:
    assert found(add(bounds(1.0, 2.0)), add(bounds(0.0, 2.0))) == [Column.of("a")]
    assert found() == []


def test_struct_fields_are_examined_and_array_elements_are_not() -> None:
    struct = StructType((StructField("x", FLOAT), StructField("n", PrimitiveType("long"))))
    described = metadata(StructField("s", struct), StructField("l", ArrayType(DOUBLE, True)))
    assert uncertain_floats(files_table([add(None)]), described) == [Column.of("s", "x")]


@pytest.mark.parametrize(("text", "is_certain"), [("1.5", True), ("-0.0", False), ("NaN", False), (None, True)])
def test_a_partition_column_is_judged_by_its_value(text: str | None, is_certain: bool) -> None:
    described = metadata(StructField("p", DOUBLE), StructField("i", FLOAT), partition_columns=("p",))
    certain = Column.of("p") not in uncertain_floats(files_table([add(None, p=text)]), described)
    assert certain == is_certain
