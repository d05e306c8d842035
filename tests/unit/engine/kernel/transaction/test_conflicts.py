"""The conflict checks follow the matrix in their module's docstring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentDomainError,
    ConcurrentDropError,
    ConcurrentModificationError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedFeatureError,
)
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.table.expressions import FALSE, UNKNOWN, And, Column, Comparison
from dbt.adapters.silt.engine.kernel.table.features import upgraded
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.table.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.transaction import conflicts
from dbt.adapters.silt.engine.kernel.transaction.changes import DROP_OPERATION, Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.competing_commits import PendingCommit, WinningCommit
from dbt.adapters.silt.engine.kernel.transaction.conflicts import check_conflicts, effective_isolation_level

SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("day", PrimitiveType("string"))))
METADATA = Metadata("the-table", SCHEMA.to_json())
MARKED = StructType((replace(SCHEMA.fields[0], metadata={"delta.identity.highWaterMark": 7}), SCHEMA.fields[1]))
PROTOCOL = Protocol(3, 7, ("v2Checkpoint",), ("appendOnly", "domainMetadata", "v2Checkpoint"))
LEVELS = {"S": IsolationLevel.SERIALIZABLE, "W": IsolationLevel.WRITE_SERIALIZABLE, "I": IsolationLevel.SNAPSHOT}
ERRORS = {
    "Drop": ConcurrentDropError,
    "Proto": ProtocolChangedError,
    "Meta": MetadataChangedError,
    "Txn": ConcurrentTransactionError,
    "Dom": ConcurrentDomainError,
    "Add": ConcurrentAppendError,
    "Del": ConcurrentDeleteReadError,
    "Twice": ConcurrentDeleteDeleteError,
}


def file(path: str, low: int, high: int, data_change: bool = True) -> AddFile:
    bounds = f'"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}'
    return AddFile(path, {}, 10, 0, data_change, f'{{"numRecords":9,{bounds}}}')


def vector(add: AddFile, rows: str = "x") -> AddFile:
    """Returns the file with a deletion vector."""
    return replace(add, deletion_vector=DeletionVector("i", rows, 1, 1))


def monday(path: str, low: int, high: int, data_change: bool = True) -> AddFile:
    return replace(file(path, low, high, data_change), partition_values={"day": "mon"})


# The transaction reads ids up to 9: files one and two; it rewrites file one.
ONE, TWO, FAR = monday("one", 0, 5), monday("two", 6, 9), monday("far", 100, 109)
BASE = Snapshot("shop.orders", 4, 0, METADATA, PROTOCOL, TableFiles(active_files.files_table([ONE, TWO, FAR])), {}, {})
READS = ReadSet((Comparison("<", Column.of("id"), 10),), frozenset({"one", "two"}))
BARE = AddFile("new", {}, 10, 0)

# In the matrix, the table is partitioned, and only Monday is read.
BY_DAY = replace(BASE, metadata=replace(METADATA, partition_columns=("day",)))
OF_MONDAY = And((*READS.predicates, Comparison("=", Column.of("day"), "mon")))
READS_MONDAY = replace(READS, predicates=(OF_MONDAY,))


def removal(add: AddFile, data_change: bool = True) -> RemoveFile:
    return add.remove(1, data_change)


def move(add: AddFile) -> tuple[Action, ...]:
    """Returns the actions of a compaction that moves the file's rows to a new file."""
    return removal(add, data_change=False), replace(add, path="moved", data_change=False)


def moved(add: AddFile) -> RemoveFile:
    """Returns the removal of the file that the compaction wrote."""
    return removal(replace(add, path="moved"))


