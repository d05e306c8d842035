"""Clustered tables in the life of nodes of every kind, which upkeep clusters at the end of each command."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import KINDS, Kinds, build, contents, days, next_day, node_of, table_of

CLUSTERED: Final = {"+liquid_clustered_by": ["id"], "+tblproperties": {"delta.enableDeletionVectors": "true"}}
TABLES: Final = tuple(kind for kind in KINDS if kind not in ("views", "files"))


class Life:
    """Observations after each step: the rows of each node, and the messages of the nodes."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.rows: dict[str, dict[str, Any]] = {}
        self.messages: dict[str, Any] = {}

    def note(self, step: str, messages: Any = None) -> None:
        self.rows[step] = contents(lambda query: self.project.run_sql(query, fetch="all"), self.project.test_schema)
        self.messages[step] = messages


@pytest.mark.connect
@pytest.mark.kept
class TestClusteredNodesOfEveryKind(Kinds):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "upkeep": {"budget": "2 minutes"}}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hook = "alter table {{ this }} set tblproperties ('hooked' = 'true')"
        return {"models": CLUSTERED, "snapshots": CLUSTERED, "seeds": {**CLUSTERED, "+post-hook": hook}}

    @pytest.fixture(scope="class")
    def life(self, project: Any, landing: Path, program: Warehouse) -> Life:
        life = Life(project)
        life.note("empty", build("first", "--empty"))
        life.note("first", build("first"))
        next_day(project, landing)
        life.note("second", build("second"))
        for kind in TABLES:
            program.sql(f"optimize {project.test_schema}.{table_of(kind)} full")
        life.note("third", build("third"))
        return life

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_clustered_table_has_the_rows_of_each_day(self, life: Life, kind: str) -> None:
        assert life.rows["first"][kind] == days(0)[kind]
        assert life.rows["second"][kind] == days(1)[kind]
        assert life.rows["third"][kind] == days(1)[kind]

    @pytest.mark.parametrize("kind", [kind for kind in TABLES if kind not in ("microbatch", "silt_changes")])
    def test_a_node_is_reused_although_its_rows_were_clustered_again(self, life: Life, kind: str) -> None:
        assert "unchanged since" in life.messages["third"][node_of(kind)]
        assert "unchanged since" not in life.messages["second"][node_of(kind)]

    @pytest.mark.parametrize("kind", TABLES)
    def test_each_kind_of_table_is_clustered(self, life: Life, kind: str, program: Warehouse) -> None:
        place = RelationName(life.project.database, life.project.test_schema, table_of(kind))
        snapshot = program.catalog.table(place).snapshot()
        assert clustered_by(snapshot.schema, snapshot.domains) == ["id"]

    def test_a_unit_test_passes_next_to_clustered_tables(self, life: Life) -> None:
        assert life.messages["third"]["of_differences"].startswith("pass: ")
