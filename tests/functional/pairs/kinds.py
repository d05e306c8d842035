"""A project with every kind of node, each of which reads every kind before it.

The rows of each node have a column `part`, the capability whose rows they are: the node `batches` has the rows of the
seed as `seeds`, those of the snapshot as `snapshots`, and so on. So a test of a pair compares one part of one node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from dbt.tests.util import run_dbt

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.files import write_files

Rows: TypeAlias = "Sequence[tuple[Any, ...]]"
Parts: TypeAlias = "Mapping[str, Rows]"

HEAD: Final = "id,v,at\n"
SEED: Final = (
    HEAD + "1,10,2026-03-01 01:00:00\n2,20,2026-03-02 01:00:00\n3,30,2026-03-02 02:00:00\n",
    HEAD + "1,10,2026-03-01 01:00:00\n2,21,2026-03-02 01:00:00\n4,40,2026-03-03 02:00:00\n",
)
"""The seed's file on two days: on the second, 2 has another value, 3 is gone and 4 is new."""
FILES: Final = ("id,v,at\n7,70,2026-03-01 07:00:00\n", "id,v,at\n8,80,2026-03-03 08:00:00\n")
"""The file that lands on each day."""
NUMBERS: Final = ([(1, 10), (2, 20), (3, 30)], [(1, 10), (2, 21), (4, 40)])
LANDED: Final = ([(7, 70)], [(7, 70), (8, 80)])
WINDOW: Final = ("--event-time-start", "2026-03-01", "--event-time-end", "2026-03-05")
WITHOUT_UNIT_TESTS: Final = ("--exclude-resource-type", "unit_test")

_TABLES: Final = {
    "seeds": "numbers",
    "views": "seen",
    "differences": "cut",
    "snapshots": "history",
    "microbatch": "batches",
    "python": "framed",
    "changed_keys": "keyed",
    "silt_changes": "log",
}
"""The node of each kind; the tables are in the order in which they read each other."""
KINDS: Final = (*_TABLES, "files")
TABLES: Final = tuple(kind for kind in KINDS if kind not in ("views", "files"))
PARTS: Final = {
    "views": ("seeds",),
    "differences": ("seeds", "files", "views"),
    "snapshots": ("seeds", "files", "views", "differences"),
    "microbatch": ("seeds", "files", "views", "differences", "snapshots"),
    "python": ("seeds", "files", "views", "differences", "snapshots", "microbatch"),
    "changed_keys": ("seeds", "views", "differences", "snapshots", "microbatch", "python"),
    "silt_changes": ("seeds", "differences", "snapshots", "microbatch", "python", "changed_keys"),
}
"""The kinds that the node of each kind reads."""
_OF_PART: Final = {"seeds": "", "files": ""}


def node_of(kind: str) -> str:
    """The node whose rows show a kind: files have no relation, and are seen in the view over them."""
    return "doubled" if kind == "files" else _TABLES[kind]


def table_of(kind: str) -> str:
    """The name of its relation, which a macro of the project gives instead of dbt's."""
    return f"t_{node_of(kind)}"


def _parts(kind: str) -> str:
    return "\nunion all ".join(
        f"{{{{ part('{part}', source('landing', 'landed') if '{part}' == 'files' else ref('{node_of(part)}')) }}}}"
        for part in PARTS[kind]
    )


