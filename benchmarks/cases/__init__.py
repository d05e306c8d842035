"""The cases, in the order in which they run."""

from __future__ import annotations

from benchmarks.cases.append import SmallAppends
from benchmarks.cases.create import Create
from benchmarks.cases.delete import DeleteRange
from benchmarks.cases.find import PointQuery
from benchmarks.cases.merge import InsertOnlyMerge, LargeMerge, ScatteredMerge, SmallMerge
from benchmarks.data import Scale
from benchmarks.harness import Case


def all_cases(scale: Scale) -> list[Case]:
    """Every case of statements, at a scale."""
    return [
        Create(scale),
        SmallAppends(scale),
        SmallMerge(scale),
        LargeMerge(scale),
        ScatteredMerge(scale),
        InsertOnlyMerge(scale),
        DeleteRange(scale),
        PointQuery(scale),
    ]
