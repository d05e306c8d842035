"""The conflict checks, against the matrix in their module's docstring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.kernel import columns, conflicts
from dbt.adapters.silt.engine.kernel.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from dbt.adapters.silt.engine.kernel.changes import DROP_OPERATION, Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.conflicts import (
    Pending,
    Winner,
    check_conflicts,
    effective_isolation_level,
)
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
from dbt.adapters.silt.engine.kernel.expressions import FALSE, UNKNOWN, Column, Comparison
from dbt.adapters.silt.engine.kernel.properties import IsolationLevel
from dbt.adapters.silt.engine.kernel.schema import PrimitiveType, StructField, StructType
from dbt.adapters.silt.engine.kernel.snapshot import Snapshot

SCHEMA = StructType((StructField("id", PrimitiveType("long")), StructField("day", PrimitiveType("string"))))
METADATA = Metadata("the-table", SCHEMA.to_json())
PROTOCOL = Protocol(3, 7, (), ("appendOnly", "domainMetadata"))
LEVELS = {"S": IsolationLevel.SERIALIZABLE, "W": IsolationLevel.WRITE_SERIALIZABLE, "I": IsolationLevel.SNAPSHOT}
ERRORS = {
    "Drop": ConcurrentDropError,
    "Proto": ProtocolChangedError,
    "Meta": MetadataChangedError,
    "Txn": ConcurrentTransactionError,
    "Dom": ConcurrentDomainError,
    "Append": ConcurrentAppendError,
    "DelRead": ConcurrentDeleteReadError,
    "DelDel": ConcurrentDeleteDeleteError,
}


def file(path: str, low: int, high: int, data_change: bool = True) -> AddFile:
    bounds = f'"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}'
    return AddFile(path, {}, 10, 0, data_change, f'{{"numRecords":9,{bounds}}}')


# The transaction reads ids up to 9: files one and two; it rewrites file one.
ONE, TWO, FAR = file("one", 0, 5), file("two", 6, 9), file("far", 100, 109)
BASE = Snapshot("shop.orders", 4, 0, METADATA, PROTOCOL, columns.files_table([ONE, TWO, FAR]), {}, {})
READS = ReadSet((Comparison("<", Column.of("id"), 10),), frozenset({"one", "two"}))
MINE = (SetTransaction("app", 1), DomainMetadata("shared", "{}"))


def removal(add: AddFile, data_change: bool = True) -> RemoveFile:
    return add.remove(1, data_change)


WINNERS: dict[str, tuple[Action, ...]] = {
    "drop": (CommitInfo(operation=DROP_OPERATION),),
    "another table's id": (CommitInfo(operation="CREATE TABLE"), replace(METADATA, id="another")),
    "protocol, features lost": (Protocol(3, 7, (), ("domainMetadata",)),),
    "protocol, features added": (Protocol(3, 7, ("timestampNtz",), (*PROTOCOL.writer_features, "timestampNtz")),),
    "metadata": (replace(METADATA, description="new"),),
    "domain that I set": (DomainMetadata("shared", "theirs"),),
    "transaction id of mine": (SetTransaction("app", 7),),
    "blind append, read": (CommitInfo(is_blind_append=True), file("new", 8, 12)),
    "blind append, not read": (CommitInfo(is_blind_append=True), file("new", 10, 12)),
    "other append, read": (CommitInfo(is_blind_append=False), file("new", 8, 12)),
    "other append, not read": (CommitInfo(), file("new", 10, 12)),
    "rearranging add, read": (CommitInfo(), file("new", 8, 12, data_change=False)),
    "remove, read": (removal(TWO),),
    "remove, not read": (removal(FAR),),
    "remove, I rewrite": (removal(ONE),),
    "rearranging remove, read": (removal(TWO, data_change=False),),
    "rearranging remove, I rewrite": (removal(ONE, data_change=False),),
}
APPEND = Changes(Operation("WRITE"), adds=(file("mine", 0, 5),), transactions=MINE[:1], domains=MINE[1:])
TRANSACTIONS: dict[str, tuple[Changes, ReadSet]] = {
    "append": (APPEND, ReadSet()),
    "append after read": (APPEND, READS),
    "rewrite": (replace(APPEND, removes=(removal(ONE),)), READS),
    "rearrange": (
        replace(APPEND, adds=(file("mine", 0, 5, data_change=False),), removes=(removal(ONE, data_change=False),)),
        READS,
    ),
    "alter after read": (
        replace(APPEND, adds=(), metadata=replace(METADATA, name="mine"), protocol=PROTOCOL),
        READS,
    ),
}


def matrix() -> Iterator[tuple[str, str, str, type[ConcurrentModificationError] | None]]:
    """Winner, transaction, level, and the error that the docstring's matrix has for them."""
    lines = [line.strip("| ").split("|") for line in (conflicts.__doc__ or "").splitlines() if line.startswith("| ")]
    header, *rows = [[cell.strip() for cell in line] for line in lines]
    assert set(header[1:]) == set(TRANSACTIONS)
    assert [row[0] for row in rows] == list(WINNERS)
    for winner, *cells in rows:
        for transaction, cell in zip(header[1:], cells, strict=True):
            by_level = {level: name for name, levels in re.findall(r"([A-Z]\w+) ([SWI]+)", cell) for level in levels}
            assert by_level or cell in ("ok", "n/a"), cell
            for level in LEVELS:
                if cell != "n/a":
                    yield winner, transaction, level, ERRORS[by_level[level]] if level in by_level else None


