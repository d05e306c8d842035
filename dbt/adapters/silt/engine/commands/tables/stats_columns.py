"""Adapts `delta.dataSkippingStatsColumns`, which names columns as users see them, to renamed and dropped columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed, split_name
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.sql.ast import Name

_PROPERTY: Final = "delta.dataSkippingStatsColumns"


def without(metadata: Metadata, gone: Sequence[Name]) -> Metadata:
    """The metadata without columns that go, and those inside of them."""
    return _with_columns(
        metadata, [path for path in _columns(metadata) if not any(_is_within(path, each) for each in gone)]
    )


def renamed(metadata: Metadata, new_names: Mapping[Name, str]) -> Metadata:
    """The metadata with columns, and those inside of them, under new names.

    Args:
        new_names: by the paths that the columns had before any was renamed.
    """
    return _with_columns(metadata, [_renamed(path, new_names) for path in _columns(metadata)])


def _columns(metadata: Metadata) -> list[Name]:
    return [split_name(name) for name in TableProperties(metadata.configuration).data_skipping_stats_columns or ()]


def _with_columns(metadata: Metadata, columns: Sequence[Name]) -> Metadata:
    if columns == _columns(metadata):
        return metadata
    configuration = {key: value for key, value in metadata.configuration.items() if key != _PROPERTY}
    if columns:
        configuration[_PROPERTY] = ",".join(".".join(map(quote_if_needed, path)) for path in columns)
    return replace(metadata, configuration=configuration)


def _renamed(path: Name, new_names: Mapping[Name, str]) -> Name:
    folded = {_folded(old): new for old, new in new_names.items()}
    return tuple(folded.get(_folded(path[: depth + 1]), part) for depth, part in enumerate(path))


def _is_within(path: Name, outer: Name) -> bool:
    return _folded(path[: len(outer)]) == _folded(outer)


def _folded(path: Name) -> Name:
    return tuple(part.lower() for part in path)
