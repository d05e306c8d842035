"""The plan of upkeep, from sizes alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.maintenance.bins import SMALL, SPOILED, TARGET_FILE_SIZE, FileState
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import (
    Budget,
    TableState,
    budget_seconds,
    ranked,
    reads_of,
)

MEGABYTE = 1 << 20
TARGET = TARGET_FILE_SIZE

FILES = st.lists(st.tuples(st.integers(1, 2 * TARGET), st.sampled_from((0.0, 0.0, 0.1, 0.3, 1.0))), max_size=60)


def table(files: Sequence[tuple[int, float]], **more: object) -> TableState:
    states = [FileState(str(number), size, marked) for number, (size, marked) in enumerate(files)]
    return replace(TableState("silt.main.t", states), **more)  # type: ignore[arg-type]


def sizes(state: TableState) -> list[list[int]]:
    return [sorted(each.size for each in bin_.files) for bin_ in state.bins()]


@dataclass
class Merges:
    """A table that merges change, and upkeep after some of them.

    Attributes:
        kept: the size of a file that is written again, as a share of its live bytes.
    """

    files: list[FileState]
    kept: float = 1.0
    written: int = 0
    rewritten: int = 0
    most: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def merge(self, size: int, scattered: bool) -> None:
        """Writes a file of new rows; scattered rows replace rows of every file."""
        live = sum(each.live for each in self.files)
        if scattered and live:
            self.files = [replace(each, marked=each.marked + (1 - each.marked) * size / live) for each in self.files]
        self._add(size)
        self.written += size

    def keep_up(self) -> None:
        for bin_ in TableState("t", self.files).bins():
            self.files = [each for each in self.files if each not in bin_.files]
            size = int(sum(each.live for each in bin_.files) * self.kept)
            self.rewritten += size
            self._add(size)
        self.most = max(self.most, len(self.files))

    def _add(self, size: int) -> None:
        if size:
            self.files.append(FileState(f"new {next(self._names)}", size))


@pytest.mark.parametrize("kept", [1.0, 0.7])
@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize(("base", "size"), [(100 * MEGABYTE, 100_000), (0, 20_000), (1024 * MEGABYTE, MEGABYTE)])
def test_a_thousand_merges_write_a_byte_again_at_most_six_times(
    base: int, size: int, scattered: bool, every: int, kept: float
) -> None:
    merges = Merges([FileState("base", base)] if base else [], kept)
    for number in range(1, 1001):
        merges.merge(size, scattered)
        if number % every == 0:
            merges.keep_up()
    state = TableState("t", merges.files)
    assert merges.rewritten <= 6 * merges.written
    assert merges.most <= 16 + (base + merges.written) / TARGET
    assert state.marked < SPOILED


@given(FILES)
def test_a_file_is_in_at_most_one_bin_and_a_bin_is_no_larger_than_a_complete_file(
    files: list[tuple[int, float]],
) -> None:
    bins = table(files).bins()
    keys = [each.key for bin_ in bins for each in bin_.files]
    assert len(keys) == len(set(keys))
    for bin_ in bins:
        assert sum(each.live for each in bin_.files) <= TARGET or len(bin_.files) == 1


@given(FILES)
def test_a_file_without_many_marked_rows_is_written_again_only_into_a_larger_file(
    files: list[tuple[int, float]],
) -> None:
    for bin_ in table(files).bins():
        live = sum(each.live for each in bin_.files)
        growth = 1.5 if live >= SMALL * TARGET else 3.5
        assert all(each.is_spoiled or each.size * growth <= live for each in bin_.files)
        assert bin_.saved > 0


@given(FILES)
def test_few_small_files_and_no_spoiled_file_are_left(files: list[tuple[int, float]]) -> None:
    state = table([(max(size, 64 << 10), marked) for size, marked in files])
    chosen = {each.key for bin_ in state.bins() for each in bin_.files}
    left = sorted(each.size for each in state.files if each.key not in chosen and each.size < TARGET / 4)
    assert not any(each.is_spoiled for each in state.files if each.key not in chosen and each.live)
    # Each file that is left is larger than a third of those before it together.
    assert all(3 * size > sum(left[:number]) for number, size in enumerate(left))


@given(FILES)
def test_a_second_plan_after_the_first_finds_less_to_do(files: list[tuple[int, float]]) -> None:
    merges = Merges(list(table(files).files))
    for _ in range(8):
        merges.keep_up()
    assert not TableState("t", merges.files).bins()


def test_files_of_different_partitions_are_not_merged() -> None:
    files = [FileState(f"{day} {number}", 1000, 0.0, (("day", day),)) for day in "ab" for number in range(4)]
    bins = TableState("t", files).bins()
    assert sorted({each.partition for each in bin_.files} == {bin_.files[0].partition} for bin_ in bins) == [True, True]


def test_a_complete_file_is_written_again_only_if_a_quarter_of_its_rows_is_marked() -> None:
    assert sizes(table([(TARGET, 0.24)])) == []
    assert sizes(table([(TARGET, 0.25)])) == [[TARGET]]


def test_three_files_of_about_a_size_wait_for_a_fourth() -> None:
    assert sizes(table([(1000, 0.0)] * 3)) == []
    assert sizes(table([(1000, 0.0)] * 3 + [(1100, 0.0)])) == [[1000] * 3 + [1100]]


def test_the_best_saving_for_each_byte_comes_first_and_reads_raise_it() -> None:
    rare = table([(1000, 0.0)] * 8)
    often = replace(table([(3000, 0.0)] * 8), table="silt.main.often", reads=10)
    assert [name for name, _ in ranked((rare, often))] == ["silt.main.often", "silt.main.t"]
    assert [name for name, _ in ranked((rare, replace(often, reads=0)))] == ["silt.main.t", "silt.main.often"]


def test_a_table_that_waits_has_no_bins() -> None:
    assert table([(1000, 0.0)] * 8, waits="a branch uses it").bins() == []


def test_reads_are_counted_by_commit() -> None:
    assert reads_of([{"a": [1]}, {"a": [2], "b": [1]}, {}]) == {"a": 2, "b": 1}


@pytest.mark.parametrize("speed", [1, 8, 400])
@pytest.mark.parametrize("fixed", [0.2, 3.0])
def test_the_budget_is_kept_within_a_tenth(speed: int, fixed: float) -> None:
    drawn = random.Random(speed)
    for seconds in (60.0, 300.0):
        budget = Budget(seconds)
        for size in sorted((drawn.randrange(1000, 4 * speed * MEGABYTE) for _ in range(2000)), reverse=True):
            if budget.fits(size):
                took = (fixed + size / (speed * MEGABYTE)) * drawn.uniform(0.8, 1.2)
                budget.spent += took
                budget.note(size, took)
        assert 0.9 * seconds <= budget.spent <= 1.1 * seconds


@pytest.mark.parametrize(("text", "seconds"), [("5 minutes", 300), ("2m10s", 130), ("interval 1 hour", 3600)])
def test_a_budget_is_a_length_of_time(text: str, seconds: int) -> None:
    assert budget_seconds(text) == seconds


@pytest.mark.parametrize("text", ["0", "0 minutes", "abc", "-5 minutes", "", "5", "5 months"])
def test_another_budget_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="such as `5 minutes`"):
        budget_seconds(text)
