"""Damaged logs of the corpus: reading gives the right rows or an error with a code, never wrong rows or a bare
exception.

The right rows are those that a second, naive reader finds in the damaged log from any start that it can read. If a
flipped bit leaves another valid log, that log counts.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.clock import FixedClock
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.skipping import fully_matched, prune
from dbt.adapters.silt.engine.kernel.storage.memory_store import MemoryStore
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison, IsNull, Or
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, decode_path
from tests.corpus import naive_reader
from tests.corpus.mutations import Files, mutate

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MUTATIONS = int(os.environ.get("SILT_MUTATIONS", "20000"))
ROUNDS, SHORT_ROUNDS = 40, 2
LONG = [pytest.mark.long]
_MAPPED = ("name", "id")
# Larger logs are damaged too, but less often, because they take long.
LARGEST = 128 << 10

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason=f"the corpus is not there: {CORPUS}")


def logs() -> Iterator[Path]:
    """The log folders of the corpus."""
    for folder in sorted(CORPUS.glob("**/" + LOG_FOLDER)):
        if sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= LARGEST:
            yield folder


def files_of(folder: Path) -> Files:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted((*folder.glob("*"), *folder.glob("_sidecars/*")))
        if file.is_file() and not file.name.startswith(".")
    }


def log_of(files: Files) -> DeltaLog:
    store = MemoryStore(FixedClock())
    store.make_folder(LOG_FOLDER + "/_sidecars")
    for name, data in files.items():
        store.put(f"{LOG_FOLDER}/{name}", data)
    return DeltaLog(store, "damaged", FixedClock())


@pytest.mark.parametrize(
    "round_number", [pytest.param(number, marks=LONG if number >= SHORT_ROUNDS else []) for number in range(ROUNDS)]
)
def test_a_damaged_log_gives_the_right_rows_or_an_error_with_a_code(round_number: int) -> None:
    folders = list(logs())
    for number in range(MUTATIONS // ROUNDS):
        seed = round_number * 1_000_003 + number
        chance = random.Random(seed)
        folder = chance.choice(folders)
        files = files_of_cached(folder)
        told = [mutate(files, chance) for _ in range(chance.choice((1, 1, 1, 2, 3))) if files]
        try:
            check(files, chance)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {folder.parent}: {'; '.join(told)}: {error!r}") from error


def check(files: Files, chance: random.Random) -> None:
    log = log_of(files)
    try:
        snapshot = log.snapshot()
    except SiltError as error:
        assert error.code
        return
    _compare(snapshot, files)
    try:
        list(log.commits())
        log.version_at(chance.randrange(1 << 42))
        _compare(log.snapshot_at(chance.randint(0, snapshot.version)), files)
    except SiltError as error:
        assert error.code
    _skip(snapshot)


def _compare(snapshot: Snapshot, files: Files) -> None:
    ours = _state(snapshot)
    possible = [_comparable(state) for state in naive_reader.states(files, snapshot.version)]
    assert ours in possible


def _state(snapshot: Snapshot) -> object:
    files = {}
    for add in snapshot.add_files():
        vector = "" if add.deletion_vector is None else add.deletion_vector.unique_id
        files[(decode_path(add.path), vector)] = (dict(add.partition_values), add.size)
    transactions = {name: each.version for name, each in snapshot.transactions.items()}
    schema = _schema(snapshot.metadata.schema_string, snapshot.metadata.configuration)
    return files, transactions, snapshot.metadata.id, schema, list(snapshot.partition_columns)


def _comparable(state: naive_reader.State) -> object:
    metadata = state.metadata
    text = metadata.get("schemaString") or '{"type":"struct","fields":[]}'
    schema = _schema(text, metadata.get("configuration"))
    return state.files, state.transactions, metadata.get("id"), schema, metadata["partitionColumns"]


def _schema(text: Any, configuration: Any) -> Any:
    """Returns the JSON of a schema, or its damaged text; without the remains of an earlier column mapping if mapping
    is off.
    """
    try:
        schema = json.loads(text)
    except (TypeError, ValueError):
        return text
    pairs = configuration.items() if isinstance(configuration, Mapping) else configuration
    is_mapped = (
        isinstance(pairs, Collection)
        and not isinstance(pairs, str)
        and any(("delta.columnMapping.mode", mode) in pairs for mode in _MAPPED)
    )
    return schema if is_mapped else _without_mapping(schema)


def _without_mapping(schema: Any) -> Any:
    """Returns a schema's JSON without the fields that matter only under column mapping."""
    if isinstance(schema, list):
        return [_without_mapping(each) for each in schema]
    if isinstance(schema, dict):
        return {k: _without_mapping(v) for k, v in schema.items() if not k.startswith("delta.columnMapping.")}
    return schema


def _skip(snapshot: Snapshot) -> None:
    """Skips files by statistics and partition values of every kind: damaged values may not stop a query."""
    for member in snapshot.schema:
        column = Column((member.name,))
        for value in (1, "x", None):
            prune(snapshot, Or((Comparison("=", column, value), IsNull(column))))
            fully_matched(snapshot, Comparison("<", column, value))


_KNOWN: dict[Path, Files] = {}


def files_of_cached(folder: Path) -> Files:
    if folder not in _KNOWN:
        _KNOWN[folder] = files_of(folder)
    return dict(_KNOWN[folder])
