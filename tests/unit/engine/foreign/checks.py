"""Compares every way to query a warehouse with the values that another writer wrote."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.kernel.errors import TypeMismatchError
from dbt.adapters.silt.engine.kernel.table.paths import is_absolute
from tests.unit.engine import doors
from tests.unit.engine.datasource.tables import Tables
from tests.unit.engine.foreign.cases import Case
from tests.unit.engine.foreign.conditions import Condition, Leaf, compares, conditions, key, leaves
from tests.unit.engine.foreign.kinds import DELTA_RS, Number, plain
from tests.unit.engine.house import House

_CANNOT = (
    "data type mismatch",  # Polars: an unsigned column, an array of fixed length, an extension type
    "annotated as MAP",  # Polars: a map that is an element of a list in the old form
    "would lose data",  # delta-rs: INT96
    "year 0 is out of range",  # delta-rs: a bound of a date
    "Invalid isoformat string",
    "not yet supported by the deltalake reader",  # deletion vectors
)


def check(house: House, case: Case, table: str, data_source: float = 0.1) -> None:
    """Creates a table of the case in the warehouse and compares it.

    Raises:
        AssertionError: if a result differs; the message begins with the column.
    """
    folder = house.root / "main" / f"{table}_source"
    case.write(folder, house.warehouse.spark)
    if any(kind.refused for kind in case.kinds.values()):
        _is_refused(house, case, folder)
        return
    chance = random.Random(case.seed + 1)
    doors_of = Doors(house, _become_table(house, case, folder, table, chance), case)
    rows = case.rows
    doors_of.check_rows(rows)
    doors_of.check_reads(rows, chance)
    if chance.random() < data_source:
        doors_of.check_data_source(rows, chance)
    doors_of.check_change(rows, chance)


def _is_refused(house: House, case: Case, folder: Path) -> None:
    name = next(name for name, kind in case.kinds.items() if kind.refused)
    with pytest.raises(TypeMismatchError, match=rf"the column `{name}[.\w]*` has the Parquet type"):
        house.sql(f"convert to delta parquet.`{folder}` {case.partitioning}")
    assert not (folder / "_delta_log").exists()


def _become_table(house: House, case: Case, folder: Path, table: str, chance: random.Random) -> str:
    """Returns the table's name."""
    if case.writer != DELTA_RS:
        house.sql(f"convert to delta parquet.`{folder}` {case.partitioning}")
    if chance.random() < 0.4:
        if case.properties:
            house.sql(f"alter table {folder.name} set tblproperties ({case.properties})")
        return folder.name
    kind = chance.choice(("shallow", "deep"))
    properties = f"tblproperties ({case.properties})" if case.properties else ""
    house.sql(f"create table {table} {kind} clone {folder.name} {properties}")
    return table


def texts(rows: pa.Table) -> dict[int, dict[str, str]]:
    columns = {name: plain(rows[name]) for name in rows.column_names}
    return {
        number: {name: repr(values[at]) for name, values in columns.items() if name != "id"}
        for at, number in enumerate(columns["id"])
    }


