"""Limits the operations that the server behind the endpoint runs for a session: their time, and the rows of results."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.endpoint.connect.backend import Failed
from dbt.adapters.silt.endpoint.core.house import Limits, too_large
from dbt.adapters.silt.endpoint.core.operations import timer, too_long
from dbt.adapters.silt.engine.commands.spark.errors import SPARKS

_BATCH: Final = pb.ExecutePlanResponse.DESCRIPTOR.fields_by_name["arrow_batch"].number
_COUNT: Final = pb.ExecutePlanResponse.ArrowBatch.DESCRIPTOR.fields_by_name["row_count"].number
_START: Final = pb.ExecutePlanResponse.ArrowBatch.DESCRIPTOR.fields_by_name["start_offset"].number
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5
"""The kinds of fields in a message of protobuf."""


@dataclass
class LimitedOperations:
    """The running operations of a session on the server. Thread-safe.

    Args:
        limits: returns the limits of the session, as of now.
        interrupt: stops an operation, by its id.
    """

    limits: Callable[[], Limits]
    interrupt: Callable[[str], object]
    _timers: dict[str, threading.Timer] = field(default_factory=dict)
    _too_long: dict[str, float] = field(default_factory=dict)

    def started(self, operation_id: str) -> None:
        """Begins the time of an operation, which ends with `ended`, or when it is over."""
        most = self.limits().most_seconds
        if most is not None and operation_id not in self._timers:
            self._timers[operation_id] = timer(most, lambda: self._exceed(operation_id, most))

    def ended(self, operation_id: str) -> None:
        """Ends the time of an operation, whose client has all answers."""
        self._too_long.pop(operation_id, None)
        running = self._timers.pop(operation_id, None)
        if running is not None:
            running.cancel()

    def answers(self, operation_id: str, answers: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the answers of an operation.

        Raises:
            ResultTooLargeError: if there are more rows than allowed.
            StatementCancelledError: if it has run for too long.
            Failed: of the answers.
        """
        most = self.limits().most_streamed_rows
        try:
            for each in answers:
                if most is not None and rows_until(each) > most:
                    self._stop(operation_id)
                    raise too_large(most)
                yield each
        except Failed as failure:
            if operation_id in self._too_long:
                raise too_long(self._too_long[operation_id]) from failure
            raise

    def _exceed(self, operation_id: str, most: float) -> None:
        self._too_long[operation_id] = most
        self._stop(operation_id)

    def _stop(self, operation_id: str) -> None:
        with contextlib.suppress(*SPARKS):  # a Spark that has ended runs nothing
            self.interrupt(operation_id)


def rows_until(answer: bytes) -> int:
    """Returns how many rows a client has after an answer, if it contains rows; else 0. The rows are not copied.

    Raises:
        DecodeError: if it is not an answer.
    """
    for number, value in _fields(memoryview(answer)):
        if number == _BATCH and isinstance(value, memoryview):
            found = {name: count for name, count in _fields(value) if isinstance(count, int)}
            return found.get(_START, 0) + found.get(_COUNT, 0)
    return 0


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields the number and the value of each field of a message, without copying it."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
        elif kind == _SIZED:
            size, at = _varint(message, at)
            yield number, message[at : at + size]
            at += size
        elif kind in (_EIGHT, _FOUR):
            at += 8 if kind == _EIGHT else 4
        else:
            raise DecodeError("an answer has a field of an unknown kind")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Returns a number of variable length, and the position after it."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise DecodeError("an answer ends within a number")
