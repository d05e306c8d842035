"""Appends rows to a large table with and without an enforced key, and prints the times of the commits.

    python -m benchmarks.enforced_keys --rows 10000000 --appended 10000 --files 40

The rows of the table are clustered by the key, or scattered: each file has keys of the whole range. The new keys are
above all others (ascending), or between them. A commit is measured without Spark: only the check of the key differs.
Last, rows with keys of the table are appended to a child with an enforced foreign key to it.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.keys import Key, KeyKind, key_properties
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit

KEY = Key(KeyKind.PRIMARY_KEY, ("id",), enforced=True)
SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("amount", PrimitiveType("double"))))
STEP = 4
"""The keys of the table are the multiples of this number, so that new keys fit between them."""


def write(log: DeltaLog, ids: Sequence[int]) -> AddFile:
    sink, path = io.BytesIO(), f"{log.clock.new_id()}.parquet"
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "amount": [0.5] * len(ids)}), sink)
    log.store.put(path, sink.getvalue())
    stats = f'{{"numRecords":{len(ids)},"minValues":{{"id":{min(ids)}}},"maxValues":{{"id":{max(ids)}}}}}'
    return AddFile(path, {}, len(sink.getvalue()), log.clock.now_ms(), stats=stats)


def created(folder: Path, files: Sequence[Sequence[int]], has_key: bool) -> DeltaLog:
    """Returns a table with these files."""
    folder.mkdir()
    log = DeltaLog(LocalStore(str(folder)), folder.name)
    log.store.make_folder("_delta_log")
    adds = tuple(write(log, ids) for ids in files)
    configuration = key_properties({"k": KEY}) if has_key else {}
    metadata = Metadata(log.clock.new_id(), SCHEMA.to_json(), configuration=configuration)
    changes = Changes(Operation("CREATE TABLE AS SELECT"), adds, metadata=metadata, protocol=Protocol(1, 2))
    began = time.perf_counter()
    commit(log, None, changes, ReadSet(), CommitSettings())
    print(f"{folder.name:<24} created {'with' if has_key else 'without'} the key: {time.perf_counter() - began:.2f} s")
    return log


class Timing(NamedTuple):
    """The elapsed seconds of a commit, and its seconds of processor time, which depend less on other load."""

    clock: float
    processor: float


def append(log: DeltaLog, ids: Sequence[int]) -> Timing:
    """Returns the time of the commit of new rows, whose file is written before."""
    changes, base = Changes(Operation("WRITE"), (write(log, ids),)), log.snapshot()
    began, processor = time.perf_counter(), time.process_time()
    commit(log, base, changes, ReadSet(), CommitSettings())
    return Timing(time.perf_counter() - began, time.process_time() - processor)


def child_of(parent: DeltaLog, folder: Path) -> DeltaLog:
    """Returns an empty table with an enforced foreign key to another."""
    register = Publications(LocalStore(str(folder)), parent.clock)
    location, of_parent = register.location_of(parent), parent.snapshot().metadata
    child = DeltaLog(LocalStore(str(folder / f"{parent.name}_child")), f"{parent.name}_child")
    child.store.make_folder("_delta_log")
    child.publications = parent.publications = register
    metadata = Metadata(child.clock.new_id(), SCHEMA.to_json())
    created = Changes(Operation("CREATE TABLE"), metadata=metadata, protocol=Protocol(1, 2))
    commit(child, None, created, ReadSet(), CommitSettings())
    key = Key(KeyKind.FOREIGN_KEY, ("id",), (parent.name,), ("id",), True, location, of_parent.id)
    added = replace(metadata, configuration=key_properties({"fk": key}))
    commit(child, child.snapshot(), Changes(Operation("ADD CONSTRAINT"), metadata=added), ReadSet(), CommitSettings())
    return child


def show(name: str, order: str, times: Sequence[Timing]) -> None:
    clock, processor = (statistics.median(each) for each in zip(*times, strict=True))
    print(f"{name:<24} {order:<10} {clock:.3f} s, {processor:.3f} s of processor time")


def layouts(rows: int, files: int) -> Iterator[tuple[str, list[list[int]]]]:
    each = rows // files
    yield "clustered", [[STEP * n for n in range(at * each, (at + 1) * each)] for at in range(files)]
    yield "scattered", [[STEP * n for n in range(at, rows, files)] for at in range(files)]


def new_keys(order: str, rows: int, appended: int, number: int) -> list[int]:
    """Returns keys that the table does not have: above all of its keys, or between them."""
    if order == "ascending":
        first = STEP * (rows + number * appended)
        return [first + STEP * at for at in range(appended)]
    return [STEP * at + 1 + number for at in random.Random(number).sample(range(rows), appended)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--appended", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=40)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for layout, files in layouts(given.rows, given.files):
            for has_key in (False, True):
                log = created(Path(folder) / f"{layout}_{'key' if has_key else 'plain'}", files, has_key)
                for order in ("ascending", "between"):
                    keys = [new_keys(order, given.rows, given.appended, number) for number in range(STEP - 1)]
                    show(log.name, order, [append(log, each) for each in keys])
            child = child_of(log, Path(folder))
            at_once = [list(range(0, STEP * given.appended, STEP))] * (STEP - 1)
            at_random = [
                [STEP * at for at in random.Random(number).sample(range(given.rows), given.appended)]
                for number in range(STEP - 1)
            ]
            show(child.name, "first keys", [append(child, each) for each in at_once])
            show(child.name, "any keys", [append(child, each) for each in at_random])


if __name__ == "__main__":
    main()
