"""Upkeep at the end of each command, in the life of nodes of every kind, whose tables have deletion vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import KINDS, Kinds, build, contents, days, next_day, node_of, table_of

VECTORS: Final = {"delta.enableDeletionVectors": "true"}
HOOK: Final = "alter table {{ this }} set tblproperties ('hooked' = 'true')"
TABLES: Final = tuple(kind for kind in KINDS if kind not in ("views", "files"))


class Life:
    """Observations after each step: the rows of each node, and the messages of the nodes."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.rows: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, Any] = {}
        self.compacted: dict[str, list[str]] = {}

    def run(self, query: str) -> Any:
        return self.project.run_sql(query, fetch="all")

    def note(self, step: str, messages: Any = None) -> None:
        self.rows[step] = contents(self.run, self.project.test_schema)
        self.messages[step] = messages
        self.compacted[step] = [kind for kind in TABLES if self._is_compacted(kind)]

    def _is_compacted(self, kind: str) -> bool:
        history = self.run(f"describe history {self.project.test_schema}.{table_of(kind)}")
        return any("OPTIMIZE" in map(str, row) for row in history)


@pytest.mark.connect
@pytest.mark.kept
class TestUpkeepOfEveryKind(Kinds):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "upkeep": {"budget": "2 minutes"}}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        given = {"+tblproperties": VECTORS}
        return {"models": given, "snapshots": given, "seeds": {**given, "+post-hook": HOOK}}

    @pytest.fixture(scope="class")
    def life(self, project: Any, landing: Path, program: Warehouse) -> Life:
        life = Life(project)
        life.note("empty", build("first", "--empty"))
        life.note("first", build("first"))
        next_day(project, landing)
        life.note("second", build("second"))
        program.sql(f"optimize tables in {project.test_schema} budget '2 minutes'")
        life.note("third", build("third"))
        return life

    @pytest.mark.parametrize("kind", KINDS)
    def test_upkeep_leaves_the_rows_of_each_day(self, life: Life, kind: str) -> None:
        assert life.rows["first"][kind] == days(0)[kind]
        assert life.rows["second"][kind] == days(1)[kind]
        assert life.rows["third"][kind] == days(1)[kind]

    @pytest.mark.parametrize("kind", [kind for kind in TABLES if kind not in ("microbatch", "silt_changes")])
    def test_a_node_is_reused_although_upkeep_has_moved_its_rows(self, life: Life, kind: str) -> None:
        assert "unchanged since" in life.messages["third"][node_of(kind)]
        assert "unchanged since" not in life.messages["second"][node_of(kind)]

    def test_upkeep_has_compacted_files_with_many_deleted_rows(self, life: Life) -> None:
        assert {"snapshots", "differences"} <= set(life.compacted["third"])

    def test_a_unit_test_passes_next_to_upkeep(self, life: Life) -> None:
        assert life.messages["third"]["of_differences"].startswith("pass: ")
