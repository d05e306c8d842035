"""A held run is corrected at its source, in a seed, a view, a hook or the code, and continued by the same command or
`dbt retry`: what the correction reaches is built again from the published tables, and everything is published once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from tests.files import write_files
from tests.functional.runs.test_conflicts_by_node import APPEND
from tests.functional.runs.test_publishing import HEAD, Publishing, rows, shown, silt, with_id

RAW = "{{ source('raw', 'src') }}"
SOURCES = "sources: [{name: raw, schema: '{{ target.schema }}', tables: [{name: src}, {name: other}]}]"
AUDITED = (
    "{{ config(materialized='table', post_hook='insert into {{ this.schema }}.audit "
    'select {{ var("day", 0) }}, count(v) from {{ this }}\') }} '
)


class Held(Publishing):
    """A project that is built on day 0; on day 1 the source has a wrong row, and the run is held."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "a.sql": AUDITED + f"select id, v from {RAW}",
            "own.sql": "{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }} "
            f"select id, v {{% if is_incremental() %}} + 0 * (select count(*) from {{{{ this }}}}) {{% endif %}} as v "
            f"from {RAW}",
            "added.sql": APPEND + "select {{ var('day', 0) }} as day, count(v) as n from {{ ref('a') }}",
            "viewed.sql": "select id, v, s.factor from {{ ref('a') }} cross join {{ ref('factors') }} s",
            "below.sql": HEAD + "select sum(v * factor) as total from {{ ref('viewed') }}",
            "pythonic.py": "def model(dbt, session):\n    dbt.config(materialized='table')\n"
            "    return dbt.ref('a').selectExpr('count(v) as n')\n",
            "consumed.sql": APPEND + "select id, v, _change_type as kind from {{ silt_changes(source('raw', 'src')) }}",
            "apart.sql": APPEND + "select {{ var('day', 0) }} as day, count(*) as n from {{ source('raw', 'other') }}",
            "schema.yml": SOURCES
            + """
models:
  - name: a
    columns: [{name: v, data_tests: [not_null]}]
  - name: own
    columns: [{name: v, data_tests: [not_null]}]
snapshots:
  - name: history
    relation: ref('a')
    config: {unique_key: id, strategy: check, check_cols: [v]}
""",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"factors.csv": "factor\n1\n"}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": "create table if not exists {{ target.schema }}.audit (day int, n bigint)"}

    @pytest.fixture(scope="class", autouse=True)
    def first_day(self, project: Any) -> None:
        schema = project.test_schema
        project.run_sql(f"create table {schema}.src as select 1 as id, 10 as v")
        project.run_sql(f"create table {schema}.other as select 1 as id")
        run_dbt(["build", *with_id("day 0")])

    @pytest.fixture(autouse=True)
    def held(self, project: Any, first_day: None) -> None:
        project.run_sql(f"insert into {project.test_schema}.src values (2, null)")
        before = shown(project)
        _, output = run_dbt_and_capture(["build", *with_id("day 1", day=1)], expect_pass=False)
        assert "Held: 2 tests failed" in output
        lines = [line for line in output.splitlines() if "run the same command again: " in line]
        assert len(lines) == 1 and "silt_run_id: day 1" in lines[0]
        assert shown(project) == before


def corrected(project: Any) -> None:
    """Checks that each table is what it would be if the source had been right before the run began."""
    assert rows(project, "a") == [(1, 10), (2, 20)]
    assert rows(project, "own") == [(1, 10), (2, 20)]
    assert rows(project, "added") == [(0, 1), (1, 2)]
    assert rows(project, "audit") == [(0, 1), (1, 2)]
    assert rows(project, "pythonic") == [(2,)]
    assert len(rows(project, "history")) == 2
    assert rows(project, "apart") == [(0, 1), (1, 1)]


def consumed_changes(project: Any) -> None:
    """Checks that each change of the source was consumed once, also the correction."""
    changes = [(1, 10, "insert"), (2, None, "insert"), (2, None, "delete"), (2, 20, "insert")]
    assert sorted(rows(project, "consumed"), key=str) == sorted(changes, key=str)


def correct_code(project: Any) -> None:
    """Replaces the missing value by 20 in both models that have a test."""
    models = Path(project.project_root, "models")
    a, own = (Path(models, each).read_text() for each in ("a.sql", "own.sql"))
    write_files(models, {"a.sql": a.replace("id, v from", "id, coalesce(v, 20) as v from")})
    write_files(models, {"own.sql": own.replace("select id, v", "select id, coalesce(v, 20)")})


class TestTheSourceIsCorrected(Held):
    def test_the_same_command_builds_again_what_has_read_it(self, project: Any) -> None:
        project.run_sql(f"update {project.test_schema}.src set v = 20 where id = 2")
        _, output = run_dbt_and_capture(["build", *with_id("day 1", day=1)])
        assert "src changed (v" in output and "Published at one moment" in output
        corrected(project)
        assert rows(project, "below") == [(30,)]
        consumed_changes(project)
        assert silt(project, "publish", "day 1") == 2


class TestDbtRetry(Held):
    def test_it_builds_nodes_again_that_it_does_not_repeat_by_itself(self, project: Any) -> None:
        project.run_sql(f"update {project.test_schema}.src set v = 20 where id = 2")
        _, output = run_dbt_and_capture(["retry"])
        assert "Published at one moment" in output
        corrected(project)
        assert rows(project, "below") == [(30,)]
        consumed_changes(project)


