"""Small files that would need gigabytes of memory are refused, with their sizes."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.security.attacks import actions_of, log_folder, put_commit, silt, with_two_tables
from tests.unit.cli.house import rows

_HEADER = ("protocol", "metaData")
MEGABYTES = 400
"""The additional memory that a refusal may take, in bytes."""


@pytest.mark.parametrize("count", [20_000, 200])
@pytest.mark.parametrize("member", ["path", "stats", "clusteringProvider"])
def test_a_checkpoint_that_repeats_a_long_string_is_measured_before_it_is_decoded(
    count: int, member: str, tmp_path: Path
) -> None:
    house = with_two_tables(tmp_path / "house")
    text = "x" * (1 << 20 if count > 8_192 else 20 << 20)
    members = {"path": ["f"] * count, "size": [1] * count}
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))
    given = {**{name: pa.array(values) for name, values in members.items()}, member: repeated}
    adds = pa.StructArray.from_arrays(list(given.values()), names=list(given))
    bodies = {name: body for action in actions_of(house, 0) for name, body in action.items() if name in _HEADER}
    plain = {name: {key: of for key, of in body.items() if not isinstance(of, dict)} for name, body in bodies.items()}
    columns = {name: pa.array([body, *[None] * (count - 1)]) for name, body in plain.items()}
    path = log_folder(house) / f"{1:020d}.checkpoint.parquet"
    pq.write_table(pa.table({"add": adds, **columns}), path, compression="zstd")
    for version in (0, 1):
        (log_folder(house) / f"{version:020d}.json").unlink()
    put_commit(house, 2, {"txn": {"appId": "a", "version": 1}})
    assert path.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = silt(house, "show", "main.hostile")
    assert said.code == 1
    assert "bytes of memory: it is damaged or hostile" in said.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10


def test_a_sparse_commit_file_of_a_terabyte_is_refused_unread(tmp_path: Path) -> None:
    house = with_two_tables(tmp_path / "house")
    for name in (f"{2:020d}.json", f"{1:020d}.crc", "_last_checkpoint"):
        with open(log_folder(house) / name, "wb") as file:
            file.truncate(1 << 40)
    said = silt(house, "show", "main.hostile")
    assert said.code == 1
    assert "1099511627776 bytes" in said.err
    assert silt(house, "runs").code in (0, 1)


_ACTION = b'{"txn": {"appId": "a", "version": 1}}\n'


def sparse(path: Path, start: bytes = _ACTION, end: bytes = _ACTION) -> None:
    """Writes a file of 300 MB with a hole."""
    path.write_bytes(start)
    os.truncate(path, 300 << 20)
    with open(path, "ab") as file:
        file.write(end)


@pytest.mark.parametrize(("start", "end"), [(b"", b""), (_ACTION, b""), (b"{", _ACTION), (_ACTION, _ACTION)])
def test_sparse_commits_of_many_tables_take_little_memory(start: bytes, end: bytes, tmp_path: Path) -> None:
    house = with_two_tables(tmp_path / "house")
    for number in range(4):
        house.create(f"main.t{number}", rows(0, 3))
        sparse(house.folder / "main" / f"t{number}" / "_delta_log" / f"{1:020d}.json", start, end)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for command in (("runs",), ("check",), ("show", "main.t0")):
        said = silt(house, *command)
        assert "Traceback" not in said.all
        assert command == ("runs",) or f"{1:020d}.json" in said.all
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 * MEGABYTES << 10
    assert silt(house, "show", "main.good", "--rows").code == 0


def test_commits_that_are_too_large_together_are_refused_with_their_versions(tmp_path: Path) -> None:
    house = with_two_tables(tmp_path / "house")
    for version in range(2, 12):
        sparse(log_folder(house) / f"{version:020d}.json")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = silt(house, "show", "main.hostile")
    assert said.code == 1
    assert "SILT_CORRUPT_LOG" in said.err and "main.hostile" in said.err and "from version 0 to 11" in said.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10
