"""A field that the model's struct no longer has is treated as a column that the model no longer has."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

OLD = "select id, named_struct('a', 1, 'b', 2) as s from values (1), (2) as t (id)"
NEW = "select id, named_struct('A', 9, 'c', 8) as s from values (2), (3) as t (id)"

KEPT = [(1, 1, 2, None), (2, 9, 2, 8), (3, 9, None, 8)]
REPLACED = [(1, 1, 2, None), (2, 9, None, 8), (3, 9, None, 8)]


def model(config: str, new: str = NEW) -> str:
    head = "{{ config(materialized='incremental', " + config + ") }}"
    return f"{head} {{% if is_incremental() %}} {new} {{% else %}} {OLD} {{% endif %}}"


SNAPSHOT = """
{% snapshot history %}
{{ config(unique_key='id', strategy='check', check_cols=['mark'], target_schema=schema) }}
select id, id + {{ var('day') }} as mark, named_struct('a', 1 {{ ", 'b', 2" if var('day') == 1 }}) as s from range(1)
{% endsnapshot %}
"""


class TestAStructWithOtherFields:
    GROWS = "unique_key='id', on_schema_change='append_new_columns'"
    CASES: ClassVar = {
        "all_columns": (GROWS, KEPT),
        "evolving": ("unique_key='id', merge_with_schema_evolution=true", KEPT),
        "some_columns": (f"{GROWS}, merge_update_columns=['s']", KEPT),
        "but_some": (f"{GROWS}, merge_exclude_columns=['id']", KEPT),
        "by_clauses": (
            f"{GROWS}, merge_clauses={{'when_matched': [{{'action': 'update', 'mode': 'star'}}], "
            "'when_not_matched': [{'action': 'insert', 'mode': 'explicit', "
            "'insert': {'columns': ['id', 's'], 'values': ['DBT_INTERNAL_SOURCE.id', 'DBT_INTERNAL_SOURCE.s']}}]}",
            KEPT,
        ),
        "marked": (f"{GROWS}, tblproperties={{'delta.enableDeletionVectors': 'true'}}", KEPT),
        "recorded": (f"{GROWS}, tblproperties={{'delta.enableChangeDataFeed': 'true'}}", KEPT),
        "replaced": (f"incremental_strategy='delete+insert', {GROWS}", REPLACED),
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"{name}.sql": model(config) for name, (config, _) in self.CASES.items()}

    def test_keeps_what_it_lacks_in_the_rows_that_match(self, project: Any) -> None:
        for _ in range(2):
            run_dbt(["run"])
        query = "select id, s.a, s.b, s.c from {}.{} order by id"
        found = {name: project.run_sql(query.format(project.test_schema, name), fetch="all") for name in self.CASES}
        assert {name: [tuple(row) for row in rows] for name, rows in found.items()} == {
            name: expected for name, (_, expected) in self.CASES.items()
        }


class TestAStructThatLacksAField:
    LACKS = NEW.replace(", 'c', 8", "")

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "ignoring.sql": model("unique_key='id'", self.LACKS),
            "failing.sql": model("unique_key='id', on_schema_change='fail'", self.LACKS),
        }

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    def test_is_refused_where_a_column_that_is_gone_is(self, project: Any) -> None:
        run_dbt(["run"])
        _, output = run_dbt_and_capture(["run"], expect_pass=False)
        assert "[SILT_COLUMN_NOT_FOUND]" in output and "lacks s.b" in output
        assert "source and target schemas on this incremental model are out of sync" in output

    def test_is_null_in_the_new_rows_of_a_snapshot(self, project: Any) -> None:
        for day in (1, 2):
            run_dbt(["snapshot", "--vars", f"day: {day}"])
        query = f"select s.b from {project.test_schema}.history order by dbt_valid_from"
        assert [tuple(row) for row in project.run_sql(query, fetch="all")] == [(2,), (None,)]


class TestAStructThatIsSynchronized:
    """In each column, the query's structs lack one field, have a new one, and return the others in another order."""

    OLD = (
        "select id, named_struct('a', 1, 'b', 2, 'in', named_struct('x', 3, 'y', 4)) as s, "
        "array(named_struct('a', 1, 'b', 2)) as l, map('k', named_struct('a', 1, 'b', 2)) as m, "
        "named_struct('a', 1) as other, named_struct('odd `name`', 1, 'b', 2) as o from values (1), (2) as t (id)"
    )
    NEW = (
        "select id, named_struct('c', 9, 'IN', named_struct('x', 8L, 'z', 7), 'a', 6) as s, "
        "array(named_struct('c', 9, 'a', 8)) as l, map('k', named_struct('a', 9, 'c', 8)) as m, "
        "named_struct('b', 9) as other, named_struct('b', 3) as o from values (2), (3) as t (id)"
    )
    KEPT: ClassVar = {
        "s": {"IN": {"x": 3}, "a": 1},
        "l": [{"a": 1}],
        "m": {"k": {"a": 1}},
        "other": {},
        "o": {"b": 2},
    }
    WRITTEN: ClassVar = {
        "s": {"c": 9, "IN": {"x": 8, "z": 7}, "a": 6},
        "l": [{"c": 9, "a": 8}],
        "m": {"k": {"a": 9, "c": 8}},
        "other": {"b": 9},
        "o": {"b": 3},
    }
    SYNC = "on_schema_change='sync_all_columns'"
    CASES: ClassVar = {
        "merged": f"unique_key='id', {SYNC}",
        "replaced": f"incremental_strategy='delete+insert', unique_key='id', {SYNC}",
        "mapped": f"unique_key='id', {SYNC}, tblproperties={{'delta.columnMapping.mode': 'name'}}",
        "widened": f"unique_key='id', {SYNC}, tblproperties={{'delta.enableTypeWidening': 'true'}}",
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        text = f"{{% if is_incremental() %}} {self.NEW} {{% else %}} {self.OLD} {{% endif %}}"
        return {
            f"{name}.sql": f"{{{{ config(materialized='incremental', {config}) }}}} {text}"
            for name, config in self.CASES.items()
        }

    def test_has_the_fields_of_the_query(self, project: Any) -> None:
        for _ in range(3):
            run_dbt(["run"])
        for name in self.CASES:
            query = f"select to_json(struct(* except (id))) from {project.test_schema}.{name} order by id"
            assert [json.loads(row[0]) for row in project.run_sql(query, fetch="all")] == [
                self.KEPT,
                self.WRITTEN,
                self.WRITTEN,
            ], name
