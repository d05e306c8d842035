"""Upkeep beside other writers: no statement loses to it, and no row is lost or there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from dbt.adapters.silt.engine.kernel.errors import ConcurrentDeleteDeleteError, ConcurrentModificationError
from dbt.adapters.silt.engine.kernel.table.expressions import And, Column, Comparison, Expression
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitResult
from tests.memory_store import MemoryStore
from tests.races.transactions import FILES_WRITTEN, SETTLED, Race, Statement, Table
from tests.simulation.interleaving import Scheduler, YieldingStore, every_order
from tests.simulation.rows_table import RowsTable, Writer
from tests.simulation.warehouse.upkeep import cluster_by, optimize, upkeep

FILES = tuple({first: 10 * first, first + 1: 10 * first + 10} for first in range(1, 9, 2))
ROWS = {key: amount for rows in FILES for key, amount in rows.items()}
VECTORS = {"delta.enableDeletionVectors": "true"}


def ids(low: int, high: int) -> Expression:
    return And((Comparison(">=", Column.of("id"), low), Comparison("<=", Column.of("id"), high)))


def double(table: RowsTable) -> CommitResult:
    """UPDATE t SET amount = 2 * amount WHERE id = 3."""
    return table.rewrite(ids(3, 3), lambda _, amount: 2 * amount)


def erase(table: RowsTable) -> CommitResult:
    return table.rewrite(ids(3, 6), lambda *_: None, "DELETE")


def upkeep_meanwhile(statement: Statement, *upkeeps: Statement, race: Race | None = None) -> Race:
    """Lets upkeep commit after the statement has written its files; the statement must not notice."""
    race = race or Race(*FILES)
    writer = race.writer(statement)
    others = [race.writer(each) for each in upkeeps or (upkeep,)]
    race.run(writer.until(FILES_WRITTEN), *(each.until(SETTLED) for each in others), writer.until(SETTLED))
    assert [each.error for each in race.transactions] == [None] * len(race.transactions)
    return race


@pytest.mark.parametrize("configuration", [{}, VECTORS], ids=["files", "vectors"])
@pytest.mark.parametrize("level", IsolationLevel)
def test_an_update_of_a_file_that_upkeep_has_moved_takes_the_bin_back(
    level: IsolationLevel, configuration: dict[str, str]
) -> None:
    race = Race(*FILES, configuration={**configuration, "delta.isolationLevel": level.value})
    upkeep_meanwhile(double, race=race)
    assert race.operations() == ["CREATE TABLE", "OPTIMIZE", "UPDATE"]
    assert race.rows() == {**ROWS, 3: 60}


def test_a_delete_of_whole_files_and_an_upkeep_that_follows_it() -> None:
    race = upkeep_meanwhile(erase)
    assert race.rows() == {key: amount for key, amount in ROWS.items() if not 3 <= key <= 6}
    assert upkeep(race.table(), target_size=40) is not None
    assert len(race.rows()) == 4


def test_a_bin_with_a_later_file_and_a_bin_of_a_bin_are_taken_back() -> None:
    new = [{key: key for key in range(first, first + 7)} for first in (20, 30, 40)]
    appends = [partial(Table.append, rows=rows) for rows in new]
    into_one = partial(upkeep, target_size=1000)
    race = upkeep_meanwhile(double, into_one, *appends, into_one)
    assert race.operations().count("OPTIMIZE") == 2
    assert race.rows() == {**ROWS, **new[0], **new[1], **new[2], 3: 60}
    assert race.log().snapshot().num_files == 7


def test_an_update_beside_upkeep_of_other_files_leaves_the_bin() -> None:
    race = Race(*FILES, {key: key for key in range(100, 120)})
    upkeep_meanwhile(lambda table: table.rewrite(ids(100, 120), lambda *_: 0), race=race)
    assert race.log().snapshot().num_files == 3


def test_an_optimize_that_a_user_asks_for_is_not_taken_back() -> None:
    race = Race(*FILES)
    update, other = race.writer(double), race.writer(optimize)
    race.run(update.until(FILES_WRITTEN), other.until(SETTLED), update.until(SETTLED))
    assert isinstance(update.error, ConcurrentDeleteDeleteError)
    assert race.rows() == ROWS


@pytest.mark.parametrize(
    "configuration",
    [{"delta.deletedFileRetentionDuration": "interval 2 hours"}, {"delta.enableChangeDataFeed": "true"}],
    ids=["short retention", "change data"],
)
def test_a_bin_whose_files_vacuum_may_delete_or_whose_rows_would_be_changes_is_not_taken_back(
    configuration: dict[str, str],
) -> None:
    race = Race(*FILES, configuration=configuration)
    update, other = race.writer(double), race.writer(upkeep)
    race.run(update.until(FILES_WRITTEN), other.until(SETTLED), update.until(SETTLED))
    assert isinstance(update.error, ConcurrentDeleteDeleteError)
    assert race.rows() == ROWS


def orders(
    *statements: Callable[[Writer], object], is_clustered: bool = False
) -> Iterator[tuple[Writer, list[object]]]:
    """Yields for each order of turns the table after the statements, and their results."""
    for choose in every_order():
        memory, scheduler = MemoryStore(), Scheduler()
        table = Writer(memory, seed=0)
        table.create(*FILES)
        if is_clustered:
            cluster_by(table)
        writers = [Writer(YieldingStore(memory, scheduler), seed) for seed in range(1, len(statements) + 1)]
        tasks = [lambda run=run, of=of: run(of) for run, of in zip(statements, writers, strict=True)]
        yield table, scheduler.run(tasks, choose)


@pytest.mark.parametrize("is_clustered", [False, True])
@pytest.mark.parametrize("statement", [double, erase])
def test_in_no_order_a_statement_loses_to_upkeep(statement: Callable[[Writer], object], is_clustered: bool) -> None:
    after = {key: 2 * amount if key == 3 else amount for key, amount in ROWS.items()}
    if statement is erase:
        after = {key: amount for key, amount in ROWS.items() if not 3 <= key <= 6}
    results = set()
    for table, (changed, kept_up) in orders(statement, upkeep, is_clustered=is_clustered):
        assert isinstance(changed, CommitResult), changed
        assert kept_up is None or isinstance(kept_up, (CommitResult, ConcurrentDeleteDeleteError)), kept_up
        assert table.rows() == after
        results.add(type(kept_up))
    assert len(results) > 1


@pytest.mark.parametrize("is_clustered", [False, True])
@pytest.mark.parametrize("other", [upkeep, optimize, RowsTable.compact])
def test_in_no_order_two_upkeeps_or_another_writers_optimize_move_a_row_twice(
    other: Callable[[Writer], object], is_clustered: bool
) -> None:
    for table, results in orders(upkeep, other, is_clustered=is_clustered):
        assert all(
            result is None or isinstance(result, (CommitResult, ConcurrentModificationError)) for result in results
        ), results
        assert any(isinstance(result, CommitResult) for result in results)
        assert table.rows() == ROWS
