"""The errors of names that are taken or do not exist."""

from __future__ import annotations

from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel import errors


def no_schema(schema: str) -> errors.SchemaNotFoundError:
    return errors.SchemaNotFoundError("the schema does not exist", table=schema)


def schema_exists(schema: str) -> errors.RelationExistsError:
    return errors.RelationExistsError("the schema already exists", table=schema, remedy="Use `if not exists`")


def schema_not_empty(schema: str) -> errors.RelationExistsError:
    return errors.RelationExistsError("the schema is not empty", table=schema, remedy="Drop it with `cascade`")


def table_exists(name: RelationName) -> errors.RelationExistsError:
    return errors.RelationExistsError("the table already exists", table=str(name))


def table_in_the_way(name: RelationName) -> errors.RelationExistsError:
    return errors.RelationExistsError("a table with that name exists", table=str(name), remedy="Drop the table first")


def view_in_the_way(name: RelationName) -> errors.RelationExistsError:
    return errors.RelationExistsError("a view with that name exists", table=str(name), remedy="Drop the view first")


def exists(name: RelationName) -> errors.RelationExistsError:
    return errors.RelationExistsError("it already exists", table=str(name))


def is_no_table(name: RelationName) -> errors.RelationNotFoundError:
    return errors.RelationNotFoundError("it is a view, not a table", table=str(name), remedy="Name a table")


def is_no_view(name: RelationName) -> errors.RelationNotFoundError:
    return errors.RelationNotFoundError("it is a table, not a view", table=str(name), remedy="Use `drop table`")


def changed_meanwhile(name: RelationName) -> errors.ConcurrentModificationError:
    return errors.ConcurrentModificationError("another program has created, replaced or dropped it", table=str(name))


def nothing(name: RelationName, kind: str) -> errors.RelationNotFoundError:
    """Returns the error for a missing relation of that kind, such as `table or view`."""
    found = errors.FunctionNotFoundError if kind == "function" else errors.RelationNotFoundError
    return found(f"the {kind} does not exist", table=str(name))
