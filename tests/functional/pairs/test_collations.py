"""A collated column in nodes of every kind, in the life of runs: built empty, held, published, reused, rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.files import write_files
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build
from tests.functional.runs.test_publishing import shown, silt

COLLATED: Final = "string collate UTF8_LCASE"
HEAD: Final = "id,name,v,at\n"
PEOPLE: Final = (
    HEAD + "1,Ann,10,2026-03-01 01:00:00\n2,bob,20,2026-03-02 01:00:00\n9,gone,0,2026-03-02 02:00:00\n",
    HEAD + "1,ANN,10,2026-03-01 01:00:00\n2,Bobby,20,2026-03-02 01:00:00\n3,cid,30,2026-03-03 01:00:00\n"
    "9,gone,0,2026-03-02 02:00:00\n",
)
"""The seed on two days: on the second, a name has another case, a name is another, and a row is new."""
FIRST: Final = [(1, "Ann"), (2, "bob"), (9, "gone")]
SECOND: Final = [(1, "ANN"), (2, "Bobby"), (3, "cid"), (9, "gone")]
NODES: Final = {
    "seeds": "people",
    "views": "viewed",
    "differences": "written",
    "snapshots": "history",
    "microbatch": "batched",
    "python": "framed",
    "changed_keys": "keyed",
    "silt_changes": "merged",
    "files": "landed_people",
    "hooks": "hooked",
}
STORED: Final = tuple(kind for kind in NODES if kind != "views")
REUSED: Final = ("seeds", "differences", "snapshots", "python", "changed_keys", "files")
SELECT: Final = "select id, name, v, at from {{ ref('people') }}"
MODELS: Final = {
    "viewed.sql": "{{ config(materialized='view') }} " + SELECT + " where name <> 'GONE'",
    "written.sql": "{{ config(materialized='table', write='differences', unique_key='name') }} " + SELECT,
    "batched.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
    "batch_size='day', begin='2026-03-01', lookback=9) }} " + SELECT,
    "framed.py": "def model(dbt, session):\n    dbt.config(materialized='table', pure=True)\n"
    "    return dbt.ref('people').where(\"name in ('ANN', 'BOB', 'bobby', 'CID', 'Gone')\")\n",
    "keyed.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='id') }} "
    "select id, max(name) as name from {{ ref('people') }} group by id",
    "merged.sql": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='name') }} "
    "select id, name, _change_type from {{ silt_changes(ref('people'), as='upserts') }}",
    "landed_people.sql": "{{ config(materialized='table') }} select id, name from {{ source('landing', 'landed') }}",
    "hooked.sql": """{{ config(materialized='table', post_hook="delete from {{ this }} where name = 'GONE'") }} """
    + SELECT,
}
SNAPSHOTS: Final = (
    "snapshots: [{name: history, relation: ref('people'), config: {unique_key: id, strategy: check, check_cols: all}}]"
)
PROPERTIES: Final = f"""
seeds:
  - name: people
    config: {{event_time: at, column_types: {{id: bigint, name: {COLLATED}, v: bigint, at: timestamp}}}}
sources:
  - name: landing
    tables:
      - name: landed
        config: {{meta: {{external_location: "@folder/*.csv"}}}}
        columns: [{{name: id, data_type: bigint}}, {{name: name, data_type: {COLLATED}}}]
unit_tests:
  - name: of_viewed
    model: viewed
    given: [{{input: ref('people'), rows: [{{id: 5, name: Ann}}, {{id: 6, name: gOne}}]}}]
    expect: {{rows: [{{id: 5, name: Ann}}]}}
