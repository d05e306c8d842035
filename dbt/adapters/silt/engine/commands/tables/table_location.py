"""Checks that a table may be created at its location, for every statement that creates tables."""

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
    """The location of a table to be created.

    Args:
        log: the log of the table, whose folder must exist.
        base: the current table, pinned; None if the table does not exist.
        is_managed: whether the statement names the table, instead of its path.
    """

    log: DeltaLog
    base: Snapshot | None
    is_managed: bool = True


def check_mode(location: TableLocation, mode: CreateMode) -> None:
    """Checks that the table may be created, or replaced.

    Raises:
        RelationExistsError: if `mode` is to create a table that exists.
        RelationNotFoundError: if `mode` is to replace a table that does not exist.
    """
    if location.base is not None and mode is CreateMode.CREATE:
        raise RelationExistsError("a table with that name already exists", table=location.log.name)
    if location.base is None and mode is CreateMode.REPLACE:
        raise RelationNotFoundError("the table to replace does not exist", table=location.log.name)


def ended_domains(base: Snapshot) -> tuple[DomainMetadata, ...]:
    """Returns removals of the domain metadata of a replaced table, such as its clustering."""
    return tuple(
        DomainMetadata(domain.domain, domain.configuration, removed=True)
        for domain in base.domains.values()
        if domain.domain != _ROW_TRACKING
    )
