"""Which changes a consumer has not consumed, according to its log and the log of the input."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import ChangesMissingError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Action, CommitInfo, SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.kernel.transaction.positions import Position, app_id_of, is_position
from dbt.adapters.silt.engine.statements.resolve.changes_functions import Consumption, Options, check_consumer, consumed
from tests.fixed_clock import FixedClock
from tests.unit.engine.kernel.log_builder import METADATA, add, log_of, new_log, put, reopened

DAILY = RelationName("silt", "main", "daily")
ALL = Options(None, None, ())
RECORDED = app_id_of(METADATA.id, "shop.orders")


def consumer(*actions: Action, configuration: dict[str, str] | None = None, is_replaced: bool = False) -> Consumption:
    """Returns a consumer whose log contains these actions."""
    log = new_log(configuration=configuration)
    put(log, 1, CommitInfo(operation="WRITE"), *actions)
    return Consumption(DAILY, log.snapshot(), is_replaced)


def orders() -> tuple[DeltaLog, Snapshot]:
    """Returns the log and newest snapshot of an input with the versions 0 to 9."""
    log = log_of(9)
    return log, log.snapshot()


def begin(state: Consumption, asked: Options = ALL) -> tuple[int | None, Position]:
    """Returns the version after which the changes begin, and the position to commit."""
    options, position = consumed(*orders(), asked, state)
    return options.after, position


@pytest.mark.parametrize("snapshot", [None, consumer().snapshot])
def test_a_consumer_without_rows_begins_with_all_rows(snapshot: Snapshot | None) -> None:
    after, position = begin(Consumption(DAILY, snapshot, is_replaced=False))
    assert (after, position) == (None, Position("silt.main.daily", RECORDED, 9, None, mark=position.mark))
    assert position.mark, "the position knows the version by its files, too"
    assert position.is_changed
    assert position.is_advanced


def test_a_consumer_continues_after_its_position() -> None:
    after, position = begin(consumer(add("f1"), SetTransaction(RECORDED, 4)))
    assert (after, position.version, position.recorded) == (4, 9, 4)


def test_a_position_that_is_the_newest_version_need_not_be_committed() -> None:
    after, position = begin(consumer(SetTransaction(RECORDED, 9)))
    assert (after, position.is_changed) == (9, False)


def test_a_position_is_found_under_an_earlier_name_of_the_input() -> None:
    earlier = app_id_of(METADATA.id, "shop.purchases")
    assert begin(consumer(SetTransaction(earlier, 4)))[1].app_id == earlier


def test_a_consumer_that_is_created_again_begins_with_all_rows_and_may_move_its_position_back() -> None:
    state = consumer(add("f1"), SetTransaction(RECORDED, 8), is_replaced=True)
    after, position = begin(state, replace(ALL, after=3, until=6))
    assert (after, position.version, position.recorded) == (None, 6, 8)
    assert position.is_changed
    assert not position.is_advanced


def test_after_applies_only_to_a_consumer_that_has_consumed_no_changes() -> None:
    asked = replace(ALL, after=7)
    assert begin(consumer(add("f1")), asked)[0] == 7
    assert begin(consumer(add("f1"), SetTransaction(RECORDED, 4)), asked)[0] == 4
    assert begin(consumer(SetTransaction(RECORDED, -1)), asked)[0] == 7


def test_a_consumer_of_other_inputs_begins_with_all_rows_of_a_new_input() -> None:
    other = app_id_of("another-id", "shop.customers")
    assert begin(consumer(add("f1"), SetTransaction(other, 4)))[0] is None


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (consumer(add("f1")), InvalidStatementError, "does not record which changes of shop.orders"),
        (consumer(add("f1"), SetTransaction(RECORDED, -1)), InvalidStatementError, "does not record which changes"),
        (
            consumer(add("f1"), SetTransaction(app_id_of("another-id", "shop.orders"), 4)),
            ChangesMissingError,
            "consumed up to version 4: it was dropped and created again",
        ),
        (consumer(SetTransaction(RECORDED, 12)), ChangesMissingError, "up to version 12, after version 9"),
    ],
)
def test_a_consumer_that_cannot_continue_is_refused_with_the_reason(
    state: Consumption, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        begin(state)


def test_a_statement_must_write_the_consumer_that_it_names() -> None:
    position = Position("silt.main.daily", RECORDED, 9, 4)
    check_consumer((position, position), DAILY)
    check_consumer((), None)
    for written in (None, RelationName("silt", "main", "weekly")):
        with pytest.raises(InvalidStatementError, match=r"are consumed by silt\.main\.daily"):
            check_consumer((position,), written)
    with pytest.raises(InvalidStatementError, match="up to different versions"):
        check_consumer((position, replace(position, version=5)), DAILY)


def test_a_position_outlives_the_retention_of_transaction_identifiers() -> None:
    log = new_log(configuration={"delta.setTransactionRetentionDuration": "interval 1 hour"})
    recorded = (SetTransaction(RECORDED, 4), SetTransaction("unit", 1))
    commit(log, log.snapshot(), Changes(Operation("WRITE"), transactions=recorded), ReadSet(), CommitSettings())
    assert isinstance(log.clock, FixedClock)
    log.clock.at_ms += 10 * 365 * 86_400_000
    assert set(reopened(log).snapshot().transactions) == {RECORDED}


def test_a_unit_of_work_is_not_a_position() -> None:
    assert is_position(RECORDED)
    assert not is_position("silt/shop/model.shop.daily/monday/main")
