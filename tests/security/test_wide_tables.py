"""The cost of commands on a table grows linearly with the number of its columns."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.security import attacks
from tests.unit.cli.house import House


def widened(house: House, columns: int) -> None:
    """Gives the hostile table so many columns, all with statistics."""
    names = [f"c{number}" for number in range(columns)]
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    attacks.changed(house, 0, "metaData", schemaString=json.dumps({"type": "struct", "fields": fields}))
    ends = {end: dict.fromkeys(names, 1) for end in ("minValues", "maxValues", "nullCount")}
    for version in (0, 1):
        attacks.changed(house, version, "add", stats=json.dumps({"numRecords": 3, **ends}))
    for checksum in attacks.log_folder(house).glob("*.crc"):
        checksum.unlink()


def calls_of(house: House, *arguments: str) -> int:
    """Returns the number of function calls of the command, including each step of a generator."""
    made = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made
        made += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        said = attacks.silt(house, *arguments)
    finally:
        sys.setprofile(before)
    assert "Traceback" not in said.all
    return made


@pytest.mark.parametrize("door", [("show", "main.hostile"), ("check",)])
def test_doubling_the_columns_at_most_doubles_the_calls(tmp_path: Path, door: tuple[str, ...]) -> None:
    made = []
    for columns in (5, 300, 600):  # the first command also imports modules
        house = attacks.with_two_tables(tmp_path / str(columns))
        widened(house, columns)
        made.append(calls_of(house, *door))
    _, once, twice = made
    assert twice < 2.5 * once
