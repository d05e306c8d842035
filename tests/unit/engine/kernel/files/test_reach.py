"""Paths in a log that leave the table: followed within the warehouse, refused elsewhere, and never deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import ExternalPathError
from dbt.adapters.silt.engine.kernel.files import data_files, deletion_vectors
from dbt.adapters.silt.engine.kernel.files.file_guard import Content, FileGuard
from dbt.adapters.silt.engine.kernel.files.statistics import from_footers
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import vacuum
from dbt.adapters.silt.engine.kernel.maintenance.file_check import check_files
from dbt.adapters.silt.engine.kernel.maintenance.problems import ProblemKind
from dbt.adapters.silt.engine.kernel.maintenance.vacuum import Needed
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, DeletionVector
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import METADATA, add, put


@pytest.fixture
def table(tmp_path: Path) -> LocalStore:
    """A table's folder in a warehouse, next to another table; the secret is outside of the warehouse."""
    for name in ("house/main/orders", "house/main/other", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.parquet").write_bytes(b"x" * 10)
    (tmp_path / "house" / "link").symlink_to(tmp_path / "elsewhere")
    return LocalStore(tmp_path / "house" / "main" / "orders", (str(tmp_path / "house"),))


INSIDE = ("a.parquet", "../other/a.parquet", "../orders/a.parquet", "{house}/main/other/a.parquet", "x/../a.parquet")
OUTSIDE = (
    "../../../elsewhere/a.parquet",
    "%2e%2e/%2E%2e/../elsewhere/a.parquet",
    "{root}/elsewhere/a.parquet",
    "file:///{root}/elsewhere/a.parquet",
    "file:{root}/elsewhere/a.parquet",
    "../../link/a.parquet",
    "s3://bucket/a.parquet",
)


def named(store: LocalStore, path: str) -> str:
    root = Path(store.root).parents[2]
    return decode_path(path.format(root=root, house=root / "house"))


@pytest.mark.parametrize("path", INSIDE)
def test_files_of_the_table_and_of_the_warehouse_are_read(table: LocalStore, path: str) -> None:
    data_files.check_reach(table, named(table, path))


@pytest.mark.parametrize("path", OUTSIDE)
def test_other_files_are_refused_unless_the_user_allows_them(table: LocalStore, path: str) -> None:
    name = named(table, path)
    with pytest.raises(ExternalPathError, match="external_paths: true"):
        data_files.check_reach(table, name)
    data_files.check_reach(LocalStore(table.root), name)
    child = LocalStore(Path(table.root).parent, table.allowed).child("orders")
    with pytest.raises(ExternalPathError):
        data_files.check_reach(child, name)


def hostile(tmp_path: Path, path: str, facts: Mapping[str, object] | None = None) -> DeltaLog:
    """Creates a table whose second version adds a file by that path."""
    (tmp_path / "elsewhere").mkdir(parents=True)
    (tmp_path / "elsewhere" / "secret.parquet").write_bytes(b"secret")
    house = House(tmp_path / "house")
    store = LocalStore(tmp_path / "house", (str(tmp_path / "house"),))
    house.catalog = type(house.catalog)({"silt": store})
    log = house.create("main.orders", rows(0, 3))
    put(log, 1, CommitInfo(operation="WRITE"), replace(add(path), **(facts or {})))  # type: ignore[arg-type]
    return log


def test_no_reader_opens_a_file_outside_the_warehouse(tmp_path: Path) -> None:
    log = hostile(tmp_path, "../../../elsewhere/secret.parquet")
    snapshot = log.snapshot()
    with pytest.raises(ExternalPathError):
        FileGuard().check(log.store, snapshot.files, Content(snapshot.metadata), log.name, 1)
    (problem,) = check_files(log.store, snapshot, lambda _: None)
    assert problem.kind is ProblemKind.FILE_OUTSIDE


IN_A_BUCKET = ("w/p=12%3A30/a.parquet", "s3://bucket/house/main/other/1/a.parquet", "s3a://bucket/house/a.parquet")
OUT_OF_IT = (
    "../../other/1/a.parquet",
    "%2E%2e/%2e./a.parquet",
    "s3://bucket/elsewhere/a.parquet",
    "s3%3A//other/house/a.parquet",
    "abfs://box@account.dfs.core.windows.net/house/a.parquet",
    "/etc/passwd",
    "%2Fetc/passwd",
    "file:/etc/passwd",
)


@pytest.mark.parametrize("path", [*IN_A_BUCKET, *OUT_OF_IT])
def test_no_file_outside_is_read_or_requested_for_a_table_in_an_object_store(path: str) -> None:
    store = ObjectStore("s3://bucket/house/main/orders/1", {"region": "us-east-1", "endpoint": "http://127.0.0.1:1"})
    store.allowed = ("s3://bucket/house",)
    files = files_table([AddFile("w/a.parquet", {}, 6, 0), AddFile(path, {}, 6, 0)])
    refused = pytest.raises(ExternalPathError) if path in OUT_OF_IT else contextlib.nullcontext()
    with refused:
        FileGuard().check(store, files, Content(METADATA), "silt.main.orders", 1)


@pytest.mark.parametrize(
    "vector",
    [
        DeletionVector("p", "file:///etc/passwd", 40, 1, 1),
        DeletionVector("u", "../../../elsewhere" + "ab^-aqEH.-t@S}K{vb[*k^"[:20].ljust(20, "0"), 40, 1, 1),
    ],
)
def test_no_deletion_vector_outside_the_table_is_read(tmp_path: Path, vector: DeletionVector) -> None:
    log = hostile(tmp_path, "a.parquet", {"deletion_vector": vector, "stats": '{"numRecords":3}'})
    with pytest.raises(ExternalPathError):
        deletion_vectors.read(log.store, [vector], log.name)


def test_a_vacuum_deletes_no_file_outside_that_the_log_removed(tmp_path: Path) -> None:
    for path in ("../../../elsewhere/secret.parquet", "x/../../../../elsewhere/secret.parquet"):
        log = hostile(tmp_path / path.replace("/", "_"), path)
        put(log, 2, CommitInfo(operation="DELETE"), add(path).remove(1))
        garbage = vacuum.named_by_log(log, Needed(frozenset(), frozenset()), log.clock.now_ms() + 10**9)
        assert garbage.files == ()


def test_a_vacuum_keeps_a_file_that_is_named_with_dot_segments(tmp_path: Path) -> None:
    log = hostile(tmp_path, "x/../a.parquet")
    assert "a.parquet" in vacuum.needed(log, log.snapshot(), 0).paths


def test_the_rows_of_a_file_outside_are_not_counted(tmp_path: Path) -> None:
    log = hostile(tmp_path, "../../../elsewhere/secret.parquet")
    files = files_table([AddFile("../../../elsewhere/secret.parquet", {}, 6, 0)])
    with pytest.raises(ExternalPathError):
        from_footers(log.store, files["path"].to_pylist(), StructType(), log.snapshot().properties)
