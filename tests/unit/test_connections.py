"""The error of a statement that fails, and the cancellation of connections."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from dbt.adapters.contracts.connection import Connection, ConnectionState, LazyHandle
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.silt.connections import SiltConnectionManager
from dbt.adapters.silt.runs.committed_work import CommittedBatches
from dbt.adapters.silt.runs.current_node import CurrentNode


class AtOnce:
    """Explains no error: the changes of the command are visible at once."""

    @staticmethod
    def explained(error: Exception) -> Exception:
        return error


def test_an_error_of_spark_is_shown_without_the_plan_of_the_query(spark: SparkSession) -> None:
    manager = object.__new__(SiltConnectionManager)
    manager.node = CurrentNode(CommittedBatches())
    manager.publication = AtOnce()  # type: ignore[assignment]
    query = "select 1 as a, 2 as b union all select 3"
    with pytest.raises(DbtDatabaseError) as caught, manager.exception_handler(query):
        spark.sql(query)
    assert "NUM_COLUMNS_MISMATCH" in caught.value.msg
    assert caught.value.msg.startswith("[SILT_INVALID_STATEMENT]")
    assert "Project" not in caught.value.msg
    assert "\n" not in caught.value.msg


class Handle:
    """Remembers that it was cancelled."""

    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


def connection(name: str, state: ConnectionState, handle: Any) -> Connection:
    return Connection(type="silt", name=name, credentials=None, state=state, handle=handle)  # type: ignore[arg-type]


def test_ctrl_c_cancels_open_connections_and_refuses_those_that_wait_for_spark() -> None:
    manager = object.__new__(SiltConnectionManager)
    manager.lock, manager._cancelled = threading.RLock(), []  # type: ignore[assignment]
    handle = Handle()
    waiting = connection("b", ConnectionState.INIT, LazyHandle(lambda _: pytest.fail("it was opened")))
    own = connection("master", ConnectionState.INIT, None)
    manager.thread_connections = {
        ("p", 1): connection("a", ConnectionState.OPEN, handle),
        ("p", 2): waiting,
        manager.get_thread_identifier(): own,
    }
    assert manager.cancel_open() == ["a", "b"]
    assert handle.is_cancelled
    with pytest.raises(DbtRuntimeError, match="stopped before this session opened"):
        manager._check_wanted(waiting)
    manager._check_wanted(own)
