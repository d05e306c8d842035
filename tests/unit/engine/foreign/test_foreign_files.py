"""Tables of other writers' files have the right values, filters and extremes in every way to query them.

`drawn(seed)` always returns the same table for a seed. The variable FOREIGN_SEEDS names the seeds of the long test:
FOREIGN_SEEDS=17 repeats a failure, and FOREIGN_SEEDS=0-499 tries many.
"""

from __future__ import annotations

import os
from typing import Final

import duckdb
import pyarrow as pa
import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError
from tests.unit.engine.foreign.cases import Case, drawn
from tests.unit.engine.foreign.checks import check
from tests.unit.engine.house import House

SEEDS: Final = "FOREIGN_SEEDS"

pytestmark = pytest.mark.in_folders("other writers' files are converted in a folder")


def checked(house: House, case: Case, table: str) -> None:
    """Checks the case; if it fails, reports the first column that fails by itself, if any."""
    try:
        check(house, case, table)
    except Exception as error:
        for name in case.kinds:
            if len((smaller := case.only(name)).kinds) < len(case.kinds):
                checked(house, smaller, f"{table}_{name}")
        raise AssertionError(f"{case}: {error}") from error


@pytest.fixture
def doors(house: House) -> House:
    silt.DataSource.register(house.warehouse.spark)
    return house


def test_tables_of_other_writers_have_the_same_results_in_every_way_to_read_and_change_them(
    doors: House, seed: int
) -> None:
    for each in range(seed, seed + 2):
        checked(doors, drawn(each), f"t{each}")


def test_a_file_that_only_spark_can_read_is_queried_and_rewritten_so_that_arrow_can_read_it(
    house: House, accelerator: str | None
) -> None:
    if accelerator:
        pytest.skip("an accelerator reads files as Arrow does")
    source = house.root / "main" / "t"
    source.mkdir(parents=True)
    numbers = [sign * (2**31 - 1 - n) for n in range(1500) for sign in (1, -1)]
    given = pa.table({"n": pa.array(numbers, pa.int32())})
    with duckdb.connect() as connection:
        connection.register("given", given)
        connection.execute(f"copy (select * from given) to '{source}/0.parquet' (format parquet, parquet_version v2)")
    house.sql(f"convert to delta parquet.`{source}`")
    with pytest.raises(TableDamagedError, match=r"Spark can: query the table by SQL, and run `create or replace table"):
        silt.read(str(source))
    assert [row.n for row in house.fetched("select n from t where n is not null")] == numbers
    house.sql("create or replace table t as select * from t")
    assert sorted(silt.read(str(source))["n"].to_pylist()) == sorted(numbers)


@pytest.mark.long
def test_many_random_tables_of_other_writers_have_the_same_results_in_every_way(doors: House, seed: int) -> None:
    first, _, last = os.environ.get(SEEDS, f"{seed}-{seed + 99}").partition("-")
    for each in range(int(first), int(last or first) + 1):
        checked(doors, drawn(each), f"t{each}")
