"""Audited nodes of every kind, in the life of runs: built empty, held, refused, corrected, reused, rolled back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits
from dbt.adapters.silt.engine.kernel.errors import AuditFailedError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.files import write_files
from tests.functional.pairs import nodes
from tests.functional.pairs.kinds import WITHOUT_UNIT_TESTS, build
from tests.functional.pairs.nodes import OF_LANDING, OF_UNITS, PEOPLE, REUSED, SELECT, EveryKind, Seen
from tests.functional.runs.test_publishing import silt

BAD: Final = PEOPLE[1].replace(",cid,", ",,")
"""The second day's seed, in which the new row has no name."""
NODES: Final = {**nodes.NODES, "seeds": "counted"}
WITH_MESSAGES: Final = tuple(kind for kind in NODES if kind != "microbatch")
"""The kinds whose message dbt shows: it drops the messages of batches."""


def with_tests(node: str) -> str:
    return (
        f"\n  - {{name: {node}, columns: [{{name: id, data_tests: [unique]}}, {{name: name, data_tests: [not_null]}}]}}"
    )


PROPERTIES: Final = f"""
seeds:
  - {{name: people, config: {{audit: never, event_time: at, column_types: {{id: bigint, v: bigint, at: timestamp}}}}}}
  - name: counted
    config: {{column_types: {{id: bigint, v: bigint, at: timestamp}}}}
    columns: [{{name: id, data_tests: [unique]}}, {{name: name, data_tests: [not_null]}}]
models: {"".join(with_tests(node) for node in NODES.values() if node not in ("counted", "history"))}
  - {{name: viewed, columns: [{{name: id, data_tests: [unique]}}]}}
"""


class SeenAudits(Seen):
    nodes: ClassVar = NODES


@pytest.mark.connect
@pytest.mark.kept
class TestAuditedNodesOfEveryKind(EveryKind):
    own_models: ClassVar = {
        "hooked.sql": "{{ config(materialized='table', post_hook='delete from {{ this }} where id > 100') }} " + SELECT
    }
    own_seeds: ClassVar = {"counted.csv": PEOPLE[0]}
    own_snapshots = """
snapshots:
  - name: history
    relation: ref('people')
    config: {unique_key: id, strategy: check, check_cols: all, audit: before_commit}
    columns: [{name: dbt_scd_id, data_tests: [unique]}, {name: name, data_tests: [not_null]}]
"""
    properties = PROPERTIES + OF_LANDING + OF_UNITS

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return {**silt_target, "publish": "after_tests", "reuse": "unchanged", "audit": "before_commit"}

    @pytest.fixture(scope="class")
    def tests(self) -> dict[str, str]:
        return {"enough.sql": "select * from {{ ref('viewed') }} where {{ var('fails', false) }}"}

    @pytest.fixture(scope="class")
    def seen(self, project: Any, program: Warehouse, landing: Path) -> SeenAudits:
        seen = SeenAudits(project, program)

        def load(rows: str, landed: str) -> None:
            write_files(Path(project.project_root, "seeds"), {"people.csv": rows, "counted.csv": rows})
            write_files(landing, {"1.csv": landed})

        seen.notes("empty", build("sunday", "--empty"))
        build("monday", expect_pass=False, fails=True)
        seen.notes_branch("branch", "monday")
        seen.notes("published", build("monday"))
        seen.notes("reused", build("tuesday"))
        load(BAD, "id,name\n8,\n")
        refused = build("wednesday", *WITHOUT_UNIT_TESTS, expect_pass=False)
        seen.notes_branch("refused", "wednesday", refused)
        load(PEOPLE[1], "id,name\n8,fay\n")
        seen.notes("corrected", build("wednesday", *WITHOUT_UNIT_TESTS))
        assert silt(project, "rollback", "wednesday", "--yes") == 0
        seen.notes("rolled back")
        return seen

    @pytest.mark.parametrize("kind", NODES)
    def test_the_audits_of_each_kind_of_node_refuse_a_bad_row_in_a_run(self, seen: SeenAudits, kind: str) -> None:
        assert seen.messages["refused"][NODES[kind]].startswith(("error: ", "partial success: "))
        assert seen.rows["refused"][kind] == seen.rows["published"][kind]

    @pytest.mark.parametrize("kind", NODES)
    def test_the_corrected_run_commits_what_its_audits_accept(self, seen: SeenAudits, kind: str) -> None:
        assert seen.messages["corrected"][NODES[kind]].startswith("success: ")
        assert seen.rows["corrected"][kind] == {"files": 2, "snapshots": 4}.get(kind, 3)

    @pytest.mark.parametrize("kind", NODES)
    def test_a_held_run_has_the_audited_rows_on_its_branch(self, seen: SeenAudits, kind: str) -> None:
        assert seen.rows["branch"][kind] == (1 if kind == "files" else 2)

    @pytest.mark.parametrize("kind", WITH_MESSAGES)
    def test_the_messages_of_each_kind_of_node_name_the_verdicts_of_its_audits(
        self, seen: SeenAudits, kind: str
    ) -> None:
        assert "SILT_AUDIT_FAILED" in seen.messages["refused"][NODES[kind]]
        assert "audits: 2 passed" in seen.messages["corrected"][NODES[kind]]

    @pytest.mark.parametrize("kind", WITH_MESSAGES)
    def test_a_build_with_empty_is_audited(self, seen: SeenAudits, kind: str) -> None:
        assert "audits: 2 passed" in seen.messages["empty"][NODES[kind]]

    @pytest.mark.parametrize("kind", REUSED)
    def test_an_unchanged_node_is_reused_without_audits(self, seen: SeenAudits, kind: str) -> None:
        assert "unchanged since" in seen.messages["reused"][NODES[kind]]
        assert "audits: " not in seen.messages["reused"][NODES[kind]]

    @pytest.mark.parametrize("kind", NODES)
    def test_a_rolled_back_run_leaves_the_audited_rows_before_it(self, seen: SeenAudits, kind: str) -> None:
        assert seen.rows["rolled back"][kind] == seen.rows["published"][kind]

    @pytest.mark.parametrize("kind", NODES)
    def test_audits_refuse_a_statement_of_a_transaction(self, seen: SeenAudits, program: Warehouse, kind: str) -> None:
        table = seen.table(kind)
        key = "dbt_scd_id" if kind == "snapshots" else "id"
        unique = Audit("unique", f"select {key} from {table} group by {key} having count(*) > 1")
        with program.transaction() as together:
            together.sql(f"set silt.audits = {json.dumps(Audits((unique,)).to_json())}")
            with pytest.raises(AuditFailedError):
                together.sql(f"insert into {table} select * from {table}")
            together.sql("reset silt.audits")

    def test_a_unit_test_of_an_audited_model_may_return_rows_that_fail(self, seen: SeenAudits) -> None:
        assert seen.messages["published"]["of_written"].startswith("pass: ")

    def test_the_tests_of_a_view_run_after_it_because_it_has_no_audits(self, seen: SeenAudits) -> None:
        assert "audits: " not in seen.messages["published"]["viewed"]
        assert seen.messages["published"]["unique_viewed_id"].startswith("pass: ")
