"""An enforced key in nodes of every kind, in the life of runs: built empty, held, published, reused, rolled back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.kernel.errors import KeyViolationError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.files import write_files
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build
from tests.functional.runs.test_publishing import silt

HEAD: Final = "id,name,v,at\n"
PEOPLE: Final = (
    HEAD + "1,ann,10,2026-03-01 01:00:00\n2,bob,20,2026-03-02 01:00:00\n",
    HEAD + "1,ann,10,2026-03-01 01:00:00\n2,bobby,21,2026-03-02 01:00:00\n3,cid,30,2026-03-03 01:00:00\n",
)
"""The seed on two days: on the second, a row has other values, and a row is new."""
NODES: Final = {
    "seeds": "people",
    "differences": "written",
    "snapshots": "history",
    "microbatch": "batched",
    "python": "framed",
    "changed_keys": "keyed",
    "silt_changes": "merged",
    "files": "landed_people",
    "hooks": "hooked",
}
REUSED: Final = ("seeds", "differences", "python", "changed_keys", "files")
SELECT: Final = "select id, name, v, at from {{ ref('people') }}"
HOOKS: Final = """post_hook=["alter table {{ this }} drop constraint if exists by_hook", """ + (
    """"alter table {{ this }} add constraint by_hook unique (id) enforced"]"""
)
MODELS: Final = {
    "viewed.sql": "{{ config(materialized='view') }} " + SELECT,
    "written.sql": "{{ config(materialized='table', write='differences', unique_key='id') }} " + SELECT,
    "batched.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
    "batch_size='day', begin='2026-03-01', lookback=9) }} " + SELECT,
    "framed.py": "def model(dbt, session):\n    dbt.config(materialized='table', pure=True)\n"
    "    return dbt.ref('people')\n",
    "keyed.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='id') }} "
    "select id, max(name) as name from {{ ref('people') }} group by id",
    "merged.sql": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }} "
    "select id, name, _change_type from {{ silt_changes(ref('people'), as='upserts') }}",
    "landed_people.sql": "{{ config(materialized='table') }} select id, name from {{ source('landing', 'landed') }}",
    "hooked.sql": "{{ config(materialized='table', " + HOOKS + ") }} " + SELECT,
}
OF_HISTORY: Final = HOOKS.replace("=", ": ").replace("(id)", "(dbt_scd_id)")
SNAPSHOTS: Final = f"""
snapshots:
  - name: history
    relation: ref('people')
    config: {{unique_key: id, strategy: check, check_cols: all, {OF_HISTORY}}}
"""
COLUMNS: Final = {
    "written": "id bigint, name string, v bigint, at timestamp",
    "batched": "id bigint, name string, v bigint, at timestamp",
    "keyed": "id bigint, name string",
    "landed_people": "id bigint, name string",
}


def contract(model: str) -> str:
    """The contract of a model, whose key is enforced by the profile."""
    named = (each.split() for each in COLUMNS[model].split(", "))
    columns = "".join(f"\n      - {{name: {name}, data_type: {kind}}}" for name, kind in named)
    return f"""
  - name: {model}
    config: {{contract: {{enforced: true}}, on_schema_change: fail}}
    constraints: [{{type: primary_key, columns: [id]}}]
    columns: {columns}"""


PROPERTIES: Final = f"""
seeds:
  - name: people
    config:
      event_time: at
      column_types: {{id: bigint, name: string, v: bigint, at: timestamp}}
      {HOOKS.replace("=", ": ")}
sources:
  - name: landing
    tables:
      - name: landed
        config: {{meta: {{external_location: "@folder/*.csv"}}}}
        columns: [{{name: id, data_type: bigint}}, {{name: name, data_type: string}}]
models: {"".join(map(contract, COLUMNS))}
  - {{name: merged, config: {{{HOOKS.replace("=", ": ")}}}}}
  - {{name: framed, config: {{{HOOKS.replace("=", ": ")}}}}}
unit_tests:
  - name: of_written
    model: written
    given: [{{input: ref('people'), rows: [{{id: 5, name: x}}, {{id: 5, name: y}}]}}]
    expect: {{rows: [{{id: 5, name: x}}, {{id: 5, name: y}}]}}
