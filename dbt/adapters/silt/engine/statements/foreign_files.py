"""Explains why Parquet files that belong to no table cannot be read together."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark.types import column_type
from dbt.adapters.silt.engine.kernel.errors import DataRejectedError, SiltError, TableDamagedError
from dbt.adapters.silt.engine.kernel.files import parquet_schema
from dbt.adapters.silt.engine.kernel.files.footer_check import read_footer
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, StructType
from dbt.adapters.silt.engine.kernel.table.type_widening import common_type

_LOG: Final = "_delta_log"
_NEW_FILE: Final = "Nothing was written: write the file again, or keep it out of the files that are read"


def explained(catalog: Catalog, error: TableDamagedError, path: str) -> SiltError:
    """Returns the error for a file that Spark cannot read, and describes a table only if the file belongs to a table.

    Args:
        path: plain and absolute, or a URL; no table of the warehouse has it.
    """
    folder, _, name = path.rpartition("/")
    if type(error) is not TableDamagedError or _is_in_table(catalog, folder):
        return error
    details = dict(error.details)
    if "column" not in details:
        return DataRejectedError(error.problem.replace("data file", "file", 1), remedy=_NEW_FILE, details=details)
    column, wanted = details["column"], str(details["expected"])
    there = _type_in_file(catalog, folder, name, column)
    problem = (
        f"the file {error.details['path']} has `{'.'.join(column)}` as {there.sql_name if there else 'another type'}, "
        f"and it is read as {wanted}, the type in another file or the declared type"
    )
    details["type"] = there.sql_name if there else None
    return DataRejectedError(problem, remedy=_remedy(column, wanted, there), details=details)


def _remedy(column: Sequence[str], wanted: str, there: DataType | None) -> str:
    """Returns the remedy: a type with which all files can be read, or else new files."""
    try:
        both = None if there is None or len(column) > 1 else common_type(column_type(wanted).type, there)
    except SiltError:  # a type of Spark's that a table cannot have
        both = None
    if both is None:
        return f"Nothing was written: write the files with one type; no `data_type` reads {wanted} and this type"
    kind = both.sql_name
    return (
        f"Nothing was written: declare `data_type: {kind}` for the column of the source, or "
        f"`widenTo => '{quote(column[0])} {kind}'` in read_files; both types are then read as {kind}"
    )


def _is_in_table(catalog: Catalog, folder: str) -> bool:
    """Returns whether the file is in the folder of a table outside of the warehouse."""
    root = folder.find("/", folder.find("://") + 3) if "://" in folder else 0
    above = folder
    while len(above) > root:
        with contextlib.suppress(SiltError, ObjectMissing):
            if catalog.store_at(above).list_from(_LOG):
                return True
        above = above.rpartition("/")[0]
    return False


def _type_in_file(catalog: Catalog, folder: str, name: str, column: Sequence[str]) -> DataType | None:
    """Returns the type of a column in a Parquet file, if the file can be read and has the column."""
    try:
        with catalog.store_at(folder).open_input(name) as source:
            found: Any = parquet_schema.of_footer(read_footer(source))
    except (SiltError, ObjectMissing, OSError, pa.ArrowException):
        return None
    for part in column:
        found = _member(found, part)
    return found if isinstance(found, DataType) else None


def _member(kind: Any, name: str) -> Any:
    """Returns the type of a member, an element, a key or a value, by the names in Parquet."""
    match kind:
        case StructType():
            return next((each.type for each in kind if each.name.lower() == name.lower()), None)
        case ArrayType():
            return kind if name in ("list", "bag", "array") else kind.element_type
        case MapType():
            return {"key": kind.key_type, "value": kind.value_type}.get(name, kind)
    return None
