"""The plan of clustering, from the log alone: which files are clustered again."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.maintenance.bins import TARGET_FILE_SIZE, Bin, FileState
from dbt.adapters.silt.engine.kernel.maintenance.clustering import bins, full
from dbt.adapters.silt.engine.kernel.maintenance.upkeep import TableState

TARGET = TARGET_FILE_SIZE
MEGABYTE = 1 << 20

PARTS = st.lists(
    st.tuples(
        st.integers(1, 2 * TARGET), st.sampled_from(("", "", "a", "b", "c")), st.sampled_from((0.0, 0.0, 0.1, 0.4))
    ),
    max_size=40,
)


def states(parts: Sequence[tuple[int, str, float]]) -> list[FileState]:
    return [FileState(str(number), size, marked, cube=cube) for number, (size, cube, marked) in enumerate(parts)]


def keys(found: Sequence[Bin]) -> list[str]:
    return sorted(each.key for bin_ in found for each in bin_.files)


@dataclass
class Table:
    """A clustered table that many writes change, and that is clustered after some of them."""

    files: list[FileState] = field(default_factory=list)
    written: int = 0
    rewritten: float = 0.0
    depth: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def write(self, size: int, span: tuple[int, int] | None) -> None:
        self.files.append(FileState(f"w{next(self._names)}", size, span=span))
        self.written += size

    def cluster(self, eager: bool) -> None:
        for bin_ in bins(self.files, TARGET, eager=eager):
            self.files = [each for each in self.files if each not in bin_.files]
            size = sum(each.live for each in bin_.files)
            self.rewritten += size
            self._add(bin_, size)
        self.depth = max(self.depth, len({each.cube or each.key for each in self.files}))

    def _add(self, bin_: Bin, size: float) -> None:
        """Adds the new files of a bin, which divide its values among them."""
        number, cube = max(1, round(size / TARGET)), bin_.cube or f"c{next(self._names)}"
        spans = [each.span for each in bin_.files if each.span is not None]
        low, high = (min(first for first, _ in spans), max(last for _, last in spans)) if spans else (0, 0)
        for place in range(number):
            ends = (low + (high - low) * place // number + (place > 0), low + (high - low) * (place + 1) // number)
            span = ends if spans else None
            self.files.append(FileState(f"r{next(self._names)}", int(size / number), cube=cube, span=span))


@pytest.mark.parametrize("eager", [True, False], ids=["optimize", "upkeep"])
@pytest.mark.parametrize("scattered", [True, False])
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize(("base", "size", "writes"), [(0, 20_000, 3000), (400 * MEGABYTE, MEGABYTE, 1000)])
def test_many_small_writes_write_a_byte_again_at_most_six_times_and_leave_few_cubes(
    base: int, size: int, writes: int, every: int, scattered: bool, eager: bool
) -> None:
    table, chance = Table(), random.Random(1)
    if base:
        table.write(base, (0, 10**9))
        table.cluster(eager)
        table.written, table.rewritten = 0, 0.0
    for number in range(1, writes + 1):
        first = chance.randrange(10**6)
        wide = size + first if scattered else 10**9 + number * 10
        table.write(chance.randrange(size // 2, size * 2), (first, wide + 10**8) if scattered else (wide, wide + 9))
        if number % every == 0:
            table.cluster(eager)
    assert table.rewritten <= 6 * table.written
    assert table.depth <= 30
    table.cluster(eager)
    assert bins(table.files, TARGET, eager=eager) == []


@given(PARTS)
def test_optimize_clusters_all_files_that_are_not_clustered_and_a_second_one_does_nothing(
    parts: list[tuple[int, str, float]],
) -> None:
    table = Table(states(parts))
    found = bins(table.files, TARGET, eager=True)
    assert len(keys(found)) == len(set(keys(found)))
    loose = [each for each in table.files if not each.cube]
    assert len(loose) < 2 or {each.key for each in loose} <= set(keys(found))
    assert {each.key for each in table.files if each.is_spoiled} <= set(keys(found))
    table.cluster(eager=True)
    assert bins(table.files, TARGET, eager=True) == []


@given(PARTS)
def test_upkeep_writes_a_cube_again_only_into_a_cube_that_is_several_times_as_large(
    parts: list[tuple[int, str, float]],
) -> None:
    for bin_ in bins(states(parts), TARGET):
        total = sum(each.live for each in bin_.files)
        for _, files in itertools.groupby(sorted(bin_.files, key=lambda each: each.cube), lambda each: each.cube):
            cube = list(files)
            size = sum(each.live for each in cube) if cube[0].cube else max(each.live for each in cube)
            is_cut = not cube[0].cube and size > 1.5 * TARGET  # too large a file is written again at once
            assert is_cut or size * 2 <= total or len({each.cube for each in bin_.files}) == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=8), st.booleans())
def test_a_complete_cube_is_kept_only_if_it_shares_no_value_with_another_file(
    spans: list[tuple[int, int]], eager: bool
) -> None:
    files = [
        FileState(str(at), TARGET, cube=str(at), span=(first, first + length))
        for at, (first, length) in enumerate(spans)
    ]
    alone = {each.key for each in files if not any(_meet(each, other) for other in files if other is not each)}
    assert not alone.intersection(keys(bins(files, TARGET, eager=eager)))
    # Three cubes of a size are enough for a merge.
    others = sorted(each.key for each in files if each.key not in alone)
    assert sorted(keys(bins(files, TARGET, eager=eager))) == (others if len(others) > 2 else [])


def _meet(one: FileState, other: FileState) -> bool:
    assert one.span is not None and other.span is not None
    return one.span[0] <= other.span[1] and other.span[0] <= one.span[1]


def test_files_of_other_engines_and_of_earlier_columns_are_kept() -> None:
    files = [
        FileState("foreign", 1000, is_foreign=True),
        FileState("stale", 1000, is_stale=True),
        *(FileState(str(number), 1000) for number in range(3)),
    ]
    assert keys(bins(files, TARGET, eager=True)) == ["0", "1", "2"]
    assert keys(full(files)) == ["0", "1", "2", "stale"]


def test_full_clusters_everything_once() -> None:
    files = states([(1000, "a", 0.0), (1000, "b", 0.0), (1000, "", 0.0)])
    [whole] = full(files)
    assert keys([whole]) == ["0", "1", "2"]
    assert full(states([(1000, "a", 0.0), (5000, "a", 0.0)])) == full([]) == []
    assert full(states([(1000, "a", 0.0), (5000, "a", 0.1)])) != []


def test_a_file_with_deleted_rows_is_written_again_as_a_file_of_its_cube() -> None:
    files = states([(TARGET, "a", 0.3), (TARGET, "a", 0.0)])
    [spoiled] = bins(files, TARGET)
    assert (keys([spoiled]), spoiled.cube) == (["0"], "a")


def test_complete_files_that_share_no_value_are_kept_and_files_that_do_are_a_candidate() -> None:
    apart = [FileState(str(place), TARGET, span=(10 * place, 10 * place + 9)) for place in range(8)]
    across = [FileState(str(place), TARGET, span=(place, 100)) for place in range(8)]
    assert not TableState("t", apart, is_clustered=True).bins()
    [found] = TableState("t", across, is_clustered=True).bins()
    assert (len(found.files), found.depth) == (8, 8)
    assert found.saved > Bin(tuple(apart)).saved
