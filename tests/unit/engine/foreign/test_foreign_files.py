"""Files of other writers become tables whose values, conditions and extremes are right by every door.

The table of a seed is always the same one: `drawn(seed)`.
"""

from __future__ import annotations

import pytest

from dbt.adapters.silt import engine as silt
from tests.unit.engine.foreign.cases import Case, drawn
from tests.unit.engine.foreign.checks import check
from tests.unit.engine.house import House

pytestmark = pytest.mark.in_folders("other writers' files are converted in a folder")


def checked(house: House, case: Case, table: str) -> None:
    """Checks the case; where it fails, one with the first column that fails by itself, if there is one."""
    try:
        check(house, case, table)
    except Exception as error:
        for name in case.kinds:
            if len(case.kinds) > 1:
                checked(house, case.only(name), f"{table}_{name}")
        raise AssertionError(f"{case}: {error}") from error


@pytest.fixture
def doors(house: House) -> House:
    silt.DataSource.register(house.warehouse.spark)
    return house


def test_tables_of_other_writers_are_read_and_changed_alike_by_every_door(doors: House, seed: int) -> None:
    for each in range(seed, seed + 4):
        checked(doors, drawn(each), f"t{each}")


@pytest.mark.long
def test_many_tables_are(doors: House, seed: int) -> None:
    for each in range(seed, seed + 100):
        checked(doors, drawn(each), f"t{each}")
