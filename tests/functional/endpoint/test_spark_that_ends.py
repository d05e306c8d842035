"""The Spark behind the Thrift door ends: the sessions on it are told, and the next session has another Spark."""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyhive import exc, hive
from TCLIService.ttypes import TOperationState

from dbt.adapters.silt.kept_spark import listing
from tests import kept_sparks
from tests.functional.endpoint.served import TOKEN, endpoint

SLOW = "insert into t select count(*) from range(10000000) a cross join range(1000000) b"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the kept Sparks of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def connect(served: dict[str, Any]) -> hive.Connection:
    return hive.connect("127.0.0.1", served["port"], auth="LDAP", username="ann", password=TOKEN)


def rows(connection: hive.Connection, text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


def java_of(served: dict[str, Any], cache: Path) -> int:
    """Returns the id of the Java process of the endpoint's Spark."""
    for kept in listing.running(kept_sparks.folder(cache)):
        return kept.record.java
    children = Path(f"/proc/{served['pid']}/task").glob("*/children")
    found = {int(each) for path in children for each in path.read_text().split()}
    [java] = [each for each in found if b"java" in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0")[0]]
    return java


def until(cursor: hive.Cursor, states: tuple[int, ...]) -> Any:
    """Waits until a statement has one of these states, and returns the answer that tells it."""
    deadline = time.monotonic() + 120
    while (told := cursor.poll()).operationState not in states:
        assert time.monotonic() < deadline
    return told


@pytest.mark.kept
@pytest.mark.parametrize("options", [(), ("--connect-port", "0")], ids=["embedded", "kept"])
def test_a_spark_that_is_killed_ends_its_sessions_and_the_next_session_has_another(
    tmp_path: Path, cache: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "warehouse" / "main").mkdir(parents=True)
    try:
        with endpoint(tmp_path / "warehouse", *options) as served, ExitStack() as until_closed:
            first = until_closed.enter_context(connect(served))
            rows(first, "create table t (id bigint)")
            cursor = first.cursor()
            cursor.execute(SLOW, async_=True)
            until(cursor, (TOperationState.RUNNING_STATE,))
            os.kill(java_of(served, cache), signal.SIGKILL)
            told = until(cursor, (TOperationState.ERROR_STATE,))
            assert (told.sqlState, "[SILT_SPARK_ENDED]" in told.errorMessage) == ("08006", True)
            second = until_closed.enter_context(connect(served))
            assert rows(second, "insert into t values (1)")[0][1] == 1
            assert rows(second, "select id + 1 from t") == [(2,)]
            with pytest.raises(exc.OperationalError, match="SILT_SPARK_ENDED"):
                rows(first, "insert into t values (2)")
            assert rows(second, "select count(*) from t") == [(1,)]
    finally:
        kept_sparks.stop_all(cache)
