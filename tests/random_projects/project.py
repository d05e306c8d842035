"""Random projects as values, and their files: nodes, the commands that run them, and what changes between these."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from dbt.adapters.silt.engine.audits.audit import QUARANTINE_SUFFIX
from tests.random_projects import values
from tests.random_projects.queries import Query
from tests.random_projects.values import CORE, Condition, Row, literal

AUDIT: Final = "audit"
"""The table into which hooks insert."""
LINK: Final = "current"
"""The symbolic link, in the folder of a source on files, to the folder of its newest files."""
OPEN_END: Final = datetime(9999, 12, 31)
# Without dbt's static parser, which leaves the backslashes in the strings of configs.
_DBT_PROJECT: Final = """\
name: random
profile: random
on-run-start: create table if not exists {{ target.schema }}.audit (event string)
flags: {send_anonymous_usage_stats: false, static_parser: false}
"""
_FILTER: Final = """\
{% macro silt__create_table_as(temporary, relation, sql) %}
  {%- if not temporary and model.config.materialized == 'table' and model.language == 'sql' -%}
    {%- set sql = 'select * from (' ~ sql ~ ') where ' ~ row_filter() -%}
  {%- endif -%}
  {{ return(dbt.silt__create_table_as(temporary, relation, sql)) }}
{% endmacro %}
{% macro row_filter() %}@filter{% endmacro %}
"""
_CLOCK: Final = "{% macro snapshot_get_time() %}timestamp'{{ var('now') }}'{% endmacro %}\n"


@dataclass(frozen=True)
class Node:
    """A seed, source, model or snapshot.

    Attributes:
        kind: `seed`, `source`, `file` (a source on files behind a symbolic link), `snapshot`, or the materialization of
            a model.
        query: of a model, or the scan of the relation of a snapshot.
        python: whether the model is written in Python.
        key: `unique_key`, or `group_key` of `changed_keys`.
        predicate: the element of `incremental_predicates`.
        updated: `merge_update_columns`.
        kept: `merge_exclude_columns`.
        deletes: whether a merge deletes rows that the query does not return, or `hard_deletes` of a snapshot.
        differs: whether a table writes only rows that differ by `k` (`write: differences`), or a merge skips equal
            rows (`skip_equal_rows`).
        changed_only: a column whose equal values keep a merge from updating a row (`matched_condition`).
        checked: `check_cols` of a snapshot; empty with the strategy `timestamp`.
        timed: whether a snapshot with the strategy `check` has `updated_at`.
        open_end: whether a snapshot sets `dbt_valid_to_current`, to `OPEN_END`.
        skipped: `matched` or `not_matched`: the step that a merge skips.
        full_refresh: the config of this name.
        vectors: whether the table has deletion vectors.
        properties: further table properties.
        purged: the condition of a post-hook that deletes rows of the table.
        hooks: whether it has a pre-hook and a post-hook.
        without: a relation whose keys a post-hook deletes from the table.
        staged: whether a pre-hook copies its first input into a table that the query reads instead.
        tests: generic tests of the column `k`.
        audited: whether its tests judge its rows before they are committed.
        quarantined: whether rows that fail its audits go to a quarantine table.
        clustered: the columns by which its files are clustered.
        contract: whether it has a contract, by which `k` is not null, and `n` is null or at least -98.
        enforced: whether the contract has `k` as its enforced primary key.
    """

    name: str
    kind: str
    query: Query | None = None
    python: bool = False
    strategy: str = ""
    key: tuple[str, ...] = ()
    predicate: Condition | None = None
    updated: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    deletes: str = ""
    differs: bool = False
    changed_only: str = ""
    on_schema_change: str = "ignore"
    partition_by: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    timed: bool = False
    open_end: bool = False
    skipped: str = ""
    full_refresh: bool | None = None
    vectors: bool = False
    properties: tuple[tuple[str, str], ...] = ()
    purged: Condition | None = None
    reuse: bool = False
    hooks: bool = False
    tests: tuple[str, ...] = ()
    contract: bool = False
    without: str = ""
    staged: bool = False
    audited: bool = False
    quarantined: bool = False
    clustered: tuple[str, ...] = ()
    enforced: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.query.inputs if self.query else ()

    @property
    def above(self) -> tuple[str, ...]:
        """The nodes that its query and its hooks read."""
        return (*self.inputs, self.without) if self.without else self.inputs

    @property
    def stage(self) -> str:
        """The table into which a pre-hook copies its first input."""
        return f"staged_{self.name}" if self.staged else ""

    @property
    def quarantine(self) -> str:
        """The table of the rows that fail its audits."""
        return f"{self.name}{QUARANTINE_SUFFIX}"

    @property
    def audits(self) -> dict[str, Any]:
        """The configs of its audits."""
        found = {"audit": "before_commit"} if self.audited else {}
        return found | ({"on_failure": "quarantine", "max_quarantined": "100 %"} if self.quarantined else {})

    @property
    def is_model(self) -> bool:
        return self.kind not in ("seed", "source", "file", "snapshot")

    def configs(self, begin: datetime) -> dict[str, Any]:
        """The configs of a model or snapshot, as values of Python and Jinja."""
        found: dict[str, Any] = {"materialized": self.kind} if self.is_model else {}
        if self.kind == "incremental":
            found |= self._incremental(begin)
        if self.kind == "table" and self.differs:
            found |= {"write": "differences", "unique_key": "k"}
        if self.kind == "snapshot":
            found |= self._snapshot()
        found |= {"partition_by": list(self.partition_by)} if self.partition_by else {}
        found |= {"liquid_clustered_by": list(self.clustered)} if self.clustered else {}
        found |= self.audits
        if self.kind not in ("view", "ephemeral"):
            found["event_time"] = "at"
            vectors = {"delta.enableDeletionVectors": str(self.vectors).lower()}
            found["tblproperties"] = vectors | dict(self.properties)
        found |= {"reuse": "unchanged"} if self.reuse else {}
        return found | {f"{when}_hook": hooks for when, hooks in self._hooks().items() if hooks}

    def _hooks(self) -> dict[str, list[str]]:
        insert = f"insert into {{{{ target.schema }}}}.{AUDIT} values ('%s {self.name}')"
        before, after = ([insert % when] if self.hooks else [] for when in ("pre", "post"))
        if self.staged:
            copy = f"create or replace table {{{{ target.schema }}}}.{self.stage} as select * from "
            before.append(f"{copy}{{{{ ref('{self.inputs[0]}') }}}}")
        if self.without:
            after.insert(0, f"delete from {{{{ this }}}} where k in (select k from {{{{ ref('{self.without}') }}}})")
        if self.purged:
            after.insert(0, f"delete from {{{{ this }}}} where {self.purged.sql()}")
        return {"pre": before, "post": after}

    def _incremental(self, begin: datetime) -> dict[str, Any]:
        found: dict[str, Any] = {"incremental_strategy": self.strategy, "on_schema_change": self.on_schema_change}
        found |= {} if self.full_refresh is None else {"full_refresh": self.full_refresh}
        if self.strategy == "microbatch":
            return found | {"batch_size": "day", "begin": str(begin.date()), "lookback": 1}
        if self.key:
            found["group_key" if self.strategy == "changed_keys" else "unique_key"] = list(self.key)
        if self.predicate:
            found["incremental_predicates"] = [
                self.predicate.sql("DBT_INTERNAL_DEST." if self.strategy == "merge" else "")
            ]
        found |= {"merge_update_columns": list(self.updated)} if self.updated else {}
        found |= {"merge_exclude_columns": list(self.kept)} if self.kept else {}
        found |= {f"skip_{self.skipped}_step": True} if self.skipped else {}
        found |= {"not_matched_by_source_action": "delete"} if self.deletes else {}
        found |= {"skip_equal_rows": True} if self.differs and self.strategy == "merge" else {}
        if column := self.changed_only:
            found["matched_condition"] = f"not (DBT_INTERNAL_DEST.{column} <=> DBT_INTERNAL_SOURCE.{column})"
        return found

    def _snapshot(self) -> dict[str, Any]:
        found: dict[str, Any] = {"unique_key": list(self.key), "hard_deletes": self.deletes or "ignore"}
        found |= {"dbt_valid_to_current": literal(OPEN_END, "timestamp")} if self.open_end else {}
        found |= {"updated_at": "at"} if self.timed or not self.checked else {}
        if self.checked:
            return found | {"strategy": "check", "check_cols": list(self.checked)}
        return found | {"strategy": "timestamp"}


@dataclass(frozen=True)
class Step:
    """The changes, and the command that follows them.

    Attributes:
        rows: all rows of the seeds and sources whose rows change.
        restored: the sources whose folders are replaced by copies of those before their last change, before their rows
            change.
        filter: which rows of tables a macro of the project keeps that replaces one of the adapter.
        by_variable: whether that macro reads the condition from a variable.
        nodes: the nodes whose code changes.
        verb: `build`, `run`, `seed`, `snapshot`, or `retry`, which continues the command before.
        select: the names of nodes, each with or without `+` at its ends; empty for all.
        run_id: of the logical run; the same as before to repeat the run.
        publish: `after_tests` or `at_once`.
        fault: the number of the commit at which the storage fails; the command is then repeated. 0 for none.
        is_lost: whether that commit is written, and only its answer is lost.
        overlaps: whether another process runs the command at the same time, as another logical run.
    """

    now: datetime
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    verb: str = "build"
    select: tuple[str, ...] = ()
    full_refresh: bool = False
    run_id: str = ""
    publish: str = "at_once"
    fault: int = 0
    is_lost: bool = False
    overlaps: bool = False
    restored: tuple[str, ...] = ()
    filter: Condition | None = None
    by_variable: bool = False

    def command(self) -> list[str]:
        """The arguments of dbt."""
        if self.verb == "retry":
            return ["retry"]
        selected = ["--select", *self.select] if self.select else []
        variables = {"now": str(self.now), "silt_run_id": self.run_id, "silt_publish": self.publish}
        if self.filter and self.by_variable:
            variables["row_filter"] = self.filter.sql()
        refresh = ["--full-refresh"] if self.full_refresh and self.verb != "snapshot" else []
        return [self.verb, *selected, *refresh, "--vars", json.dumps(variables)]


@dataclass(frozen=True)
class Story:
    """A project and its runs.

    Attributes:
        nodes: all nodes, each after its inputs.
        upkeep: whether each command ends with the upkeep of its tables.
    """

    seed: int
    begin: datetime
    nodes: tuple[Node, ...]
    steps: tuple[Step, ...]
    upkeep: bool = False


def files(nodes: Mapping[str, Node], rows: Mapping[str, Iterable[Row]], begin: datetime) -> dict[str, str]:
    """The files of the project: path -> text."""
    found = {"dbt_project.yml": _DBT_PROJECT, "macros/clock.sql": _CLOCK, "models/nodes.yml": _properties(nodes, begin)}
    for node in nodes.values():
        if node.kind == "seed":
            lines = [",".join(CORE), *(",".join(values.field(row[name]) for name in CORE) for row in rows[node.name])]
            found[f"seeds/{node.name}.csv"] = "\n".join(lines) + "\n"
        elif node.is_model:
            found[f"models/{node.name}.{'py' if node.python else 'sql'}"] = _model(node, nodes, begin)
    return found


def filter_macros(step: Step) -> str:
    """The macros by which tables of a project keep some rows."""
    if step.by_variable:
        return _FILTER.replace("@filter", "{{ return(var('row_filter', 'true')) }}")
    return _FILTER.replace("@filter", f"{{% raw %}}{step.filter.sql() if step.filter else 'true'}{{% endraw %}}")


def _model(node: Node, nodes: Mapping[str, Node], begin: datetime) -> str:
    def reference(name: str) -> str:
        if node.staged and name == node.inputs[0]:
            return f"{{{{ target.schema }}}}.{node.stage}"
        function = _function(nodes[name])
        return f"dbt.{function}" if node.python else f"{{{{ {function} }}}}"

    assert node.query is not None
    configs = ", ".join(f"{name}={value!r}" for name, value in node.configs(begin).items())
    if node.python:
        return f"def model(dbt, session):\n    dbt.config({configs})\n" + node.query.python(reference)
    return f"{{{{ config({configs}) }}}}\n{node.query.sql(reference)}\n"


def _properties(nodes: Mapping[str, Node], begin: datetime) -> str:
    """The properties of all nodes, in JSON, which is YAML."""
    some: dict[str, list[dict[str, Any]]] = {"models": [], "seeds": [], "snapshots": []}
    for node in nodes.values():
        if node.is_model:
            config = {"contract": {"enforced": node.contract}}
            keys = [{"type": "primary_key", "columns": ["k"], "enforced": True}] if node.enforced else []
            some["models"].append({"name": node.name, "config": config, "columns": _columns(node), "constraints": keys})
        elif node.kind == "seed":
            config = {"column_types": dict(CORE), "event_time": "at"}  # type: ignore[arg-type, dict-item]
            config |= node.audits
            some["seeds"].append({"name": node.name, "config": config, "columns": _columns(node)})
        elif node.kind == "snapshot":
            (name,) = node.inputs
            relation = _function(nodes[name])
            some["snapshots"].append({"name": node.name, "relation": relation, "config": node.configs(begin)})
    raw, landed = (
        [{"name": node.name, "config": {"event_time": "at"}} for node in nodes.values() if node.kind == kind]
        for kind in ("source", "file")
    )
    sources = [{"name": "raw", "schema": "raw", "tables": raw}]
    if landed:
        meta = {"external_location": "landing/{name}/*/*.parquet"}
        sources.append({"name": "landing", "meta": meta, "tables": landed})  # type: ignore[dict-item]
    return json.dumps({**some, "sources": sources}, indent=1)


def _function(node: Node) -> str:
    names = {"source": "raw", "file": "landing"}
    return f"source('{names[node.kind]}', '{node.name}')" if node.kind in names else f"ref('{node.name}')"


def _columns(node: Node) -> list[dict[str, Any]]:
    tested = {"data_tests": list(node.tests)}
    if not node.contract or node.query is None:
        return [{"name": "k", **tested}] if node.tests else []
    rules: dict[str, dict[str, Any]] = {
        "k": {"constraints": [{"type": "not_null"}], **tested},
        "n": {"constraints": [{"type": "check", "name": "n_is_high", "expression": "n is null or n >= -98"}]},
    }
    return [{"name": name, "data_type": kind, **rules.get(name, {})} for name, kind in node.query.columns.items()]
