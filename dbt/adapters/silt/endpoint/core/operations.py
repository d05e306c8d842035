"""A statement that runs while its client asks for its state, and that the client can cancel."""

from __future__ import annotations

import threading
import time
from enum import Enum

from dbt.adapters.silt.endpoint.core.answers import Answer
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.engine.kernel import errors

_INTERRUPT_SECONDS = 0.1


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
        """Stops it, and waits until it has stopped; without effect if it has ended.

        Repeatedly: a statement runs several jobs of Spark, and another may start after the last was stopped.
        """
        self._cancelled.set()
        while not self._done.wait(_INTERRUPT_SECONDS):
            if self.state is State.RUNNING:
                self.session.interrupt()

    def _run(self) -> None:
        try:
            with self.session.busy():
                if self._cancelled.is_set():
                    raise errors.StatementCancelledError("the statement was cancelled before it began")
                self.state = State.RUNNING
                self._answer = self.session.run(self.text)
            self.state = State.FINISHED
        except Exception as error:
            is_cancelled = self._cancelled.is_set() and not isinstance(error, errors.CommitStateUnknownError)
            self.state = State.CANCELLED if is_cancelled else State.FAILED
            self.error = error
            if is_cancelled and not isinstance(error, errors.StatementCancelledError):
                self.error = errors.StatementCancelledError("the statement was cancelled, and has committed nothing")
        finally:
            self.ended = time.time()
            self._done.set()