# The rows of the matrix: the actions of each winning commit, in order.
WINNERS: dict[str, tuple[tuple[Action, ...], ...]] = {
    "nothing": ((CommitInfo(operation="DELETE"),),),
    "drop": ((CommitInfo(operation=DROP_OPERATION),),),
    "another table's id": ((CommitInfo(operation="CREATE TABLE"), replace(BY_DAY.metadata, id="another")),),
    "protocol, features lost": ((replace(PROTOCOL, writer_features=("domainMetadata", "v2Checkpoint")),),),
    "protocol, features added": ((upgraded(PROTOCOL, ["timestampNtz"]),),),
    "metadata": ((replace(BY_DAY.metadata, description="new"),),),
    "metadata, feature turned on": ((replace(BY_DAY.metadata, configuration={"delta.checkpointPolicy": "v2"}),),),
    "metadata, identity mark": ((replace(BY_DAY.metadata, schema_string=MARKED.to_json()),),),
    "domain set by both": ((DomainMetadata("shared", "theirs"),),),
    "domain set by winner": ((DomainMetadata("other", "theirs"),),),
    "transaction id of both": ((SetTransaction("app", 7),),),
    "transaction id of another": ((SetTransaction("other", 7),),),
    "blind append, read": ((CommitInfo(is_blind_append=True), monday("new", 8, 12)),),
    "blind append, not read": ((CommitInfo(is_blind_append=True), monday("new", 10, 12)),),
    "append, read": ((CommitInfo(is_blind_append=False), monday("new", 8, 12)),),
    "append, not read": ((CommitInfo(), monday("new", 10, 12)),),
    "append without statistics": ((CommitInfo(), replace(BARE, partition_values={"day": "mon"})),),
    "append, another partition": ((CommitInfo(), replace(BARE, partition_values={"day": "tue"})),),
    "remove, rewritten": ((removal(ONE),),),
    "remove, read": ((removal(TWO),),),
    "remove, not read": ((removal(FAR),),),
    "vector, rewritten": ((removal(ONE), vector(ONE)),),
    "vector, read": ((removal(TWO), vector(TWO)),),
    "vector, not read": ((removal(FAR), vector(FAR)),),
    "move, rewritten": (move(ONE),),
    "move, read": (move(TWO),),
    "move, not read": (move(FAR),),
    "upkeep, rewritten": ((CommitInfo(operation="OPTIMIZE", operation_parameters={"auto": True}), *move(ONE)),),
    "move, then remove, read": (move(TWO), (moved(TWO),)),
    "move, then remove, not read": (move(FAR), (moved(FAR),)),
}
APPEND = Changes(
    Operation("WRITE"),
    adds=(monday("mine", 0, 5),),
    transactions=(SetTransaction("app", 1),),
    domains=(DomainMetadata("shared", "{}"),),
)
REWRITE = replace(APPEND, removes=(removal(ONE),))
REARRANGE = replace(APPEND, adds=(monday("mine", 0, 5, data_change=False),), removes=(removal(ONE, data_change=False),))
ALTER = replace(APPEND, adds=(), metadata=replace(BY_DAY.metadata, name="mine"))
# The columns of the matrix: the transactions of each kind.
TRANSACTIONS: dict[str, tuple[tuple[Changes, ReadSet], ...]] = {
    "append": ((APPEND, ReadSet()),),
    "insert": ((APPEND, READS_MONDAY), (APPEND, replace(READS_MONDAY, paths=frozenset()))),
    "rewrite": (
        (REWRITE, READS_MONDAY),
        (REWRITE, replace(READS_MONDAY, paths=frozenset())),
        (replace(REWRITE, adds=(vector(ONE, "y"),)), READS_MONDAY),
        (replace(REWRITE, adds=()), READS_MONDAY),
    ),
    "overwrite": ((replace(APPEND, removes=tuple(map(removal, (ONE, TWO, FAR)))), ReadSet(whole_table=True)),),
    "rearrange": ((REARRANGE, READS_MONDAY), (REARRANGE, ReadSet())),
    "alter": ((ALTER, ReadSet()), (replace(ALTER, adds=APPEND.adds), ReadSet())),
    "constrain": ((replace(ALTER, protocol=PROTOCOL), ReadSet(whole_table=True)),),
}
Case = tuple[str, str, str, "type[ConcurrentModificationError] | None"]


def matrix() -> Iterator[Case]:
    """Yields winners, transaction, level, and their error in the docstring's matrix."""
    lines = [line.strip("| ").split("|") for line in (conflicts.__doc__ or "").splitlines() if line.startswith("| ")]
    header, *rows = [[cell.strip() for cell in line] for line in lines]
    assert header[1:] == list(TRANSACTIONS)
    assert [row[0] for row in rows] == list(WINNERS)
    for winner, *cells in rows:
        for transaction, cell in zip(header[1:], cells, strict=True):
            by_level = entry(cell)
            yield from ((winner, transaction, level, by_level.get(level)) for level in LEVELS)


