"""Sets the in-commit timestamp of a commit, and the properties that record since when commits have it.

Source: the Delta specification, section "In-Commit Timestamps".
"""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION, TableProperties
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes


def has_in_commit_timestamps(metadata: Metadata | None) -> bool:
    """Returns whether the commits of a table with this metadata have an in-commit timestamp."""
    return metadata is not None and TableProperties(metadata.configuration).enable_in_commit_timestamps


def needs_in_commit_timestamp(base: Metadata | None, changes: Changes) -> bool:
    """Returns whether a commit of these changes has an in-commit timestamp, by its own or else the base's metadata."""
    return has_in_commit_timestamps(changes.metadata or base)


def in_commit_timestamp(now_ms: int, previous_ms: int) -> int:
    """Returns the time of a commit: now, but always later than the commit before it."""
    return max(now_ms, previous_ms + 1)


def with_enablement(base: Metadata | None, changes: Changes, version: int, timestamp_ms: int) -> Changes:
    """Adds the properties that record the first version with an in-commit timestamp.

    Args:
        base: the table's metadata before the commit; None for its first commit, which needs no such properties.
        version, timestamp_ms: the version and time of the commit.
    """
    metadata = changes.metadata
    if base is None or metadata is None or not has_in_commit_timestamps(metadata):
        return changes
    configuration = {key: value for key, value in metadata.configuration.items() if key not in _PROVENANCE}
    if has_in_commit_timestamps(base):
        configuration |= {key: value for key, value in base.configuration.items() if key in _PROVENANCE}
    else:
        configuration |= {ENABLEMENT_VERSION: str(version), ENABLEMENT_TIMESTAMP: str(timestamp_ms)}
    return replace(changes, metadata=replace(metadata, configuration=configuration))


_PROVENANCE = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)
