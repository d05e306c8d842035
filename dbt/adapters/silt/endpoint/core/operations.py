"""A statement that runs while its client asks for its state, and that the client or a limit can stop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum

from dbt.adapters.silt.endpoint.core.answers import Answer
from dbt.adapters.silt.endpoint.core.house import MAX_SECONDS
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.engine.kernel import errors

_INTERRUPT_SECONDS = 0.1


def stop(ended: threading.Event, interrupt: Callable[[], None]) -> None:
    """Stops a statement, and waits until it has ended.

    Args:
        interrupt: stops the running jobs. It is called repeatedly: a statement runs several jobs, and another may start
            after the last was stopped.
    """
    while not ended.wait(_INTERRUPT_SECONDS):
        interrupt()


def timer(seconds: float, stop_it: Callable[[], None]) -> threading.Timer:
    """Returns a started timer, which calls a function when the time is over, unless it is cancelled before."""
    made = threading.Timer(seconds, stop_it)
    made.daemon = True
    made.start()
    return made


@contextlib.contextmanager
def limited(seconds: float | None, stop_it: Callable[[], None]) -> Iterator[None]:
    """Calls a function if the block takes longer than a limit; None means no limit."""
    made = None if seconds is None else timer(seconds, stop_it)
    try:
        yield
    finally:
        if made is not None:
            made.cancel()


def too_long(seconds: float | None) -> errors.StatementCancelledError:
    """Returns the error of a statement that was stopped because of its time limit."""
    return errors.StatementCancelledError(
        f"the statement ran for more than {seconds:g} seconds, the most that this endpoint or `{MAX_SECONDS}` allows",
        remedy=f"Restrict it, or allow more time: `reset {MAX_SECONDS}`, and `--max-seconds` of the endpoint",
    )


class State(Enum):
    """The state of an operation."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Operation:
    """A statement of a session that runs on a thread of its own.

    Attributes:
        state: its state.
        started, ended: when it was started and when it ended, in seconds since the epoch; 0 until then.
        error: the reason why it failed.
    """

    def __init__(self, session: Session, text: str) -> None:
        self.session, self.text = session, text
        self.state = State.WAITING
        self.started, self.ended = time.time(), 0.0
        self._answer: Answer | None = None
        self.error: Exception | None = None
        self._done, self._cancelled = threading.Event(), threading.Event()
        self._why = errors.StatementCancelledError("the statement was cancelled, and has committed nothing")
        threading.Thread(target=self._run, name="silt-statement", daemon=True).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it ends; returns whether it has ended."""
        return self._done.wait(seconds)

    def result(self) -> Answer:
        """Returns the answer of an operation that has ended.

        Raises:
            SiltError: if it failed or was cancelled.
        """
        self._done.wait()
        if self.error is not None:
            raise self.error
        assert self._answer is not None
        return self._answer

    def cancel(self) -> None:
        """Stops it, and waits until it has stopped; without effect if it has ended."""
        self._cancelled.set()
        stop(self._done, lambda: self.session.interrupt() if self.state is State.RUNNING else None)

    def _exceed(self) -> None:
        self._why = too_long(self.session.limits.most_seconds)
        self.cancel()

    def _run(self) -> None:
        try:
            with self.session.busy():
                if self._cancelled.is_set():
                    raise errors.StatementCancelledError("the statement was cancelled before it began")
                self.state = State.RUNNING
                with limited(self.session.limits.most_seconds, self._exceed):
                    self._answer = self.session.run(self.text)
            self.state = State.FINISHED
        except Exception as error:
            is_cancelled = self._cancelled.is_set() and not isinstance(error, errors.CommitStateUnknownError)
            self.state = State.CANCELLED if is_cancelled else State.FAILED
            self.error = error
            if is_cancelled and not isinstance(error, errors.StatementCancelledError):
                self.error = self._why
        finally:
            self.ended = time.time()
            self._done.set()
