"""`read_files` with a manifest reads exactly the files that the manifest names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import FilesNotFoundError, InvalidStatementError
from tests.unit.engine.house import House

MANIFEST = "_files.json"


def put(folder: Path, name: str, number: int) -> None:
    (folder / f"p={number}").mkdir(parents=True, exist_ok=True)
    (folder / f"p={number}" / name).write_text(f"id\n{number}\n")


def state(folder: Path, files: list[str], pattern: str | None) -> None:
    (folder / MANIFEST).write_text(json.dumps({"files": files, "pattern": pattern}))


def test_a_manifest_decides_which_files_are_read(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "out é%20"
    for number in (1, 2):
        put(folder, "part-0-old.csv", number)
    put(folder, "part-0-new.csv", 3)
    options = f"format => 'csv', header => true, schema => 'id int', manifest => '{MANIFEST}'"
    call = f"read_files('{folder}', {options})"
    with pytest.raises(FilesNotFoundError, match="is missing, which lists the files to read"):
        house.rows(f"select * from {call}")
    state(folder, ["p=1/part-0-old.csv", "p=2/part-0-old.csv"], "part-*-old.*")
    house.sql(f"create view v as select * from {call}")
    assert house.rows("select * from v") == [(1, 1), (2, 2)]
    state(folder, ["p=3/part-0-new.csv"], "part-*-new.*")
    assert house.rows("select id, p from v") == [(3, 3)]
    state(folder, [], "part-*-none.*")
    assert house.rows("select id from v") == []
    state(folder, ["a", "b", "c"], None)
    assert house.rows("select id from v") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("files", [["p=1/a.csv"], ["p=1/a.csv", "p=2/a.csv", "p=3/a.csv"]])
def test_files_that_differ_from_the_manifest_raise_an_error(house: House, tmp_path: Path, files: list[str]) -> None:
    for number in (1, 2):
        put(tmp_path / "out", "a.csv", number)
    state(tmp_path / "out", files, "*.csv")
    call = f"read_files('{tmp_path}/out', format => 'csv', header => true, manifest => '{MANIFEST}')"
    with pytest.raises(FilesNotFoundError, match="does not hold exactly the"):
        house.rows(f"select * from {call}")


@pytest.mark.parametrize("content", ["nonsense", "[]", '{"pattern": "x"}'])
def test_an_invalid_manifest_is_refused(house: House, tmp_path: Path, content: str) -> None:
    put(tmp_path / "out", "a.csv", 1)
    (tmp_path / "out" / MANIFEST).write_text(content)
    with pytest.raises(InvalidStatementError, match="is not a manifest"):
        house.rows(f"select * from read_files('{tmp_path}/out', format => 'csv', manifest => '{MANIFEST}')")