@dataclass(frozen=True)
class Doors:
    """A table of the case's rows, queried in every way."""

    house: House
    table: str
    case: Case

    def check_rows(self, rows: pa.Table) -> None:
        query = f"select * from main.{self.table}"
        _have("SQL", self.house.sql(query).toArrow(), rows)
        _have("silt.read", doors.read(self.house, self.table), rows)
        _have("the shell", doors.shell(self.house, query), rows)
        self._check_other_engines(rows)

    def _check_other_engines(self, rows: pa.Table) -> None:
        """Checks the columns that other engines can read; they look for a clone's files in its folder."""
        log = self.house.log(self.table)
        if any(is_absolute(file.path) for file in log.snapshot().add_files()):
            return
        with self.house.place.copied(log) as copy:
            kinds = list(self.case.kinds)
            _can_have("delta-rs", lambda columns: copy.to_pyarrow_table(columns=columns), rows, kinds)
            if not self.case.has_int96:  # Polars reads it as nanoseconds, which overflow
                polars = pl.scan_delta(copy.table_uri)
                _can_have("Polars", lambda columns: polars.select(columns).collect().to_arrow(), rows, kinds)

    def check_data_source(self, rows: pa.Table, chance: random.Random) -> None:
        _have("the data source", Tables(self.house).read(self.table).toArrow(), rows)
        some = chance.choices(conditions(rows, self.case.kinds, chance, 4), k=3)
        _agree("the data source", some, doors.by_data_source(self.house, self.table, [each.text for each in some]))

    def check_reads(self, rows: pa.Table, chance: random.Random) -> None:
        chosen = conditions(rows, self.case.kinds, chance, 4)
        some = chance.sample(chosen, min(16, len(chosen)))
        _agree("SQL", some, doors.by_sql(self.house, self.table, [each.text for each in some]))
        _agree("silt.read", chosen, [doors.by_arrow(self.house, self.table, each.text) for each in chosen])
        _agree("the shell", chosen, [doors.by_shell(self.house, self.table, each.text) for each in chosen])
        compared = [leaf for name in self.case.kinds for leaf in leaves(rows, name) if compares(leaf)]
        self._check_extremes(compared, rows.num_rows)
        if compared:
            self._check_beyond(chance.choices(compared, k=4), chance)

    def _check_extremes(self, compared: Sequence[Leaf], length: int) -> None:
        lists = [
            f"min({leaf.path}) as a{at}, max({leaf.path}) as b{at}, count({leaf.path}) as c{at}"
            for at, leaf in enumerate(compared)
        ]
        answers = [
            ("SQL", self.house.sql(f"select {', '.join([*lists, 'count(*) as d'])} from main.{self.table}").toArrow())
        ]
        answers += [
            (
                "the shell",
                doors.shell(self.house, f"select {some.rpartition(', ')[0]}, count(*) as d from main.{self.table}"),
            )
            for some in lists
        ]
        for door, answer in answers:
            if answer is None:
                continue
            assert answer["d"][0].as_py() == length, f"id: {door} counts {answer['d'][0]} rows of {length}"
            for name in answer.column_names[:-1]:
                leaf, of = compared[int(name[1:])], name[0]
                present = [value for value in leaf.values if value is not None]
                want = len(present) if of == "c" else {"a": min, "b": max}[of](present, key=key) if present else None
                (got,) = plain(answer[name])
                assert _unsigned(got) == _unsigned(want), (
                    f"{leaf.column}: {door} has {of}({leaf.path}) {got!r}, not {want!r}"
                )

    def _check_beyond(self, some: Sequence[Leaf], chance: random.Random) -> None:
        """Checks conditions at or beyond an extreme: the usual incremental filter."""
        parts, counts = [], []
        for at, leaf in enumerate(some):
            operator, end = chance.choice(((">=", "max"), ("<=", "min"), ("=", "max"), ("=", "min"), (">", "max")))
            query = f"(select {end}({leaf.path}) from {self.table})"
            parts.append(f"select {at} as at, count(*) as n from {self.table} where {leaf.path} {operator} {query}")
            present = [key(value) for value in leaf.values if value is not None]
            found = present and operator != ">"
            counts.append(present.count((max if end == "max" else min)(present)) if found else 0)
        for row in self.house.sql(" union all ".join(parts)).collect():
            assert row.n == counts[row.at], (
                f"{some[row.at].column}: {row.n} rows, not {counts[row.at]}: {parts[row.at]}"
            )

    def check_change(self, rows: pa.Table, chance: random.Random) -> None:
        """Runs a DELETE and an UPDATE by conditions, and repeats the reads."""
        condition, other = chance.choices(conditions(rows, self.case.kinds, chance, 3), k=2)
        self.house.sql(f"update {self.table} set id = id + 1000 where {condition.text}")
        moved = [number + 1000 if number in condition.ids else number for number in rows["id"].to_pylist()]
        rows = rows.set_column(0, "id", pa.array(moved, pa.int64()))
        self.house.sql(f"delete from {self.table} where {other.text}")
        rows = rows.filter(pa.array([number % 1000 not in other.ids for number in moved], pa.bool_()))
        try:
            self.check_rows(rows)
            self.check_reads(rows, chance)
        except AssertionError as error:
            raise AssertionError(
                f"{error.args[0]}; after an update where {condition.text!r}, a delete where {other.text!r}"
            ) from error


def _have(door: str, answer: pa.Table | None, rows: pa.Table) -> None:
    assert answer is not None, f"id: {door} does not answer"
    expected, got = texts(rows), texts(answer)
    assert sorted(got) == sorted(expected), f"id: {door} has other rows"
    for number, row in expected.items():
        for name, value in row.items():
            assert got[number][name] == value, f"{name}: {door} gives {got[number][name]} for {value} at {number}"


def _can_have(door: str, read: Callable[[list[str]], pa.Table], rows: pa.Table, columns: Sequence[str]) -> None:
    """Does the same for the columns that another engine can read, one by one if it cannot read them all."""
    try:
        found = read(["id", *columns])
    except Exception as error:
        if not any(text in str(error) for text in _CANNOT):
            raise
        for name in columns if len(columns) > 1 else ():
            _can_have(door, read, rows, [name])
        return
    _have(door, found, rows.select(found.column_names))


def _agree(door: str, chosen: Sequence[Condition], found: Sequence[list[int] | None]) -> None:
    for condition, ids in zip(chosen, found, strict=True):
        assert ids is None or ids == sorted(condition.ids), (
            f"{condition.column}: {door} finds {ids} where {condition.text!r}, not {sorted(condition.ids)}"
        )


def _unsigned(value: Any) -> Any:
    """Returns both zeros as the same value, as SQL does."""
    return Number(value.is_nan, value.value + 0.0) if isinstance(value, Number) else value