MACROS: Final = """
{% macro part(name, relation) %}
{%- set chosen = {'seeds': 'true', 'files': 'true', 'snapshots': "part = 'seeds' and dbt_valid_to is null"} -%}
select '{{ name }}' as part, id, v, at from {{ relation }} where {{ chosen.get(name, "part = 'seeds'") }}
{% endmacro %}

{% macro generate_alias_name(custom_alias_name=none, node=none) %}t_{{ node.name }}{% endmacro %}

{% macro ref() %}
{% do return(builtins.ref(*varargs, **kwargs).include(database=false)) %}
{% endmacro %}

{% macro source() %}{% do return(builtins.source(*varargs)) %}{% endmacro %}
"""
_FRAMED: Final = """
from pyspark.sql import functions as F


def model(dbt, session):
    dbt.config(
        materialized="table", write="differences", unique_key=["part", "id"], pure=True, event_time="at"
    )
    inputs = {
        "seeds": dbt.ref("numbers"),
        "files": dbt.source("landing", "landed"),
        "views": dbt.ref("seen").where("part = 'seeds'"),
        "differences": dbt.ref("cut").where("part = 'seeds'"),
        "snapshots": dbt.ref("history").where("part = 'seeds' and dbt_valid_to is null"),
        "microbatch": dbt.ref("batches").where("part = 'seeds'"),
    }
    frame = None
    for name, rows in inputs.items():
        part = rows.select(F.lit(name).alias("part"), "id", "v", "at")
        frame = part if frame is None else frame.unionAll(part)
    return frame
"""
_LOG: Final = "\nunion all ".join(
    f"select '{part}' as part, id, v, _change_type as kind from {{{{ silt_changes(ref('{node_of(part)}')) }}}}"
    + {"seeds": "", "snapshots": " where part = 'seeds' and dbt_valid_to is null"}.get(part, " where part = 'seeds'")
    for part in PARTS["silt_changes"]
)
MODELS: Final = {
    "seen.sql": "{{ config(materialized='view', event_time='at') }} " + _parts("views"),
    "doubled.sql": "{{ config(materialized='view') }} "
    "select part, id, {{ function('twice') }}(v) as v, at from {{ ref('seen') }} "
    "union all {{ part('files', source('landing', 'landed')) }}",
    "cut.sql": "{{ config(materialized='table', write='differences', unique_key=['part', 'id'], event_time='at') }} "
    + _parts("differences"),
    "batches.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
    "batch_size='day', begin='2026-03-01', lookback=9) }} " + _parts("microbatch"),
    "framed.py": _FRAMED,
    "keyed.sql": "{{ config(materialized='incremental', incremental_strategy='changed_keys', group_key='id') }} "
    + _parts("changed_keys"),
    "log.sql": "{{ config(materialized='incremental', incremental_strategy='append') }} " + _LOG,
}
SNAPSHOTS: Final = {
    "history.sql": "{% snapshot history %}{{ config(unique_key=['part', 'id'], strategy='check', check_cols=['v'], "
    "hard_deletes='invalidate', event_time='at') }} " + _parts("snapshots") + "{% endsnapshot %}"
}
FUNCTIONS: Final = {
    "twice.sql": "v * 2",
    "functions.yml": "functions: "
    "[{name: twice, arguments: [{name: v, data_type: bigint}], returns: {data_type: bigint}}]",
}
PROPERTIES: Final = """
seeds:
  - name: numbers
    config: {event_time: at, column_types: {id: bigint, v: bigint, at: timestamp}}
sources:
  - name: landing
    tables:
      - name: landed
        config: {event_time: at, meta: {external_location: "@folder/*.csv"}}
        columns:
          - {name: id, data_type: bigint}
          - {name: v, data_type: bigint}
          - {name: at, data_type: timestamp}
"""
_GIVEN: Final = "      - {input: %s, rows: [{%sid: 5, v: 50, at: '2026-03-02 05:00:00'}]}\n"


def _unit_test(kind: str) -> str:
    """A unit test of a node, in which each input has the same row."""
    given = "".join(
        _GIVEN
        % (
            "\"source('landing', 'landed')\"" if part == "files" else f"ref('{node_of(part)}')",
            "" if part in _OF_PART else "part: seeds, ",
        )
        for part in PARTS[kind]
    )
    expected = ", ".join(f"{{part: {part}, id: 5, v: 50}}" for part in PARTS[kind])
    return f"  - name: of_{kind}\n    model: {_TABLES[kind]}\n    given:\n{given}    expect: {{rows: [{expected}]}}\n"


TESTED: Final = ("views", "differences", "microbatch", "changed_keys")
UNIT_TESTS: Final = "unit_tests:\n" + "".join(map(_unit_test, TESTED))


