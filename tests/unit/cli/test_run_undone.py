"""`silt run` and `silt rollback` agree on the runs that are rolled back."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction import restore
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings
from dbt.adapters.silt.engine.kernel.transaction.restore import RestorePoint
from tests.unit.cli.house import House, rows

AsJson = Callable[..., Any]

UNIT = ("silt/shop/model.shop.orders/b/main", 1)


@pytest.fixture
def orders(house: House) -> DeltaLog:
    """A table that another writer created, and to which run `b` has added rows in version 1."""
    log = house.create("main.orders", rows(0, 10))
    house.running("b").append(log, rows(10, 5), UNIT)
    return log


def rewrite(log: DeltaLog, version: int, old: str, new: str) -> None:
    """Changes the text of a commit, as if another engine had written it; keeps its time."""
    path = log.store.local_path(commit_path(version))
    assert path is not None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text
    modified = os.stat(path).st_mtime_ns
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    os.utime(path, ns=(modified, modified))


def restore_to(log: DeltaLog, point: RestorePoint, keeps_units: bool = False) -> int:
    """Restores the table by hand; returns the version. Other engines' RESTORE keeps the units of work
    that it undoes.
    """
    prepared = restore.prepare(log, log.snapshot(), point)
    if keeps_units:
        prepared = replace(prepared, changes=replace(prepared.changes, forgotten=()))
    return restore.commit(log, prepared, CommitSettings()).version


def rolled_back_by(as_json: AsJson) -> list[int | None]:
    return [each["rolled_back_by"] for each in as_json("run", "b")["commits"]]


def test_a_restore_to_a_version_undoes_the_run_for_both_commands(
    house: House, as_json: AsJson, orders: DeltaLog
) -> None:
    house.restore(orders, 0)
    assert rolled_back_by(as_json) == [2]
    assert as_json("rollback", "b", "--dry-run")["tables"] == []


def test_another_engines_restore_that_keeps_the_units_undoes_no_run(as_json: AsJson, orders: DeltaLog) -> None:
    version = restore_to(orders, RestorePoint(0), keeps_units=True)
    rewrite(orders, version, '"engineInfo":"dbt-silt/', '"engineInfo":"Apache-Spark/4.0.0 Delta-Lake/')
    refused = as_json("rollback", "b", "--dry-run", code=1)
    assert [(each["version"], each["operation"]) for each in refused["later_commits"]] == [(2, "RESTORE")]
    assert rolled_back_by(as_json) == [None]


def test_a_restore_to_a_time_means_the_logs_version_at_that_time(as_json: AsJson, orders: DeltaLog) -> None:
    # These are remains of in-commit timestamps that were disabled later: the times are the files' again.
    rewrite(orders, 1, '"commitInfo":{', '"commitInfo":{"inCommitTimestamp":4102444800000,')
    orders = DeltaLog(orders.store, orders.name)
    moment = datetime.fromtimestamp(orders.snapshot().timestamp / 1000, timezone.utc).isoformat(" ", "milliseconds")
    restore_to(orders, RestorePoint(1, moment))
    assert [each["to_version"] for each in as_json("rollback", "b", "--dry-run")["tables"]] == [0]
    assert rolled_back_by(as_json) == [None]


@pytest.mark.parametrize("said", ['"version":2', '"version":99'])
def test_a_restore_to_a_later_version_undoes_nothing(as_json: AsJson, orders: DeltaLog, said: str) -> None:
    version = restore_to(orders, RestorePoint(0), keeps_units=True)
    rewrite(orders, version, '"version":0', said)
    assert rolled_back_by(as_json) == [None]
