"""The checker names the anomaly of each history, and finds none in histories that have none."""

from __future__ import annotations

import random
from itertools import count

import pytest

from tests.histories.checker import check, names
from tests.histories.history import (
    Add,
    Answer,
    Append,
    Count,
    History,
    Insert,
    Key,
    Level,
    Operation,
    Read,
    Total,
    Transaction,
    Transfer,
)

X, Y = Key("t", 1), Key("t", 2)
OTHER = Key("u", 1)
IN_ALL = tuple(Level)


def ok(start: int, end: int, *operations: Operation) -> Transaction:
    return Transaction(start, "a", operations, start, end, Answer.OK)


def failed(start: int, end: int, *operations: Operation) -> Transaction:
    return Transaction(start, "a", operations, start, end, Answer.FAILED)


def unknown(start: int, *operations: Operation) -> Transaction:
    return Transaction(start, "a", operations, start, None, Answer.UNKNOWN)


def list_of(key: Key, *elements: int) -> Read:
    return Read(key, elements, is_list=True)


def set_of(key: Key, *elements: int) -> Read:
    return Read(key, elements, is_list=False)


def found(*transactions: Transaction, level: Level = Level.SERIALIZABLE, totals: int = 100) -> set[str]:
    return names(check(History(transactions, {"t": level, "u": level}, {"t": totals})))


@pytest.mark.parametrize("level", IN_ALL)
def test_writes_of_two_lists_in_opposite_orders_are_g0(level: Level) -> None:
    first = ok(1, 9, Append(X, 1), Append(Y, 2))
    second = ok(2, 9, Append(X, 3), Append(Y, 4))
    assert "G0" in found(first, second, ok(10, 11, list_of(X, 1, 3), list_of(Y, 4, 2)), level=level)


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_of_a_failed_write_is_g1a(level: Level) -> None:
    assert found(failed(1, 2, Append(X, 1)), ok(3, 4, list_of(X, 1)), level=level) == {"G1a"}
    assert found(failed(1, 2, Insert(X, 1)), ok(3, 4, set_of(X, 1)), level=level) == {"G1a"}


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_of_a_part_of_a_write_is_g1b(level: Level) -> None:
    both = ok(1, 9, Append(X, 1), Append(X, 2))
    assert "G1b" in found(both, ok(2, 3, list_of(X, 1)), ok(10, 11, list_of(X, 1, 2)), level=level)


@pytest.mark.parametrize("level", IN_ALL)
def test_two_statements_that_read_each_others_writes_are_g1c(level: Level) -> None:
    first = ok(1, 9, set_of(Y, 2), Append(X, 1))
    second = ok(2, 9, list_of(X, 1), Insert(Y, 2))
    assert found(first, second, level=level) == {"G1c"}


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_of_a_later_write_but_not_of_an_earlier_one_is_g_single(level: Level) -> None:
    earlier = ok(1, 9, Append(X, 1), Append(Y, 2))
    half = ok(2, 9, list_of(X), list_of(Y, 2))
    assert "G-single" in found(earlier, half, ok(10, 11, list_of(X, 1), list_of(Y, 2)), level=level)


WRITE_SKEW = (
    ok(1, 9, list_of(X), Append(Y, 2)),
    ok(2, 9, list_of(Y), Append(X, 1)),
    ok(10, 11, list_of(X, 1), list_of(Y, 2)),
)


def test_two_statements_that_overlook_each_other_are_g2_and_snapshot_isolation_permits_it() -> None:
    assert found(*WRITE_SKEW) == {"G2"}
    assert found(*WRITE_SKEW, level=Level.WRITE_SERIALIZABLE) == {"G2"}
    assert found(*WRITE_SKEW, level=Level.SNAPSHOT) == set()


def test_write_serializable_permits_to_overlook_a_blind_append_and_no_other_insert() -> None:
    # A reader sees the insert before the statement that overlooked it.
    overlooks = ok(1, 9, set_of(Y), Append(X, 1))
    between = ok(4, 5, set_of(Y, 2), list_of(X))
    last = ok(10, 11, list_of(X, 1), set_of(Y, 2))
    blind, seeing = ok(2, 3, Insert(Y, 2)), ok(2, 3, list_of(X), Insert(Y, 2))
    assert found(overlooks, blind, between, last) == {"G2"}
    assert found(overlooks, blind, between, last, level=Level.WRITE_SERIALIZABLE) == set()
    assert found(overlooks, seeing, between, last, level=Level.WRITE_SERIALIZABLE) == {"G2"}


