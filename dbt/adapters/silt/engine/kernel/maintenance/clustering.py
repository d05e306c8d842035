"""Plans which files of a clustered table are clustered again, from its log alone.

Files that were clustered together are a cube, and cubes are merged as in a log-structured merge tree: the small ones
first, and a cube only into a cube that is several times as large. How many times depends on the size of the table,
so that a small table settles too, the bytes written again for each byte written are bounded in a table of any size,
and a value is in few cubes. A part whose files are complete and share no value with the other parts is kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dbt.adapters.silt.engine.kernel.maintenance.bins import SMALL, Bin, FileState

_GROWTH: Final = 2.5
"""A cube is written again only into a cube that has at least this many times its size."""

_MOST_LEVELS: Final = 4
"""The growth is larger in a table that would have more levels of cubes, besides the largest, than this."""

_LARGE: Final = 1.5
"""A file that has more than this share of a complete file is cut."""


@dataclass(frozen=True)
class _Part:
    """Files that are kept, or written again, together: a cube, a file that is not clustered, or what they become.

    Attributes:
        of: the parts that it replaces; empty if it is in the table.
        is_due: whether it is written again although it is merged with no other part.
    """

    files: tuple[FileState, ...]
    of: int = 1
    is_due: bool = False

    @property
    def size(self) -> float:
        return sum(each.live for each in self.files)

    @property
    def span(self) -> tuple[int, int] | None:
        spans = [each.span for each in self.files]
        known = [each for each in spans if each is not None]
        if len(known) < len(spans):
            return None
        return min(first for first, _ in known), max(last for _, last in known)


def bins(files: Sequence[FileState], target_size: int, *, eager: bool = False) -> list[Bin]:
    """Returns the files to cluster again.

    Args:
        files: the active files of the table.
        target_size: the bytes of a complete file.
        eager: whether all files that are not clustered are clustered now, as by OPTIMIZE; upkeep leaves out work that
            does not pay.
    """
    own = [each for each in files if not (each.is_foreign or each.is_stale)]
    parts = [*_cubes(own), *_loose(own, target_size, eager)]
    alone = zip(parts, _are_alone(parts), strict=True)
    open_parts = [each for each, is_alone in alone if not (is_alone and _is_complete(each, target_size))]
    found = [Bin(each.files) for each in _merged(open_parts) if each.of > 1 or each.is_due]
    chosen = {each.key for bin_ in found for each in bin_.files}
    return found + [Bin((each,), each.cube) for each in own if each.is_spoiled and each.key not in chosen]


def full(files: Sequence[FileState]) -> list[Bin]:
    """Returns all files that this engine may cluster as one bin; nothing if they are one cube already."""
    own = tuple(each for each in files if not each.is_foreign)
    is_one_cube = len({each.cube for each in own}) == 1 and bool(own[0].cube) and not any(each.marked for each in own)
    return [] if not own or is_one_cube else [Bin(own)]


def _cubes(files: Iterable[FileState]) -> list[_Part]:
    cubes: dict[str, list[FileState]] = {}
    for each in files:
        if each.cube:
            cubes.setdefault(each.cube, []).append(each)
    return [_Part(tuple(each)) for each in cubes.values()]


def _loose(files: Iterable[FileState], target_size: int, eager: bool) -> list[_Part]:
    """Returns the files that are not clustered: each by itself, or together if they are clustered now."""
    loose = [each for each in files if not each.cube]
    if eager and len(loose) > 1:
        return [_Part(tuple(loose), is_due=True)]
    return [_Part((each,), is_due=each.live > _LARGE * target_size) for each in loose]


def _is_complete(part: _Part, target_size: int) -> bool:
    return not part.is_due and all(each.live >= SMALL * target_size for each in part.files)


def _are_alone(parts: Sequence[_Part]) -> list[bool]:
    """Returns for each part whether it surely shares no value with another part."""
    spans = [each.span for each in parts]
    known = sorted((*span, at) for at, span in enumerate(spans) if span is not None)
    alone = [False] * len(parts)
    if len(known) == len(parts):
        before = -1
        for (first, last, at), (next_first, _, _) in itertools.pairwise([*known, (math.inf, 0, 0)]):
            alone[at] = before < first and last < next_first
            before = max(before, last)
    return alone


def _merged(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yields the parts after all merges that pay; merging them again would change nothing."""
    left = list(parts)
    while True:
        left.sort(key=lambda each: (not each.is_due, each.size))
        chosen = _number_to_merge(left)
        if not chosen:
            break
        files = tuple(file for part in left[:chosen] for file in part.files)
        merged = _Part(files, sum(each.of for each in left[:chosen]), is_due=any(each.is_due for each in left[:chosen]))
        left = [merged, *left[chosen:]]
    yield from left


def _number_to_merge(parts: Sequence[_Part]) -> int:
    """Returns how many of the parts to merge: the most of which none is too large for it, or 0.

    A part that is due is never too large. The largest part is most often the first load, which is not a level of the
    later writes.

    Args:
        parts: the parts that are due, then the others by their sizes.
    """
    sizes = sorted(each.size for each in parts)
    if not sum(sizes):
        return 0
    growth = max(_GROWTH, (sum(sizes[:-1]) / max(sizes[0], 1)) ** (1 / _MOST_LEVELS))
    total, chosen = 0.0, 0
    for number, each in enumerate(parts, 1):
        total += each.size
        if number > 1 and (each.is_due or each.size * growth <= total):
            chosen = number
    return chosen
