"""TRUNCATE: removes all files without reading them."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.commands.rows.delete import truncate
from dbt.adapters.silt.engine.kernel.errors import ConcurrentAppendError
from tests.unit.engine.commands.spark_tables import PLAIN, Tables


def test_truncate_removes_every_row_without_reading_a_file(tables: Tables) -> None:
    log = tables.made("select id from range(5)")
    target = tables.target(log)
    for name in tables.data_files(log):
        log.store.put(name, b"no Parquet")
    outcome = truncate(target, PLAIN)
    assert (outcome.rows_deleted, outcome.version) == (5, 1)
    assert tables.rows(log) == []
    assert tables.last_commit(log).operation == "TRUNCATE"


def test_truncate_conflicts_with_rows_that_were_committed_while_it_ran(tables: Tables) -> None:
    log = tables.made("select id from range(5)")
    target = tables.target(log)
    tables.append(log, "select 9L")
    with pytest.raises(ConcurrentAppendError):
        truncate(target, PLAIN)
    assert len(tables.rows(log)) == 6
