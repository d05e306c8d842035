"""A job that consumes a queue: its table and its position in the queue never contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.engine.house import House

JOB = "queue-consumer"


class Crash(Exception):
    """Simulates the end of the process."""


class Queue:
    """Messages by offset, kept forever."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def send(self, count: int) -> None:
        self.messages += [f"message {len(self.messages) + number}" for number in range(count)]


@pytest.fixture
def queue() -> Queue:
    queue = Queue()
    queue.send(6)
    return queue


def consume_by_file(house: House, queue: Queue, checkpoint: Path, crash: bool = False) -> bool:
    """Writes the next three messages and then saves the offset after them; returns whether they were already written.

    The content of a batch depends on its number alone: the version identifies these three messages.
    """
    batch = int(checkpoint.read_text()) if checkpoint.exists() else 0
    rows = [(text,) for text in queue.messages[3 * batch : 3 * batch + 3]]
    done = house.warehouse.write(
        house.warehouse.spark.createDataFrame(rows, "text string"), "messages", txn=(JOB, batch)
    )
    if crash:
        raise Crash
    checkpoint.write_text(str(batch + 1))
    return done.skipped


def consume_by_table(house: House, queue: Queue, crash: bool = False) -> int:
    """Writes all messages that the table does not hold yet, by the version recorded in the table; returns their
    number.
    """
    last = house.warehouse.transaction_version("messages", JOB)
    first, end = (0 if last is None else last + 1), len(queue.messages)
    if first == end:
        return 0
    rows = house.warehouse.spark.createDataFrame([(text,) for text in queue.messages[first:end]], "text string")
    house.warehouse.write(rows, "messages", txn=(JOB, end - 1))
    if crash:
        raise Crash
    return end - first


def consumed(house: House) -> list[str]:
    return sorted(str(text) for (text,) in house.rows("select text from messages"))


@pytest.mark.connect
def test_a_consumer_that_crashes_between_its_table_and_its_checkpoint_writes_each_message_once(
    house: House, queue: Queue, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "offset"
    assert not consume_by_file(house, queue, checkpoint)
    with pytest.raises(Crash):
        consume_by_file(house, queue, checkpoint, crash=True)
    assert (len(consumed(house)), checkpoint.read_text()) == (6, "1")
    queue.send(3)
    assert [consume_by_file(house.another(), queue, checkpoint) for _ in range(2)] == [True, False]
    assert consumed(house) == queue.messages


@pytest.mark.connect
def test_a_consumer_that_uses_the_transactions_version_as_its_position_needs_no_checkpoint(
    house: House, queue: Queue
) -> None:
    with pytest.raises(Crash):
        consume_by_table(house, queue, crash=True)
    queue.send(3)
    assert [consume_by_table(house.another(), queue) for _ in range(2)] == [3, 0]
    assert consumed(house) == queue.messages