def entry(cell: str) -> dict[str, type[ConcurrentModificationError]]:
    """Returns the errors of a cell, such as `Del SW Twice I`, by level; without a level, for all levels."""
    if cell == "ok":
        return {}
    assert re.fullmatch(r"[A-Z][a-z]+|([A-Z][a-z]+ [SWI]+ ?)+", cell), cell
    named = re.findall(r"([A-Z][a-z]+)(?: ([SWI]+))?", cell)
    return {level: ERRORS[name] for name, levels in named for level in levels or LEVELS}


@pytest.mark.parametrize(("winners", "transaction", "level", "error"), list(matrix()))
def test_each_conflict_of_the_matrix_raises_its_error(
    winners: str, transaction: str, level: str, error: type[Exception] | None
) -> None:
    for changes, reads in TRANSACTIONS[transaction]:
        pending_commit = PendingCommit(BY_DAY, changes, reads, effective_isolation_level(LEVELS[level], changes))
        raised = outcome(lambda pending_commit=pending_commit: check_all(WINNERS[winners], pending_commit))  # type: ignore[misc]
        assert type(raised) is (error or type(None))


def check_all(commits: Iterable[Sequence[Action]], pending_commit: PendingCommit) -> None:
    for version, actions in enumerate(commits, start=5):
        pending_commit = check_conflicts(WinningCommit(version, tuple(actions)), pending_commit)


def outcome(run: Callable[[], object]) -> ConcurrentModificationError | None:
    try:
        run()
    except ConcurrentModificationError as error:
        return error
    return None


def pending(reads: ReadSet, changes: Changes = APPEND, level: str = "S") -> PendingCommit:
    return PendingCommit(BASE, changes, reads, LEVELS[level])


def winner(*actions: Action) -> WinningCommit:
    info = CommitInfo(1_700_000_000_000, "MERGE", engine_info="Apache-Spark", extra={"dbt": "model.shop.orders"})
    return WinningCommit(5, (info, *actions))


def test_an_error_names_both_sides_and_the_files() -> None:
    new = [file(f"new{number}", 8, 12) for number in range(12)]
    with pytest.raises(ConcurrentAppendError) as caught:
        check_conflicts(winner(*new), pending(READS, level="W"))
    details = dict(caught.value.details)
    assert details.pop("commit_info")["dbt"] == "model.shop.orders"
    assert details == {
        "version": 5,
        "operation": "MERGE",
        "files": tuple(f"new{number}" for number in range(10)),
        "num_files": 12,
        "partitions": (),
        "own_operation": "WRITE",
        "base_version": 4,
        "isolation_level": "WriteSerializable",
    }
    assert str(caught.value) == (
        "[SILT_CONCURRENT_APPEND] shop.orders@v4: WRITE, based on version 4, lost to MERGE (version 5, committed by "
        "Apache-Spark at 2023-11-14 22:13:20 UTC), which added files that may hold rows which it would have read: "
        "new0, new1, new2 and 9 more. Nothing was applied: run it again; a predicate that names the partition or key "
        "range avoids conflicts with other writers."
    )


@pytest.mark.parametrize(
    ("reads", "hint"),
    [
        (READS, "a condition on the partition column `day`"),
        (ReadSet(whole_table=True), "a condition on the partition column `day`"),
        (ReadSet((Comparison("=", Column.of("DAY"), "1"),)), "both read or write the same partition"),
    ],
)
def test_the_hint_for_a_partitioned_table_depends_on_whether_the_predicate_can_be_narrowed(
    reads: ReadSet, hint: str
) -> None:
    pending_commit = PendingCommit(BY_DAY, APPEND, reads, IsolationLevel.SERIALIZABLE)
    with pytest.raises(ConcurrentAppendError, match=hint) as caught:
        check_conflicts(winner(replace(file("day=1/new", 8, 9), partition_values={"day": "1"})), pending_commit)
    assert caught.value.details["partitions"] == ("day=1",)
    assert "in the partition day=1" in str(caught.value)


