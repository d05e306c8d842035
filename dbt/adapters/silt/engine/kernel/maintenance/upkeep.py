"""Plans upkeep from logs: which files to write again, which first, and how much of it fits into a budget.

Files of a partition are merged as in a log-structured merge tree: a file is written again only into a file that is
several times as large, so the number of times that a row is written again is bounded by a logarithm, and no state is
needed beyond the sizes in the log. A file of whose rows a deletion vector marks a large share is spoiled, and is
written again without them. The score of a bin is the number of bytes that each later read saves, for each byte read to
write the bin again; more reads of the table raise it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError
from dbt.adapters.silt.engine.kernel.lengths_of_time import length_of_time
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance import clustering
from dbt.adapters.silt.engine.kernel.maintenance.bins import SMALL, TARGET_FILE_SIZE, Bin, FileState

_GROWTH: Final = 3.5
"""A file is written again only if the new file has at least this many times its size."""

_LAST_GROWTH: Final = 1.5
"""The same for a new file that is complete, so that it is not written again."""

_DELETABLE: Final = 0.05
"""VACUUM runs if its files are more than this share of the table's size."""

_FIRST_SPEED: Final = 16 << 20
_FIRST_FIXED: Final = 1.0


@dataclass(frozen=True)
class TableState:
    """The facts about a table that upkeep needs.

    Attributes:
        table: its full name.
        files: its active files.
        target_size: the bytes of a complete file.
        reads: how often commits have read it lately.
        deletable: the bytes of files that VACUUM may delete; None if only a listing of its folder can tell.
        waits: why upkeep leaves it alone; empty if it does not.
        is_clustered: whether it has clustering columns.
    """

    table: str
    files: Sequence[FileState] = ()
    target_size: int = TARGET_FILE_SIZE
    reads: int = 0
    deletable: int | None = 0
    waits: str = ""
    is_clustered: bool = False

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)

    @property
    def small(self) -> int:
        """The number of its files that are smaller than a complete file."""
        return sum(each.size < SMALL * self.target_size for each in self.files)

    @property
    def marked(self) -> float:
        """The share of its bytes that belong to rows deleted by deletion vectors."""
        return 1 - sum(each.live for each in self.files) / self.size if self.size else 0.0

    @property
    def has_work(self) -> bool:
        """Whether upkeep may have anything to do."""
        return self.is_to_be_vacuumed or bool(self.bins())

    @property
    def is_to_be_vacuumed(self) -> bool:
        """Whether VACUUM is worth its two commits."""
        return not self.waits and (self.deletable is None or self.deletable > _DELETABLE * self.size)

    def bins(self) -> list[Bin]:
        """Returns the files to write again, the best first; empty if the table waits."""
        if self.waits:
            return []
        if self.is_clustered:
            found: Iterable[Bin] = clustering.bins(self.files, self.target_size)
            return sorted(found, key=lambda each: each.score(self.reads), reverse=True)
        own = [each for each in self.files if not each.is_foreign]
        found = (each for files in _by_partition(own) for each in _bins(files, self.target_size))
        return sorted(found, key=lambda each: each.score(self.reads), reverse=True)


@dataclass(frozen=True)
class Surveyed:
    """A table, its state by its log, and the versions of tables that its commits have read."""

    log: DeltaLog
    state: TableState
    reads: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class Uses:
    """The uses of tables' files by others, as functions of the catalog.

    Attributes:
        branches: returns the ids of the branches that are not published and have used a table.
        held: returns the files of a table that branches need, by the branch's id.
        of_clones: returns the files that tables, such as shallow clones, need outside of their folders, by the table.
    """

    branches: Callable[[DeltaLog], Collection[str]]
    held: Callable[[DeltaLog], Mapping[str, Collection[str]]]
    of_clones: Callable[[], Mapping[str, Collection[str]]]


def budget_seconds(text: str) -> float:
    """Parses a budget, such as `5 minutes`.

    Raises:
        InvalidArgumentError: if it is not a length of time above 0.
    """
    try:
        seconds = length_of_time(text).total_seconds()
    except ValueError:
        seconds = 0
    if not seconds:
        raise InvalidArgumentError(
            f"the budget of an upkeep cannot be `{text}`", remedy="Give a length of time above 0, such as `5 minutes`"
        )
    return seconds


def ranked(tables: Iterable[TableState]) -> list[tuple[str, Bin]]:
    """Returns the bins of all tables with the names of their tables, the best first."""
    scored = [(bin_.score(each.reads), each.table, bin_) for each in tables for bin_ in each.bins()]
    return [(table, bin_) for _, table, bin_ in sorted(scored, key=lambda each: (-each[0], each[1]))]


def reads_of(read_versions: Iterable[Mapping[str, object]]) -> dict[str, int]:
    """Counts the commits that have read each table, by the tables that each commit says it has read."""
    counts: dict[str, int] = defaultdict(int)
    for each in read_versions:
        for table in each:
            counts[table] += 1
    return dict(counts)


@dataclass
class Budget:
    """The time of an upkeep, and how much of it work of a size will take, as measured by the work before.

    Attributes:
        seconds: the whole time.
        spent: the time since the upkeep began.
    """

    seconds: float
    spent: float = 0.0
    _work: list[tuple[int, float]] = field(default_factory=list)

    def note(self, size: int, seconds: float) -> None:
        """Notes that bytes were written again in a time."""
        self._work.append((size, seconds))

    def fits(self, size: int) -> bool:
        """Returns whether work of so many bytes will probably end within the budget."""
        return self.spent + self.expected(size) <= self.seconds

    def expected(self, size: int) -> float:
        """Returns the seconds that work of so many bytes will probably take."""
        fixed = min((seconds for _, seconds in self._work), default=_FIRST_FIXED)
        beyond = sum(seconds - fixed for _, seconds in self._work)
        speed = sum(each for each, _ in self._work) / beyond if beyond > 0 else 0.0
        return fixed + size / max(speed, _FIRST_SPEED)


def _by_partition(files: Iterable[FileState]) -> Iterable[list[FileState]]:
    groups: dict[tuple[tuple[str, str | None], ...], list[FileState]] = defaultdict(list)
    for each in files:
        groups[each.partition].append(each)
    return groups.values()


def _bins(files: Iterable[FileState], target_size: int) -> Iterator[Bin]:
    """Yields the bins of a partition."""
    complete = SMALL * target_size
    yield from (Bin((each,)) for each in files if each.is_spoiled and each.live >= complete)
    left = sorted((each for each in files if _may_join(each, complete)), key=lambda each: each.live)
    while left:
        window = left[: _number_within(left, target_size)]
        chosen = next((number for number in range(len(window), 0, -1) if _is_worth_it(window[:number], complete)), 0)
        if chosen:
            yield Bin(tuple(window[:chosen]))
        left = left[chosen or 1 :]


def _may_join(file: FileState, complete: float) -> bool:
    return file.live < complete and (file.is_spoiled or file.size < complete)


def _number_within(files: Sequence[FileState], target_size: int) -> int:
    """Returns the number of files, at least one, that together become a file of at most the target size."""
    total = 0.0
    for number, each in enumerate(files):
        total += each.live
        if number and total > target_size:
            return number
    return len(files)


def _is_worth_it(files: Sequence[FileState], complete: float) -> bool:
    """Returns whether each file that is not spoiled becomes part of a file that is so much larger."""
    total = sum(each.live for each in files)
    largest = max((each.size for each in files if not each.is_spoiled), default=0)
    growth = _LAST_GROWTH if total >= complete else _GROWTH
    return largest * growth <= total
