"""Paths in the commits of a branch that lead out of the table: ending the branch deletes no file there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from tests.security.attacks import silt, with_two_tables
from tests.unit.cli.house import rows

OUTSIDE = "outside/thesis.doc"


def _add(path: str) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}}


def _cdc(path: str) -> dict[str, Any]:
    return {"cdc": {"path": path, "partitionValues": {}, "size": 1, "dataChange": False}}


def _vector(path: str) -> dict[str, Any]:
    vector = {"storageType": "p", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    return {"add": {**_add("part.parquet")["add"], "deletionVector": vector}}


def _prefix(path: str) -> dict[str, Any]:
    vector = {"storageType": "u", "pathOrInlineDv": f"{path.rpartition('/')[0]}/" + "0" * 20, "sizeInBytes": 1}
    return {"add": {**_add("part.parquet")["add"], "deletionVector": {**vector, "offset": 1, "cardinality": 1}}}


SPELLINGS = {
    "above": "../../../{}",
    "encoded": "%2e%2e/%2E%2e/..%2f{}",
    "by a detour": "x/../../../../{}",
    "another table": "../good/{}",
    "absolute": "{absolute}",
    "file": "file://{absolute}",
    "log": "_delta_log/00000000000000000000.json",
}


@pytest.mark.parametrize("action", [_add, _cdc, _vector, _prefix])
@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_dropping_a_run_deletes_no_file_that_its_branch_names_elsewhere(
    tmp_path: Path, spelling: str, action: Any
) -> None:
    house = with_two_tables(tmp_path / "house")
    (tmp_path / "outside").mkdir()
    (tmp_path / OUTSIDE).write_bytes(b"kept")
    (house.folder / "main" / "good" / "outside").mkdir()
    (house.folder / "main" / "good" / OUTSIDE).write_bytes(b"kept")
    _, branch = house.catalog.run_branches("silt").open(BranchedRun("shop", "dev", "night"))
    house.append(house.catalog.on_branch("silt", branch).table(house.name("main.hostile")), rows(6, 1))
    commit = f"_branches/{branch.id}/main/hostile/{3:020d}.json"
    path = spelling.format(OUTSIDE, absolute=str(tmp_path / OUTSIDE))
    (house.folder / commit).write_text(
        "".join(f"{json.dumps(each)}\n" for each in ({"commitInfo": {"operation": "WRITE"}}, action(path)))
    )
    before = sorted(house.folder.glob("main/*/_delta_log/*.json"))
    assert silt(house, "drop-run", "night").code in (0, 1)
    assert (tmp_path / OUTSIDE).read_bytes() == b"kept"
    assert (house.folder / "main" / "good" / OUTSIDE).read_bytes() == b"kept"
    assert sorted(house.folder.glob("main/*/_delta_log/*.json")) == before
