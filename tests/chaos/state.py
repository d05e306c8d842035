"""The content of a warehouse: the rows as another engine reads them, and the commits with their units of work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication_marks import MARK, SETTLED
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.positions import is_position
from tests.chaos.warehouses import Kept, Warehouse

_CLOCK_COLUMNS = {
    "by_timestamp": ("dbt_valid_to",),
    "by_check": ("dbt_valid_from", "dbt_valid_to", "dbt_updated_at", "dbt_scd_id"),
}
"""Columns of snapshots with times of the clock: only whether they are null is compared."""
_RUN_ID = 3


@dataclass(frozen=True)
class State:
    """The content of a warehouse at one time.

    Attributes:
        rows: of each table.
        versions: the newest of each table.
        units: for each table, the number of commits of each unit of work, and of each position in the changes of
            another table; run ids are replaced by numbers, and other tables are identified by name only.
    """

    rows: dict[str, Counter[str]]
    versions: dict[str, int]
    units: dict[str, Counter[str]]

    @classmethod
    def of(cls, warehouse: Warehouse) -> State:
        """
        Raises:
            DeltaError, SiltError: if a table cannot be read.
        """
        tables = list(warehouse.tables())
        return cls(
            rows={each.name: _rows(each) for each in tables},
            versions={each.name: each.log.snapshot().version for each in tables},
            units=_numbered({each.name: _units(each.log) for each in tables}),
        )

    @property
    def unit_count(self) -> int:
        return sum(len(units) for units in self.units.values())


@dataclass(frozen=True)
class Difference:
    """The rows and units that one state lacks or has in excess, compared with another state.

    Attributes:
        rows_lost, rows_doubled: numbers of rows.
        notes: descriptions of the differences.
    """

    rows_lost: int
    rows_doubled: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, expected: State, found: State) -> Difference:
        lost = {name: rows - found.rows.get(name, Counter()) for name, rows in expected.rows.items()}
        doubled = {name: rows - expected.rows.get(name, Counter()) for name, rows in found.rows.items()}
        notes = [
            *(f"{name} lacks {rows.total()} rows, such as {next(iter(rows))}" for name, rows in lost.items() if rows),
            *(f"{name} has {rows.total()} rows too many: {next(iter(rows))}" for name, rows in doubled.items() if rows),
            *_differences("version", expected.versions, found.versions),
            *_differences("units of work", expected.units, found.units),
            *(
                f"{name}: {unit} is in {times} commits"
                for name, units in found.units.items()
                for unit, times in units.items()
                if times != 1
            ),
        ]
        return cls(_total(lost), _total(doubled), tuple(notes))

    def __bool__(self) -> bool:
        return bool(self.notes)


def _rows(kept: Kept) -> Counter[str]:
    table = DeltaTable(kept.url, storage_options=dict(kept.options))
    found = pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all())
    clock = _CLOCK_COLUMNS.get(kept.name.rpartition(".")[2], ())
    return Counter(repr(sorted((k, _shown(v, k in clock)) for k, v in row.items())) for row in found.to_pylist())


def _shown(value: Any, by_clock: bool) -> object:
    return value is not None if by_clock else str(value)


def _units(log: DeltaLog) -> Counter[str]:
    return Counter(
        f"{action.app_id}={action.version}"
        for commit in log.commits()
        for action in commit.actions
        if isinstance(action, SetTransaction) and (action.app_id, action.version) != (MARK, SETTLED)
    )


def _numbered(units: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Returns the units with numbers instead of run ids, so that a unit has the same name in every chain of runs."""
    return {
        name: Counter({f"{_without_run(app_id)} {n}": times for (app_id, n), times in _nth(found).items()})
        for name, found in units.items()
    }


def _nth(found: Counter[str]) -> dict[tuple[str, int], int]:
    """Yields each unit with its number, in the order of commits, among units that differ only by their run."""
    seen: Counter[str] = Counter()
    numbered = {}
    for app_id, times in found.items():
        seen[_without_run(app_id)] += 1
        numbered[app_id, seen[_without_run(app_id)]] = times
    return numbered


def _without_run(app_id: str) -> str:
    if is_position(app_id):
        return app_id.rpartition(":")[2]
    if app_id.startswith(f"{MARK}="):
        return MARK
    parts = app_id.split("/")
    return "/".join((*parts[:_RUN_ID], "*", *parts[_RUN_ID + 1 :]))


def _differences(what: str, expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            yield f"{name}: {what} {_briefly(expected.get(name), found.get(name))}"


def _briefly(expected: Any, found: Any) -> str:
    if isinstance(expected, Counter) and isinstance(found, Counter):
        return f"missing {sorted(expected - found)}, too many {sorted(found - expected)}"
    return f"{expected} expected, {found} found"


def _total(rows: dict[str, Counter[str]]) -> int:
    return sum(each.total() for each in rows.values())
