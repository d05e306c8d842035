"""Concurrent nodes share dbt's cache of relations: none mistakes an existing table for a missing one
and replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from dbt.adapters.cache import RelationsCache
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.impl import SiltAdapter

SNAPSHOT = """
snapshots:
  - name: as_snapshot
    relation: ref('as_table')
    config: {unique_key: id, strategy: check, check_cols: all}
"""


class TestRelationsOfThreads:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "as_table.sql": "{{ config(materialized='table') }} select 1L as id",
            "as_incremental.sql": "{{ config(materialized='incremental') }} select id from {{ ref('as_table') }}",
            "snapshots.yml": SNAPSHOT,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"as_seed.csv": "id\n1\n"}

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["build"])

    def test_a_table_is_found_even_while_another_thread_adds_it_to_the_cache(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        relation = look(project, "as_table")()
        seen = look_in_the_middle_of(monkeypatch, "drop", look(project, "as_table"))
        project.adapter.cache_added(relation)
        assert seen() == [relation]

    def test_a_table_is_found_even_while_another_thread_lists_its_schema(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        names = ("as_incremental", "as_seed", "as_snapshot", "as_table")
        project.adapter.cache.drop_schema(project.database, project.test_schema)
        seen = [look_in_the_middle_of(monkeypatch, "add", look(project, name)) for name in names]
        look(project, "as_table")()
        assert [[relation.identifier for relation in found()] for found in seen] == [[name] * 4 for name in names]

    def test_a_run_reads_only_the_logs_of_the_tables_that_its_models_name(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folders = set()

        def noted(method: str) -> None:
            real = getattr(LocalStore, method)

            def look(store: LocalStore, path: str, *arguments: Any) -> Any:
                if path.startswith(LOG_FOLDER):
                    folders.add(Path(store.root).name)
                return real(store, path, *arguments)

            monkeypatch.setattr(LocalStore, method, look)

        for method in ("read", "list_from", "open_input"):
            noted(method)
        run_dbt(["run", "--select", "as_incremental"])
        assert folders - {"as_table"} == {"as_incremental"}

    @pytest.mark.parametrize("name", ["as_table", "as_incremental", "as_snapshot", "as_seed"])
    def test_a_table_created_after_its_nodes_first_lookup_is_not_replaced(
        self, project: Any, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = RelationName(project.database, project.test_schema, name)
        before = project.adapter.connections.catalog.table(place).snapshot().version
        looks = []

        def absent_at_first(adapter: SiltAdapter, database: str, schema: str, identifier: str) -> Any:
            looks.append(identifier)
            return None if looks.count(name) == 1 == len(looks) else get_relation(adapter, database, schema, identifier)

        get_relation = SiltAdapter.get_relation
        monkeypatch.setattr(SiltAdapter, "get_relation", absent_at_first)
        _, output = run_dbt_and_capture(["build", "--select", name], expect_pass=False)
        assert looks[0] == name
        assert "run it again" in output.lower()
        assert project.adapter.connections.catalog.table(place).snapshot().version == before


def look(project: Any, name: str) -> Callable[[], Any]:
    """Performs a node's first lookup: whether its table exists."""

    def found() -> Any:
        with project.adapter.connection_named("another node"):
            return project.adapter.get_relation(project.database, project.test_schema, name)

    return found


def look_in_the_middle_of(
    monkeypatch: pytest.MonkeyPatch, step: str, look: Callable[[], Any]
) -> Callable[[], list[Any]]:
    """Performs a lookup on another thread after each such step of a change of dbt's cache; returns the results."""
    threads: list[Thread] = []
    found: list[Any] = []
    original = getattr(RelationsCache, step)

    def with_another_thread(cache: RelationsCache, relation: Any) -> None:
        original(cache, relation)
        threads.append(Thread(target=lambda: found.append(look())))
        threads[-1].start()
        threads[-1].join(timeout=0.5)  # it waits for the cache, or finds it partly changed

    monkeypatch.setattr(RelationsCache, step, with_another_thread)

    def seen() -> list[Any]:
        for thread in threads:
            thread.join()
        return found

    return seen
