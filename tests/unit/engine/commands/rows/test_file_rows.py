"""The counts of a DELETE and an UPDATE that first search the files: of changed rows, and of rows that are lost."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.commands.rows.delete import delete
from dbt.adapters.silt.engine.commands.rows.file_rows import Limits, Rows
from dbt.adapters.silt.engine.commands.rows.update import update
from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError
from dbt.adapters.silt.engine.kernel.files.file_guard import FileGuard
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.expressions import UNKNOWN
from dbt.adapters.silt.engine.sql.ast import Assignment
from tests.unit.engine.commands.spark_tables import PLAIN, Tables
from tests.unit.engine.place import data_files

SEARCH_FIRST = Limits(at_once=-1)


def run(tables: Tables, log: DeltaLog, verb: str, condition: str) -> Outcome:
    rows, target = Rows("t", condition, UNKNOWN), tables.target(log)
    if verb == "delete":
        return delete(tables.spark, target, rows, PLAIN, SEARCH_FIRST)
    return update(tables.spark, target, [Assignment(("name",), "'new'")], rows, PLAIN, SEARCH_FIRST)


@pytest.mark.parametrize(
    ("condition", "repeatable"),
    [
        ("t.id % 100 = 7 and lower(name) like 'a%' -- the end", True),
        ("id = 1 or name is null", True),
        (None, True),
        ("rand() < 0.5", False),
        ("at < current_timestamp()", False),
        ("at < current_date", False),
        ("a_function_of_the_session(id)", False),
        ("id in (select id from other limit 1)", False),
    ],
)
def test_a_condition_is_repeatable_if_it_depends_on_the_row_alone(condition: str | None, repeatable: bool) -> None:
    assert Rows("t", condition, UNKNOWN).are_repeatable is repeatable


@pytest.mark.parametrize("condition", ["id % 10 = 3", "id % 10 < 5 and rand() < 0.5", "id < 0 and rand() < 0.5"])
@pytest.mark.parametrize("verb", ["delete", "update"])
def test_the_counted_rows_are_the_changed_rows(tables: Tables, verb: str, condition: str) -> None:
    log = tables.made("select id, cast(id as string) as name from range(0, 1000, 1, 2)")
    outcome = run(tables, log, verb, condition)
    after = tables.rows(log)
    if verb == "delete":
        assert outcome.rows_deleted == 1000 - len(after)
    else:
        assert len(after) == 1000 and outcome.rows_updated == sum(name == "new" for _, name in after)
    info = tables.last_commit(log)
    if outcome.attempts:
        assert info.operation_metrics is not None
        touched = 1000 - int(info.operation_metrics["numCopiedRows"])
        assert touched == (outcome.rows_deleted if verb == "delete" else outcome.rows_updated)


@pytest.mark.parametrize("condition", ["id % 10 = 3", "id % 10 = 3 and rand() > -1"])
@pytest.mark.parametrize("verb", ["delete", "update"])
@pytest.mark.in_folders("a file is replaced in its folder")
def test_a_file_with_fewer_rows_than_in_the_log_is_an_error(
    tables: Tables, verb: str, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tables.made("select id, cast(id as string) as name from range(0, 100, 1, 1)")
    (path,) = data_files(log)
    fewer = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(log.store.read(path))).slice(0, 50), fewer)
    log.store.put(path, fewer.getvalue().to_pybytes())
    monkeypatch.setattr(FileGuard, "check", lambda *_: None)
    with pytest.raises(DataFileChangedError):
        run(tables, log, verb, condition)
    assert log.snapshot().version == 0
