"""With `publish`, the changes of a command become visible at one moment after its tests, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from dbt.cli.main import dbtRunner
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.records.journal import CommitJournal
from dbt.adapters.silt.records.run_registry import RunRegistry
from tests.files import write_files
from tests.unit.engine.statements.execute.test_row_ids import Ids, ids_of

HEAD = "{{ config(materialized='table') }} "
MODELS = {
    "orders.sql": HEAD + "select id, amount from values (1, 10), (2, {{ var('second', 20) }}) as t(id, amount)",
    "appended.sql": "{{ config(materialized='incremental') }} "
    "select id, '{{ var('day', 1) }}' as day from {{ ref('orders') }}",
    "totals.sql": "select sum(amount) as total from {{ ref('orders') }}",
    "counted.sql": HEAD
    + """
{% set found = run_query('select count(*) from ' ~ ref('orders')) %}
select {{ found.columns[0].values()[0] if execute else 0 }} as n
""",
    "doubled.py": """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("totals").selectExpr("total * 2 as total")
""",
    "hooked.sql": "{{ config(materialized='table', post_hook='insert into {{ this }} values (-1)') }} select 1 as id",
    "swapped.sql": "{{ config(materialized=var('swap', 'table')) }} select 1 as one",
    "schema.yml": """
models:
  - name: orders
    columns: [{name: amount, data_tests: [not_null]}]
  - name: hooked
    columns: [{name: id, data_tests: [{unique: {config: {severity: warn}}}]}]
snapshots:
  - name: history
    relation: ref('orders')
    config: {unique_key: id, strategy: check, check_cols: [amount]}
""",
}
SEEDS = {"colours.csv": "id,name\n1,red\n2,green\n"}
TABLES = ("appended", "colours", "counted", "doubled", "history", "hooked", "orders")


class Publishing:
    """A project whose commands publish after their tests."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests"}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return SEEDS


def warehouse(project: Any) -> str:
    return str(project.adapter.connections.sessions.environment.locations[project.database])


def shown(project: Any) -> dict[str, int]:
    """The tables that another process sees, with their versions, and the views with the version -1."""
    catalog = open_databases({project.database: warehouse(project)}, Storages()).catalog
    entries = catalog.relations(project.database, project.test_schema)
    return {
        each.name.identifier: catalog.table(each.name).snapshot().version if each.kind.value == "table" else -1
        for each in entries
    }


def files(project: Any) -> dict[str, bytes]:
    """The files of the schema that another engine would read: logs, views and functions, without data files."""
    schema = Path(warehouse(project), project.test_schema)
    return {str(path): path.read_bytes() for path in schema.rglob("*.json") if path.is_file()}


def rows(project: Any, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in project.run_sql(f"select * from {project.test_schema}.{name} order by all", "all")]


