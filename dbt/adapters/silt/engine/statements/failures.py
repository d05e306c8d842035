"""Completes errors of Spark: names the table of an unreadable data file, and suggests names for unknown objects."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileMissingError,
    FilesNotFoundError,
    FunctionNotFoundError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    TableDamagedError,
)
from dbt.adapters.silt.engine.kernel.identifiers import listed, split_name
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.near_names import near_names
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.sql.ast import Statement
from dbt.adapters.silt.engine.sql.foreign_names import FUNCTIONS, NEED_A_UNIT
from dbt.adapters.silt.engine.sql.mistakes import alias_remedy, lateral_remedy
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace


@contextlib.contextmanager
def mapped(namespace: Namespace, statement: Statement | None = None) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine like `errors.mapped`, with suggestions for a missing name.

    Args:
        namespace: namespace of the session in which the statement failed.
        statement: the statement, if it is known.

    Raises:
        ColumnNotFoundError: if a column is missing.
        FunctionNotFoundError: if a called function is unknown.
        RelationNotFoundError, SchemaNotFoundError: if a table or view, or its schema, is missing.
        SiltError, PySparkException: if anything else fails.
    """
    try:
        with errors.mapped():
            yield
    except ColumnNotFoundError as error:
        remedy = next(filter(None, (_of_column(text, error.problem) for text in _texts(statement))), None)
        if remedy is None or error.action != ColumnNotFoundError.remedy:
            raise
        raise ColumnNotFoundError(error.problem, remedy=remedy, table=error.table, details=error.details) from None
    except FunctionNotFoundError as error:
        name = error.details.get("function")
        remedy = _SAFE if "`safe`" in error.problem else None if name is None else _remedy(namespace, str(name))
        if remedy is None:
            raise
        problem = f"`{name}` needs a unit of time first" if str(name).lower() in NEED_A_UNIT else error.problem
        raise FunctionNotFoundError(problem, remedy=remedy, details=error.details) from error
    except SchemaNotFoundError as error:
        remedy = _near_schemas(namespace, error)
        if remedy is None:
            raise
        raise SchemaNotFoundError(error.problem, remedy=remedy, table=error.table, details=error.details) from error
    except RelationNotFoundError as error:
        remedy = _near_relations(namespace, error)
        if remedy is None:
            raise
        raise RelationNotFoundError(error.problem, remedy=remedy, table=error.table, details=error.details) from error


def _of_column(text: str, problem: str) -> str | None:
    """Returns the remedy for a column that a text names and that is missing, if the mistake is known."""
    missing = _MISSING.search(problem)
    return lateral_remedy(text) or (None if missing is None else alias_remedy(text, missing["name"]))


_SAFE = "In Spark, functions that return null for a bad value begin with `try_`, such as `try_to_timestamp`"
_MISSING = re.compile(r"with name `(?P<name>\w+)` cannot be resolved")


def _texts(part: object) -> Iterator[str]:
    """Yields the texts of a statement."""
    if isinstance(part, str):
        yield part
    elif dataclasses.is_dataclass(part):
        for each in dataclasses.fields(part):
            yield from _texts(getattr(part, each.name))


def _near_relations(namespace: Namespace, error: RelationNotFoundError) -> str | None:
    """Returns the suggestion for a missing table or view, if a similar or the same name exists.

    Spark looks for a name of two parts if the warehouse lacks the schema that the first part names.
    """
    missing = _NO_SCHEMA.search(error.problem)
    if missing is not None:
        return _similar_schemas(namespace, namespace.database, missing["schema"])
    parts = split_name(error.table or "")
    if error.action != RelationNotFoundError.remedy or len(parts) != len(_PARTS):
        return None
    database, schema, identifier = parts
    try:
        known = [each.name for each in namespace.catalog.for_statement().all_relations(database)]
    except SiltError:
        return None
    near = near_names(identifier, (each.identifier for each in known if each.schema == schema))
    elsewhere = (f"{each.schema}.{each.identifier}" for each in known if each.identifier == identifier)
    meant = listed([*(f"{schema}.{each}" for each in near), *elsewhere][:_MOST])
    return f"Did you mean {meant}? If not, build the model that creates it" if meant else None


def _near_schemas(namespace: Namespace, error: SchemaNotFoundError) -> str | None:
    """Returns the suggestion for a missing schema of a database, if a similar one exists."""
    database, *schema = split_name(error.table or "")[:2]
    if error.action != SchemaNotFoundError.remedy or not schema or not namespace.is_database(database):
        return None
    return _similar_schemas(namespace, database, schema[0])


def _similar_schemas(namespace: Namespace, database: str, schema: str) -> str | None:
    near = near_names(schema, namespace.catalog.for_statement().schemas(database))
    return f"Did you mean {listed(near)}? If not, create the schema first" if near else None


_NO_SCHEMA = re.compile(r"The table or view `(?P<schema>\w+)`\.`\w+` cannot be found")


_PARTS = ("database", "schema", "identifier")
_MOST = 3
_SIMILAR = 0.75
"""The least similarity of a function: Spark has hundreds, of which a few resemble any short name."""


def _remedy(namespace: Namespace, name: str) -> str | None:
    """Returns the suggestion, if a known name is similar."""
    if name.lower() in FUNCTIONS:
        return f"In Spark, write {FUNCTIONS[name.lower()]}"
    near = near_names(name, namespace.functions(), similar=_SIMILAR)
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else None


@contextlib.contextmanager
def mapped_with_tables(namespace: Namespace) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine; an error about a data file names the table.

    Args:
        namespace: namespace of the session in which the statement failed.

    Raises:
        SiltError: as raised by `failures.mapped`.
    """
    try:
        with mapped(namespace):
            yield
    except (TableDamagedError, FilesNotFoundError) as error:
        known = named(namespace.catalog.for_statement(), error)
        if known is error:
            raise
        raise known from error


def named(catalog: Catalog, error: Exception) -> Exception:
    """Returns the error about a data file with its table, version and remedy, or any other error unchanged.

    The version is the newest version, if it contains the file.
    """
    if not isinstance(error, TableDamagedError | FilesNotFoundError):
        return error
    if error.table is not None or "path" not in error.details:
        return error
    path = decode_path(str(error.details["path"]))
    name = catalog.table_of_file(path)
    if name is None:
        return error
    if isinstance(error, FilesNotFoundError):
        error = DataFileMissingError(f"the data file {error.details['path']} is missing", details=error.details)
    problem, details = error.problem, error.details
    try:
        log = catalog.table(name)
        snapshot = log.snapshot()
    except SiltError:
        return type(error)(problem, remedy=error.action, table=str(name), details=details)
    has_it = any(path.endswith(f"/{decode_path(each)}") for each in snapshot.files["path"].to_pylist())
    version = snapshot.version if has_it else None
    whose = type(error)(problem, remedy=error.action, table=log.name, version=version, details=details)
    return commit_search.with_origin(log, snapshot, whose)
