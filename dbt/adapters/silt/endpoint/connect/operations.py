"""The statements that the engine runs for clients of Spark Connect: each once, with answers that can be asked again.

A client that lost its connection asks again, by the operation's id, for the answers after the last answer that it has.
If it is not sure that its request arrived, it sends the request again, with the same id. So a statement runs to its end
on a thread of its own, and its operation is remembered after the client has released the answers.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from pyspark import errors as spark
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.endpoint.connect.backend import DETAILS, Failed, encoded, forget_oldest
from dbt.adapters.silt.endpoint.core.answers import Problem, problem_of
from dbt.adapters.silt.endpoint.core.operations import stop
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.status_lines.line import Stages

_OF_SPARK: Final = (
    (spark.ParseException, "org.apache.spark.sql.catalyst.parser.ParseException"),
    (spark.AnalysisException, "org.apache.spark.sql.AnalysisException"),
    (spark.NumberFormatException, "java.lang.NumberFormatException"),
    (spark.IllegalArgumentException, "java.lang.IllegalArgumentException"),
    (spark.ArithmeticException, "java.lang.ArithmeticException"),
    (spark.ArrayIndexOutOfBoundsException, "java.lang.ArrayIndexOutOfBoundsException"),
    (spark.DateTimeException, "java.time.DateTimeException"),
    (spark.UnsupportedOperationException, "java.lang.UnsupportedOperationException"),
    (spark.SparkRuntimeException, "org.apache.spark.SparkRuntimeException"),
)
_CLASSES: Final = (
    (errors.StatementSyntaxError, "org.apache.spark.sql.catalyst.parser.ParseException"),
    (errors.UnsupportedStatementError, "java.lang.UnsupportedOperationException"),
    (errors.InvalidStatementError, "org.apache.spark.sql.AnalysisException"),
    (errors.ExternalPathError, "org.apache.spark.sql.AnalysisException"),
    (errors.DataRejectedError, "org.apache.spark.SparkRuntimeException"),
    (Exception, "org.apache.spark.SparkException"),
)
"""The classes of Spark's errors from which PySpark makes its exceptions; the more special kinds come first. An error
that Spark has raised keeps its class.
"""

_MOST: Final = 3000
"""The longest message: gRPC limits the description of a failure to 8 KiB."""

Work: TypeAlias = Callable[[], list[pb.ExecutePlanResponse]]
"""Runs a statement, and returns its answers without ids; raises Failed."""

_MOST_REMEMBERED: Final = 10_000
_WAIT_SECONDS: Final = 60.0
"""The longest time without an answer: a reattachable client asks again then, so that its connection is not idle."""
_PROGRESS_SECONDS: Final = 1.0


@dataclass
class Operation:
    """A statement that runs or has run.

    Args:
        ids: the ids of the session and the operation, for each answer.
        can_reattach: whether the client asks again if its connection is lost.
        tags: the client's own names for it.
        progress: returns the progress of its jobs.
    """

    ids: pb.ExecutePlanResponse
    can_reattach: bool
    tags: tuple[str, ...] = ()
    progress: Callable[[], Stages] = Stages
    _answers: list[pb.ExecutePlanResponse] = field(default_factory=list)
    _failure: Failed | None = None
    _released: bool = False
    _why: errors.StatementCancelledError | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def is_cancelled(self) -> bool:
        """Whether its client or a limit has stopped it."""
        return self._why is not None

    @property
    def state(self) -> str:
        """The name of its state in Spark."""
        if not self.has_ended:
            return "RUNNING"
        if self._failure is None:
            return "SUCCEEDED"
        return "CANCELLED" if self.is_cancelled else "FAILED"

    def cancel(self, interrupt: Callable[[], None], why: errors.StatementCancelledError | None = None) -> None:
        """Stops it, unless it ends before: a commit that has begun is completed.

        Args:
            interrupt: stops the running jobs.
            why: the error for its client, by default that it was cancelled.
        """
        self._why = why or errors.StatementCancelledError("the statement was cancelled, and has committed nothing")
        threading.Thread(target=stop, args=(self._ended, interrupt), name="silt-connect-interrupt", daemon=True).start()

    def failure(self, error: Exception, catalog: Callable[[], Catalog]) -> Failed:
        """Returns the failure that tells its client of an error, or why it was stopped."""
        is_stopped = self._why is not None and not isinstance(error, errors.CommitStateUnknownError)
        return of_error(self._why if self._why is not None and is_stopped else error, catalog)

    def run(self, work: Work) -> None:
        """Runs the statement, and keeps its answers or its failure."""
        try:
            self._answers = [self._with_ids(each) for each in work()]
            if self.can_reattach:
                complete = pb.ExecutePlanResponse.ResultComplete()
                self._answers.append(self._with_ids(pb.ExecutePlanResponse(result_complete=complete)))
        except Failed as failure:
            self._failure = failure
        finally:
            self._ended.set()

    def answers(self, after: str = "") -> Iterator[bytes]:
        """Waits for the end, tells the progress meanwhile, and yields the answers after an answer, by its id.

        Raises:
            Failed: if the statement has failed, or the client has released its answers.
        """
        told = self.progress()
        waits = 0
        while not self._ended.wait(_PROGRESS_SECONDS):
            waits += 1
            if self.can_reattach and waits * _PROGRESS_SECONDS >= _WAIT_SECONDS:
                return  # without the last answer, so that the client asks again
            now = self.progress()
            if now != told:
                yield encoded(self._with_ids(_of_progress(now)))
            told = now
        if self._released:
            raise not_found("OPERATION_ABANDONED", self.ids.operation_id)
        if self._failure is not None:
            raise self._failure
        known = [each.response_id for each in self._answers]
        first = known.index(after) + 1 if after in known else 0
        yield from (encoded(each) for each in self._answers[first:])

    def release(self) -> None:
        """Forgets the answers: the client has all of them."""
        if self.has_ended:
            self._answers, self._released = [], True

    def _with_ids(self, answer: pb.ExecutePlanResponse) -> pb.ExecutePlanResponse:
        answer.MergeFrom(self.ids)
        answer.response_id = str(uuid.uuid4())
        return answer


def _of_progress(stages: Stages) -> pb.ExecutePlanResponse:
    """Returns the answer that tells the progress of a statement, as of a single stage."""
    kind = pb.ExecutePlanResponse.ExecutionProgress
    told = kind.StageInfo(
        num_tasks=stages.tasks, num_completed_tasks=stages.tasks_done, input_bytes_read=stages.size, done=False
    )
    return pb.ExecutePlanResponse(execution_progress=kind(stages=[told]))


@dataclass
class Operations:
    """The operations of a session. Thread-safe."""

    _known: dict[str, Operation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, operation_id: str) -> Operation | None:
        """Returns the operation with an id, unless the server behind the endpoint runs it."""
        with self._lock:
            return self._known.get(operation_id)

    def started(self, operation: Operation, work: Work) -> Operation:
        """Starts an operation, or returns the operation with the same id that has been started before."""
        with self._lock:
            known = self._known.setdefault(operation.ids.operation_id, operation)
            forget_oldest(self._known, _MOST_REMEMBERED)
        if known is operation:
            threading.Thread(target=operation.run, args=(work,), name="silt-connect-statement", daemon=True).start()
        return known

    def running(self) -> list[Operation]:
        """Returns the operations that have not ended."""
        with self._lock:
            return [each for each in self._known.values() if not each.has_ended]


def not_found(what: str, name: str) -> Failed:
    """Returns the failure of a call about an unknown or ended operation or session, in the words of Spark.

    Args:
        what: the last part of Spark's error class.
    """
    text = f"[INVALID_HANDLE.{what}] The handle {name} is invalid. SQLSTATE: HY000"
    return _failed(Problem(text, "", f"INVALID_HANDLE.{what}", "HY000"), Exception())


def not_cloned(what: str, why: str) -> Failed:
    """Returns the failure of a clone of a session.

    Args:
        what: the last part of Spark's error class.
        why: the sentence about it.
    """
    condition = f"INVALID_CLONE_SESSION_REQUEST.{what}"
    text = f"[{condition}] Invalid session clone request. {why}. SQLSTATE: 42K04"
    return _failed(Problem(text, "", condition, "42K04"), Exception())


def of_error(error: Exception, catalog: Callable[[], Catalog]) -> Failed:
    """Returns the failure that tells a client of an error of the engine or of Spark.

    Args:
        catalog: returns the catalog, which names the table if Spark has found a damaged file.
    """
    if isinstance(error, Failed):
        return error
    return _failed(problem_of(error, catalog), error)


def _failed(problem: Problem, error: Exception) -> Failed:
    text = problem.message if len(problem.message) <= _MOST else f"{problem.message[:_MOST]}..."
    java = next((name for kind, name in _OF_SPARK if isinstance(problem.of_spark, kind)), None)
    java = java or next(name for kind, name in _CLASSES if isinstance(error, kind))
    told = {"classes": json.dumps([java]), "errorClass": problem.condition, "sqlState": problem.state}
    info = error_details_pb2.ErrorInfo(reason=java, domain="org.apache.spark", metadata=told)
    packed = any_pb2.Any()
    packed.Pack(info)
    status = status_pb2.Status(code=code_pb2.INTERNAL, message=text, details=[packed])
    return Failed(grpc.StatusCode.INTERNAL, text, [(DETAILS, status.SerializeToString())])