"""


class Seen:
    """Observations after each step: the notes on the keys of each node, its rows, and the messages of nodes."""

    def __init__(self, project: Any, program: Warehouse) -> None:
        self.project, self.program = project, program
        self.keys: dict[str, dict[str, list[str]]] = {}
        self.rows: dict[str, dict[str, int]] = {}
        self.messages: dict[str, Any] = {}

    def table(self, kind: str) -> str:
        return f"{self.project.test_schema}.t_{NODES[kind]}"

    def notes(self, step: str, messages: Any = None) -> None:
        self.notes_by(step, partial(self.project.run_sql, fetch="all"))
        self.messages[step] = messages

    def notes_by(self, step: str, run: Any) -> None:
        self.keys[step], self.rows[step] = {}, {}
        for kind in NODES:
            described = run(f"describe table extended {self.table(kind)}")
            self.keys[step][kind] = [row[2] for row in described if str(row[1]).startswith(("PRIMARY", "UNIQUE"))]
            (row,) = run(f"select count(*) from {self.table(kind)}")
            self.rows[step][kind] = row[0]

    def notes_branch(self, step: str, run_id: str) -> None:
        self.program.sql(f"set silt.branch = '{run_id}'")
        self.notes_by(step, lambda query: self.program.sql(query).collect())
        self.program.sql("reset silt.branch")


@pytest.mark.connect
@pytest.mark.kept
class TestEnforcedKeysOfEveryKind:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "enforced_keys": True}

    @pytest.fixture(scope="class")
    def landing(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("landing")
        write_files(folder, {"0.csv": "id,name\n7,eve\n"})
        return folder

    @pytest.fixture(scope="class")
    def models(self, landing: Path) -> dict[str, str]:
        return {**MODELS, "properties.yml": PROPERTIES.replace("@folder", str(landing))}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": PEOPLE[0]}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOTS}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"enough.sql": "select * from {{ ref('keyed') }} where {{ var('fails', false) }}"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"names.sql": "{% macro generate_alias_name(custom_alias_name, node) %}t_{{ node.name }}{% endmacro %}"}

    @pytest.fixture(scope="class")
    def seen(self, project: Any, program: Warehouse) -> Seen:
        seen = Seen(project, program)
        seen.notes("empty", build("monday", "--empty"))
        build("monday", expect_pass=False, fails=True)
        seen.notes_branch("branch", "monday")
        seen.notes("published", build("monday"))
        seen.notes("reused", build("tuesday"))
        write_files(Path(project.project_root, "seeds"), {"people.csv": PEOPLE[1]})
        seen.notes("changed", build("wednesday", *WITHOUT_UNIT_TESTS))
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        seen.notes("rolled back")
        return seen

    @pytest.mark.parametrize("kind", NODES)
    def test_the_key_of_each_kind_of_node_is_enforced_in_each_run(self, seen: Seen, kind: str) -> None:
        assert seen.keys["published"][kind] == seen.keys["changed"][kind] == ["enforced"]
        assert seen.rows["changed"][kind] == {"files": 1, "snapshots": 4}.get(kind, 3)

    @pytest.mark.parametrize("kind", NODES)
    def test_a_held_run_has_the_enforced_keys_on_its_branch(self, seen: Seen, kind: str) -> None:
        assert seen.keys["branch"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_build_with_empty_has_the_enforced_keys(self, seen: Seen, kind: str) -> None:
        assert seen.keys["empty"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", REUSED)
    def test_an_unchanged_node_is_reused_with_its_enforced_key(self, seen: Seen, kind: str) -> None:
        assert "unchanged since" in seen.messages["reused"][NODES[kind]]
        assert seen.keys["reused"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_rolled_back_run_leaves_the_enforced_keys_before_it(self, seen: Seen, kind: str) -> None:
        assert seen.rows["rolled back"][kind] == seen.rows["published"][kind]
        assert seen.keys["rolled back"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_transaction_cannot_double_the_enforced_keys(self, seen: Seen, program: Warehouse, kind: str) -> None:
        with pytest.raises(KeyViolationError), program.transaction() as together:
            together.sql(f"insert into {seen.table(kind)} select * from {seen.table(kind)}")

    def test_a_unit_test_of_a_model_with_an_enforced_key_may_return_a_key_twice(self, seen: Seen) -> None:
        assert seen.messages["published"]["of_written"].startswith("pass: ")
