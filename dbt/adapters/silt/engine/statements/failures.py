"""Completes errors of Spark: names the table of an unreadable data file, and suggests names for unknown objects."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.name_errors import similar_relations
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import (
    ColumnNotFoundError,
    DataFileMissingError,
    DataRejectedError,
    FilesNotFoundError,
    FunctionNotFoundError,
    InvalidStatementError,
    RelationNotFoundError,
    SchemaNotFoundError,
    SiltError,
    StatementSyntaxError,
    TableDamagedError,
)
from dbt.adapters.silt.engine.kernel.identifiers import listed, split_name
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.near_names import near_names, some_of
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.sql.ast import Query, Statement
from dbt.adapters.silt.engine.sql.foreign_names import FUNCTIONS, NEED_A_UNIT
from dbt.adapters.silt.engine.sql.mistakes import alias_remedy, lateral_remedy
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.statements import foreign_files
from dbt.adapters.silt.engine.statements.resolve.namespace import Namespace, WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.resolve import first_mistake


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
        with _in_own_words(namespace, statement), errors.mapped():
            yield
    except ColumnNotFoundError as error:
        found = (_of_column(text, error.problem) for text in _texts(statement))
        remedy = next(filter(None, found), None) or _columns(namespace, statement)
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


@contextlib.contextmanager
def _in_own_words(namespace: Namespace, statement: Statement | None) -> Iterator[None]:
    """Quotes the statement, and names positions in it, if Spark quotes it with the queries of its views in it."""
    try:
        yield
    except (InvalidStatementError, DataRejectedError) as error:
        known = None if statement is None else _own_error(namespace, statement, error)
        if known is None:
            raise
        raise known from None


def _own_error(namespace: Namespace, statement: Statement, error: SiltError) -> SiltError | None:
    """Returns the error with the statement's own text, if that changes it."""
    if isinstance(error, StatementSyntaxError) and error.problem.startswith("[PARSE_"):
        found = filter(None, (first_mistake(namespace, text, is_query=True) for text in _queries(statement)))
        mistake = next(found, None)
        is_same = mistake is None or _PLACE.findall(mistake.problem)[:1] == _PLACE.findall(error.problem)[:1]
        return None if is_same else mistake
    quoted = _QUOTED.search(error.problem)
    own = None if quoted is None else own_part(quoted["part"], statement.text)
    if quoted is None or own is None:
        return None
    problem = f"{error.problem[: quoted.start()]} (in `{own}`)"
    return type(error)(problem, remedy=error.action, table=error.table, version=error.version, details=error.details)


def own_part(part: str, text: str) -> str | None:
    """Returns the part of a text that Spark quotes with other queries in it, unless the text contains the part.

    Args:
        part: the beginning of the part, in which names of views are replaced by their queries.
    """
    words = " ".join(text.split())
    said = part.removesuffix("...")
    if said in words:
        return None
    same = next((length for length in range(len(said), _LEAST_SAME, -1) if said[:length] in words), 0)
    if not same:
        return None  # it is within the query of a view
    rest = words[words.index(said[:same]) :]
    if said == part:  # it is whole: its end is in the text, too
        end = next((said[at:] for at in range(same, len(said)) if said[at:] in rest[same:]), "")
        rest = rest[: rest.index(end, same) + len(end)] if end else rest
    return rest if len(rest) <= _LONGEST else f"{rest[:_LONGEST]}..."


def _queries(statement: Statement | None) -> Iterator[str]:
    """Yields the queries of a statement, as it contains them."""
    if isinstance(statement, Query):
        yield statement.text
    for part in (statement, getattr(statement, "source", None)):
        query = getattr(part, "query", None)
        if isinstance(query, str):
            yield query


_PLACE = re.compile(r"at or near (.+?)[.]? \(line (\d+)")
_QUOTED = re.compile(r" \(in `(?P<part>[^\n]+)`\)$")
_LEAST_SAME = 12
"""A shorter beginning, such as `select id, `, may be that of another query."""
_LONGEST = 80


