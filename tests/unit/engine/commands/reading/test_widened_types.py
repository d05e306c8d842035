"""Widened column types: the files that are kept, and how files of the narrower type are read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.commands.reading import scan
from dbt.adapters.silt.engine.commands.tables import alter_columns
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison
from dbt.adapters.silt.engine.sql.ast import ColumnChange
from tests.unit.engine.commands.spark_tables import PLAIN, Tables
from tests.unit.engine.kernel.log_builder import put

WIDENING = {"delta.enableTypeWidening": "true"}


def retype(tables: Tables, log: DeltaLog, *path: str, to: str) -> Outcome:
    return alter_columns.change_columns(tables.spark, tables.target(log), [ColumnChange(path, type=to)], PLAIN)


def found(tables: Tables, log: DeltaLog) -> list[Any]:
    return sorted((row[0] for row in tables.read(log).collect()), key=repr)


@pytest.mark.parametrize(
    ("literal", "types", "value"),
    [
        ("cast(-7 as tinyint)", ["smallint", "int", "bigint"], -7),
        ("cast(-7 as smallint)", ["double"], -7.0),
        ("-70000", ["decimal(12, 2)", "decimal(25, 4)"], Decimal("-70000.0000")),
        ("-5000000000", ["decimal(22, 1)"], Decimal("-5000000000.0")),
        ("cast(1.25 as float)", ["double"], 1.25),
        ("date'1969-05-05'", ["timestamp_ntz"], datetime(1969, 5, 5)),
        ("cast(-12.34 as decimal(6, 2))", ["decimal(10, 4)", "decimal(30, 6)"], Decimal("-12.340000")),
    ],
)
def test_older_files_are_read_as_the_widened_type(
    tables: Tables, literal: str, types: list[str], value: object
) -> None:
    log = tables.made(f"select {literal} as c, 1 as other", properties=WIDENING)
    before = tables.data_files(log)
    for wider in types:
        assert retype(tables, log, "c", to=wider).files_added == 0
        tables.append(log, f"select cast({literal} as {wider}), 2")
    assert before <= tables.data_files(log)
    assert found(tables, log) == [value] * (len(types) + 1)
    assert [member.metadata for member in tables.read(log).schema.fields] == [{}, {}]
    here = Comparison("=", Column.of("c"), value)  # type: ignore[arg-type]
    assert skipping.prune(log.snapshot(), here).num_rows == len(types) + 1
    assert "typeWidening" in (log.snapshot().protocol.reader_features or ())


def test_types_inside_of_arrays_maps_and_structs_are_widened(tables: Tables) -> None:
    log = tables.made(
        "select array(1) as a, map(1, cast(1 as float)) as m, named_struct('x', date'2024-01-01') as s",
        properties=WIDENING,
    )
    retype(tables, log, "a", to="array<bigint>")
    retype(tables, log, "m", to="map<bigint, double>")
    retype(tables, log, "s", "x", to="timestamp_ntz")
    tables.append(log, "select array(5000000000), map(5000000000, 1.5D), null")
    (first, second) = sorted(tables.read(log).collect(), key=lambda row: row.a)
    assert (first.a, first.m, first.s.x) == ([1], {1: 1.0}, datetime(2024, 1, 1))
    assert (second.a, second.m) == ([5_000_000_000], {5_000_000_000: 1.5})


def test_the_rows_of_a_float_partition_column_are_rewritten_as_doubles(tables: Tables) -> None:
    log = tables.made("select 1 as id, cast(0.1 as float) as p", partition_columns=("p",), properties=WIDENING)
    assert retype(tables, log, "p", to="double").files_added == 1
    tables.append(log, "values (2, 0.1D)")
    single = 0.10000000149011612
    assert sorted(map(tuple, tables.read(log).collect())) == [(1, single), (2, 0.1)]
    assert sorted(silt.read(log.store.root)["p"].to_pylist()) == [0.1, single]
    for value, kept in ((single, 1), (0.1, 1), (0.2, 0)):
        assert skipping.prune(log.snapshot(), Comparison("=", Column.of("p"), value)).num_rows == kept
    assert [row.id for row in tables.read(log).where("p = 0.1F").collect()] == [1]


@pytest.mark.parametrize(
    ("literal", "wider", "value"),
    [
        ("cast(-7 as tinyint)", "bigint", -7),
        ("16777217", "double", 16777217.0),
        ("-70000", "decimal(12, 2)", Decimal("-70000.00")),
        ("date'1969-05-05'", "timestamp_ntz", datetime(1969, 5, 5)),
        ("cast(-12.34 as decimal(6, 2))", "decimal(30, 6)", Decimal("-12.340000")),
    ],
)
def test_other_partition_columns_are_widened_by_reading_their_strings(
    tables: Tables, literal: str, wider: str, value: object
) -> None:
    log = tables.made(f"select 1 as id, {literal} as p", partition_columns=("p",), properties=WIDENING)
    assert retype(tables, log, "p", to=wider).files_added == 0
    tables.append(log, f"select 2, cast({literal} as {wider})")
    tables.append(log, f"select 3, cast(null as {wider})")
    found = tables.read(log).where(f"p = cast({literal} as {wider})").collect()
    assert sorted(map(tuple, found)) == [(1, value), (2, value)]
    same = Comparison("=", Column.of("p"), value)  # type: ignore[arg-type]
    assert skipping.prune(log.snapshot(), same).num_rows == 2
    arrow = silt.read(log.store.root)
    assert sorted(zip(arrow["id"].to_pylist(), arrow["p"].to_pylist(), strict=True), key=repr) == [
        (1, value),
        (2, value),
        (3, None),
    ]


@pytest.mark.parametrize("properties", [{}, WIDENING])
def test_other_type_changes_rewrite_the_rows(tables: Tables, properties: dict[str, str]) -> None:
    log = tables.made("select date'2024-01-01' as c", properties=properties)
    assert retype(tables, log, "c", to="string").files_added == 1
    assert found(tables, log) == ["2024-01-01"]
    assert retype(tables, log, "c", to="date").files_added == 1
    assert found(tables, log) == [date(2024, 1, 1)]
    assert log.snapshot().schema.require("c").metadata == {}


def changed_elsewhere(log: DeltaLog, changes: dict[str, tuple[str, Any, str]]) -> None:
    """Changes types of columns as another writer: column -> old type, new type and the path to it."""
    snapshot = log.snapshot()
    schema = json.loads(snapshot.metadata.schema_string)
    for field in schema["fields"]:
        if field["name"] in changes:
            old, field["type"], path = changes[field["name"]]
            inner = field["type"] if not path else field["type"][f"{path}Type"]
            change = {"fromType": old, "toType": inner, "fieldPath": path}
            field["metadata"]["delta.typeChanges"] = [{key: value for key, value in change.items() if value}]
    metadata = replace(snapshot.metadata, schema_string=json.dumps(schema))
    put(log, snapshot.version + 1, CommitInfo(operation="CHANGE COLUMN"), metadata)


def array_of(element: str) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: str) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": "integer", "valueContainsNull": True}


@pytest.mark.parametrize("mapping", [{}, {"delta.columnMapping.mode": "name"}], ids=["names", "mapped"])
def test_integers_are_read_as_decimals_that_are_just_large_enough(tables: Tables, mapping: dict[str, str]) -> None:
    """Public tables do this, though the specification asks for more digits."""
    log = tables.made(
        "select -7Y as b, 32000S as s, 9223372036854775807L as l, array(-7Y) as a, map(-7Y, 1) as m",
        properties={**WIDENING, **mapping},
    )
    changes = {
        "b": ("byte", "decimal(4,1)", ""),
        "s": ("short", "decimal(5,0)", ""),
        "l": ("long", "decimal(19,0)", ""),
        "a": ("byte", array_of("decimal(4,1)"), "element"),
        "m": ("byte", map_of("decimal(3,0)"), "key"),
    }
    changed_elsewhere(log, changes)
    tables.append(log, "select -7.5, 1, 2, array(-7.5), map(cast(-8 as decimal(3, 0)), 1)")
    assert [kind for _, kind in tables.read(log).dtypes] == [
        "decimal(4,1)",
        "decimal(5,0)",
        "decimal(19,0)",
        "array<decimal(4,1)>",
        "map<decimal(3,0),int>",
    ]
    old, new = sorted(tables.read(log).collect(), key=lambda row: -row.s)
    assert (old.b, old.s, old.l, old.a) == (Decimal("-7.0"), 32_000, 2**63 - 1, [Decimal("-7.0")])
    assert (new.b, new.s, new.l, new.a) == (Decimal("-7.5"), 1, 2, [Decimal("-7.5")])
    assert (old.m, new.m) == ({Decimal(-7): 1}, {Decimal(-8): 1})
    positioned = scan.read(tables.spark, log, log.snapshot(), with_position=True)
    assert positioned.where("b = -7.0").count() == 1
    assert skipping.prune(log.snapshot(), Comparison("=", Column.of("b"), Decimal("-7.0"))).num_rows == 1
