"""The files that OPTIMIZE rewrites together, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.commands.maintenance import bins
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DeletionVector
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from tests.unit.engine.kernel.log_builder import add, new_log, put

VECTOR = DeletionVector("i", "x", 1, 1)
TARGET = 100


def packed(sizes: list[int], with_vector: frozenset[int] = frozenset()) -> list[list[int]]:
    """Returns the sizes of the files of each bin."""
    adds = [
        AddFile(f"f{number}", {}, size, 1, deletion_vector=VECTOR if number in with_vector else None)
        for number, size in enumerate(sizes)
    ]
    return [each["size"].to_pylist() for each in bins.packed(files_table(adds), TARGET)]


def test_small_files_share_a_bin_up_to_the_target_size() -> None:
    assert packed([40, 10, 60, 30, 5]) == [[5, 10, 30, 40]]
    assert packed([50, 50, 50]) == [[50, 50]]
    assert packed([60, 60]) == []


def test_files_near_the_target_size_and_single_files_are_not_rewritten() -> None:
    assert packed([75, 90, 100, 1000]) == []
    assert packed([10]) == []
    assert packed([]) == []


def test_files_with_deleted_rows_are_always_rewritten() -> None:
    assert packed([1000, 10], frozenset({0})) == [[1000]]
    assert packed([80, 10], frozenset({0, 1})) == [[10, 80]]


@given(st.lists(st.integers(1, 150), max_size=60))
def test_no_file_is_packed_twice_no_bin_is_too_large_and_a_second_packing_finds_nothing(sizes: list[int]) -> None:
    found = packed(sizes)
    assert all(len(each) > 1 and sum(each) <= TARGET for each in found)
    left = list(sizes)
    for each in found:
        for size in each:
            left.remove(size)
    assert packed([*left, *map(sum, found)]) == []


def test_files_are_grouped_by_their_partition_values_whatever_their_spelling() -> None:
    log = new_log(partition_columns=("day",))
    put(
        log,
        1,
        add("a", "x"),
        add("b", "y"),
        add("c", "x"),
        AddFile("d", {"day": None}, 1, 1),
        AddFile("e", {"day": ""}, 1, 1),
    )
    snapshot = log.snapshot()
    groups = bins.by_partition(snapshot, snapshot.files)
    assert sorted(sorted(group["path"].to_pylist()) for group in groups) == [["a", "c"], ["b"], ["d", "e"]]
