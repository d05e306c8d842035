"""With `upkeep` in the profile, a command that builds keeps up the tables of the warehouse at its end."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture

from dbt.adapters.silt.cli.main import main

SCHEMA = "models: [{name: orders, columns: [{name: id, data_tests: [not_null]}]}]"


@pytest.fixture(scope="class")
def unique_schema() -> str:
    return "main"


@pytest.fixture(scope="class")
def models() -> dict[str, str]:
    return {
        "orders.sql": "{{ config(materialized='incremental') }} select cast({{ var('id') }} as bigint) as id",
        "schema.yml": SCHEMA,
    }


def build(number: object, *, passes: bool = True, run_id: str = "") -> str:
    """Returns the last lines of the output of a build with a new row."""
    given = f"{{id: {number}, silt_run_id: run_{run_id or number}}}"
    _, output = run_dbt_and_capture(["build", "--vars", given], expect_pass=passes)
    return output


def ids(project: Any) -> list[int]:
    return [row[0] for row in project.run_sql("select id from main.orders order by id", fetch="all")]


def operations(project: Any) -> list[str]:
    rows = project.run_sql("describe history main.orders", fetch="all")
    return [row[4] if isinstance(row[4], str) else str(row) for row in rows]


class TestAtTheEnd:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "upkeep": {"budget": "1 minute"}}

    def test_the_last_lines_say_what_was_done(self, project: Any) -> None:
        assert [("Upkeep: nothing to do" in build(number)) for number in (1, 2, 3)] == [True] * 3
        output = build(4)
        assert "Upkeep: compacted 1 table, " in output and " of 1m" in output
        assert "OPTIMIZE" in operations(project)
        assert ids(project) == [1, 2, 3, 4]

    def test_a_failed_command_and_one_that_only_reads_do_nothing(self, project: Any) -> None:
        assert "Upkeep:" not in build("null", passes=False, run_id="bad")
        _, output = run_dbt_and_capture(["test"])
        assert "Upkeep:" not in output

    def test_a_run_before_an_upkeep_can_be_undone(self, project: Any) -> None:
        last = next(number for number in range(5, 11) if "Upkeep: compacted 1 table, " in build(number))
        assert main(["rollback", f"run_{last}", "--yes", "--project-dir", str(project.project_root)]) == 0
        assert ids(project) == list(range(1, last))


class TestHeld:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "upkeep": {"budget": "1 minute"}, "publish": "after_tests"}

    def test_a_held_run_does_nothing_and_its_tables_wait_until_it_is_published(self, project: Any) -> None:
        for number in (1, 2, 3):
            build(number)
        assert "Upkeep:" not in build("null", passes=False, run_id="held")
        assert main(["upkeep", "--dry-run", "--project-dir", str(project.project_root)]) == 0
        assert main(["publish", "run_held", "--project-dir", str(project.project_root)]) == 0
        _, output = run_dbt_and_capture(["run", "--vars", "{id: 4, silt_run_id: run_4}"])
        assert "Upkeep: compacted 1 table, " in output
