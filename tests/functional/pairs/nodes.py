"""A project in which a node of each kind has the rows of a seed, and its observation after each step of its life."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.files import write_files
from tests.functional.pairs.kinds import build

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
"""The node of each kind."""
REUSED: Final = ("seeds", "differences", "python", "changed_keys", "files")
SELECT: Final = "select id, name, v, at from {{ ref('people') }}"
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
}
OF_LANDING: Final = """
sources:
  - name: landing
    tables:
      - name: landed
        config: {meta: {external_location: "@folder/*.csv"}}
        columns: [{name: id, data_type: bigint}, {name: name, data_type: string}]
"""
OF_UNITS: Final = """
unit_tests:
  - name: of_written
    model: written
    given: [{input: ref('people'), rows: [{id: 5, name: x}, {id: 5, name: y}]}]
    expect: {rows: [{id: 5, name: x}, {id: 5, name: y}]}
"""
COLUMNS: Final = {
    "written": "id bigint, name string, v bigint, at timestamp",
    "batched": "id bigint, name string, v bigint, at timestamp",
    "keyed": "id bigint, name string",
    "landed_people": "id bigint, name string",
}
"""The columns of the models with a contract."""


def contract(model: str, constraint: str) -> str:
    """Returns the contract of a model, with a constraint."""
    named = (each.split() for each in COLUMNS[model].split(", "))
    columns = "".join(f"\n      - {{name: {name}, data_type: {kind}}}" for name, kind in named)
    return f"""
  - name: {model}
    config: {{contract: {{enforced: true}}, on_schema_change: fail}}
    constraints: [{constraint}]
    columns: {columns}"""


def by_hook(constraint: str) -> str:
    """Returns the config of hooks that give a node's table a constraint."""
    return (
        """post_hook=["alter table {{ this }} drop constraint if exists by_hook", """
        f""""alter table {{{{ this }}}} add constraint by_hook {constraint}"]"""
    )


def described(config: str, models: str) -> str:
    """Returns the properties of the project, with a further config of the seed."""
    return f"""
seeds:
  - name: people
    config:
      event_time: at
      column_types: {{id: bigint, name: string, v: bigint, at: timestamp}}
      {config}
models: {models}
{OF_LANDING}{OF_UNITS}"""


def history(config: str) -> str:
    """Returns the snapshot with a further config."""
    return f"""
snapshots:
  - name: history
    relation: ref('people')
    config: {{unique_key: id, strategy: check, check_cols: all, {config}}}
"""


def hooked(config: str) -> dict[str, str]:
    """Returns the table `hooked` with a further config."""
    return {"hooked.sql": "{{ config(materialized='table', " + config + ") }} " + SELECT}


class Seen:
    """Observations after each step: the number of rows of each node, and the messages of nodes.

    Attributes:
        nodes: the node of each kind.
    """

    nodes: ClassVar[dict[str, str]] = NODES

    def __init__(self, project: Any, program: Warehouse) -> None:
        self.project, self.program = project, program
        self.rows: dict[str, dict[str, int]] = {}
        self.messages: dict[str, Any] = {}

    def table(self, kind: str) -> str:
        return f"{self.project.test_schema}.t_{self.nodes[kind]}"

    def notes(self, step: str, messages: Any = None) -> None:
        self.notes_by(step, partial(self.project.run_sql, fetch="all"))
        self.messages[step] = messages

    def notes_by(self, step: str, run: Callable[[str], Any]) -> None:
        self.rows[step] = {kind: run(f"select count(*) from {self.table(kind)}")[0][0] for kind in self.nodes}

    def notes_branch(self, step: str, run_id: str, messages: Any = None) -> None:
        self.program.sql(f"set silt.branch = '{run_id}'")
        self.notes_by(step, lambda query: self.program.sql(query).collect())
        self.program.sql("reset silt.branch")
        self.messages[step] = messages


class SeenKeys(Seen):
    """Observes the notes on the keys of each node too.

    Attributes:
        kinds: the first words of the keys to observe.
    """

    kinds: ClassVar[tuple[str, ...]] = ("PRIMARY", "UNIQUE")

    def __init__(self, project: Any, program: Warehouse) -> None:
        super().__init__(project, program)
        self.keys: dict[str, dict[str, list[str]]] = {}

    def notes_by(self, step: str, run: Callable[[str], Any]) -> None:
        super().notes_by(step, run)
        self.keys[step] = {
            kind: list(self._of(run(f"describe table extended {self.table(kind)}"))) for kind in self.nodes
        }

    def _of(self, described: Any) -> Iterable[str]:
        return (row[2] for row in described if str(row[1]).startswith(self.kinds))


class EveryKind:
    """The project; a test class states its models, snapshots, properties and seeds, besides `PEOPLE`."""

    own_models: ClassVar[dict[str, str]] = {}
    own_snapshots: ClassVar[str] = ""
    properties: ClassVar[str] = ""
    own_seeds: ClassVar[dict[str, str]] = {}

    @pytest.fixture(scope="class")
    def landing(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("landing")
        write_files(folder, {"0.csv": "id,name\n7,eve\n"})
        return folder

    @pytest.fixture(scope="class")
    def models(self, landing: Path) -> dict[str, str]:
        return {**MODELS, **self.own_models, "properties.yml": self.properties.replace("@folder", str(landing))}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": PEOPLE[0], **self.own_seeds}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": self.own_snapshots}

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"names.sql": "{% macro generate_alias_name(custom_alias_name, node) %}t_{{ node.name }}{% endmacro %}"}


class KeyedNodes(EveryKind):
    """The project whose runs are published after their tests; a test class states the keys of its nodes."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"enough.sql": "select * from {{ ref('keyed') }} where {{ var('fails', false) }}"}

    def begin(self, seen: Seen, empty: str) -> None:
        """Builds the project: empty, on Monday by a run that is held at first, unchanged on Tuesday; changes the seed.

        Args:
            empty: the id of the run that builds it empty.
        """
        seen.notes("empty", build(empty, "--empty"))
        build("monday", expect_pass=False, fails=True)
        seen.notes_branch("branch", "monday")
        seen.notes("published", build("monday"))
        seen.notes("reused", build("tuesday"))
        write_files(Path(seen.project.project_root, "seeds"), {"people.csv": PEOPLE[1]})