def silt(project: Any, *arguments: str) -> int:
    return main([*arguments, "--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)])


def with_id(run_id: str, **variables: object) -> list[str]:
    return ["--vars", json.dumps({"silt_run_id": run_id, **variables})]


class TestAPublishedRun(Publishing):
    def test_everything_is_visible_at_the_end_and_nothing_before(self, project: Any) -> None:
        seen: list[dict[str, int]] = []

        def on_event(event: Any) -> None:
            if event.info.name in ("NodeFinished", "CommandCompleted"):
                seen.append(shown(project))

        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        assert dbtRunner(callbacks=[on_event]).invoke(["build", *place]).success
        assert len(seen) > len(TABLES) and not any(seen)
        assert shown(project) == {**dict.fromkeys((*TABLES, "swapped"), 0), "totals": -1}
        assert rows(project, "doubled") == [(60,)]
        assert rows(project, "counted") == [(2,)]
        assert rows(project, "hooked") == [(-1,), (1,)]
        assert len(rows(project, "history")) == 2

    def test_the_results_and_the_registry_have_the_publication(self, project: Any) -> None:
        results = json.loads(Path(project.project_root, "target", "run_results.json").read_text())["results"]
        found = {each["unique_id"].split(".")[-1]: each["adapter_response"].get("table_version") for each in results}
        names = [name for name in TABLES if name != "colours"]  # dbt drops the response of a seed
        assert {name: found[name] for name in names} == dict.fromkeys(names, 0)
        target = Path(project.project_root, "target")
        assert RunRegistry(target).entries()[-1].publication == "published"
        noted = [each for each in CommitJournal(target).read().entries if each.operation == "PUBLISH"]
        assert {each.table.rpartition(".")[2]: each.table_version for each in noted} == dict.fromkeys(
            (*TABLES, "swapped"), 0
        )

    def test_a_table_is_replaced_by_a_view_and_back(self, project: Any) -> None:
        for kind, expected in (("view", -1), ("table", 0)):
            run_dbt(["run", "--select", "swapped", "--vars", json.dumps({"swap": kind})])
            assert shown(project)["swapped"] == expected
            assert rows(project, "swapped") == [(1,)]

    def test_a_repeated_run_publishes_nothing_again(self, project: Any) -> None:
        run_dbt(["run", "--select", "appended", *with_id("again", day=2)])
        before = shown(project), rows(project, "appended")
        run_dbt(["run", "--select", "appended", *with_id("again", day=2)])
        assert (shown(project), rows(project, "appended")) == before


class TestAHeldRun(Publishing):
    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["build"])

    @pytest.fixture
    def before(self, project: Any) -> Iterator[dict[str, bytes]]:
        yield files(project)

    def test_a_failed_test_leaves_every_file_as_it_was_and_names_the_next_step(
        self, project: Any, before: dict[str, bytes], capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, output = run_dbt_and_capture(["build", *with_id("bad", second="null", day=2)], expect_pass=False)
        assert "Held: 1 test failed, so no change of the run bad is visible" in output
        assert "silt sql --run bad" in output and "silt publish bad" in output and "silt drop-run bad" in output
        assert files(project) == before
        capsys.readouterr()
        assert silt(project, "runs", "--json") == 0
        assert json.loads(capsys.readouterr().out)["runs"][0]["result"] == "held"

    def test_the_held_run_is_shown_by_its_id(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        table = f"{project.test_schema}.orders"
        capsys.readouterr()
        assert silt(project, "sql", "--run", "bad", "--json", f"select id from {table} where amount is null") == 0
        assert "2" in capsys.readouterr().out
        assert silt(project, "sql", "--json", f"select id from {table} where amount is null") == 0
        assert "2" not in capsys.readouterr().out

    def test_the_corrected_run_continues_and_publishes_each_unit_of_work_once(self, project: Any) -> None:
        corrected = HEAD + "select * from values (1, 10), (2, 5) t(id, amount)"
        write_files(Path(project.project_root, "models"), {"orders.sql": corrected})
        before = shown(project)
        run_dbt(["build", *with_id("bad", day=2)])
        assert shown(project)["orders"] == before["orders"] + 1
        assert rows(project, "appended") == [(1, "1"), (1, "2"), (2, "1"), (2, "2")]
        assert rows(project, "totals") == [(15,)]

    def test_a_held_run_can_be_published_nevertheless(self, project: Any) -> None:
        write_files(Path(project.project_root, "models"), {"orders.sql": MODELS["orders.sql"]})
        run_dbt(["build", *with_id("worse", second="null")], expect_pass=False)
        assert silt(project, "publish", "wors") == 0
        assert rows(project, "orders") == [(1, 10), (2, None)]
        assert RunRegistry(Path(project.project_root, "target")).entries()[-1].publication == "published"
        assert silt(project, "publish", "worse") == 2

    def test_a_dropped_run_leaves_nothing(self, project: Any, before: dict[str, bytes]) -> None:
        run_dbt(["build", *with_id("dropped", second="null")], expect_pass=False)
        assert silt(project, "drop-run", "dropped") == 0
        assert files(project) == before
        records = ("attempt", "published")
        paths = Path(warehouse(project), "_branches").rglob("*.json")
        left = [path for path in paths if not any(each in str(path) for each in records)]
        assert left == []
        assert silt(project, "drop-run", "dropped") == 2

    def test_after_run_publishes_despite_a_failed_test_but_not_despite_a_failed_node(self, project: Any) -> None:
        _, output = run_dbt_and_capture(
            ["build", "--select", "orders", *with_id("r", second="null", silt_publish="after_run")], expect_pass=False
        )
        assert "Published at one moment" in output
        assert rows(project, "orders") == [(1, 10), (2, None)]
        before = files(project)
        _, output = run_dbt_and_capture(
            ["build", "--select", "orders", *with_id("s", second="raise_error('no')", silt_publish="after_run")],
            expect_pass=False,
        )
        assert "Held: 1 node failed" in output
        assert files(project) == before

    def test_a_conflict_drops_the_run_and_fails_the_command(self, project: Any) -> None:
        done: list[Any] = []

        def on_event(event: Any) -> None:
            if event.info.name == "CommandCompleted" and not done:
                other = open_databases({project.database: warehouse(project)}, Storages()).catalog
                done.append(other.drop_table(RelationName(project.database, project.test_schema, "orders")))  # type: ignore[func-returns-value]

        place = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        result = dbtRunner(callbacks=[on_event]).invoke(["run", "--select", "orders", *with_id("late"), *place])
        assert not result.success and "SILT_CONCURRENT" in str(result.exception)
        assert click.get_current_context(silent=True) is None
        assert "orders" not in shown(project)
        assert silt(project, "drop-run", "late") == 2
        run_dbt(["run", "--select", "orders", *with_id("late")])
        assert rows(project, "orders") == [(1, 10), (2, 20)]


class TestChangedKeys(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='id') }} "
        return {
            "sums.sql": config + "select id, sum(amount) as total from {{ source('raw', 'raw_orders') }} group by id",
            "sources.yml": "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: raw_orders}]}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_changes_of_a_table_that_the_run_only_reads_are_consumed_once(self, project: Any) -> None:
        table = f"{project.test_schema}.raw_orders"
        project.run_sql(f"create table {table} as select 1 as id, 10 as amount")
        for number, expected in enumerate([[(1, 10)], [(1, 15)], [(1, 15), (2, 7)]]):
            if number:
                project.run_sql(f"insert into {table} values ({number}, {5 if number == 1 else 7})")
            run_dbt(["build", *with_id(f"run-{number}")])
            assert rows(project, "sums") == expected


class TestChangesOfTheRun(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        incremental = "{{ config(materialized='incremental', incremental_strategy='%s'%s) }} "
        return {
            "orders.sql": incremental % ("append", "") + "select {{ var('id', 1) }} as id, 10 as amount",
            "sums.sql": incremental % ("changed_keys", ", unique_key='id'")
            + "select id, sum(amount) as total from {{ ref('orders') }} group by id",
            "copied.sql": incremental % ("append", "") + "select id from {{ silt_changes(ref('orders')) }}",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_changes_that_a_run_makes_are_consumed_once_by_the_same_run(self, project: Any) -> None:
        for number, ids in enumerate([[1], [1, 2], [1, 1, 2], [1, 1, 1, 2]], 1):
            new = 2 if number == 2 else 1
            run_dbt(["build", *with_id(f"run-{number}", id=new)])
            assert rows(project, "copied") == [(each,) for each in ids]
            assert rows(project, "sums") == [(each, 10 * ids.count(each)) for each in sorted(set(ids))]
            assert number == 1 or not rebuilt(project, "sums")
        run_dbt(["run", "--select", "copied", "sums", *with_id("nothing-new", silt_publish="at_once")])
        assert rows(project, "copied") == [(1,), (1,), (1,), (2,)]


class TestReuse(Publishing):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+reuse": "unchanged"}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "source.sql": HEAD + "select {{ var('value', 1) }} as value",
            "batches.sql": "{{ config(materialized='incremental', incremental_strategy='append', "
            "post_hook=\"insert into {{ this }} values (-{{ var('value', 1) }})\") }} "
            "select value from {{ ref('source') }}",
            "below.sql": HEAD
            + "select value from {{ ref('source') }} union all select value from {{ ref('batches') }}",
            "apart.sql": HEAD + "select 1 as one",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_a_published_run_is_reused_until_an_input_changes(self, project: Any) -> None:
        run_dbt(["run", "--select", "source", "apart", "below+", "batches", *with_id("first")])
        assert reused(project, "second") == {"source", "apart"}
        assert rows(project, "below") == sorted([(1,), (1,), (-1,), (1,), (-1,)])
        assert reused(project, "third", value=2) == {"apart"}
        assert rows(project, "below") == sorted([(2,), (1,), (-1,), (1,), (-1,), (2,), (-2,)])
        assert "below" not in reused(project, "fourth", value=2)


def reused(project: Any, run_id: str, **variables: object) -> set[str]:
    """The nodes that a run reuses."""
    results = run_dbt(["run", *with_id(run_id, **variables)])
    return {each.node.name for each in results if "unchanged since" in str(each.message)}


def rebuilt(project: Any, name: str) -> bool:
    """Whether the last commit of a table with CHANGED KEYS replaced all rows."""
    catalog = open_databases({project.database: warehouse(project)}, Storages()).catalog
    log = catalog.table(RelationName(project.database, project.test_schema, name))
    return "rebuilt" in next(iter(log.newest_commits())).info.extra


class TestFilesOfARun(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        tracked = "{{ config(materialized='incremental', unique_key='id', post_hook=%s, tblproperties=%s) }} "
        properties = "{'delta.enableRowTracking': 'true'}"
        hooks = "['optimize {{ this }}', 'create or replace table {{ this.schema }}.copied shallow clone {{ this }}']"
        return {
            "tracked.sql": tracked % (hooks, properties)
            + "select id, {{ var('day', 1) }} as day from range({{ var('day', 1) }}, 6) as t(id)",
            "restored.sql": "{{ config(materialized='incremental', incremental_strategy='append', "
            "post_hook='restore table {{ this }} to version as of {{ var(\"version\", 0) }}') }} select 1 as id",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_models_that_track_their_rows_are_optimized_cloned_and_restored(self, project: Any) -> None:
        run_dbt(["build", *with_id("first")])
        assert shown(project) == dict.fromkeys(("copied", "restored", "tracked"), 0)
        first = row_ids(project)
        run_dbt(["build", *with_id("second", day=4)])
        expected = [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4)]
        assert rows(project, "tracked") == rows(project, "copied") == expected
        assert rows(project, "restored") == [(1,)]
        assert (shown(project)["copied"], shown(project)["tracked"]) == (1, 1)
        second = row_ids(project)
        assert {key: each[0] for key, each in second.items()} == {key: each[0] for key, each in first.items()}
        assert {key: each[1] for key, each in second.items()} == {1: 0, 2: 0, 3: 0, 4: 1, 5: 1}
        _, output = run_dbt_and_capture(
            ["build", "--select", "restored", *with_id("third", version=7)], expect_pass=False
        )
        assert "SILT_VERSION_NOT_FOUND" in output and rows(project, "restored") == [(1,)]


def row_ids(project: Any) -> Ids:
    catalog = open_databases({project.database: warehouse(project)}, Storages()).catalog
    return ids_of(catalog.table(RelationName(project.database, project.test_schema, "tracked")))


class TestHooksThatDropAndCreate(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hooks = [
            "drop table if exists {{ this.schema }}.copied",
            "create table {{ this.schema }}.copied as select * from {{ this }}",
            "create schema if not exists {{ this.schema }}_scratch",
            "create or replace table {{ this.schema }}_scratch.t as select * from {{ this.schema }}.copied",
            "insert into {{ this.schema }}.copied select id + 10 from {{ this.schema }}_scratch.t",
            "drop schema {{ this.schema }}_scratch cascade",
        ]
        config = f"{{{{ config(materialized='table', post_hook={hooks}) }}}} "
        return {
            "day.sql": config + "select {{ var('id', 1) }} as id",
            "schema.yml": "models: [{name: day, columns: [{name: id, data_tests: [not_null]}]}]",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    def test_they_change_tables_and_schemas_when_the_run_is_published(self, project: Any) -> None:
        scratch = (project.database, f"{project.test_schema}_scratch")
        for number in (1, 2):
            run_dbt(["build", *with_id(f"day {number}", id=number)])
            assert shown(project) == {"copied": number - 1, "day": number - 1}
            assert rows(project, "copied") == [(number,), (number + 10,)]
            assert not project.adapter.check_schema_exists(*scratch)
        run_dbt(["build", *with_id("held", id="cast(null as int)")], expect_pass=False)
        assert rows(project, "copied") == [(2,), (12,)]


class TestWhatIsRefused(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "base.sql": HEAD + "select 1 as id",
            "vacuumed.sql": "{{ config(materialized='table', post_hook='vacuum {{ this }}') }} select 1 as id",
            "renamed.sql": "{{ config(materialized='table', post_hook='alter table {{ this }} rename to other') }} "
            "select id from {{ ref('base') }}",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.mark.parametrize(
        ("model", "remedy"), [("vacuumed", "the config `after_publish`"), ("renamed", "deep clone")]
    )
    def test_a_node_that_a_transaction_cannot_contain_fails_by_name_and_holds_the_run(
        self, project: Any, model: str, remedy: str
    ) -> None:
        _, output = run_dbt_and_capture(["run", "--select", f"+{model}"], expect_pass=False)
        assert "SILT_UNSUPPORTED_STATEMENT" in output and remedy in output
        assert "Held: 1 node failed" in output
        assert shown(project) == {}

    def test_a_wrong_value_of_the_variable_is_named(self, project: Any) -> None:
        known = "`at_once`, `after_run`, `after_tests`, `on_request`"
        with pytest.raises(Exception, match=f"`silt_publish` must be one of {known}"):
            run_dbt(["run", "--vars", "silt_publish: sometimes"])
