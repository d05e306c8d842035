"""Checks `delta.dataSkippingStatsColumns`, which contains logical names, and adapts it to changed columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError
from dbt.adapters.silt.engine.kernel.identifiers import quote_if_needed, split_name
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Name

_PROPERTY: Final = "delta.dataSkippingStatsColumns"


def check(asked: Mapping[str, str], schema: StructType, table: str) -> None:
    """Checks that the property, if a statement sets it, names columns of the table or members of its structs.

    Args:
        asked: the properties that the statement sets, in the protocol's spelling.

    Raises:
        ColumnNotFoundError: if a column that it names does not exist.
    """
    columns = _columns(asked)
    known = set(_paths(schema)) if columns else set()
    missing = [path for path in columns if _folded(path) not in known]
    if missing:
        raise ColumnNotFoundError(
            f"`{_PROPERTY}` names {_text(missing[0])}, which is not a column; columns: {', '.join(schema.names)}",
            remedy="Name columns, or members of structs such as `address.city`",
            table=table,
        )


def without(metadata: Metadata, gone: Sequence[Name]) -> Metadata:
    """Returns the metadata without dropped columns and the columns inside of them."""
    columns = _columns(metadata.configuration)
    kept = [path for path in columns if not any(_is_within(path, each) for each in gone)]
    return _with_columns(metadata, kept)


def renamed(metadata: Metadata, new_names: Mapping[Name, str]) -> Metadata:
    """Renames columns in the metadata, and in the paths that begin with them.

    Args:
        new_names: the new names, by the paths before all renames.
    """
    return _with_columns(metadata, [_renamed(path, new_names) for path in _columns(metadata.configuration)])


def among(configuration: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """Returns the properties of a table with a new schema; the property keeps only the columns that still exist."""
    known = set(_paths(schema))
    return _configuration(configuration, [path for path in _columns(configuration) if _folded(path) in known])


def _columns(configuration: Mapping[str, str]) -> list[Name]:
    return [split_name(name) for name in TableProperties(configuration).data_skipping_stats_columns or ()]


def _with_columns(metadata: Metadata, columns: Sequence[Name]) -> Metadata:
    return replace(metadata, configuration=_configuration(metadata.configuration, columns))


def _configuration(configuration: Mapping[str, str], columns: Sequence[Name]) -> dict[str, str]:
    if columns == _columns(configuration):
        return dict(configuration)
    kept = {key: value for key, value in configuration.items() if key != _PROPERTY}
    return {**kept, _PROPERTY: _text(*columns)} if columns else kept


def _text(*columns: Name) -> str:
    return ",".join(".".join(map(quote_if_needed, path)) for path in columns)


def _paths(schema: StructType, above: Name = ()) -> Iterator[Name]:
    """Yields the paths of all columns and members of structs, in lower case."""
    for member in schema:
        path = (*above, member.name.lower())
        yield path
        if isinstance(member.type, StructType):
            yield from _paths(member.type, path)


def _renamed(path: Name, new_names: Mapping[Name, str]) -> Name:
    folded = {_folded(old): new for old, new in new_names.items()}
    return tuple(folded.get(_folded(path[: depth + 1]), part) for depth, part in enumerate(path))


def _is_within(path: Name, outer: Name) -> bool:
    return _folded(path[: len(outer)]) == _folded(outer)


def _folded(path: Name) -> Name:
    return tuple(part.lower() for part in path)
