"""Two transactions at the same time: who does what when, and which of them conflicts.

The tests are in the order of the rules of `kernel/transaction/conflicts.py`. `test_matrix_races.py` has each entry.
"""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentAppendError,
    ConcurrentCreateError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentDomainError,
    ConcurrentDropError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata, SetTransaction
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from tests.races.transactions import (
    ATTEMPTED,
    FILES_WRITTEN,
    HIGH,
    PINNED,
    SETTLED,
    VALIDATED,
    Phase,
    Race,
    Statement,
    Table,
)
from tests.simulation.rows_table import Rows, RowsTable

SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT = (
    IsolationLevel.SERIALIZABLE,
    IsolationLevel.WRITE_SERIALIZABLE,
    IsolationLevel.SNAPSHOT,
)
VECTORS = {"delta.enableDeletionVectors": "true"}


def ids(low: int, high: int) -> Expression:
    return And((Comparison(">=", Column.of("id"), low), Comparison("<=", Column.of("id"), high)))


def insert_sum(low: int, high: int, key: int = 50) -> Statement:
    """INSERT INTO t SELECT key, sum(amount) FROM t WHERE id BETWEEN low AND high."""
    return lambda table: table.insert_if(ids(low, high), lambda rows: {key: sum(rows.values())})


def double(low: int, high: int) -> Statement:
    """UPDATE t SET amount = 2 * amount WHERE id BETWEEN low AND high."""
    return lambda table: table.rewrite(ids(low, high), lambda _, amount: 2 * amount)


def delete(low: int, high: int) -> Statement:
    return lambda table: table.rewrite(ids(low, high), lambda *_: None, "DELETE")


def append(rows: Rows) -> Statement:
    return lambda table: table.append(rows)


def append_once(rows: Rows, unit: str) -> Statement:
    return lambda table: table.append(rows, SetTransaction(unit, 1))


def turn_on(key: str, value: str = "true") -> Statement:
    return lambda table: table.turn_on(key, value)


def overtaken(race: Race, first: Statement, by: Statement, level: IsolationLevel | None = None) -> BaseException | None:
    """The error of a transaction that has written its files when another transaction commits."""
    loser, winner = race.writer(first, level), race.writer(by)
    race.run(loser.until(FILES_WRITTEN), winner.until(SETTLED), loser.until(SETTLED))
    assert winner.error is None
    return loser.error


# Appends


def test_an_append_follows_an_append_that_committed_first() -> None:
    race = Race()
    left, right = race.writer(append({3: 30})), race.writer(append({4: 40}))
    race.run(left.until(VALIDATED), right.until(SETTLED), left.until(SETTLED))
    assert (right.version, left.version) == (1, 2)
    assert left.phases == [PINNED, FILES_WRITTEN, VALIDATED, ATTEMPTED, VALIDATED, ATTEMPTED, SETTLED]


def test_three_writers_commit_in_the_order_of_their_attempts() -> None:
    race = Race()
    one, two, three = (race.writer(append({key: key})) for key in (3, 4, 5))
    race.run(one.until(VALIDATED), two.until(VALIDATED), three.until(SETTLED), two.until(SETTLED), one.until(SETTLED))
    assert (three.version, two.version, one.version) == (1, 2, 3)


@pytest.mark.parametrize(("level", "error"), [(SERIALIZABLE, ConcurrentAppendError), (WRITE_SERIALIZABLE, type(None))])
def test_an_insert_does_not_see_a_row_of_an_append(level: IsolationLevel, error: type) -> None:
    race = Race()
    assert type(overtaken(race, insert_sum(1, 9), append({3: 30}), level)) is error
    assert race.rows().get(50) == (None if error is ConcurrentAppendError else 30)


def test_an_insert_that_reads_other_rows_follows_an_append() -> None:
    race = Race()
    assert overtaken(race, insert_sum(1, 9), append({200: 1}), SERIALIZABLE) is None
    assert race.rows()[50] == 30


