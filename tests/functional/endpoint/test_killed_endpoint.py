"""A client that sends its statements again after the endpoint was killed applies each of them once."""

from __future__ import annotations

import os
import signal
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
WAITING: Final = (TOperationState.INITIALIZED_STATE, TOperationState.PENDING_STATE)


def night(served: dict[str, Any], killed_at: int | None) -> int:
    """Sends the statements of a run, and kills the endpoint while it runs one; returns the number that it skipped."""
    given = {"auth": "LDAP", "username": "ann", "password": TOKEN, "configuration": {"silt.run_id": "night"}}
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
    connection.close()
    return skipped


def test_statements_of_a_killed_endpoint_are_applied_once(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    for killed_at in (2, 4, 6):
        with endpoint(warehouse) as served:
            night(served, killed_at)
    with endpoint(warehouse) as served:
        skipped = night(served, None)
        with hive.connect("127.0.0.1", served["port"], auth="LDAP", username="a", password=TOKEN) as connection:
            cursor = connection.cursor()
            cursor.execute("select id, n from t order by id")
            assert cursor.fetchall() == [(1, 22), (2, 40), (11, 22), (12, 40)]
    assert skipped >= 5