def test_reads_of_other_tables_may_be_older_than_the_commit() -> None:
    first = ok(1, 9, list_of(OTHER), Append(X, 1))
    second = ok(2, 9, list_of(X), Append(OTHER, 2))
    assert found(first, second, ok(10, 11, list_of(X, 1), list_of(OTHER, 2))) == set()


@pytest.mark.parametrize("level", IN_ALL)
def test_two_readers_that_see_two_inserts_in_opposite_orders_are_g2(level: Level) -> None:
    inserts = ok(1, 9, Insert(X, 1)), ok(2, 9, Insert(OTHER, 2))
    readers = ok(3, 8, set_of(X, 1), set_of(OTHER)), ok(4, 8, set_of(X), set_of(OTHER, 2))
    assert found(*inserts, *readers, level=level) == {"G2"}


@pytest.mark.parametrize("level", IN_ALL)
def test_an_update_that_a_concurrent_update_overwrote_is_a_lost_update(level: Level) -> None:
    first, second = ok(1, 9, Append(X, 1)), ok(2, 9, Append(X, 2))
    assert found(first, second, ok(10, 11, list_of(X, 2)), level=level) == {"lost update"}
    assert "lost update" in found(first, second, ok(3, 4, list_of(X, 1)), ok(10, 11, list_of(X, 2)), level=level)
    reads = ok(1, 9, list_of(X), Append(X, 1)), ok(2, 9, list_of(X), Append(X, 2))
    assert "lost update" in found(*reads, ok(10, 11, list_of(X, 1, 2)), level=level)


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_of_a_write_that_never_took_effect_is_a_dirty_read(level: Level) -> None:
    lost = unknown(1, Append(X, 1))
    assert "dirty read" in found(ok(1, 2, list_of(X, 7)), level=level)
    assert "dirty read" in found(ok(1, 2, Append(Y, 7)), ok(3, 4, list_of(X, 7), list_of(Y, 7)), level=level)
    assert "dirty read" in found(replace_end(lost), ok(4, 5, list_of(X, 1)), ok(8, 9, list_of(X)), level=level)


def replace_end(one: Transaction) -> Transaction:
    return Transaction(one.number, one.client, one.operations, one.start, 3, one.answer)


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_without_a_write_that_had_ended_is_a_stale_read(level: Level) -> None:
    write = ok(1, 2, Append(X, 1))
    assert found(write, ok(3, 4, list_of(X)), ok(5, 6, list_of(X, 1)), level=level) == {"stale read"}
    insert = ok(1, 2, Insert(X, 1))
    assert found(insert, ok(3, 4, set_of(X)), ok(5, 6, set_of(X, 1)), level=level) == {"stale read"}


@pytest.mark.parametrize("level", IN_ALL)
def test_a_read_of_a_write_that_had_not_begun_is_out_of_real_time(level: Level) -> None:
    assert found(ok(1, 2, list_of(X, 1)), ok(3, 4, Append(X, 1)), level=level) == {"out of real time"}


@pytest.mark.parametrize("level", IN_ALL)
def test_an_element_that_is_there_twice_was_applied_twice(level: Level) -> None:
    assert found(ok(1, 2, Append(X, 1)), ok(3, 4, list_of(X, 1, 1)), level=level) == {"statement applied twice"}
    assert found(ok(1, 2, Insert(X, 1)), ok(3, 4, set_of(X, 1, 1)), level=level) == {"statement applied twice"}
    assert found(ok(1, 2, Add(X, 3)), ok(3, 4, Count(X, 6)), level=level) == {"statement applied twice"}


@pytest.mark.parametrize("level", IN_ALL)
def test_an_element_that_is_missing_in_the_end_is_a_lost_unit_of_work(level: Level) -> None:
    assert found(ok(1, 2, Append(X, 1)), ok(3, 4, list_of(X)), level=level) == {"unit of work lost"}
    assert "unit of work lost" in found(ok(1, 2, Insert(X, 1)), ok(3, 4, set_of(X)), level=level)


@pytest.mark.parametrize("level", IN_ALL)
def test_a_counter_below_the_sum_of_its_additions_has_lost_an_update(level: Level) -> None:
    adds = ok(1, 2, Add(X, 3)), ok(3, 9, Add(X, 5))
    assert found(*adds, ok(4, 5, Count(X, 3)), ok(4, 6, Count(X, 8)), ok(10, 11, Count(X, 8)), level=level) == set()
    assert found(*adds, ok(10, 11, Count(X, 5)), level=level) == {"lost update"}
    assert found(unknown(1, Add(X, 3)), ok(4, 5, Count(X, 0)), ok(6, 7, Count(X, 3)), level=level) == set()


