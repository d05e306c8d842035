"""Writers of a table with an identity column, interleaved in any order."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import MetadataChangedError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.identity import Identity, identities, moved
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.examples import examples
from tests.fixed_clock import FixedClock
from tests.memory_store import MemoryStore


def identity_in(snapshot: Snapshot) -> Identity:
    return identities(snapshot.schema)["n"]


def new_table(identity: Identity) -> DeltaLog:
    store = MemoryStore()
    store.make_folder(LOG_FOLDER)
    log = DeltaLog(store, "t", clock=FixedClock())
    column = StructField("n", PrimitiveType("long")).with_metadata(**identity.metadata)
    metadata = Metadata("id", StructType((column,)).to_json())
    creation = Changes(Operation("CREATE TABLE"), metadata=metadata, protocol=Protocol(1, 6))
    commit(log, None, creation, ReadSet(), CommitSettings())
    return log


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=14))
def test_no_identity_number_is_used_twice(steps: list[tuple[int, int, bool]]) -> None:
    """In each step, a writer pins the table, or commits rows with numbers that follow its pinned version."""
    log = new_table(Identity(1, 2))
    pinned: dict[int, Snapshot] = {}
    numbers: list[int] = []
    for place, (writer, rows, pins) in enumerate(steps):
        if pins or writer not in pinned:
            pinned[writer] = log.snapshot()
            continue
        base = pinned.pop(writer)
        log.store.put(f"{place}", b"data")
        changes = Changes(Operation("WRITE"), (AddFile(f"{place}", {}, 4, 0),))
        if rows:
            changes = replace(changes, metadata=moved(base.metadata, {"n": rows}))
        try:
            commit(log, base, changes, ReadSet(), CommitSettings())
        except MetadataChangedError:
            assert rows and identity_in(base) != identity_in(log.snapshot())
            continue
        numbers.extend(identity_in(base).first + 2 * row for row in range(rows))
    assert numbers == [1 + 2 * row for row in range(len(numbers))]
    assert identity_in(log.snapshot()).mark == (numbers[-1] if numbers else None)