def test_a_winner_without_commit_info_is_named_another_writer() -> None:
    pending_commit = pending(READS)
    for info in (CommitInfo(), CommitInfo(timestamp=10**18)):
        with pytest.raises(MetadataChangedError, match=r"lost to another writer \(version 5, committed"):
            check_conflicts(WinningCommit(5, (info, replace(METADATA, description="new"))), pending_commit)


def test_whole_table_reads_conflict_with_every_file_that_changes_data() -> None:
    everything = pending(ReadSet(whole_table=True))
    assert isinstance(
        outcome(lambda: check_conflicts(winner(file("new", 500, 501)), everything)), ConcurrentAppendError
    )
    assert isinstance(outcome(lambda: check_conflicts(winner(removal(FAR)), everything)), ConcurrentDeleteReadError)
    assert outcome(lambda: check_conflicts(winner(file("new", 1, 1, data_change=False)), everything)) is None


def test_an_added_file_without_statistics_conflicts_with_any_read() -> None:
    assert isinstance(outcome(lambda: check_conflicts(winner(BARE), pending(READS))), ConcurrentAppendError)


@pytest.mark.parametrize(("predicate", "error"), [(UNKNOWN, ConcurrentAppendError), (FALSE, type(None))])
def test_an_unknown_predicate_reads_all_files_and_a_false_predicate_reads_none(predicate: object, error: type) -> None:
    reads = ReadSet((predicate,))  # type: ignore[arg-type]
    assert type(outcome(lambda: check_conflicts(winner(file("new", 500, 501)), pending(reads)))) is error


def test_predicates_are_alternatives() -> None:
    reads = ReadSet((Comparison("=", Column.of("id"), 1), Comparison("=", Column.of("id"), 500)))
    for add in (file("new", 1, 1), file("new", 500, 500)):
        assert isinstance(outcome(lambda add=add: check_conflicts(winner(add), pending(reads))), ConcurrentAppendError)  # type: ignore[misc]
    assert outcome(lambda: check_conflicts(winner(file("new", 2, 499)), pending(reads))) is None


def test_a_removed_file_counts_as_read_if_only_a_predicate_matches_it() -> None:
    reads = ReadSet((Comparison("=", Column.of("id"), 7),))
    assert isinstance(outcome(lambda: check_conflicts(winner(removal(TWO)), pending(reads))), ConcurrentDeleteReadError)
    assert outcome(lambda: check_conflicts(winner(removal(ONE)), pending(reads))) is None


def test_removing_a_file_that_was_added_after_the_base_is_not_a_conflict() -> None:
    passing = file("passing", 500, 501)
    assert outcome(lambda: check_conflicts(winner(removal(passing)), pending(READS))) is None


def test_escaped_and_unescaped_paths_name_the_same_file() -> None:
    reads = ReadSet(paths=frozenset({"a b"}))
    removed = RemoveFile("a%20b", 1)
    assert isinstance(outcome(lambda: check_conflicts(winner(removed), pending(reads))), ConcurrentDeleteReadError)


def test_an_unsupported_protocol_is_refused_with_the_name_of_the_feature() -> None:
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        check_conflicts(winner(Protocol(3, 7, ("catalogManaged",), ("catalogManaged",))), pending(ReadSet()))


def test_a_winner_without_the_blind_append_flag_counts_as_having_read() -> None:
    reads_under_w = pending(READS, level="W")
    assert isinstance(
        outcome(lambda: check_conflicts(WinningCommit(5, (file("new", 8, 12),)), reads_under_w)), ConcurrentAppendError
    )


def test_features_that_winners_enable_in_turn_apply_to_the_transaction() -> None:
    protocol = upgraded(PROTOCOL, ["deletionVectors"])
    one = replace(METADATA, configuration={"delta.checkpointPolicy": "v2"})
    two = replace(one, configuration={**one.configuration, "delta.enableDeletionVectors": "true"})
    pending_commit = check_conflicts(winner(one), pending(ReadSet()))
    pending_commit = check_conflicts(winner(protocol, two), pending_commit)
    base = pending_commit.base
    assert (base.metadata, base.protocol, base.version) == (two, protocol, BASE.version)
    with pytest.raises(MetadataChangedError):
        check_conflicts(winner(one), pending_commit)
