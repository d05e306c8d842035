"""Damaged logs of the corpus: reading gives the right rows or an error with a code, never wrong rows or a bare
exception.

The right rows are those that a second, naive reader finds in the damaged log from any start that it can read. If a
flipped bit leaves another valid log, that log counts.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan.skipping import fully_matched, prune
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Comparison, IsNull, Or
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from tests.corpus import states
from tests.corpus.mutations import Files, mutate
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MUTATIONS = int(os.environ.get("SILT_MUTATIONS", "20000"))
ROUNDS, SHORT_ROUNDS = 40, 2
LONG = [pytest.mark.long]
# Larger logs are damaged too, but less often, because they take long.
LARGEST = 128 << 10

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason=f"the corpus is not there: {CORPUS}")


def logs() -> Iterator[Path]:
    """The log folders of the corpus."""
    for folder in sorted(CORPUS.glob("**/" + LOG_FOLDER)):
        if sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) <= LARGEST:
            yield folder


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
    assert states.of_snapshot(snapshot) in states.possible(files, snapshot.version)


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
        _KNOWN[folder] = states.files_of(folder)
    return dict(_KNOWN[folder])
