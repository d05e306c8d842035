"""Clones of nodes of every kind are built further in another target, and production keeps its rows."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from tests.functional.pairs.kinds import (
    WINDOW,
    WITHOUT_UNIT_TESTS,
    Kinds,
    Parts,
    build,
    contents,
    days,
    next_day,
    node_of,
)

OF_STATE = ("--target", "other", "--state", "state")
DEFERRED = (*OF_STATE, "--defer", "--favor-state")
FIRST, SECOND = days(0), days(1)
BUILT = ("differences", "snapshots", "microbatch", "python", "changed_keys")
"""The kinds whose clones are built further in one command."""


class Clones:
    """What was seen in production and in the other target after each step."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.production: dict[str, Mapping[str, Parts]] = {}
        self.other: dict[str, Mapping[str, Parts]] = {}
        self.statuses: dict[str, Mapping[str, str]] = {}

    def notes(self, step: str, statuses: Mapping[str, str]) -> None:
        run = partial(self.project.run_sql, fetch="all")
        self.statuses[step] = statuses
        self.production[step] = contents(run, self.project.test_schema)
        self.other[step] = contents(run, f"{self.project.test_schema}_other")


@pytest.mark.manifest
@pytest.mark.connect
@pytest.mark.kept
@pytest.mark.accelerated
class TestClonesOfEveryKind(Kinds):
    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target: dict[str, Any], unique_schema: str) -> dict[str, Any]:
        production = {**deepcopy(dbt_profile_target), "schema": unique_schema}
        other = {**deepcopy(production), "schema": f"{unique_schema}_other"}
        return {"test": {"outputs": {"production": production, "other": other}, "target": "production"}}

    @pytest.fixture(scope="class")
    def seen(self, project: Any, landing: Path) -> Clones:
        seen = Clones(project)
        build("first", *WITHOUT_UNIT_TESTS)
        shutil.copytree(Path(project.project_root, "target"), Path(project.project_root, "state"))
        run_dbt(["clone", *OF_STATE])
        seen.notes("cloned", {})
        next_day(project, landing)
        run_dbt(["seed"])
        (refused,) = run_dbt(["build", "--select", "log", *DEFERRED], expect_pass=False)
        seen.notes("refused", {"log": str(refused.message)})
        run_dbt(["build", "--select", "log", "--full-refresh", *DEFERRED])
        seen.notes("changes", {})
        found = run_dbt(["build", "--select", *map(node_of, BUILT), *DEFERRED, *WINDOW])
        seen.notes("built", {each.node.name: str(each.status) for each in found})
        run_dbt(["run", "--select", "cut", "--empty", *DEFERRED])
        seen.notes("emptied", {})
        return seen

    @pytest.mark.parametrize("kind", list(FIRST))
    def test_a_clone_has_the_rows_of_production(self, seen: Clones, kind: str) -> None:
        assert seen.other["cloned"][kind] == seen.production["cloned"][kind] == FIRST[kind]

    def test_a_clone_of_a_consumer_of_changes_has_read_none_and_is_built_again_on_request(self, seen: Clones) -> None:
        assert "does not record which changes" in seen.statuses["refused"]["log"]
        assert seen.other["refused"]["silt_changes"] == FIRST["silt_changes"]
        assert seen.other["changes"]["silt_changes"] == {
            **FIRST["silt_changes"],
            "seeds": SECOND["silt_changes"]["seeds"],
        }
        assert seen.production["changes"]["silt_changes"] == FIRST["silt_changes"]

    @pytest.mark.parametrize("kind", BUILT)
    def test_a_clone_is_built_further_from_production_and_from_other_clones(self, seen: Clones, kind: str) -> None:
        assert seen.other["built"][kind] == SECOND[kind]
        assert seen.production["built"][kind] == FIRST[kind]

    def test_unit_tests_of_clones_take_their_columns_from_production(self, seen: Clones) -> None:
        tests = ("of_differences", "of_microbatch", "of_changed_keys")
        assert {name: seen.statuses["built"][name] for name in tests} == dict.fromkeys(tests, "pass")

    def test_a_clone_that_is_built_with_empty_loses_its_rows_and_production_none(self, seen: Clones) -> None:
        assert seen.other["emptied"]["differences"] == {}
        assert seen.production["emptied"]["differences"] == FIRST["differences"]
