"""`after_publish` and `silt_after_publish`: statements that run after a run is published, and not if it is held."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.globals import pop_context
from dbt.tests.util import run_dbt, run_dbt_and_capture

from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement
from dbt.adapters.silt.records.run_registry import RunRegistry
from dbt.adapters.silt.session.command_sessions import CommandSessions
from tests.files import write_files
from tests.functional.runs.test_publishing import HEAD, Publishing, files, rows, shown, silt, with_id

CONFIG = "{{ config(materialized='table', after_publish=%s) }} "
NOTE = "insert into {{ this.schema }}.notes select '%s', count(*) from {{ this }}"
TOTAL = "insert into {{ this.schema }}.notes select 'totals', total from {{ this }}"
VACUUM = "{{ silt_vacuum(this) }}"


class AfterPublish(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": CONFIG % f'["{NOTE % "orders"}", "{VACUUM}"]'
            + "select id, {{ var('amount', 1) }} as amount from range(3) as t(id)",
            "totals.sql": "select sum(amount) as total from {{ ref('orders') }}",
            "schema.yml": f"""
models:
  - name: orders
    columns: [{{name: amount, data_tests: [not_null]}}]
  - name: totals
    config: {{after_publish: "{{% raw %}}{TOTAL}{{% endraw %}}"}}
