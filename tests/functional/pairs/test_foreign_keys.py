"""An enforced foreign key in nodes of every kind, in the life of runs: held, refused with an orphan, rolled back."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import ForeignKeyViolationError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build
from tests.functional.pairs.nodes import (
    COLUMNS,
    NODES,
    REUSED,
    KeyedNodes,
    SeenKeys,
    by_hook,
    described,
    history,
    hooked,
)
from tests.functional.runs.test_publishing import silt

KEY: Final = ["enforced, as far as the key that it references"]
HOOKS: Final = by_hook("foreign key (id) references {{ target.schema }}.ids (id) enforced")
IN_YAML: Final = HOOKS.replace("=", ": ", 1)


def with_hooks(node: str) -> str:
    return f"\n  - {{name: {node}, config: {{{IN_YAML}}}}}"


class SeenForeignKeys(SeenKeys):
    kinds = ("FOREIGN",)


@pytest.mark.connect
@pytest.mark.kept
class TestForeignKeysOfEveryKind(KeyedNodes):
    own_models: ClassVar = hooked(HOOKS)
    own_snapshots = history(IN_YAML)
    properties = described(IN_YAML, "".join(map(with_hooks, [*COLUMNS, "merged", "framed"])))

    @pytest.fixture(scope="class")
    def ids(self, project: Any, program: Warehouse) -> str:
        """The parent of every node, which a program writes."""
        program.sql(f"create schema if not exists {project.test_schema}")
        program.sql(f"create table {project.test_schema}.ids (id bigint primary key enforced)")
        program.sql(f"insert into {project.test_schema}.ids values (1), (2), (7)")
        return f"{project.test_schema}.ids"

    @pytest.fixture(scope="class")
    def seen(self, project: Any, program: Warehouse, ids: str) -> SeenForeignKeys:
        seen = SeenForeignKeys(project, program)
        self.begin(seen, "sunday")
        with pytest.raises(DbtRuntimeError, match="SILT_FOREIGN_KEY_VIOLATION"):
            build("wednesday", *WITHOUT_UNIT_TESTS)
        seen.notes("refused")
        program.sql(f"insert into {ids} values (3)")
        seen.notes("corrected", build("wednesday", *WITHOUT_UNIT_TESTS))
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        seen.notes("rolled back")
        return seen

    @pytest.mark.parametrize("kind", NODES)
    def test_a_run_with_a_row_without_its_parent_is_not_published(self, seen: SeenForeignKeys, kind: str) -> None:
        assert seen.rows["refused"][kind] == seen.rows["published"][kind]

    @pytest.mark.parametrize("kind", NODES)
    def test_the_corrected_run_has_the_foreign_key_of_each_kind(self, seen: SeenForeignKeys, kind: str) -> None:
        assert seen.keys["published"][kind] == seen.keys["corrected"][kind] == KEY
        assert seen.rows["corrected"][kind] == {"files": 1, "snapshots": 4}.get(kind, 3)

    @pytest.mark.parametrize("kind", NODES)
    def test_a_held_run_has_the_foreign_keys_on_its_branch(self, seen: SeenForeignKeys, kind: str) -> None:
        assert seen.keys["branch"][kind] == KEY

    @pytest.mark.parametrize("kind", NODES)
    def test_a_build_with_empty_has_the_foreign_keys(self, seen: SeenForeignKeys, kind: str) -> None:
        assert seen.keys["empty"][kind] == KEY

    @pytest.mark.parametrize("kind", REUSED)
    def test_an_unchanged_node_is_reused_with_its_foreign_key(self, seen: SeenForeignKeys, kind: str) -> None:
        assert "unchanged since" in seen.messages["reused"][NODES[kind]]
        assert seen.keys["reused"][kind] == KEY

    @pytest.mark.parametrize("kind", NODES)
    def test_a_rolled_back_run_leaves_the_foreign_keys_before_it(self, seen: SeenForeignKeys, kind: str) -> None:
        assert seen.rows["rolled back"][kind] == seen.rows["published"][kind]
        assert seen.keys["rolled back"][kind] == KEY

    @pytest.mark.parametrize("kind", NODES)
    def test_a_transaction_cannot_add_a_row_without_its_parent(
        self, seen: SeenForeignKeys, program: Warehouse, kind: str
    ) -> None:
        with pytest.raises(ForeignKeyViolationError), program.transaction() as together:
            together.sql(f"insert into {seen.table(kind)} (id) values (99)")

    def test_a_unit_test_of_a_model_with_a_foreign_key_may_return_any_row(self, seen: SeenForeignKeys) -> None:
        assert seen.messages["published"]["of_written"].startswith("pass: ")
