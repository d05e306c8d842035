"""A client that sends its statements again after the endpoint was killed applies each of them once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any, Final

from pyhive import hive
from TCLIService.ttypes import TOperationState

from tests.functional.endpoint.served import TOKEN, endpoint

STATEMENTS: Final = [
    "create table if not exists t (id bigint, n bigint)",
    "insert into t values (1, 10), (2, 20)",
    "insert into t values (3, 30)",
    "merge into t using (select 1 as id) s on t.id = s.id when matched then update set n = n + 1",
    "insert into t select id + 10, n from t where id < 3",
    "delete from t where id = 3",
    "update t set n = n * 2",
]
RESULT: Final = [(1, 22), (2, 40), (11, 22), (12, 40)]
WAITING: Final = (TOperationState.INITIALIZED_STATE, TOperationState.PENDING_STATE)


END: Final = len(STATEMENTS)
"""Not a statement: the end of the session."""


def night(served: dict[str, Any], killed_at: int | None, **settings: str) -> int:
    """Sends the statements of a run, and kills the endpoint while it runs one, or while it ends the session; returns
    the number of statements that it skipped.
    """
    configuration = {"silt.run_id": "night", **settings}
    given = {"auth": "LDAP", "username": "ann", "password": TOKEN, "configuration": configuration}
    connection, skipped = hive.connect("127.0.0.1", served["port"], **given), 0
    for number, statement in enumerate(STATEMENTS):
        cursor = connection.cursor()
        cursor.execute(statement, async_=number == killed_at)
        if number == killed_at:
            while cursor.poll().operationState in WAITING:
                pass
            os.kill(served["pid"], signal.SIGKILL)
            return skipped
        skipped += bool((cursor.fetchone() or [False])[-1])
    if killed_at == END:
        closing = threading.Thread(target=close, args=(connection,))
        closing.start()
        os.kill(served["pid"], signal.SIGKILL)
        closing.join()
    else:
        connection.close()
    return skipped


def close(connection: Any) -> None:
    """Ends a session whose endpoint may be killed meanwhile."""
    with contextlib.suppress(Exception):
        connection.close()


def rows(served: dict[str, Any], text: str) -> list[Any]:
    with hive.connect("127.0.0.1", served["port"], auth="LDAP", username="a", password=TOKEN) as connection:
        cursor = connection.cursor()
        cursor.execute(text)
        return list(cursor.fetchall())


def test_statements_of_a_killed_endpoint_are_applied_once(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    for killed_at in (2, 4, 6):
        with endpoint(warehouse) as served:
            night(served, killed_at)
    with endpoint(warehouse) as served:
        skipped = night(served, None)
        assert rows(served, "select id, n from t order by id") == RESULT
    assert skipped >= 5


def test_a_killed_run_that_is_published_at_its_end_is_published_whole_and_once(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    publish = {"silt.publish": "after_run"}
    for killed_at in (3, 5, END, END):
        with endpoint(warehouse) as served:
            if killed_at in (3, 5):
                assert rows(served, "show tables in main") == []
            night(served, killed_at, **publish)
    with endpoint(warehouse) as served:
        skipped = night(served, None, **publish)
        assert rows(served, "select id, n from t order by id") == RESULT
        assert night(served, None, **publish) == len(STATEMENTS)
        assert rows(served, "select id, n from t order by id") == RESULT
    assert skipped >= len(STATEMENTS) - 1
