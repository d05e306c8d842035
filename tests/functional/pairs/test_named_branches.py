"""Nodes of every kind on a named branch: their rows are there alone until the branch is merged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build, days, next_day, node_of
from tests.functional.pairs.test_life import KINDS, STORED, Life, Living
from tests.functional.runs.test_publishing import silt


@pytest.mark.connect
@pytest.mark.kept
class TestEveryKindOnANamedBranch(Living):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "branch": "{{ env_var('SILT_BRANCH', '') }}"}

    @pytest.fixture(scope="class")
    def life(self, project: Any, program: Warehouse, landing: Path) -> Life:
        life = Life(project, program)
        with pytest.MonkeyPatch.context() as patch:
            life.notes("base", build("monday"))
            assert silt(project, "branch", "pr_17") == 0
            next_day(project, landing)
            patch.setenv("SILT_BRANCH", "pr_17")
            life.messages["branch"] = build("tuesday", *WITHOUT_UNIT_TESTS)
            life.notes_branch("branch", "pr_17")
            life.clones_on_branch("pr_17")
            life.rows["others"], life.hooks["others"] = life.seen_by(program), self.hooks(program, project)
            life.messages["reused"] = build("wednesday", "--exclude", "batches", *WITHOUT_UNIT_TESTS)
            assert silt(project, "merge", "pr_17") == 0
        life.rows["merged"], life.hooks["merged"] = life.seen_by(program), self.hooks(program, project)
        return life

    def hooks(self, program: Warehouse, project: Any) -> Counter[str]:
        return Counter(row[0] for row in program.sql(f"select event from {project.test_schema}.audit").collect())

    @pytest.mark.parametrize("kind", [*STORED, "views"])
    def test_a_node_on_a_named_branch_has_its_rows_there_alone(self, life: Life, kind: str) -> None:
        assert life.rows["branch"][kind] == days(1)[kind]
        assert life.rows["others"][kind] == days(0)[kind]

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_merge_shows_the_rows_of_a_named_branch(self, life: Life, kind: str) -> None:
        assert life.rows["merged"][kind] == days(1)[kind]

    @pytest.mark.parametrize("kind", [kind for kind in STORED if kind not in ("microbatch", "silt_changes")])
    def test_an_unchanged_node_is_reused_on_a_named_branch(self, life: Life, kind: str) -> None:
        assert "unchanged since" not in life.messages["branch"][node_of(kind)]
        assert "unchanged since" in life.messages["reused"][node_of(kind)]

    def test_hooks_on_a_named_branch_change_tables_there_alone(self, life: Life) -> None:
        assert life.hooks["others"] == life.hooks["base"]
        assert life.hooks["merged"] > life.hooks["base"]

    def test_a_clone_on_a_named_branch_is_merged_with_the_rows_of_the_branch(
        self, life: Life, project: Any, program: Warehouse
    ) -> None:
        assert life.cloned == len(days(1)["seeds"]["seeds"])
        assert program.table(f"{project.test_schema}.copied").count() == life.cloned