class TestSeedViewAndCodeAreCorrected(Held):
    def test_each_correction_reaches_what_is_built_from_it(self, project: Any) -> None:
        correct_code(project)
        viewed = "select id, v + 1 as v, s.factor from {{ ref('a') }} cross join {{ ref('factors') }} s"
        write_files(Path(project.project_root, "models"), {"viewed.sql": viewed})
        write_files(Path(project.project_root, "seeds"), {"factors.csv": "factor\n2\n"})
        run_dbt(["build", *with_id("day 1", day=1)])
        corrected(project)
        assert rows(project, "factors") == [(2,)]
        assert rows(project, "below") == [(64,)]
        assert rows(project, "consumed") == [(1, 10, "insert"), (2, None, "insert")]


class TestTheFirstInputsAreKept(Held):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "held_inputs": "first"}

    def test_a_corrected_source_is_not_read_and_corrected_code_is(self, project: Any) -> None:
        project.run_sql(f"update {project.test_schema}.src set v = 99 where id = 2")
        run_dbt(["build", *with_id("day 1", day=1)], expect_pass=False)
        correct_code(project)
        run_dbt(["build", *with_id("day 1", day=1)])
        corrected(project)


class TestASessionOnTheBranch(Held):
    def test_its_change_is_kept_and_what_has_read_the_table_before_is_built_again(self, project: Any) -> None:
        schema = project.test_schema
        for each in ("a", "own"):
            text = f"set silt.branch = 'day 1'; update {schema}.{each} set v = 20 where id = 2; reset silt.branch"
            assert silt(project, "sql", text) == 0
        run_dbt(["build", *with_id("day 1", day=1)])
        assert rows(project, "a") == rows(project, "own") == [(1, 10), (2, 20)]
        assert rows(project, "added") == [(0, 1), (1, 2)]
        assert rows(project, "below") == [(30,)]


class TestACorrectionThatWouldLoseASessionsChange(Held):
    def test_it_is_refused_and_nothing_is_changed(self, project: Any) -> None:
        schema = project.test_schema
        text = f"set silt.branch = 'day 1'; update {schema}.a set v = 20 where id = 2; reset silt.branch"
        assert silt(project, "sql", text) == 0
        project.run_sql(f"update {schema}.src set v = 30 where id = 2")
        before = shown(project)
        with pytest.raises(Exception, match=r"a session has changed .*a \(UPDATE at .* UTC\) on the branch") as refused:
            run_dbt(["build", *with_id("day 1", day=1)])
        assert "silt_session_changes: drop" in str(refused.value)
        with pytest.raises(Exception, match="must be `keep` or `drop`, not `lose`"):
            run_dbt(["build", *with_id("day 1", day=1, silt_session_changes="lose")])
        assert shown(project) == before
        assert silt(project, "publish", "day 1") == 0
        assert rows(project, "a") == [(1, 10), (2, 20)]


class TestASessionsChangeIsDropped(Held):
    def test_it_is_lost_with_all_that_was_made_from_it_and_the_source_is_read_again(self, project: Any) -> None:
        schema = project.test_schema
        changes = f"""
            update {schema}.a set v = 99 where id = 2; optimize {schema}.own;
            create table {schema}.copied as select * from {schema}.a; create table {schema}.gone as select 1 as id;
            update {schema}.gone set id = 2; drop table {schema}.gone"""
        assert silt(project, "sql", f"set silt.branch = 'day 1'; {changes}; reset silt.branch") == 0
        project.run_sql(f"update {schema}.src set v = 20 where id = 2")
        with pytest.raises(
            Exception, match=r"a session has changed [^,]*\.a \(UPDATE [^,]*, [^,]*\.copied \(CREATE [^,]* on"
        ):
            run_dbt(["build", *with_id("day 1", day=1)])
        _, output = run_dbt_and_capture(["build", *with_id("day 1", day=1, silt_session_changes="drop")])
        assert "a session's change of" in output and "Published at one moment" in output
        corrected(project)
        assert "copied" not in shown(project) and "gone" not in shown(project)


class TestMaintenanceOnTheBranch(Held):
    def test_it_is_no_change_that_a_correction_would_lose(self, project: Any) -> None:
        schema = project.test_schema
        changes = f"""
            optimize {schema}.a; create table {schema}.copied as select * from {schema}.a;
            drop table {schema}.copied"""
        assert silt(project, "sql", f"set silt.branch = 'day 1'; {changes}; reset silt.branch") == 0
        project.run_sql(f"update {schema}.src set v = 20 where id = 2")
        run_dbt(["build", *with_id("day 1", day=1)])
        corrected(project)


class TestRollingBackAHeldRun(Held):
    def test_it_names_the_two_things_that_can_be_done(self, project: Any, capsys: pytest.CaptureFixture[str]) -> None:
        capsys.readouterr()
        assert silt(project, "rollback", "day 1") == 2
        printed = capsys.readouterr().err
        assert "no change of the run `day 1` is published" in printed
        assert "silt drop-run 'day 1'" in printed and "Did you mean" not in printed
        assert silt(project, "drop-run", "day 1") == 0