""",
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "on-run-start": "create table if not exists {{ target.schema }}.notes (event string, n bigint)",
            "on-run-end": "{{ silt_after_publish('insert into ' ~ target.schema ~ '.notes values (\\'end\\', 0)') }}",
        }


NOTES = [("end", 0), ("orders", 3), ("totals", 3)]


class TestAfterThePublication(AfterPublish):
    def test_they_run_once_after_the_publication_and_not_if_the_run_is_held(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["build", *with_id("first", amount="cast(null as int)")], expect_pass=False)
        assert "Held: 1 test failed" in output, output
        assert "After the publication" not in output
        assert shown(project) == {}
        assert silt(project, "publish", "first") == 0
        assert rows(project, "notes") == [("end", 0), ("orders", 3)]
        assert silt(project, "publish", "first") == 2
        before = files(project)
        run_dbt(["build", *with_id("first", amount="cast(null as int)")], expect_pass=False)
        assert {path: text for path, text in files(project).items() if "notes" in path} == {
            path: text for path, text in before.items() if "notes" in path
        }
        assert silt(project, "drop-run", "first") == 0

    def test_a_new_run_runs_them_again_in_their_order(self, project: Any) -> None:
        project.run_sql(f"truncate table {project.test_schema}.notes")
        _, output = run_dbt_and_capture(["build", *with_id("second")])
        published = output.index("Published at one moment")
        lines = [line for line in output.splitlines() if "After the publication" in line]
        assert output.index("After the publication") > published
        assert [" ".join(line.partition("publication: ")[2].split()[:2]) for line in lines] == [
            "insert into",
            f"vacuum `silt`.`{project.test_schema}`.`orders`:",
            "insert into",
            "insert into",
        ]
        assert rows(project, "notes") == NOTES

    def test_with_changes_that_are_visible_at_once_they_run_as_hooks(self, project: Any) -> None:
        project.run_sql(f"truncate table {project.test_schema}.notes")
        for _ in range(2):
            _, output = run_dbt_and_capture(["build", *with_id("third", silt_publish="at_once")])
            assert "Published" not in output
            assert rows(project, "notes") == NOTES

    def test_a_statement_that_fails_leaves_itself_and_the_rest_to_the_same_run(
        self, project: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        project.run_sql(f"drop table {project.test_schema}.notes")
        project.run_sql(f"create table {project.test_schema}.notes (event string not null, n int check (n < 3))")
        with pytest.raises(Exception, match="SILT_"):
            run_dbt(["build", *with_id("fourth")])
        assert shown(project)["totals"] == -1
        assert RunRegistry(Path(project.project_root, "target")).entries()[-1].publication == "published"
        with pytest.raises(Exception, match="SILT_"):
            run_dbt(["build", *with_id("fourth")])
        capfd.readouterr()
        assert silt(project, "publish", "fourth") == 2
        said = capfd.readouterr().err
        assert "the run `fourth` is published, but a statement after the publication failed: insert into" in said, said
        assert "run the rest: silt publish fourth, or drop the rest: silt drop-run fourth" in said
        assert silt(project, "publish", "fourth", "--json") == 2
        told = json.loads(capfd.readouterr().out)
        assert told["run_id"] == "fourth" and told["tables"] == {}
        assert ".notes" in told["failed"]["statement"] and "SILT_" in told["failed"]["error"], told
        assert rows(project, "notes") == []
        project.run_sql(f"drop table {project.test_schema}.notes")
        project.run_sql(f"create table {project.test_schema}.notes (event string, n bigint)")
        assert silt(project, "publish", "fourth", "--json") == 0
        assert json.loads(capfd.readouterr().out)["failed"] is None
        assert rows(project, "notes") == NOTES


class TestAKillBetweenPublicationAndStatement(AfterPublish):
    def test_the_same_run_runs_the_rest(self, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        own = CommandSessions.run_later

        def killed(self: CommandSessions, statement: LaterStatement) -> None:
            own(self, statement)
            raise KeyboardInterrupt

        monkeypatch.setattr(CommandSessions, "run_later", killed)
        with pytest.raises(BaseException, match=""):
            run_dbt(["build", *with_id("killed")])
        pop_context()  # a killed process leaves no context of its command to later tests
        monkeypatch.undo()
        assert rows(project, "notes") == [("orders", 3)], "the first statement ran before the kill"
        _, output = run_dbt_and_capture(["build", *with_id("killed")])
        assert "The run killed was published; its statements after that follow" in output
        assert rows(project, "notes") == NOTES, "a statement that changes a table is applied once"


class TestWhatIsRefused(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "number.sql": CONFIG % "[1]" + "select 1 as id",
            "begun.sql": CONFIG % "'begin'" + "select 1 as id",
            "misspelt.sql": CONFIG % "'optimize'" + "select 1 as id",
        }

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"now.sql": "{% macro now() %}{{ silt_after_publish('select 1') }}{% endmacro %}"}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.mark.parametrize(
        ("model", "problem"),
        [
            ("number", "`after_publish` must be a statement or a list of statements, but is [1]"),
            ("begun", "`begin` cannot run after the publication"),
            ("misspelt", "SILT_SYNTAX"),
        ],
    )
    def test_a_wrong_statement_fails_its_node_before_the_publication(
        self, project: Any, model: str, problem: str
    ) -> None:
        _, output = run_dbt_and_capture(["run", "--select", model], expect_pass=False)
        assert problem in output and "Held: 1 node failed" in output
        assert shown(project) == {}

    def test_an_operation_cannot_leave_a_statement_to_a_publication(self, project: Any) -> None:
        _, output = run_dbt_and_capture(["run-operation", "now"], expect_pass=False)
        assert "silt_after_publish is for hooks" in output

    def test_a_corrected_node_forgets_the_statements_that_it_had_before(self, project: Any) -> None:
        note = f"create table {project.test_schema}.of_%s as select 1 as id"
        for name, value in (("wrong", "raise_error('no')"), ("right", "1")):
            models = {
                "noted.sql": CONFIG % f"'{note % name}'" + "select 1 as id",
                "below.sql": HEAD + f"select {value} as id from {{{{ ref('noted') }}}}",
            }
            write_files(Path(project.project_root, "models"), models)
            run_dbt(["run", "--select", "noted+", *with_id("corrected")], expect_pass=name == "right")
        assert shown(project) == {"below": 0, "noted": 0, "of_right": 0}


class TestStatementsThatTheProjectNoLongerHas(AfterPublish):
    def test_a_hook_and_a_node_that_were_removed_since_leave_no_statement(self, project: Any) -> None:
        settings = Path(project.project_root, "dbt_project.yml")
        before = yaml.safe_load(settings.read_text())
        silent = {**before, "on-run-end": "select 1"}
        removed = {name: before[name] for name in before if name != "on-run-end"}
        for number, (run_id, after) in enumerate({"silent": silent, "removed": removed}.items()):
            settings.write_text(yaml.safe_dump(before))
            run_dbt(["build", *with_id(run_id, amount="cast(null as int)")], expect_pass=False)
            settings.write_text(yaml.safe_dump(after))
            Path(project.project_root, "models", "totals.sql").unlink(missing_ok=True)
            orders = "models: [{name: orders, columns: [{name: amount, data_tests: [not_null]}]}]"
            write_files(Path(project.project_root, "models"), {"schema.yml": orders})
            _, output = run_dbt_and_capture(["build", *with_id(run_id)])
            assert "Published at one moment" in output, output
            assert rows(project, "notes") == [("orders", 3)] * (number + 1), output


class TestTheBranchOfASession(Publishing):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        hook = """{{ config(materialized='table', pre_hook="set silt.branch = 'other'") }} """
        return {"orders.sql": HEAD + "select 1 as id", "hooked.sql": hook + "select 1 as id"}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {}

    @pytest.mark.parametrize("publish", ["at_once", "after_tests"])
    def test_a_hook_cannot_leave_the_run_for_the_branch_of_another(self, project: Any, publish: str) -> None:
        variables = with_id(publish, silt_publish=publish)
        _, output = run_dbt_and_capture(["run", "--select", "hooked", *variables], expect_pass=False)
        assert "`silt.branch` cannot be set" in output and "Use `silt sql`" in output, output
        run_dbt(["run", "--select", "orders", *with_id(f"{publish} alone", silt_publish=publish)])
        assert shown(project).keys() == {"orders"}
