"""Every order in which two writers can take turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentCreateError,
    ConcurrentDeleteReadError,
    ConcurrentModificationError,
)
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, And, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from tests.faulty_store import Fault, FaultKind
from tests.memory_store import MemoryStore
from tests.simulation.interleaving import Scheduler, YieldingStore, every_order
from tests.simulation.rows_table import Rows, Writer, until_it_lands

ID = Column.of("id")
LOW, HIGH = {1: 10, 2: 20}, {101: 30, 102: 40}


def between(low: int, high: int) -> Expression:
    return And((Comparison(">=", ID, low), Comparison("<=", ID, high)))


class Race:
    """A table of two files, and two writers of it."""

    def __init__(
        self,
        level: IsolationLevel | None = None,
        of_table: IsolationLevel | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> None:
        self.memory = MemoryStore()
        self.scheduler = Scheduler()
        configuration = {} if of_table is None else {"delta.isolationLevel": of_table.value}
        Writer(self.memory, seed=0).create(LOW, HIGH, configuration=configuration)
        self.left, self.right = (
            Writer(YieldingStore(self.memory, self.scheduler, faults), seed, level) for seed in (1, 2)
        )

    def rows(self) -> dict[int, int]:
        return Writer(self.memory, seed=3).rows()


def races(
    left: Callable[[Writer], object],
    right: Callable[[Writer], object],
    level: IsolationLevel | None = None,
    of_table: IsolationLevel | None = None,
    faults: Callable[[], tuple[Fault, ...]] = tuple,
) -> Iterator[tuple[Race, list[object]]]:
    """Yields for each order of turns the race after it, and the results of both writers."""
    for choose in every_order():
        race = Race(level, of_table, faults())
        yield race, race.scheduler.run([lambda race=race: left(race.left), lambda race=race: right(race.right)], choose)  # type: ignore[misc]


def test_updates_of_disjoint_files_are_both_committed_without_a_rerun() -> None:
    orders = 0
    for race, results in races(
        lambda writer: writer.rewrite(between(1, 2), lambda _, amount: amount + 1),
        lambda writer: writer.rewrite(between(101, 102), lambda _, amount: amount + 2),
    ):
        orders += 1
        assert all(isinstance(result, CommitResult) for result in results), results
        assert race.rows() == {1: 11, 2: 21, 101: 32, 102: 42}
    assert orders > 10


def test_deleted_rows_never_reappear() -> None:
    conflicts = 0
    for race, results in races(
        lambda writer: writer.rewrite(Comparison("=", ID, 1), lambda *_: None, "DELETE"),
        lambda writer: writer.rewrite(between(1, 2), lambda _, amount: amount + 1),
    ):
        failed = [result for result in results if not isinstance(result, CommitResult)]
        assert all(isinstance(result, ConcurrentModificationError) for result in failed), results
        conflicts += len(failed)
        erased, updated = (isinstance(result, CommitResult) for result in results)
        expected = {1: 10 + updated, 2: 20 + updated, **HIGH}
        if erased:
            del expected[1]
        assert race.rows() == expected
    assert conflicts > 0


def test_both_statements_take_effect_with_a_rerun_after_a_conflict() -> None:
    for race, results in races(
        lambda writer: until_it_lands(lambda: writer.rewrite(Comparison("=", ID, 1), lambda *_: None, "DELETE")),
        lambda writer: until_it_lands(lambda: writer.rewrite(between(1, 2), lambda _, amount: amount + 1)),
    ):
        assert all(isinstance(result, CommitResult) for result in results), results
        assert race.rows() == {2: 21, **HIGH}


def insert_while_few(writer: Writer) -> object:
    """Inserts a row if the table has few rows; two such inserts together break the condition that each has checked."""
    new_id = 200 + writer.seed
    return writer.insert_if(TRUE, lambda rows: {new_id: 0} if len(rows) < 5 else None)


@pytest.mark.parametrize("of_table", [None, *IsolationLevel])
@pytest.mark.parametrize("of_statement", [None, *IsolationLevel])
def test_write_skew_occurs_only_under_snapshot_isolation_of_statement_or_table(
    of_table: IsolationLevel | None, of_statement: IsolationLevel | None
) -> None:
    most = max(len(race.rows()) for race, _ in races(insert_while_few, insert_while_few, of_statement, of_table))
    assert (most > 5) is ((of_statement or of_table) is IsolationLevel.SNAPSHOT)


def count_of(rows: Rows) -> str:
    return str(len(rows))


def test_a_rule_for_all_rows_applies_to_all_rows_at_any_level() -> None:
    for race, results in races(
        lambda writer: until_it_lands(lambda: writer.set_property("rows", count_of)),
        lambda writer: writer.append({5: 5}),
        IsolationLevel.SNAPSHOT,
    ):
        assert isinstance(results[0], CommitResult)
        rows = race.left.rows(race.left.log.snapshot_at(results[0].version))
        assert race.left.log.snapshot().metadata.configuration["rows"] == str(len(rows))


def test_rows_that_were_read_then_compacted_and_deleted_cause_a_conflict() -> None:
    race = Race()

    def overtaken(rows: Rows) -> Rows:
        race.right.compact()
        race.right.rewrite(TRUE, lambda *_: None, "DELETE")
        return {50: sum(rows.values())}

    with pytest.raises(ConcurrentDeleteReadError):
        race.left.insert_if(between(1, 2), overtaken)
    assert race.rows() == {}


def test_compaction_and_update_of_the_same_file_never_duplicate_or_lose_a_row() -> None:
    for race, results in races(
        lambda writer: writer.compact(),
        lambda writer: writer.rewrite(between(1, 1), lambda _, amount: amount + 1),
    ):
        compacted, updated = (isinstance(result, CommitResult) for result in results)
        assert compacted or updated
        assert all(isinstance(result, CommitResult | ConcurrentModificationError) for result in results)
        assert race.rows() == {**LOW, **HIGH, 1: 10 + updated}


def test_compaction_does_not_conflict_with_a_statement_that_only_reads_and_inserts() -> None:
    for race, results in races(
        lambda writer: writer.compact(),
        lambda writer: writer.insert_if(between(1, 2), lambda rows: {50: sum(rows.values())}),
    ):
        assert all(isinstance(result, CommitResult) for result in results), results
        assert race.rows() == {**LOW, **HIGH, 50: 30}


@pytest.mark.parametrize("kind", [FaultKind.FAIL_AFTER, FaultKind.FAIL_BEFORE])
def test_both_appends_are_committed_once_in_any_order_despite_a_lost_answer(kind: FaultKind) -> None:
    for race, results in races(
        lambda writer: writer.append({3: 3}),
        lambda writer: writer.append({103: 4}),
        faults=lambda: (Fault("put_if_absent", kind, "*.json", times=1),),
    ):
        assert all(isinstance(result, CommitResult) for result in results), results
        assert {result.version for result in results if isinstance(result, CommitResult)} == {1, 2}
        assert race.rows() == {**LOW, **HIGH, 3: 3, 103: 4}


def test_only_one_of_two_creations_succeeds() -> None:
    for choose in every_order():
        memory, scheduler = MemoryStore(), Scheduler()
        writers = [Writer(YieldingStore(memory, scheduler), seed) for seed in (1, 2)]
        tasks = [lambda writer=writer: writer.create({writer.seed: 0}) for writer in writers]
        results = scheduler.run(tasks, choose)
        kinds = sorted(type(result).__name__ for result in results)
        assert kinds == sorted((CommitResult.__name__, ConcurrentCreateError.__name__)), results
        winner = next(n for n, result in enumerate(results, start=1) if isinstance(result, CommitResult))
        assert Writer(memory, seed=9).rows() == {winner: 0}
