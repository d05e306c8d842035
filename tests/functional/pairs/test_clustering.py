"""Clustered tables in the life of nodes of every kind, which upkeep clusters at the end of each command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import KINDS, TABLES, KeptUpKinds, Life, days, node_of, table_of

CLUSTERED: Final = {"+liquid_clustered_by": ["id"], "+tblproperties": {"delta.enableDeletionVectors": "true"}}


@pytest.mark.connect
@pytest.mark.kept
class TestClusteredNodesOfEveryKind(KeptUpKinds):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        hook = "alter table {{ this }} set tblproperties ('hooked' = 'true')"
        return {"models": CLUSTERED, "snapshots": CLUSTERED, "seeds": {**CLUSTERED, "+post-hook": hook}}

    def before_the_third(self, schema: str) -> Iterable[str]:
        return (f"optimize {schema}.{table_of(kind)} full" for kind in TABLES)

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
