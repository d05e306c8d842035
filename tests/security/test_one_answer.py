"""Every way to read a table refuses a forbidden table: those that read its files, and those that read its log only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyroaring import BitMap64

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.arrow import read as arrow
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.security import attacks
from tests.security.test_links import write_commit
from tests.unit.cli import house as without_spark
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

pytestmark = pytest.mark.in_folders("the doors without Spark are asked for a folder here")

Attack = Callable[[DeltaLog, AddFile, Path], AddFile]
Door = Callable[[House], object]


@pytest.fixture
def log(house: House) -> DeltaLog:
    """The log of the table `main.t`, which has one file of nine rows."""
    house.sql(
        "create table t tblproperties (delta.enableDeletionVectors = true) as "
        "select id, timestamp_seconds(id) as at from range(0, 9, 1, 1)"
    )
    return house.log("t")


def attacked(log: DeltaLog, attack: Attack, elsewhere: Path) -> None:
    """Replaces the table's file by the attack's."""
    (add,) = log.snapshot().add_files()
    found = attack(log, add, elsewhere)
    write_commit(Path(log.store.root), {"remove": add.remove(1).to_json()}, {"add": found.to_json()})


def _outside(log: DeltaLog, add: AddFile, elsewhere: Path) -> AddFile:
    return replace(add, path=str(_moved(log, add, elsewhere)))


def _above(log: DeltaLog, add: AddFile, elsewhere: Path) -> AddFile:
    return replace(add, path=f"../../../{elsewhere.name}/{_moved(log, add, elsewhere).name}")


def _moved(log: DeltaLog, add: AddFile, elsewhere: Path) -> Path:
    """Moves the data file to a location where no file of the table may be."""
    elsewhere.mkdir()
    return Path(log.store.root, add.path).rename(elsewhere / Path(add.path).name)


def _vector_outside(log: DeltaLog, add: AddFile, elsewhere: Path) -> AddFile:
    elsewhere.mkdir()
    (vector,) = deletion_vectors.write(LocalStore(elsewhere), log.clock, [BitMap64([1])])
    path = f"{elsewhere}/{deletion_vectors.file_name(vector)}"
    return replace(add, deletion_vector=replace(vector, storage_type="p", path_or_inline_dv=path))


OUTSIDE: dict[str, Attack] = {"file": _outside, "file above": _above, "vector": _vector_outside}


def _beyond(position: int, stats: str | None) -> Attack:
    vector = deletion_vectors.inline(BitMap64([position]))
    return lambda log, add, elsewhere: replace(add, stats=stats, deletion_vector=vector)


BEYOND: dict[str, Attack] = {
    "a row": _beyond(9, '{"numRecords": 9}'),
    "a row, which nothing counts": _beyond(9, None),
    "a row that the log counts": _beyond(9, '{"numRecords": 10}'),
    "a row that the log counts among many": _beyond(1 << 20, '{"numRecords": 2000000}'),
    "all rows, and the log has fewer": lambda log, add, elsewhere: replace(
        add, stats='{"numRecords": 2}', deletion_vector=deletion_vectors.inline(BitMap64(range(5)))
    ),
}


def by_data_source(house: House) -> object:
    silt.DataSource.register(house.warehouse.spark)
    return house.warehouse.spark.read.format("silt").load(house.location("t")).collect()


def by_shell(query: str) -> Door:
    def asked(house: House) -> object:
        said = attacks.silt(without_spark.House(house.root), "sql", query)
        if said.code:
            raise AssertionError(said.all)
        return said.out

    return asked


READS: dict[str, Door] = {
    "sql": lambda house: house.fetched("select * from main.t"),
    "arrow": lambda house: arrow.read("main.t", warehouse=str(house.root)),
    "data source": by_data_source,
    "shell": by_shell("select id from main.t"),
}
FROM_LOG: dict[str, Door] = {
    "count": lambda house: house.fetched("select count(*) from main.t"),
    "least": lambda house: house.fetched("select min(id) from main.t"),
    "greatest of times": lambda house: house.fetched("select max(at) from main.t"),
    "subquery": lambda house: house.fetched("select * from range(9) where id > (select count(*) from main.t)"),
    "view": lambda house: (
        house.sql("create or replace view v as select count(*) as n from main.t") and house.fetched("select * from v")
    ),
    "count in the shell": by_shell("select count(*) from main.t"),
    "least in the shell": by_shell("select min(id) from main.t"),
}


def refused(house: House, doors: dict[str, Door], code: str) -> None:
    """Checks that each way to read fails with the code, in any class of error."""
    for name, door in doors.items():
        with pytest.raises(Exception) as raised:
            found = door(house.another())
            pytest.fail(f"{name} gives {found}")
        assert re.search(code, str(raised.value)), name


@pytest.mark.parametrize("attack", OUTSIDE.values(), ids=OUTSIDE)
def test_no_way_to_read_answers_from_files_outside_the_table(
    house: House, log: DeltaLog, place: Place, attack: Attack, tmp_path: Path
) -> None:
    attacked(log, attack, tmp_path / "elsewhere")
    refused(house, {**READS, **FROM_LOG}, "SILT_EXTERNAL_PATH")
    trusting = opened(house.warehouse.spark, place, WarehouseSettings(external_paths=True))
    rows = 8 if attack is _vector_outside else 9
    assert trusting.rows("select count(*) from main.t") == [(rows,)]


def test_a_count_from_the_log_checks_only_the_files_that_its_condition_selects(
    house: House, log: DeltaLog, tmp_path: Path
) -> None:
    """Only the files that a query selects are checked, as by a query that reads them."""
    attacked(log, _outside, tmp_path / "elsewhere")
    house.sql("create table other as select 1 as id")
    assert house.another().rows("select count(*) from main.t where id > 100") == [(0,)]
    assert house.another().rows("select count(*) from main.other") == [(1,)]


@pytest.mark.parametrize("attack", BEYOND.values(), ids=BEYOND)
def test_no_way_to_read_accepts_a_deletion_vector_for_rows_that_the_file_lacks(
    house: House, log: DeltaLog, attack: Attack, tmp_path: Path
) -> None:
    attacked(log, attack, tmp_path / "elsewhere")
    refused(house, READS, "SILT_(CORRUPT_DELETION_VECTOR|DATA_FILE_CHANGED)")
