"""The facts of a dbt command in its commit, on a real log in memory."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Metadata, Protocol, SetTransaction
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.records.commit_facts import INFO_KEY, CommitFacts, find_run_id, find_unit
from tests.memory_store import MemoryStore

APP_ID = "silt/shop/model.shop.orders/R1/main"
FACTS = CommitFacts("I1", "dev", "R1", "model.shop.orders", None, APP_ID, "c0ffee", "of the team")


def make_table() -> DeltaLog:
    store = MemoryStore()
    store.make_folder("_delta_log")
    log = DeltaLog(store, "silt.main.orders")
    schema = StructType((StructField("id", PrimitiveType("long")),))
    changes = Changes(Operation("CREATE TABLE"), metadata=Metadata("t", schema.to_json()), protocol=Protocol())
    commit(log, None, changes, ReadSet(), CommitSettings())
    return log


def put(log: DeltaLog, facts: CommitFacts | None, app_id: str | None = None) -> int:
    """Writes an empty commit, as a unit of work if it has an application id, and returns its version."""
    transactions = () if app_id is None else (SetTransaction(app_id, 1, log.clock.now_ms()),)
    settings = CommitSettings(commit_info={} if facts is None else facts.commit_info())
    changes = Changes(Operation("WRITE"), transactions=transactions)
    return commit(log, log.snapshot(), changes, ReadSet(), settings).version


class TestCommitInfo:
    def test_names_command_run_node_and_unit_and_omits_unknown_facts(self) -> None:
        assert FACTS.commit_info() == {
            "dbt": {
                "invocationId": "I1",
                "target": "dev",
                "runId": "R1",
                "nodeId": "model.shop.orders",
                "appId": APP_ID,
                "nodeChecksum": "c0ffee",
                "queryComment": "of the team",
            }
        }

    def test_is_read_as_written(self) -> None:
        log = make_table()
        put(log, FACTS)
        newest = next(iter(log.newest_commits()))
        assert CommitFacts.of(newest) == FACTS

    def test_of_another_writer_has_no_facts(self) -> None:
        log = make_table()
        assert [CommitFacts.of(each) for each in log.newest_commits()] == [None]
        assert CommitFacts.of_info(CommitInfo(extra={INFO_KEY: "theirs"})) is None

    def test_with_unknown_or_invalid_fields_is_read_without_them(self) -> None:
        info = CommitInfo(extra={INFO_KEY: {"runId": "R1", "nodeId": {"name": "orders"}, "colour": "blue"}})
        assert CommitFacts.of_info(info) == CommitFacts(run_id="R1")


class TestFinding:
    def test_a_unit_is_found_with_the_facts_of_its_writer(self) -> None:
        log = make_table()
        version = put(log, FACTS, APP_ID)
        put(log, None)
        found = find_unit(log, APP_ID)
        assert found is not None
        assert (found.version, found.facts) == (version, FACTS)

    def test_a_unit_of_another_writer_is_found_without_facts(self) -> None:
        log = make_table()
        put(log, None, APP_ID)
        found = find_unit(log, APP_ID)
        assert found is not None and found.facts == CommitFacts()

    def test_a_unit_without_a_commit_is_not_found(self) -> None:
        log = make_table()
        put(log, FACTS)
        assert find_unit(log, APP_ID) is None

    def test_the_run_id_of_an_invocation_is_found_in_any_of_its_tables(self) -> None:
        untouched, touched = make_table(), make_table()
        put(touched, FACTS)
        put(touched, CommitFacts("I2", "dev", "R2"))
        now = datetime.now(timezone.utc)
        long_ago, later = now - timedelta(days=1), now + timedelta(days=1)
        assert find_run_id([untouched, touched], "I1", long_ago) == "R1"
        assert find_run_id([untouched, touched], "I3", long_ago) is None
        assert find_run_id([untouched, touched], "I1", later) is None, "older commits than the command are not read"
