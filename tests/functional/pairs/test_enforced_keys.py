"""An enforced key in nodes of every kind, in the life of runs: built empty, held, published, reused, rolled back."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import pytest

from dbt.adapters.silt.engine.kernel.errors import KeyViolationError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build
from tests.functional.pairs.nodes import (
    COLUMNS,
    NODES,
    REUSED,
    KeyedNodes,
    SeenKeys,
    by_hook,
    contract,
    described,
    history,
    hooked,
)
from tests.functional.runs.test_publishing import silt

HOOKS: Final = by_hook("unique (id) enforced")
PRIMARY_KEY: Final = "{type: primary_key, columns: [id]}"
"""The key of the contracts, which the profile enforces."""
IN_YAML: Final = HOOKS.replace("=", ": ")
MODELS: Final = f"""{"".join(contract(model, PRIMARY_KEY) for model in COLUMNS)}
  - {{name: merged, config: {{{IN_YAML}}}}}
  - {{name: framed, config: {{{IN_YAML}}}}}
"""


@pytest.mark.connect
@pytest.mark.kept
class TestEnforcedKeysOfEveryKind(KeyedNodes):
    own_models: ClassVar = hooked(HOOKS)
    own_snapshots = history(IN_YAML.replace("(id)", "(dbt_scd_id)"))
    properties = described(IN_YAML, MODELS)

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "enforced_keys": True}

    @pytest.fixture(scope="class")
    def seen(self, project: Any, program: Warehouse) -> SeenKeys:
        seen = SeenKeys(project, program)
        self.begin(seen, "monday")
        seen.notes("changed", build("wednesday", *WITHOUT_UNIT_TESTS))
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        seen.notes("rolled back")
        return seen

    @pytest.mark.parametrize("kind", NODES)
    def test_the_key_of_each_kind_of_node_is_enforced_in_each_run(self, seen: SeenKeys, kind: str) -> None:
        assert seen.keys["published"][kind] == seen.keys["changed"][kind] == ["enforced"]
        assert seen.rows["changed"][kind] == {"files": 1, "snapshots": 4}.get(kind, 3)

    @pytest.mark.parametrize("kind", NODES)
    def test_a_held_run_has_the_enforced_keys_on_its_branch(self, seen: SeenKeys, kind: str) -> None:
        assert seen.keys["branch"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_build_with_empty_has_the_enforced_keys(self, seen: SeenKeys, kind: str) -> None:
        assert seen.keys["empty"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", REUSED)
    def test_an_unchanged_node_is_reused_with_its_enforced_key(self, seen: SeenKeys, kind: str) -> None:
        assert "unchanged since" in seen.messages["reused"][NODES[kind]]
        assert seen.keys["reused"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_rolled_back_run_leaves_the_enforced_keys_before_it(self, seen: SeenKeys, kind: str) -> None:
        assert seen.rows["rolled back"][kind] == seen.rows["published"][kind]
        assert seen.keys["rolled back"][kind] == ["enforced"]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_transaction_cannot_double_the_enforced_keys(self, seen: SeenKeys, program: Warehouse, kind: str) -> None:
        with pytest.raises(KeyViolationError), program.transaction() as together:
            together.sql(f"insert into {seen.table(kind)} select * from {seen.table(kind)}")

    def test_a_unit_test_of_a_model_with_an_enforced_key_may_return_a_key_twice(self, seen: SeenKeys) -> None:
        assert seen.messages["published"]["of_written"].startswith("pass: ")