@pytest.mark.parametrize("level", IN_ALL)
def test_a_total_that_changes_is_a_split_transfer(level: Level) -> None:
    transfer = ok(1, 2, Transfer(X, Y, 5))
    assert found(transfer, ok(3, 4, Total("t", 100)), level=level) == set()
    assert found(transfer, ok(3, 4, Total("t", 95)), level=level) == {"split transfer"}


def test_a_write_without_an_answer_may_take_effect_late_or_never() -> None:
    assert found(unknown(1, Append(X, 1)), ok(3, 4, list_of(X)), ok(5, 6, list_of(X, 1))) == set()
    assert found(unknown(1, Append(X, 1)), ok(3, 4, list_of(X))) == set()
    assert "stale read" in found(unknown(1, Append(X, 1)), ok(3, 4, list_of(X, 1)), ok(5, 6, list_of(X)))


class Serial:
    """Executes operations one transaction after the other, with overlapping times around the moment of each."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lists: dict[Key, list[int]] = {}
        self.counters: dict[Key, int] = {}
        self.elements = count(1)

    def history(self, length: int) -> History:
        level = self.chance.choice(IN_ALL)
        transactions = tuple(self.transaction(number) for number in range(length))
        return History(self.shuffled(transactions), {"t": level}, {"t": 100})

    def shuffled(self, transactions: tuple[Transaction, ...]) -> tuple[Transaction, ...]:
        return tuple(self.chance.sample(transactions, len(transactions)))

    def transaction(self, moment: int) -> Transaction:
        answer = self.chance.choices(list(Answer), (8, 1, 1))[0]
        operations = tuple(self.operation(answer) for _ in range(self.chance.randrange(1, 4)))
        if answer is not Answer.OK:
            operations = tuple(each for each in operations if isinstance(each, Append | Insert | Add))
        start, end = 10 * moment - self.chance.randrange(60), 10 * moment + self.chance.randrange(60)
        return Transaction(moment, "a", operations, start, None if answer is Answer.UNKNOWN else end, answer)

    def operation(self, answer: Answer) -> Operation:
        key, applied = Key("t", self.chance.randrange(5)), answer is not Answer.FAILED
        kind = self.chance.choice(("write", "read", "add", "count", "transfer", "total"))
        if kind == "write":
            element = next(self.elements)
            if applied:
                self.lists.setdefault(key, []).append(element)
            return Append(key, element) if key.number % 2 else Insert(key, element)
        if kind == "add":
            self.counters[key] = self.counters.get(key, 0) + applied
            return Add(key, 1)
        reads: dict[str, Operation] = {
            "read": Read(key, self.seen(key), bool(key.number % 2)),
            "count": Count(key, self.counters.get(key, 0)),
            "transfer": Transfer(X, Y, 1),
            "total": Total("t", 100),
        }
        return reads[kind]

    def seen(self, key: Key) -> tuple[int, ...]:
        elements = self.lists.get(key, [])
        return tuple(elements if key.number % 2 else self.chance.sample(elements, len(elements)))


@pytest.mark.parametrize("first", [0, 100, 200])
def test_serial_histories_have_no_anomaly(first: int, seed: int) -> None:
    for number in range(first, first + 100):
        history = Serial(seed + number).history(60)
        assert check(history) == [], f"seed {seed + number}"


def test_serial_histories_with_one_read_of_the_past_have_an_anomaly(seed: int) -> None:
    tried = 0
    for number in range(seed, seed + 100):
        serial = Serial(number)
        history = serial.history(60)
        past = acknowledged_lists(history)
        late = (
            ok(10_000 + 10 * key.number, 10_001 + 10 * key.number, list_of(key, *elements))
            for key in past
            for elements in ((), serial.lists[key])
        )
        if past:
            tried += 1
            assert check(History((*history.transactions, *late), history.levels, history.totals)), f"seed {number}"
    assert tried > 50


def acknowledged_lists(history: History) -> set[Key]:
    """Returns the lists with an element whose write was answered: a write without an answer may take effect late."""
    answered = (each for each in history.transactions if each.answer is Answer.OK)
    return {done.key for each in answered for done in each.operations if isinstance(done, Append)}
