"""The cases, in the order in which they run."""

from __future__ import annotations

from benchmarks.cases.append import SmallAppends, ThreadedAppends
from benchmarks.cases.create import Create, ManyPartitions
from benchmarks.cases.delete import DeletePartition, DeleteRange, DeleteScattered, UpdateScattered
from benchmarks.cases.find import FullScan, FullScanOfDeletedRows, PointQuery
from benchmarks.cases.maintenance import Optimize, Vacuum
from benchmarks.cases.merge import InsertOnlyMerge, LargeMerge, ReplaceByKey, ScatteredMerge, SmallMerge
from benchmarks.cases.wide import WideMerge, WideUpdate
from benchmarks.data import VECTORS, Scale
from benchmarks.harness import Case


def all_cases(scale: Scale) -> list[Case]:
    """Returns every statement case at a scale."""
    return [
        Create(scale),
        SmallAppends(scale),
        SmallMerge(scale),
        LargeMerge(scale),
        LargeMerge(scale, VECTORS),
        ScatteredMerge(scale),
        ScatteredMerge(scale, VECTORS),
        InsertOnlyMerge(scale),
        DeleteRange(scale),
        DeleteRange(scale, VECTORS),
        DeleteScattered(scale),
        DeleteScattered(scale, VECTORS),
        UpdateScattered(scale),
        UpdateScattered(scale, VECTORS),
        ReplaceByKey(scale),
        PointQuery(scale),
        FullScan(scale),
        FullScanOfDeletedRows(scale),
        ThreadedAppends(scale),
        DeletePartition(scale),
        ManyPartitions(scale),
        WideMerge(scale),
        WideUpdate(scale),
        Optimize(scale),
        Vacuum(scale),
    ]
