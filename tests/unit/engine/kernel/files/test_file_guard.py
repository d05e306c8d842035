"""A data file other than the one that the log names is refused before any of its rows counts; an
intact file never is.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.kernel.errors import DataFileChangedError
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, FileGuard, first_changed
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from tests.unit.cli.house import House, rows


@pytest.fixture
def orders(tmp_path: Path) -> DeltaLog:
    """A table of three files."""
    house = House(tmp_path / "house")
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 10))
    house.append(log, rows(20, 10))
    return log


def check(log: DeltaLog, guard: FileGuard | None = None) -> None:
    snapshot = log.snapshot()
    (guard or FileGuard()).check(log.store, snapshot.files, Content(snapshot.metadata), log.name, snapshot.version)


def check_each(log: DeltaLog, guard: FileGuard | None = None) -> None:
    """Checks the files one by one."""
    snapshot = log.snapshot()
    found = guard or FileGuard()
    for add in snapshot.add_files():
        found.check_files(log.store, [add], Content(snapshot.metadata), log.name, snapshot.version)


both = pytest.mark.parametrize("check", [check, check_each])


def file_of(log: DeltaLog, number: int = 1) -> Path:
    return Path(log.store.root) / log.snapshot().files["path"].to_pylist()[number]


def other_columns(path: Path) -> None:
    """Returns a file of the same size in which one column has another name."""
    path.write_bytes(path.read_bytes().replace(b"name", b"nome"))


@both
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.write_bytes(b""), "has 0 bytes, but the log says"),
        (lambda path: path.write_bytes(path.read_bytes() + b"more"), "bytes, but the log says"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, but the log says"),
        (other_columns, "lacks `name`, for which the log states values"),
    ],
    ids=["empty", "longer", "shorter", "other columns"],
)
def test_a_file_that_differs_from_the_log_is_refused(
    orders: DeltaLog, damage: Callable[[Path], object], said: str, check: Callable[[DeltaLog], None]
) -> None:
    check(orders)
    path = file_of(orders)
    damage(path)
    with pytest.raises(DataFileChangedError) as raised:
        check(orders)
    message = str(raised.value)
    assert said in message and path.name in message and "silt.main.orders@v2" in message and "`silt check`" in message
    assert raised.value.details == {"path": str(path)}


def test_a_different_row_count_is_found_in_the_footer(orders: DeltaLog) -> None:
    snapshot = orders.snapshot()
    stats = [text.replace('"numRecords":10', '"numRecords":11') for text in snapshot.files["stats"].to_pylist()]
    files = snapshot.files.set_column(4, "stats", pa.array(stats, pa.string()))
    found = first_changed(orders.store, files, snapshot.metadata, orders.name, snapshot.version)
    assert "has 10 rows, but the log says 11" in str(found)


@both
def test_a_missing_file_is_left_to_its_reader(orders: DeltaLog, check: Callable[[DeltaLog], None]) -> None:
    file_of(orders).unlink()
    check(orders)


@both
def test_a_copied_table_is_intact_and_its_footers_are_read_once(
    orders: DeltaLog, tmp_path: Path, check: Callable[[DeltaLog, FileGuard], None]
) -> None:
    shutil.copytree(orders.store.root, tmp_path / "copy", copy_function=shutil.copyfile)
    copied = DeltaLog(LocalStore(tmp_path / "copy"), "copy")
    guard = FileGuard()
    check(copied, guard)
    # The size and time are restored: the cached footer is used.
    path = file_of(copied)
    status = path.stat()
    other_columns(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    check(copied, guard)
    with pytest.raises(DataFileChangedError, match="lacks `name`"):
        check(copied)  # type: ignore[call-arg]


def test_a_column_added_later_is_not_missed_in_older_files(orders: DeltaLog) -> None:
    path = file_of(orders)
    os.utime(path, ns=(1, 1))
    snapshot = orders.snapshot()
    wider = snapshot.metadata.schema_string.replace('"fields":[', '"fields":[{"name":"new","type":"string",'
                                                    '"nullable":true,"metadata":{}},', 1)  # fmt: skip
    metadata = type(snapshot.metadata)("id", wider)
    FileGuard().check(orders.store, snapshot.files, Content(metadata), orders.name, snapshot.version)


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_without_any_column_of_the_table_is_refused_unless_its_columns_may_have_been_dropped(
    orders: DeltaLog, mapped: bool
) -> None:
    path = file_of(orders)
    os.utime(path, ns=(1, 1))
    snapshot = orders.snapshot()
    files = snapshot.files.set_column(4, "stats", pa.nulls(snapshot.num_files, pa.string()))
    details = '{"delta.columnMapping.id":9,"delta.columnMapping.physicalName":"col-9"}' if mapped else "{}"
    other = f'{{"type":"struct","fields":[{{"name":"new","type":"string","nullable":true,"metadata":{details}}}]}}'
    mode = {"delta.columnMapping.mode": "name"} if mapped else {}
    metadata = type(snapshot.metadata)("id", other, (), mode)
    found = first_changed(orders.store, files, metadata, orders.name, snapshot.version)
    assert (found is None) is mapped
