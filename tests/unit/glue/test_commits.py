"""What a commit leaves behind for dbt, on a real log in memory."""

from __future__ import annotations

import json
from multiprocessing import get_context
from pathlib import Path

import pytest

from dbt.adapters.silt.commits import (
    COMMITS_FILE,
    Author,
    CommitJournal,
    SiltResponse,
    find_run_id,
    find_unit,
)
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.actions import Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.log import DeltaLog
from dbt.adapters.silt.engine.kernel.memory_store import MemoryStore
from dbt.adapters.silt.engine.kernel.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import Changes, CommitSettings, Operation, ReadSet, commit
from dbt.adapters.silt.units import Unit

UNIT = Unit("silt/shop/model.shop.orders/R1/main", 1, "R1", checksum="c0ffee")
AUTHOR = Author("I1", "dev", None, "model.shop.orders", checksum="of the node")


def make_table() -> DeltaLog:
    store = MemoryStore()
    store.make_folder("_delta_log")
    log = DeltaLog(store, "silt.main.orders")
    schema = StructType((StructField("id", PrimitiveType("long")),))
    changes = Changes(Operation("CREATE TABLE"), metadata=Metadata("t", schema.to_json()), protocol=Protocol())
    commit(log, None, changes, ReadSet(), CommitSettings())
    return log


def put(log: DeltaLog, unit: Unit | None, author: Author = AUTHOR) -> int:
    """An empty commit, by a unit of work or by none."""
    transactions = () if unit is None else (SetTransaction(unit.app_id, unit.version, log.clock.now_ms()),)
    changes = Changes(Operation("WRITE"), transactions=transactions)
    settings = CommitSettings(commit_info=author.commit_info(unit))
    return commit(log, log.snapshot(), changes, ReadSet(), settings).version


class TestResponse:
    def test_of_a_change_says_what_it_did_and_where(self) -> None:
        outcome = Outcome("MERGE", "silt.main.orders", 12, 4120, 310, 0, files_added=3, attempts=2)
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

    @pytest.mark.parametrize(
        ("outcome", "message"),
        [
            (Outcome("WRITE", "t", 3, 1, files_added=1), "v3: 1 inserted in 1 file"),
            (Outcome("DELETE", "t", 3, rows_deleted=0), "v3: no row changed"),
            (Outcome("SET TBLPROPERTIES", "t", 4), "v4: set tblproperties"),
            (Outcome("DROP TABLE", "t", None), "drop table"),
        ],
    )
    def test_is_short_where_there_is_little_to_say(self, outcome: Outcome, message: str) -> None:
        assert str(SiltResponse.of(outcome, None)) == message

    def test_of_a_skipped_unit_says_which_commit_did_it(self) -> None:
        response = SiltResponse.of(Outcome("SKIP", "silt.main.orders", 12, skipped=True), UNIT)
        assert str(response) == "skipped: already applied by run R1 as silt.main.orders@v12"
        assert response.skipped

    def test_of_a_statement_that_changes_no_table_is_ok(self) -> None:
        assert SiltResponse.of(None, None).to_dict(omit_none=True) == {"_message": "OK", "code": "OK"}


class TestCommitInfo:
    def test_names_invocation_node_run_and_unit(self) -> None:
        assert AUTHOR.commit_info(UNIT) == {
            "dbt": {
                "invocationId": "I1",
                "target": "dev",
                "runId": "R1",
                "nodeId": "model.shop.orders",
                "appId": UNIT.app_id,
                "nodeChecksum": "c0ffee",
            }
        }

    def test_leaves_out_what_is_not_known(self) -> None:
        assert Author("I1", "dev", None, None).commit_info(None) == {"dbt": {"invocationId": "I1", "target": "dev"}}


class TestFinding:
    def test_a_unit_is_found_with_what_its_author_noted(self) -> None:
        log = make_table()
        version = put(log, UNIT)
        put(log, None)
        found = find_unit(log, UNIT.app_id)
        assert found is not None
        assert (found.version, found.info["nodeChecksum"]) == (version, "c0ffee")

    def test_a_unit_that_no_commit_holds_is_not_found(self) -> None:
        log = make_table()
        put(log, None)
        assert find_unit(log, UNIT.app_id) is None

    def test_the_run_id_of_an_invocation_is_found_in_any_of_its_tables(self) -> None:
        untouched, touched = make_table(), make_table()
        put(touched, UNIT)
        put(touched, Unit("other", 1, "R2"), Author("I2", "dev", None, None))
        assert find_run_id([untouched, touched], "I1") == "R1"
        assert find_run_id([untouched, touched], "I3") is None


class TestJournal:
    def test_has_a_line_for_each_commit(self, tmp_path: Path) -> None:
        journal = CommitJournal(tmp_path / "target")
        for version in (1, 2):
            journal.append(SiltResponse.of(Outcome("WRITE", "silt.main.orders", version, 5), UNIT), AUTHOR)
        lines = [json.loads(line) for line in (tmp_path / "target" / COMMITS_FILE).read_text().splitlines()]
        assert [line["table_version"] for line in lines] == [1, 2]
        assert lines[0]["invocation_id"] == "I1"
        assert lines[0]["node_id"] == "model.shop.orders"
        assert lines[0]["run_id"] == "R1"
        assert "_message" not in lines[0]

    def test_keeps_the_lines_of_two_processes_whole(self, tmp_path: Path) -> None:
        processes = [get_context("fork").Process(target=_append_some, args=(tmp_path, name)) for name in "AB"]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        lines = [json.loads(line) for line in (tmp_path / COMMITS_FILE).read_text().splitlines()]
        assert sorted({line["table"] for line in lines}) == ["A" * 3000, "B" * 3000]
        assert len(lines) == 100


def _append_some(folder: Path, name: str) -> None:
    for version in range(50):
        CommitJournal(folder).append(SiltResponse.of(Outcome("WRITE", name * 3000, version), None), AUTHOR)