"""


def expected(kind: str, day: int) -> list[tuple[int, str]]:
    """The rows of the node of a kind on a day."""
    rows = [FIRST, SECOND][day]
    if kind == "snapshots" and day == 1:
        rows = [FIRST[0], *SECOND[1:]]  # a snapshot records no change of case that the collation ignores
    if kind == "files":
        return [(7, "Eve")]
    return [row for row in rows if kind not in ("views", "hooks") or row[1] != "gone"]


class Seen:
    """Observations after each step: the rows of each node, the types of their column, and the messages of nodes."""

    def __init__(self, project: Any, program: Warehouse) -> None:
        self.project, self.program = project, program
        self.rows: dict[str, dict[str, list[tuple[Any, ...]]]] = {}
        self.found: dict[str, dict[str, list[Any]]] = {}
        self.types: dict[str, dict[str, str]] = {}
        self.messages: dict[str, Any] = {}

    def notes(self, step: str, messages: Any = None) -> None:
        self.notes_by(step, partial(self.project.run_sql, fetch="all"))
        self.messages[step] = messages

    def notes_by(self, step: str, run: Any) -> None:
        """Notes the rows, those whose name is equal by the collation alone, and the type of the name."""
        schema = self.project.test_schema
        self.rows[step], self.found[step], self.types[step] = {}, {}, {}
        for kind, node in NODES.items():
            table = f"{schema}.t_{node}"
            current = f"select id, name from {table}" + (" where dbt_valid_to is null" * (kind == "snapshots"))
            self.rows[step][kind] = sorted(map(tuple, run(current)))
            self.found[step][kind] = [row[0] for row in run(f"select id from ({current}) where name in ('aNN', 'eVE')")]
            described: Sequence[Any] = run(f"describe table {table}")
            self.types[step][kind] = next(row[1] for row in described if row[0] == "name")

    def notes_branch(self, step: str, run_id: str) -> None:
        self.program.sql(f"set silt.branch = '{run_id}'")
        self.notes_by(step, lambda query: self.program.sql(query).collect())
        self.program.sql("reset silt.branch")

    def notes_transaction(self, step: str) -> None:
        """Notes what a transaction sees that changes a row which it finds by the collation, and then fails."""
        with pytest.raises(ZeroDivisionError), self.program.transaction() as together:
            for kind in STORED:
                table = f"{self.project.test_schema}.t_{NODES[kind]}"
                together.sql(f"update {table} set id = id + 100 where name in ('aNN', 'eVE')")
            self.notes_by(step, lambda query: together.sql(query).collect())
            raise ZeroDivisionError


@pytest.mark.connect
@pytest.mark.kept
@pytest.mark.accelerated
class TestCollatedColumnsOfEveryKind:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged"}

    @pytest.fixture(scope="class")
    def landing(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("landing")
        write_files(folder, {"0.csv": "id,name\n7,Eve\n"})
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
        return {"enough.sql": "select * from {{ ref('keyed') }} where name = 'aNN' and {{ var('fails', false) }}"}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"names.sql": "{% macro generate_alias_name(custom_alias_name, node) %}t_{{ node.name }}{% endmacro %}"}

    @pytest.fixture(scope="class")
    def seen(self, project: Any, program: Warehouse) -> Seen:
        seen = Seen(project, program)
        seen.notes("empty", build("monday", "--empty"))
        seen.notes("held", build("monday", expect_pass=False, fails=True))
        seen.notes_branch("branch", "monday")
        seen.notes("published", build("monday"))
        seen.notes("reused", build("tuesday"))
        write_files(Path(project.project_root, "seeds"), {"people.csv": PEOPLE[1]})
        seen.notes("changed", build("wednesday", *WITHOUT_UNIT_TESTS))
        seen.notes_transaction("transaction")
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        seen.notes("rolled back")
        return seen

    @pytest.mark.parametrize("kind", NODES)
    def test_each_kind_of_node_keeps_the_collation_and_compares_by_it(self, seen: Seen, kind: str) -> None:
        for step in ("published", "changed"):
            assert seen.types[step][kind] == COLLATED
            assert seen.rows[step][kind] == expected(kind, step == "changed")
            assert seen.found[step][kind] == [7 if kind == "files" else 1]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_held_run_has_them_on_its_branch_until_it_is_published(self, seen: Seen, kind: str) -> None:
        assert seen.rows["held"][kind] == seen.rows["empty"][kind]
        assert seen.rows["branch"][kind] == seen.rows["published"][kind] == expected(kind, 0)
        assert seen.types["branch"][kind] == COLLATED

    @pytest.mark.parametrize("kind", NODES)
    def test_a_build_with_empty_has_the_column_with_its_collation(self, seen: Seen, kind: str) -> None:
        assert seen.types["empty"][kind] == COLLATED
        reads_seed = kind in ("seeds", "python")
        assert seen.rows["empty"][kind] == (expected(kind, 0) if reads_seed else [])

    @pytest.mark.parametrize("kind", REUSED)
    def test_an_unchanged_node_is_reused(self, seen: Seen, kind: str) -> None:
        assert "unchanged since" in seen.messages["reused"][NODES[kind]]
        assert seen.rows["reused"][kind] == expected(kind, 0)

    @pytest.mark.parametrize("kind", STORED)
    def test_a_rolled_back_run_leaves_the_names_before_it(self, seen: Seen, kind: str) -> None:
        assert seen.rows["rolled back"][kind] == expected(kind, 0)
        assert seen.types["rolled back"][kind] == COLLATED

    @pytest.mark.parametrize("kind", STORED)
    def test_a_transaction_finds_rows_by_the_collation(self, seen: Seen, kind: str) -> None:
        moved = 107 if kind == "files" else 101
        assert seen.found["transaction"][kind] == [moved]

    def test_a_unit_test_compares_its_rows_by_the_collation(self, seen: Seen) -> None:
        assert seen.messages["published"]["of_viewed"].startswith("pass: ")

    def test_a_macro_of_the_project_names_each_collated_table(self, seen: Seen) -> None:
        assert {f"t_{node}" for node in NODES.values()} <= shown(seen.project).keys()
