"""A snapshot after one row in a hundred has changed, compared with only a MERGE of these changes."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.dbt_work import project
from benchmarks.dbt_work.measured import Compared, in_turn
from dbt.adapters.silt.engine.warehouse import Warehouse

ROWS = 1_000_000
_ROWS = (
    "select id, cast(id % 1000 as int) as category, concat('customer ', id % 100000) as customer, "
    "((id * 7919 + if(id % 100 < {changed}, 1, 0)) % 1000003) / 100 as amount, "
    "timestamp_seconds(1700000000 + id) as at from range(0, {rows}, 1, 4)"
)
_SNAPSHOT = """
{{% snapshot changing %}}
{{{{ config(strategy='check', unique_key='id', check_cols='all') }}}}
{query}
{{% endsnapshot %}}
"""
_ALONE = """
create table main.alone as
select *, md5(cast(id as string)) as dbt_scd_id, current_timestamp() as dbt_updated_at,
  current_timestamp() as dbt_valid_from, cast(null as timestamp) as dbt_valid_to
from ({query})
"""
_CHANGES = """
create or replace table main.changes as
select changed.*, kind, if(kind = 'update', closed.dbt_scd_id, concat(changed.id, '|', {changed})) as dbt_scd_id
from ({query}) changed
join main.alone closed on changed.id = closed.id and closed.dbt_valid_to is null
lateral view explode(array('update', 'insert')) kinds as kind
where changed.id % 100 = {changed} - 1
"""
_MERGE = """
merge into main.alone d using main.changes s on d.dbt_scd_id = s.dbt_scd_id and d.dbt_valid_to is null
when matched and s.kind = 'update' then update set dbt_valid_to = current_timestamp()
when not matched and s.kind = 'insert' then insert
  (id, category, customer, amount, at, dbt_scd_id, dbt_updated_at, dbt_valid_from, dbt_valid_to)
  values (id, category, customer, amount, at, dbt_scd_id, current_timestamp(), current_timestamp(), null)
"""


class _Changing:
    """Two equal tables of changing rows, and the current state of each."""

    def __init__(self, folder: Path, rows: int) -> None:
        query = _ROWS.format(changed="{{ var('changed') }}", rows=rows)
        self._rows = rows
        self._project = project.make(folder / "snapshots", {"snapshots/changing.sql": _SNAPSHOT.format(query=query)})
        project.run(self._project, "snapshot", changed=0)
        self._house = Warehouse(SparkSession.builder.getOrCreate(), str(folder / "alone"))
        self._house.sql("create schema if not exists main")
        self._house.sql(_ALONE.format(query=_ROWS.format(changed=0, rows=rows)))
        self._taken, self._merged = 0, 0
        self.know()

    def know(self) -> None:
        """Creates the table of the changes for the next MERGE."""
        changed = self._merged + 1
        self._house.sql(_CHANGES.format(query=_ROWS.format(changed=changed, rows=self._rows), changed=changed))

    def merge(self) -> None:
        """Merges the changes."""
        outcome = self._house.execute(_MERGE).outcome
        assert outcome is not None
        self._check(outcome.rows_inserted, outcome.rows_updated)
        self._merged += 1

    def snapshot(self) -> None:
        """Takes the next snapshot."""
        self._taken += 1
        response = project.run(self._project, "snapshot", changed=self._taken)
        self._check(response["rows_inserted"], response["rows_updated"])

    def _check(self, *counts: int | None) -> None:
        if counts != (self._rows // 100, self._rows // 100):
            raise RuntimeError(f"{counts} rows were inserted and updated of {self._rows} of which one in 100 changed")


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times the whole command, and the statement alone."""
    rows = int(ROWS * share)
    changing = _Changing(folder, rows)
    ways = {"MERGE alone": changing.merge, "dbt snapshot": changing.snapshot, "(the changes made known)": changing.know}
    return [in_turn(f"snapshot of {rows:,} rows", ways, rounds)]