def _of_column(text: str, problem: str) -> str | None:
    """Returns the remedy for a column that a text names and that is missing, if the mistake is known."""
    missing = _MISSING.search(problem)
    return lateral_remedy(text) or (None if missing is None else alias_remedy(text, missing["name"]))


def _columns(namespace: Namespace, statement: Statement | None) -> str | None:
    """Returns the remedy that lists the columns of the tables which a statement reads, if these are few."""
    known: dict[str, str] = {}
    with contextlib.suppress(SiltError):
        for each in {each.parts for text in _queries(statement) for each in table_references(text)}:
            found = namespace.meaning(each)
            if isinstance(found, WarehouseTable):
                known[".".join(each)] = some_of(found.log.snapshot().schema.names)
    if not known or len(known) > _MOST_TABLES:
        return None
    return f"Check the column's name; the columns are: {'; '.join(f'{name}: {each}' for name, each in known.items())}"


_MOST_TABLES = 3
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
        name = (namespace.database, missing["schema"], missing["name"])
        return _similar_schemas(namespace, namespace.database, missing["schema"]) or _meant(namespace, name)
    parts = split_name(error.table or "")
    is_known = error.action != RelationNotFoundError.remedy or len(parts) != len(_PARTS)
    return None if is_known else _meant(namespace, parts)


def _meant(namespace: Namespace, name: Sequence[str]) -> str | None:
    try:
        known = [each.name for each in namespace.catalog.for_statement().all_relations(name[0])]
        meant = listed(similar_relations(known, RelationName(*name)))
    except SiltError:
        return None
    return f"Did you mean {meant}? If not, build the model that creates it" if meant else None


def _near_schemas(namespace: Namespace, error: SchemaNotFoundError) -> str | None:
    """Returns the suggestion for a missing schema of a database, if a similar one exists."""
    if error.table is None or error.action != SchemaNotFoundError.remedy:
        return None
    database, *schema = split_name(error.table)[:2]
    if not schema or not namespace.is_database(database):
        return None
    return _similar_schemas(namespace, database, schema[0])


def _similar_schemas(namespace: Namespace, database: str, schema: str) -> str | None:
    near = near_names(schema, namespace.catalog.for_statement().schemas(database))
    return f"Did you mean {listed(near)}? If not, create the schema first" if near else None


_NO_SCHEMA = re.compile(r"The table or view `(?P<schema>\w+)`\.`(?P<name>\w+)` cannot be found")


_PARTS = ("database", "schema", "identifier")
_SIMILAR = 0.75
"""The least similarity of a function: Spark has hundreds, of which a few resemble any short name."""


def _remedy(namespace: Namespace, name: str) -> str | None:
    """Returns the suggestion, if a known name is similar."""
    if name.lower() in FUNCTIONS:
        return f"In Spark, write {FUNCTIONS[name.lower()]}"
    near = near_names(name, namespace.functions(), similar=_SIMILAR)
    return f"Did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else None


@contextlib.contextmanager
def mapped_with_tables(namespace: Namespace, statement: Statement | None = None) -> Iterator[None]:
    """Turns Spark's failures into errors of this engine; an error about a data file names the table.

    Args:
        namespace: namespace of the session in which the statement failed.
        statement: the statement, if it is known.

    Raises:
        SiltError: as raised by `failures.mapped`.
    """
    try:
        with mapped(namespace, statement):
            yield
    except (TableDamagedError, FilesNotFoundError) as error:
        known = named(namespace.catalog.for_statement(), error)
        if known is error:
            raise
        raise known from error


def named(catalog: Catalog, error: Exception) -> Exception:
    """Returns the error about a data file with its table, version and remedy, or any other error unchanged.

    A file that belongs to no table is described as such.

    The version is the newest version, if it contains the file.
    """
    if not isinstance(error, TableDamagedError | FilesNotFoundError):
        return error
    if error.table is not None or "path" not in error.details:
        return error
    path = decode_path(str(error.details["path"]))
    name = catalog.table_of_file(path)
    if name is None:
        return error if isinstance(error, FilesNotFoundError) else foreign_files.explained(catalog, error, path)
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
