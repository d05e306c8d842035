"""Runs a statement, and retries it on a fresh snapshot after a lost conflict or a lost executor."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.clock import Clock, back_off
from dbt.adapters.silt.engine.sql.ast import Commit, Statement
from dbt.adapters.silt.engine.statements import failures
from dbt.adapters.silt.engine.statements.route import route
from dbt.adapters.silt.engine.statements.steps.context import Context, Result
from dbt.adapters.silt.engine.statements.steps.on_table import is_applied


class RetryQueue:
    """A lock for each table. Thread-safe."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # locks in use
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def of(self, table: str | None) -> Iterator[None]:
        """Blocks every other loser of a conflict over the table during the `with` block."""
        with self._guard:
            lock = self._locks.setdefault(table or "", threading.Lock())
        with lock:
            yield


_FIRST_WAIT_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 5.0


@dataclass(frozen=True)
class ConflictRetry:
    """Retries statements that lost a conflict, or rows together with an executor.

    Attributes:
        attempts: maximum number of runs of a statement, including the first.
        clock: time and randomness.
        queue: queue of the statements that lost a conflict.
    """

    attempts: int
    clock: Clock
    queue: RetryQueue

    def run(
        self, statement: Statement, settings: WriteSettings, context_with: Callable[[WriteSettings], Context]
    ) -> Result:
        """Runs the statement, and retries it within the bound if its user would do so.

        If the winner committed the same unit of work, the next run is skipped, whatever error the loser failed with.

        Args:
            context_with: creates the context of a run.
        """
        attempt = 1
        with contextlib.ExitStack() as turn:
            while True:
                context = context_with(_of_attempt(settings, attempt))
                try:
                    with failures.mapped(context.namespace, statement):
                        result = route(statement, context)
                except errors.CommitStateUnknownError:
                    raise
                except errors.SiltError as error:
                    if attempt > self.attempts or not is_applied(context, statement):
                        if not self._may_run_again(error, statement, context, attempt):
                            named = failures.named(context.catalog, error)
                            if named is error:
                                raise
                            raise named from error
                        back_off(self.clock, attempt, _FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
                        if attempt == 1:
                            turn.enter_context(self.queue.of(error.table))
                    attempt += 1
                else:
                    return _with_attempts(result, attempt)

    def run_all(self, run: Callable[[], Result]) -> Result:
        """Runs a statement together with the commit of its own transaction, again after a lost conflict."""
        attempt = 1
        while True:
            try:
                return _with_attempts(run(), attempt)
            except errors.ConcurrentModificationError as error:
                if attempt >= self.attempts or isinstance(error, errors.ConcurrentDropError):
                    raise
                back_off(self.clock, attempt, _FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)
                attempt += 1

    def _may_run_again(self, error: errors.SiltError, statement: Statement, context: Context, attempt: int) -> bool:
        if isinstance(statement, Commit):
            return False  # the transaction has ended
        if isinstance(error, errors.ExecutorLostError):
            return attempt < self.attempts
        if not isinstance(error, errors.ConcurrentModificationError) or isinstance(error, errors.ConcurrentDropError):
            return False
        if isinstance(error, errors.ConcurrentCreateError) and not statement.accepts_existing_table:
            return False
        return attempt < self.attempts and not _rests_on_earlier_reads(context, error.table)


def _rests_on_earlier_reads(context: Context, table: str | None) -> bool:
    """Returns whether an earlier statement of the unit of work read the table: retrying the write is then useless."""
    read_history = context.resolver.read_history
    return read_history is not None and any(log.name == table for log in read_history.first)


def _of_attempt(settings: WriteSettings, attempt: int) -> WriteSettings:
    return settings if attempt == 1 else replace(settings, commit=replace(settings.commit, statement_attempt=attempt))


def _with_attempts(result: Result, attempts: int) -> Result:
    if result.outcome is None or attempts == 1:
        return result
    return replace(result, outcome=replace(result.outcome, statement_attempts=attempts))