class Kinds:
    """The project; a class of tests may add to each of its parts."""

    @pytest.fixture(scope="class")
    def landing(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("landing")
        write_files(folder, {"0.csv": FILES[0]})
        return folder

    @pytest.fixture(scope="class")
    def models(self, landing: Path) -> dict[str, str]:
        return {**MODELS, "properties.yml": PROPERTIES.replace("@folder", str(landing)), "unit_tests.yml": UNIT_TESTS}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"numbers.csv": SEED[0]}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return dict(SNAPSHOTS)

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return dict(FUNCTIONS)

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"part.sql": MACROS}


class Life:
    """Observations after each step of a project: the rows of each node, and the messages of the nodes."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.rows: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, Any] = {}

    def run(self, query: str) -> Any:
        return self.project.run_sql(query, fetch="all")

    def note(self, step: str, messages: Any = None) -> None:
        self.rows[step] = contents(self.run, self.project.test_schema)
        self.messages[step] = messages


class KeptUpKinds(Kinds):
    """The project over three days of builds, with upkeep at the end of each, and more of it before the third."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "upkeep": {"budget": "2 minutes"}}

    @pytest.fixture(scope="class")
    def life(self, project: Any, landing: Path, program: Warehouse) -> Life:
        life = self.new_life(project)
        life.note("empty", build("first", "--empty"))
        life.note("first", build("first"))
        next_day(project, landing)
        life.note("second", build("second"))
        for statement in self.before_the_third(project.test_schema):
            program.sql(statement)
        life.note("third", build("third"))
        return life

    def new_life(self, project: Any) -> Life:
        return Life(project)

    def before_the_third(self, schema: str) -> Iterable[str]:
        """Returns statements that change no row."""
        return ()


def next_day(project: Any, landing: Path) -> None:
    """Changes the seed and lands another file."""
    write_files(Path(project.project_root, "seeds"), {"numbers.csv": SEED[1]})
    write_files(landing, {"1.csv": FILES[1]})


def build(run_id: str, *arguments: str, expect_pass: bool = True, **variables: object) -> Mapping[str, str]:
    """Builds the project; returns the status and the message of each node."""
    given = json.dumps({"silt_run_id": run_id, **variables})
    found = run_dbt(["build", *WINDOW, *arguments, "--vars", given], expect_pass=expect_pass)
    return {each.node.name: f"{each.status.value}: {each.message}" for each in found}


def expected(kind: str, part: str, day: int) -> Rows:
    """The rows of a part of the node of a kind."""
    return LANDED[day] if part == "files" else NUMBERS[day]


def query_of(kind: str, schema: str) -> str:
    """A query of the parts and the current rows of the node of a kind."""
    name = f"{schema}.{table_of(kind)}"
    if kind == "seeds":
        return f"select 'seeds' as part, id, v from {name}"
    if kind == "silt_changes":
        return (
            f"select part, id, v from {name} group by part, id, v "
            "having sum(if(kind = 'insert', 1, 0)) > sum(if(kind = 'delete', 1, 0))"
        )
    current = " where dbt_valid_to is null" if kind == "snapshots" else ""
    return f"select part, id, v from {name}{current}"


def contents(
    run: Callable[[str], Iterable[Sequence[Any]]], schema: str, kinds: Iterable[str] = KINDS
) -> dict[str, Parts]:
    """The current rows of the node of each kind, by part; `run` returns the rows of a query."""
    return {kind: _by_part(run(query_of(kind, schema))) for kind in kinds}


def _by_part(rows: Iterable[Sequence[Any]]) -> Parts:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for part, *row in sorted(map(tuple, rows)):
        found.setdefault(part, []).append(tuple(row))
    return found


def days(day: int) -> dict[str, Parts]:
    """What `contents` returns after a build on a day."""
    doubled = [(id_, 2 * v) for id_, v in NUMBERS[day]]
    return {
        "seeds": {"seeds": NUMBERS[day]},
        **{kind: {part: expected(kind, part, day) for part in parts} for kind, parts in PARTS.items()},
        "files": {"files": LANDED[day], "seeds": doubled},
    }
