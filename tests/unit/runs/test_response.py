"""The adapter response and the journal line of a commit."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.units import Unit
from dbt.adapters.silt.runs.response import SiltResponse, journal_entry

UNIT = Unit("silt/shop/model.shop.orders/R1/main", 1, "R1", checksum="c0ffee")
MERGED: dict[str, Any] = {
    "rows_inserted": 4120,
    "rows_updated": 310,
    "rows_deleted": 0,
    "files_added": 3,
    "attempts": 2,
}


class TestResponse:
    def test_of_a_change_has_its_counts_and_its_table(self) -> None:
        outcome = Outcome("MERGE", "silt.main.orders", 12, **MERGED)
        response = SiltResponse.of(outcome, UNIT)
        assert str(response) == "v12: 4,120 inserted, 310 updated in 3 files"
        assert response.rows_affected == 4430
        assert response.to_dict(omit_none=True) == {
            "_message": "v12: 4,120 inserted, 310 updated in 3 files",
            "code": "MERGE",
            "rows_affected": 4430,
            "run_id": "R1",
            "app_id": UNIT.app_id,
            "txn_version": 1,
            "table": "silt.main.orders",
            "table_version": 12,
            "operation": "MERGE",
            "rows_inserted": 4120,
            "rows_updated": 310,
            "rows_deleted": 0,
            "files_added": 3,
            "files_removed": 0,
            "files_skipped": 0,
            "attempts": 2,
            "statement_attempts": 1,
            "skipped": False,
        }

    def test_unknown_values_are_members_unless_they_are_omitted(self) -> None:
        assert SiltResponse.of(None, None).to_dict().keys() == {
            *("_message", "code", "rows_affected", "query_id", "run_id", "app_id", "txn_version", "table"),
            *("table_version", "operation", "rows_inserted", "rows_updated", "rows_deleted", "files_added"),
            *("files_removed", "files_skipped", "attempts", "statement_attempts", "skipped", "reused"),
            *("changed_since", "reason", "note", "audits", "quarantined", "audited"),
        }

    @pytest.mark.parametrize(
        ("outcome", "message"),
        [
            (Outcome("WRITE", "t", 3, rows_inserted=1, files_added=1), "v3: 1 inserted in 1 file"),
            (Outcome("DELETE", "t", 3, rows_deleted=0), "v3: no row changed"),
            (Outcome("WRITE", "t", 3, rows_inserted=0, rows_deleted=None, files_removed=2), "v3: 2 files removed"),
            (Outcome("CREATE TABLE AS SELECT", "t", 0, rows_inserted=0), "v0: 0 rows"),
            (Outcome("CREATE TABLE AS SELECT", "t", 4, rows_inserted=0, attempts=0), "v4: no row changed"),
            (
                Outcome("CREATE OR REPLACE TABLE AS SELECT", "t", 1, rows_inserted=0, rows_before=2002),
                "v1: 0 rows, 2,002 before",
            ),
            (Outcome("CREATE OR REPLACE TABLE AS SELECT", "t", 1, rows_inserted=0, files_removed=1), "v1: 0 rows"),
            (Outcome("SET TBLPROPERTIES", "t", 4), "v4: set tblproperties"),
            (Outcome("DROP TABLE", "t", None), "drop table"),
        ],
    )
    def test_message_omits_counts_that_are_zero_or_unknown(self, outcome: Outcome, message: str) -> None:
        assert str(SiltResponse.of(outcome, None)) == message

    def test_of_a_skipped_unit_names_the_commit_that_did_its_work(self) -> None:
        response = SiltResponse.of(Outcome("SKIP", "silt.main.orders", 12, skipped=True), UNIT)
        assert str(response) == "skipped, nothing written: run R1 has done it, as silt.main.orders@v12"
        assert response.skipped

    def test_of_a_statement_that_changes_no_table_is_ok(self) -> None:
        assert SiltResponse.of(None, None).to_dict(omit_none=True) == {"_message": "OK", "code": "OK"}


class TestJournalEntry:
    FACTS = CommitFacts("I1", "dev", "R1", "model.shop.orders", "20260301", UNIT.app_id, "c0ffee")

    def test_of_a_commit_has_its_command_and_its_counts(self) -> None:
        outcome = Outcome("MERGE", "silt.main.orders", 12, **MERGED)
        entry = journal_entry(SiltResponse.of(outcome, UNIT), self.FACTS)
        assert (entry.invocation_id, entry.run_id, entry.node_id) == ("I1", "R1", "model.shop.orders")
        assert (entry.target, entry.batch_id, entry.app_id, entry.txn_version) == ("dev", "20260301", UNIT.app_id, 1)
        assert (entry.table, entry.table_version, entry.operation) == ("silt.main.orders", 12, "MERGE")
        assert entry.counts == WriteCounts(**MERGED, files_removed=0, files_skipped=0, statement_attempts=1)
        assert not entry.skipped

    def test_of_skipped_work_has_no_counts(self) -> None:
        entry = journal_entry(SiltResponse.of(Outcome("SKIP", "silt.main.orders", 12, skipped=True), UNIT), self.FACTS)
        assert (entry.skipped, entry.table_version, entry.run_id) == (True, 12, "R1")
        assert entry.counts == WriteCounts()
