"""A run that loses each commit to another run of its id, which commits the same unit of work immediately before."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture

from dbt.adapters.silt.engine import Result, Warehouse
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction import commit as transaction
from tests.cloud.servers import ObjectServer

ROWS = "select id, part, {{ var('round', 1) }} as round, at from {{ ref('events') }}"
EVENTS = """
{{ config(materialized='view', event_time='at') }}
select id, id % 3 as part, timestamp '2026-03-01 06:00:00' + make_interval(0, 0, 0, cast(id % 3 as int)) as at
from range(6)
"""
HOOKS = """
{{ config(
    materialized='incremental', incremental_strategy='append',
    pre_hook="insert into {{ target.schema }}.audit values ('pre')",
    post_hook=["insert into {{ target.schema }}.audit values ('post')", "delete from {{ this }} where part = 2"],
) }}
"""
MICROBATCH = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin='2026-03-01') }}
"""
SYNCED = """
{{ config(materialized='incremental', unique_key='id', on_schema_change='sync_all_columns') }}
select id, {% if var('round', 1) == 1 %}part, id as narrow{% else %}'new' as added, id as narrow{% endif %}
from {{ ref('events') }}
"""
RESTING = """
{{ config(materialized='incremental', incremental_strategy='append') }}
{% set highest = run_query('select max(id) as id from ' ~ this)[0][0] if is_incremental() and execute else -1 %}
select {{ highest }} + 1 + id as id from range(2)
"""
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    rows = dbt.ref("events").select("id")
    return session.sql(f"select id + 100 as id from {dbt.this}") if dbt.is_incremental else rows