@pytest.mark.parametrize(("level", "error"), [(WRITE_SERIALIZABLE, ConcurrentAppendError), (SNAPSHOT, type(None))])
def test_two_inserts_that_read_the_rows_of_each_other(level: IsolationLevel, error: type) -> None:
    """Under SnapshotIsolation this is a write skew: neither sum includes the other."""
    race = Race()
    assert type(overtaken(race, insert_sum(1, 100), insert_sum(1, 100, 51), level)) is error


# Changes of rows


@pytest.mark.parametrize("level", [SERIALIZABLE, WRITE_SERIALIZABLE])
def test_an_insert_has_read_rows_that_were_deleted(level: IsolationLevel) -> None:
    race = Race()
    error = overtaken(race, insert_sum(1, 2), delete(1, 2), level)
    assert isinstance(error, ConcurrentDeleteReadError)
    assert race.rows() == HIGH


@pytest.mark.parametrize(
    ("level", "error"), [(SERIALIZABLE, ConcurrentAppendError), (SNAPSHOT, ConcurrentDeleteDeleteError)]
)
def test_two_updates_of_one_file(level: IsolationLevel, error: type) -> None:
    race = Race()
    assert type(overtaken(race, double(2, 2), double(1, 1), level)) is error
    assert race.rows() == {1: 20, 2: 20, **HIGH}


def test_updates_of_two_files_both_commit() -> None:
    race = Race()
    assert overtaken(race, double(1, 2), double(101, 102), SERIALIZABLE) is None
    assert race.rows() == {1: 20, 2: 40, 101: 60, 102: 80}


def test_an_overwrite_conflicts_with_an_append() -> None:
    race = Race()
    error = overtaken(race, lambda table: table.rewrite(TRUE, lambda *_: 0), append({3: 30}), SERIALIZABLE)
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.parametrize("level", IsolationLevel)
def test_two_deletes_by_deletion_vectors_in_one_file(level: IsolationLevel) -> None:
    """The second vector would bring back the row that the first deletes."""
    race = Race({1: 10, 2: 20, 3: 30}, configuration=VECTORS)
    error = overtaken(race, delete(1, 1), delete(2, 2), level)
    assert isinstance(error, ConcurrentDeleteDeleteError if level is SNAPSHOT else ConcurrentAppendError)
    assert race.rows() == {1: 10, 3: 30}


# Rearrangements


@pytest.mark.parametrize("level", IsolationLevel)
def test_an_update_of_a_file_that_was_moved(level: IsolationLevel) -> None:
    race = Race()
    error = overtaken(race, double(1, 1), RowsTable.compact, level)
    assert isinstance(error, ConcurrentDeleteDeleteError)
    assert race.rows() == {1: 10, 2: 20, **HIGH}


def test_a_compaction_of_a_file_that_was_updated() -> None:
    race = Race()
    error = overtaken(race, RowsTable.compact, double(1, 1))
    assert isinstance(error, ConcurrentDeleteDeleteError)
    assert race.rows() == {1: 20, 2: 20, **HIGH}


def test_a_compaction_follows_an_append() -> None:
    race = Race()
    assert overtaken(race, RowsTable.compact, append({3: 30})) is None
    assert race.rows() == {1: 10, 2: 20, 3: 30, **HIGH}


def test_an_insert_has_read_rows_that_were_moved_and_then_deleted() -> None:
    race = Race()
    insert = race.writer(insert_sum(1, 2))
    compact, erase = race.writer(RowsTable.compact), race.writer(delete(1, 200))
    race.run(insert.until(FILES_WRITTEN), compact.until(SETTLED), erase.until(SETTLED), insert.until(SETTLED))
    assert isinstance(insert.error, ConcurrentDeleteReadError)


def test_an_insert_follows_the_move_of_the_rows_that_it_has_read() -> None:
    race = Race()
    assert overtaken(race, insert_sum(1, 2), RowsTable.compact, SERIALIZABLE) is None
    assert race.rows()[50] == 30


# Metadata, protocol, domains and transaction identifiers