@pytest.mark.parametrize(("winner", "transaction", "level", "error"), list(matrix()))
def test_the_matrix_holds(winner: str, transaction: str, level: str, error: type[Exception] | None) -> None:
    changes, reads = TRANSACTIONS[transaction]
    pending = Pending(BASE, changes, reads, effective_isolation_level(LEVELS[level], changes))
    raised = outcome(lambda: check_conflicts(Winner(5, WINNERS[winner]), pending))
    assert type(raised) is (error or type(None))


def outcome(run: Callable[[], None]) -> ConcurrentModificationError | None:
    try:
        run()
    except ConcurrentModificationError as error:
        return error
    return None


def pending(reads: ReadSet, changes: Changes = APPEND, level: str = "S") -> Pending:
    return Pending(BASE, changes, reads, LEVELS[level])


def winner(*actions: Action) -> Winner:
    info = CommitInfo(1_700_000_000_000, "MERGE", engine_info="Apache-Spark", extra={"dbt": "model.shop.orders"})
    return Winner(5, (info, *actions))


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
        "new0, new1, new2 and 9 more. Nothing was applied: run it again; naming the partition or key range in the "
        "predicate keeps it apart from other writers."
    )


@pytest.mark.parametrize(
    ("reads", "hint"),
    [
        (READS, "a condition on the partition column `day`"),
        (ReadSet(whole_table=True), "a condition on the partition column `day`"),
        (ReadSet((Comparison("=", Column.of("DAY"), "1"),)), "both read or write the same partition"),
    ],
)
def test_on_a_partitioned_table_the_hint_says_whether_the_predicate_can_be_narrowed(reads: ReadSet, hint: str) -> None:
    base = replace(BASE, metadata=replace(METADATA, partition_columns=("day",)))
    mine = Pending(base, APPEND, reads, IsolationLevel.SERIALIZABLE)
    with pytest.raises(ConcurrentAppendError, match=hint) as caught:
        check_conflicts(winner(replace(file("day=1/new", 8, 9), partition_values={"day": "1"})), mine)
    assert caught.value.details["partitions"] == ("day=1",)
    assert "in the partition day=1" in str(caught.value)


def test_a_winner_that_says_nothing_of_itself_is_still_named() -> None:
    mine = pending(READS)
    for info in (CommitInfo(), CommitInfo(timestamp=10**18)):
        with pytest.raises(MetadataChangedError, match=r"lost to another writer \(version 5, committed"):
            check_conflicts(Winner(5, (info, replace(METADATA, description="new"))), mine)


def test_whole_table_reads_conflict_with_every_file_that_changes_data() -> None:
    everything = pending(ReadSet(whole_table=True))
    assert isinstance(
        outcome(lambda: check_conflicts(winner(file("new", 500, 501)), everything)), ConcurrentAppendError
    )
    assert isinstance(outcome(lambda: check_conflicts(winner(removal(FAR)), everything)), ConcurrentDeleteReadError)
    assert outcome(lambda: check_conflicts(winner(file("new", 1, 1, data_change=False)), everything)) is None


def test_an_added_file_without_statistics_might_hold_what_was_read() -> None:
    bare = AddFile("new", {}, 10, 0)
    assert isinstance(outcome(lambda: check_conflicts(winner(bare), pending(READS))), ConcurrentAppendError)


@pytest.mark.parametrize(("predicate", "error"), [(UNKNOWN, ConcurrentAppendError), (FALSE, type(None))])
def test_a_predicate_that_says_nothing_reads_all_and_a_false_one_none(predicate: object, error: type) -> None:
    reads = ReadSet((predicate,))  # type: ignore[arg-type]
    assert type(outcome(lambda: check_conflicts(winner(file("new", 500, 501)), pending(reads)))) is error


def test_predicates_are_alternatives() -> None:
    reads = ReadSet((Comparison("=", Column.of("id"), 1), Comparison("=", Column.of("id"), 500)))
    for add in (file("new", 1, 1), file("new", 500, 500)):
        assert isinstance(outcome(lambda add=add: check_conflicts(winner(add), pending(reads))), ConcurrentAppendError)
    assert outcome(lambda: check_conflicts(winner(file("new", 2, 499)), pending(reads))) is None


def test_a_removed_file_counts_as_read_by_its_predicate_alone() -> None:
    reads = ReadSet((Comparison("=", Column.of("id"), 7),))
    assert isinstance(outcome(lambda: check_conflicts(winner(removal(TWO)), pending(reads))), ConcurrentDeleteReadError)
    assert outcome(lambda: check_conflicts(winner(removal(ONE)), pending(reads))) is None


def test_a_file_that_came_and_went_after_the_base_was_not_read() -> None:
    passing = file("passing", 500, 501)
    assert outcome(lambda: check_conflicts(winner(removal(passing)), pending(READS))) is None


def test_files_are_the_same_however_their_paths_are_quoted() -> None:
    reads = ReadSet(paths=frozenset({"a b"}))
    removed = RemoveFile("a%20b", 1)
    assert isinstance(outcome(lambda: check_conflicts(winner(removed), pending(reads))), ConcurrentDeleteReadError)


def test_a_protocol_that_is_beyond_this_engine_is_refused_by_the_features_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="catalogManaged"):
        check_conflicts(winner(Protocol(3, 7, ("catalogManaged",), ("catalogManaged",))), pending(ReadSet()))


def test_a_missing_blind_append_flag_means_that_the_winner_has_read() -> None:
    reads_under_w = pending(READS, level="W")
    assert isinstance(
        outcome(lambda: check_conflicts(Winner(5, (file("new", 8, 12),)), reads_under_w)), ConcurrentAppendError
    )