"""
STRATEGY = """
{% macro get_incremental_two_steps_sql(arg_dict) %}
  delete from {{ arg_dict['target_relation'] }} where part in (select part from {{ arg_dict['temp_relation'] }});
  insert into {{ arg_dict['target_relation'] }} select * from {{ arg_dict['temp_relation'] }}
{% endmacro %}
"""
SNAPSHOT = """
{% snapshot as_snapshot %}
{{ config(unique_key='id', strategy='check', check_cols=['round']) }}
select id, {{ var('round', 1) }} as round from {{ ref('events') }}
{% endsnapshot %}
"""


def incremental(strategy: str, **configs: str) -> str:
    arguments = "".join(f", {name}={value!r}" for name, value in configs.items())
    return f"{{{{ config(materialized='incremental', incremental_strategy='{strategy}'{arguments}) }}}} {ROWS}"


ROWS_AFTER = {
    "as_table": (6, 6),
    "as_append": (6, 12),
    "as_merge": (6, 6),
    "as_delete_insert": (6, 6),
    "as_insert_overwrite": (6, 6),
    "as_two_steps": (6, 6),
    "as_microbatch": (6, 6),
    "as_synced": (6, 6),
    "as_resting": (2, 4),
    "as_python": (6, 12),
    "hooked": (4, 8),
    "as_snapshot": (6, 12),
    "colours": (2, 2),
    "audit": (4, 8),
}
"""The number of rows of each table after a run, and after a second run with another id."""


class Competition:
    """Another run of the same id, with its own warehouse and the temporary views of the session."""

    def __init__(self, location: str, storage: StorageSettings | None) -> None:
        self.wins = 0
        self._location, self._storage = location, storage
        self._mine = threading.local()
        self._execute, self._commit = Warehouse.execute, transaction.commit

    def execute(self, loser: Warehouse, text: str, txn: tuple[str, int] | None = None, **options: Any) -> Result:
        """Replaces `Warehouse.execute`."""
        if txn is None:
            return self._execute(loser, text, txn, **options)

        def win() -> None:
            names = loser._session.namespace
            own = Warehouse(
                loser.spark,
                self._location,
                database=names.database,
                schema=names.schema,
                settings=loser.settings,
                storage=self._storage,
            )
            own._session.namespace.temporary.update(names.temporary)
            result = self._execute(own, text, txn, **options)
            assert result.outcome is not None and not result.outcome.skipped
            self.wins += 1

        self._mine.win = win
        try:
            return self._execute(loser, text, txn, **options)
        finally:
            self._mine.win = None

    def commit(self, *arguments: Any) -> transaction.CommitResult:
        """Replaces `transaction.commit`."""
        win, self._mine.win = getattr(self._mine, "win", None), None
        if win is not None:
            win()
        return self._commit(*arguments)


class TestBeatenAtEachCommit:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "events.sql": EVENTS,
            "as_table.sql": "{{ config(materialized='table') }}" + ROWS,
            "as_append.sql": incremental("append"),
            "as_merge.sql": incremental("merge", unique_key="id"),
            "as_delete_insert.sql": incremental("delete+insert", unique_key="part"),
            "as_insert_overwrite.sql": incremental("insert_overwrite", partition_by="part"),
            "as_two_steps.sql": incremental("two_steps"),
            "as_microbatch.sql": MICROBATCH + ROWS,
            "as_synced.sql": SYNCED,
            "as_resting.sql": RESTING,
            "as_python.py": PYTHON,
            "hooked.sql": HOOKS + ROWS,
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"strategies.sql": STRATEGY}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"colours.csv": "id,colour\n1,red\n2,\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"as_snapshot.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "on-run-start": [
                "create table if not exists {{ target.schema }}.audit (what string)",
                "insert into {{ target.schema }}.audit values ('start')",
            ],
            "on-run-end": "insert into {{ target.schema }}.audit values ('end')",
        }

    @pytest.fixture
    def competition(
        self, monkeypatch: pytest.MonkeyPatch, silt_target: dict[str, Any], cloud: ObjectServer | None
    ) -> Iterator[Competition]:
        competition = Competition(silt_target["warehouse"], None if cloud is None else cloud.settings)
        monkeypatch.setattr(
            Warehouse, "execute", lambda loser, *given, **named: competition.execute(loser, *given, **named)
        )
        monkeypatch.setattr(transaction, "commit", competition.commit)
        yield competition

    @pytest.mark.parametrize("round_", [1, 2])
    def test_every_node_succeeds_by_skipping_the_work_that_the_other_run_did(
        self, project: Any, competition: Competition, round_: int
    ) -> None:
        window = ["--event-time-start", "2026-03-01", "--event-time-end", "2026-03-04"]
        results, _ = run_dbt_and_capture(["build", *window, "--vars", f"{{silt_run_id: R{round_}, round: {round_}}}"])
        responses = {each.node.name: each.adapter_response for each in results}
        for name in ROWS_AFTER.keys() - {"audit", "as_microbatch"}:
            assert responses[name]["skipped"], name
            where = f"{responses[name]['table']}@v{responses[name]['table_version']}"
            assert responses[name]["_message"] == f"skipped, nothing written: run R{round_} has done it, as {where}"
        assert {name: self.count(project, name) for name in ROWS_AFTER} == {
            name: counts[round_ - 1] for name, counts in ROWS_AFTER.items()
        }
        assert competition.wins == sum(self.units(project, f"/R{round_}/").values())
        assert set(self.units(project, f"/R{round_}/").values()) == {1}

    def count(self, project: Any, name: str) -> int:
        return project.run_sql(f"select count(*) from {project.database}.{project.test_schema}.{name}", fetch="one")[0]

    def units(self, project: Any, part: str) -> Counter[str]:
        """Returns how many commits hold each unit of work whose name contains that part."""
        found: Counter[str] = Counter()
        for name in ROWS_AFTER:
            log = project.adapter.connections.catalog.table(RelationName(project.database, project.test_schema, name))
            actions = (action for commit in log.commits() for action in commit.actions)
            found.update(f"{name} {a.app_id}" for a in actions if isinstance(a, SetTransaction) and part in a.app_id)
        return found