@pytest.mark.parametrize("first", [append({3: 30}), lambda table: table.set_property("mine", "1")])
def test_metadata_was_changed(first: Statement) -> None:
    race = Race()
    error = overtaken(race, first, lambda table: table.set_property("theirs", "1"))
    assert isinstance(error, MetadataChangedError)


@pytest.mark.parametrize("level", IsolationLevel)
def test_a_rule_that_was_checked_for_all_rows_misses_no_row(level: IsolationLevel) -> None:
    race = Race()
    error = overtaken(
        race, lambda table: table.set_property("rows", lambda rows: str(len(rows))), append({3: 30}), level
    )
    assert isinstance(error, ConcurrentAppendError)


def test_an_append_follows_the_commit_that_turns_on_a_feature_and_obeys_it() -> None:
    race = Race()
    assert overtaken(race, append({3: 30}), turn_on("delta.enableInCommitTimestamps")) is None
    times = [commit.info.in_commit_timestamp for commit in race.log().commits()]
    assert times[0] is None and None not in times[1:] and times[1] < times[2]  # type: ignore[operator]


def test_two_changes_of_the_protocol() -> None:
    race = Race()
    error = overtaken(race, turn_on("delta.enableDeletionVectors"), turn_on("delta.checkpointPolicy", "v2"))
    assert isinstance(error, ProtocolChangedError)


def test_a_unit_of_work_that_two_processes_do_is_committed_once() -> None:
    race = Race()
    error = overtaken(race, append_once({3: 30}, "unit"), append_once({3: 30}, "unit"), SNAPSHOT)
    assert isinstance(error, ConcurrentTransactionError)
    assert race.operations() == ["CREATE TABLE", "WRITE"]


def test_two_units_of_work_are_both_committed() -> None:
    race = Race()
    assert overtaken(race, append_once({3: 30}, "unit"), append_once({4: 40}, "other")) is None


@pytest.mark.parametrize(("domain", "error"), [("shared", ConcurrentDomainError), ("other", type(None))])
def test_a_domain_that_two_transactions_set(domain: str, error: type) -> None:
    def set_domain(name: str) -> Statement:
        changes = Changes(Operation("WRITE"), domains=(DomainMetadata(name, "{}"),))
        return lambda table: table.commit(changes, ReadSet())

    assert type(overtaken(Race(), set_domain("shared"), set_domain(domain))) is error


# The end and the beginning of tables


@pytest.mark.parametrize("phase", [PINNED, FILES_WRITTEN, VALIDATED])
def test_a_table_that_is_dropped_and_created_again_while_it_is_written(phase: Phase) -> None:
    race = Race()

    def drop_and_create() -> None:
        race.store.rename_folder(LOG_FOLDER, "dropped")
        race.store.make_folder(LOG_FOLDER)
        race.table().create({7: 70})

    writer = race.writer(append({3: 30}))
    race.run(writer.until(phase), drop_and_create, writer.until(SETTLED))
    assert isinstance(writer.error, ConcurrentDropError)
    assert race.rows() == {7: 70}


def test_of_two_processes_that_create_a_table_one_wins() -> None:
    race = Race()
    race.store.rename_folder(LOG_FOLDER, "dropped")
    race.store.make_folder(LOG_FOLDER)
    left, right = race.writer(lambda table: table.create({1: 0})), race.writer(lambda table: table.create({2: 0}))
    race.run(left.until(FILES_WRITTEN), right.until(SETTLED), left.until(SETTLED))
    assert isinstance(left.error, ConcurrentCreateError)
    assert race.rows() == {2: 0}


def test_a_transaction_that_ends_before_the_phase_that_the_test_names_fails_the_test() -> None:
    race = Race()
    writer = race.writer(lambda table: table.rows())
    with pytest.raises(AssertionError, match="it ended before the phase ATTEMPTED"):
        race.run(writer.until(ATTEMPTED), writer.until(SETTLED))


def test_a_transaction_that_the_test_forgets_fails_the_test() -> None:
    race = Race()
    writer = race.writer(Table.compact)
    with pytest.raises(AssertionError, match="the steps end before the transactions"):
        race.run(writer.until(PINNED))
