"""Checks that a table may be made at its location, for every statement that makes one."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import RelationExistsError, RelationNotFoundError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import DomainMetadata
from dbt.adapters.silt.engine.sql.ast import CreateMode

_ROW_TRACKING = "delta.rowTracking"


@dataclass(frozen=True)
class TableLocation:
    """The location of a table to be made.

    Args:
        log: of the table, whose folder must be there.
        base: the table that is there now, pinned; None where there is none.
        is_managed: whether the table is named, not given by its path.
    """

    log: DeltaLog
    base: Snapshot | None
    is_managed: bool = True


def check_mode(location: TableLocation, mode: CreateMode) -> None:
    """Passes where the table may be made, or replaced.

    Raises:
        RelationExistsError, RelationNotFoundError: as `mode` says.
    """
    if location.base is not None and mode is CreateMode.CREATE:
        raise RelationExistsError("there is already a table of that name", table=location.log.name)
    if location.base is None and mode is CreateMode.REPLACE:
        raise RelationNotFoundError("there is no such table to replace", table=location.log.name)


def ended_domains(base: Snapshot) -> tuple[DomainMetadata, ...]:
    """The domain metadata of a table that is replaced, such as its clustering, as removed."""
    return tuple(
        DomainMetadata(domain.domain, domain.configuration, removed=True)
        for domain in base.domains.values()
        if domain.domain != _ROW_TRACKING
    )
