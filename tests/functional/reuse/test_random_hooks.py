"""Random changes and random failures of hooks.

After a command that succeeds, all rows are those of a full build, and each hook has run since its node was last built.
HOOK_SEEDS names the seeds: HOOK_SEEDS=17 repeats a failure, and HOOK_SEEDS=0-99 tries many.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from typing import Any

import pytest
from dbt.tests.util import run_dbt

CHECK = "select assert_true(count(*) = 0) from {{ this.schema }}.failing where name = '{{ this.identifier }}'"
COPY = (
    "insert overwrite {{ this.schema }}.copies_of_{{ this.identifier }} "
    "select count(*) as n, coalesce(sum(v), 0) as s from {{ this }}"
)
QUERIES = {
    "whole": "select id, v from src where v is not null",
    "merged": "select id, v * 2 as v from whole",
    "keyed": "select id, sum(v) as v from src group by id",
    "below": "select m.id, m.v + k.v as v from merged m join keyed k on k.id = m.id",
}
"""Each model as a query of the source and of the models before it."""
CONFIGS = {
    "whole": "materialized='table'",
    "merged": "materialized='table'",
    "keyed": "materialized='incremental', incremental_strategy='changed_keys', unique_key='id'",
    "below": "materialized='table'",
}
STEPS = 6


def seeds() -> list[Any]:
    first, _, last = os.environ.get("HOOK_SEEDS", "0-5").partition("-")
    found = range(int(first), int(last or first) + 1)
    return [pytest.param(each, marks=pytest.mark.long if each > int(first) else ()) for each in found]


def model(name: str, hooks: list[str]) -> str:
    query = QUERIES[name].replace("from src", "from {{ source('raw', 'src') }}")
    for other in QUERIES:
        query = query.replace(f"from {other}", f"from {{{{ ref('{other}') }}}}")
        query = query.replace(f"join {other}", f"join {{{{ ref('{other}') }}}}")
    return f"{{{{ config({CONFIGS[name]}, post_hook={json.dumps(hooks)}) }}}} {query}"


class RandomHooks:
    publish = "at_once"

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "reuse": "unchanged", "publish": self.publish}

    @pytest.fixture(scope="class")
    def models(self) -> Mapping[str, str]:
        orders = {"whole": [CHECK, COPY], "merged": [COPY, CHECK], "keyed": [CHECK, COPY], "below": [COPY, CHECK]}
        files = {f"{name}.sql": model(name, hooks) for name, hooks in orders.items()}
        source = "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: src}]}]"
        return {**files, "sources.yml": source}

    @pytest.fixture(scope="class")
    def inputs(self, project: Any) -> None:
        schema = project.test_schema
        project.run_sql(f"create table {schema}.src (id int, v int)")
        project.run_sql(f"create table {schema}.failing (name string)")
        for name in QUERIES:
            project.run_sql(f"create table {schema}.copies_of_{name} (n bigint, s bigint)")

    @pytest.mark.parametrize("seed", seeds())
    def test_each_hook_has_run_since_the_last_build(self, project: Any, inputs: None, seed: int) -> None:
        drawn, reused, failed, done = random.Random(seed), 0, 0, []
        self.change(project, "delete from {schema}.src; insert into {schema}.src values (1, 10), (2, 20), (3, null)")
        for number in range(STEPS):
            is_calm = number % 2 == 1
            failing = [name for name in QUERIES if not is_calm and drawn.random() < 0.5]
            step = drawn.choice(["nothing", "nothing", "again", "rows"] if is_calm else ["rows", "rows", "nothing"])
            done.append((step, failing))
            if step == "rows":
                self.change(project, self.drawn_change(drawn))
            names = ", ".join(f"('{each}')" for each in failing)
            values = f"; insert into {{schema}}.failing values {names}" if names else ""
            self.change(project, "delete from {schema}.failing" + values)
            run_id = f"{seed}-{number - (step == 'again')}"
            results = run_dbt(["run", "--vars", json.dumps({"silt_run_id": run_id})], expect_pass=None)  # type: ignore[arg-type]
            messages = [str(each.message) for each in results.results]
            reused += sum("reused" in each for each in messages)
            if all(str(each.status) == "success" for each in results.results):
                self.check(project, f"seed {seed}: {done}: {messages}")
            else:
                failed += 1
        self.change(project, "delete from {schema}.failing")
        run_dbt(["run", "--vars", json.dumps({"silt_run_id": f"{seed}-end"})])
        self.check(project, f"seed {seed}: {done}")
        assert reused or failed

    @staticmethod
    def change(project: Any, statements: str) -> None:
        for each in statements.split("; "):
            project.run_sql(each.format(schema=project.test_schema))

    @staticmethod
    def drawn_change(drawn: random.Random) -> str:
        number, value = drawn.randint(1, 4), drawn.choice(("null", "5", "7"))
        return drawn.choice(
            (
                f"insert into {{schema}}.src select {number}, {value} where not exists "
                f"(select 1 from {{schema}}.src where id = {number})",
                f"update {{schema}}.src set v = {value} where id = {number}",
                f"delete from {{schema}}.src where id = {number}",
            )
        )

    def check(self, project: Any, told: str) -> None:
        """Compares each model with its query, and the copy that its hook has made with the model."""
        defined = ""
        for name, query in QUERIES.items():
            defined += f"{', ' if defined else 'with '}{name} as ({query.replace('src', project.test_schema + '.src')})"
            expected = self.rows(project, f"{defined} select * from {name}")
            found = self.rows(project, f"select * from {project.test_schema}.{name}")
            assert found == expected, f"{name} is stale after {told}"
            copied = self.rows(project, f"select * from {project.test_schema}.copies_of_{name}")
            assert copied == [(len(found), sum(row[1] or 0 for row in found))], f"the hook of {name} after {told}"

    @staticmethod
    def rows(project: Any, query: str) -> list[Any]:
        return sorted((tuple(each) for each in project.run_sql(query, fetch="all")), key=repr)


class TestRandomHooks(RandomHooks):
    pass


class TestRandomHooksOfPublishedRuns(RandomHooks):
    publish = "after_run"
