"""Paths in a log that lead out of the warehouse, in every spelling: nothing that reads without Spark follows them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from dbt.adapters.silt import engine as silt_engine
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from tests.security.attacks import DOORS, actions_of, log_folder, put_commit, report, silt, with_two_tables
from tests.unit.cli.house import House

SPELLINGS: dict[str, Callable[[str], str]] = {
    "absolute": lambda path: path,
    "file:": lambda path: f"file:{path}",
    "file://": lambda path: f"file://{path}",
    "FILE:": lambda path: f"FILE:{path}",
    "file://localhost": lambda path: f"file://localhost{path}",
    "two slashes": lambda path: f"/{path}",
    "three slashes": lambda path: f"//{path}",
    "above": lambda path: f"../../../home/{Path(path).name}",
    "above by a detour": lambda path: f"x/../../../../home/{Path(path).name}",
    "encoded": lambda path: quote(path, safe=""),
    "encoded above": lambda path: f"%2e%2e/%2E%2e%2F..%2fhome/{Path(path).name}",
    "encoded scheme": lambda path: quote(f"file:{path}", safe=""),
    "doubly encoded": lambda path: quote(quote(path, safe=""), safe=""),
    "doubly encoded above": lambda path: f"%252e%252e/%252e%252e/%252e%252e/home/{Path(path).name}",
    "backslashes": lambda path: f"..\\..\\..\\home\\{Path(path).name}",
    "with a NUL": lambda path: f"{path}\0",
    "with a question mark": lambda path: f"{path}?x",
}
SECRET = 666_000_666_000
"""A number whose digits occur in none of the shown identifiers."""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A warehouse next to the folder `home`, whose files have the right form to be read by mistake."""
    house = with_two_tables(tmp_path / "house")
    (tmp_path / "home").mkdir()
    table = house.folder / "main" / "hostile"
    (own, *_) = sorted(table.glob("*.parquet"))
    rows = pq.read_table(own)
    changed = rows.set_column(0, rows.schema.field("id"), [[SECRET] * rows.num_rows])
    pq.write_table(changed, tmp_path / "home" / "part.parquet")
    return house


def add_of(house: House) -> dict[str, object]:
    return next(dict(action["add"]) for action in actions_of(house, 1) if "add" in action)


def no_door_gives_the_secret(house: House, tmp_path: Path) -> None:
    with pytest.raises(SiltError):
        silt_engine.read("main.hostile", warehouse=str(house.folder))
    for door in (*DOORS, ("show", "main.hostile", "--rows", "--where", f"id = {SECRET}")):
        said = silt(house, *door)
        assert said.code in (0, 1, 2)
        assert str(SECRET) not in said.out, door
    assert report(house, tmp_path / "page.html").code in (0, 1)
    checked = silt(house, "check")
    assert checked.code == 1 or "outside of the warehouse, and not checked" in checked.out


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_data_file_outside_the_warehouse_is_read(
    house: House, tmp_path: Path, spelling: Callable[[str], str]
) -> None:
    outside = tmp_path / "home" / "part.parquet"
    fields = {**add_of(house), "path": spelling(str(outside)), "size": outside.stat().st_size}
    put_commit(house, 2, {"add": fields})
    no_door_gives_the_secret(house, tmp_path)


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_no_deletion_vector_outside_the_warehouse_is_read(
    house: House, tmp_path: Path, spelling: Callable[[str], str]
) -> None:
    (vector,) = deletion_vectors.write(LocalStore(tmp_path / "home"), SystemClock(), [BitMap64([0])])
    outside = tmp_path / "home" / str(deletion_vectors.file_name(vector))
    descriptor = {
        "storageType": "p",
        "pathOrInlineDv": spelling(str(outside)),
        "offset": 1,
        "sizeInBytes": vector.size_in_bytes,
        "cardinality": 1,
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    fields = add_of(house)
    removed = {"path": fields["path"], "dataChange": True, "deletionTimestamp": 1}
    put_commit(
        house,
        2,
        {"protocol": {**protocol, **features}},
        {"remove": removed},
        {"add": {**fields, "deletionVector": descriptor}},
    )
    no_door_gives_the_secret(house, tmp_path)


def with_sidecar(house: House, path: str, to: Path) -> None:
    """Writes a checkpoint whose file actions are in a sidecar at the path `to`, and deletes the commits before it."""
    log = house.catalog.table(house.name("main.hostile"))
    log.checkpoint(log.snapshot())
    (classic,) = log_folder(house).glob("*.checkpoint.parquet")
    to.parent.mkdir(exist_ok=True)
    pq.write_table(pq.read_table(classic).select(["add"]), to)
    classic.unlink()
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
    actions = [
        {"checkpointMetadata": {"version": 1}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        *(action for action in actions_of(house, 0) if "metaData" in action),
        {"sidecar": {"path": path, "sizeInBytes": to.stat().st_size, "modificationTime": 1}},
    ]
    name = f"{1:020d}.checkpoint.01234567-89ab-cdef-0123-456789abcdef.json"
    (log_folder(house) / name).write_text("".join(f"{json.dumps(each)}\n" for each in actions))
    for version in (0, 1):
        (log_folder(house) / f"{version:020d}.json").unlink()
        (log_folder(house) / f"{version:020d}.crc").unlink(missing_ok=True)
    (log_folder(house) / "_last_checkpoint").unlink()
    put_commit(house, 2, {"txn": {"appId": "a", "version": 1}})


def test_a_sidecar_in_the_log_folder_is_read(house: House) -> None:
    with_sidecar(house, "own.parquet", log_folder(house) / "_sidecars" / "own.parquet")
    assert silt_engine.read("main.hostile", warehouse=str(house.folder)).num_rows == 6


@pytest.mark.parametrize("spelling", [*SPELLINGS.values(), lambda path: "../../../../../home/side.parquet"])
def test_no_sidecar_outside_the_warehouse_is_read(house: House, tmp_path: Path, spelling: Callable[[str], str]) -> None:
    outside = tmp_path / "home" / "side.parquet"
    with_sidecar(house, spelling(str(outside)), outside)
    with pytest.raises(SiltError):
        silt_engine.read("main.hostile", warehouse=str(house.folder))
    assert silt(house, "show", "main.hostile").code != 0
    assert silt(house, "check").code == 1


def test_a_linked_sidecar_is_not_read(house: House, tmp_path: Path) -> None:
    outside = tmp_path / "home" / "side.parquet"
    with_sidecar(house, "own.parquet", outside)
    (log_folder(house) / "_sidecars").mkdir()
    (log_folder(house) / "_sidecars" / "own.parquet").symlink_to(outside)
    assert silt(house, "show", "main.hostile").code != 0


def test_drop_deletes_links_and_nothing_behind_them(house: House, tmp_path: Path) -> None:
    table = house.folder / "main" / "hostile"
    (table / "k.parquet").symlink_to(tmp_path / "home" / "part.parquet")
    (table / "sub").symlink_to(tmp_path / "home")
    (table / "_delta_log" / "sub").symlink_to(tmp_path / "home")
    (table / "good").symlink_to(house.folder / "main" / "good")
    house.catalog.drop_table(house.name("main.hostile"))
    assert not table.exists()
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["part.parquet"]
    assert silt_engine.read("main.good", warehouse=str(house.folder)).num_rows == 6
    house.catalog.create_schema("silt", "other")
    (house.folder / "other" / "sub").symlink_to(tmp_path / "home")
    house.catalog.drop_schema("silt", "other", cascade=True)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["part.parquet"]
