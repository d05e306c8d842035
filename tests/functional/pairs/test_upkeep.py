"""Upkeep at the end of each command, in the life of nodes of every kind, whose tables have deletion vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from tests.functional.pairs.kinds import KINDS, TABLES, KeptUpKinds, Life, days, node_of, table_of

VECTORS: Final = {"delta.enableDeletionVectors": "true"}
HOOK: Final = "alter table {{ this }} set tblproperties ('hooked' = 'true')"


class CompactedLife(Life):
    """Also observes which tables were compacted."""

    def __init__(self, project: Any) -> None:
        super().__init__(project)
        self.compacted: dict[str, list[str]] = {}

    def note(self, step: str, messages: Any = None) -> None:
        super().note(step, messages)
        self.compacted[step] = [kind for kind in TABLES if self._is_compacted(kind)]

    def _is_compacted(self, kind: str) -> bool:
        history = self.run(f"describe history {self.project.test_schema}.{table_of(kind)}")
        return any("OPTIMIZE" in map(str, row) for row in history)


@pytest.mark.connect
@pytest.mark.kept
class TestUpkeepOfEveryKind(KeptUpKinds):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        given = {"+tblproperties": VECTORS}
        return {"models": given, "snapshots": given, "seeds": {**given, "+post-hook": HOOK}}

    def new_life(self, project: Any) -> CompactedLife:
        return CompactedLife(project)

    def before_the_third(self, schema: str) -> Iterable[str]:
        return [f"optimize tables in {schema} budget '2 minutes'"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_upkeep_leaves_the_rows_of_each_day(self, life: CompactedLife, kind: str) -> None:
        assert life.rows["first"][kind] == days(0)[kind]
        assert life.rows["second"][kind] == days(1)[kind]
        assert life.rows["third"][kind] == days(1)[kind]

    @pytest.mark.parametrize("kind", [kind for kind in TABLES if kind not in ("microbatch", "silt_changes")])
    def test_a_node_is_reused_although_upkeep_has_moved_its_rows(self, life: CompactedLife, kind: str) -> None:
        assert "unchanged since" in life.messages["third"][node_of(kind)]
        assert "unchanged since" not in life.messages["second"][node_of(kind)]

    def test_upkeep_has_compacted_files_with_many_deleted_rows(self, life: CompactedLife) -> None:
        assert {"snapshots", "differences"} <= set(life.compacted["third"])

    def test_a_unit_test_passes_next_to_upkeep(self, life: CompactedLife) -> None:
        assert life.messages["third"]["of_differences"].startswith("pass: ")
