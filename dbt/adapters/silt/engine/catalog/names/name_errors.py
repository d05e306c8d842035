"""The errors of names that are taken or do not exist."""

from __future__ import annotations

from collections.abc import Collection

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.near_names import near_names

_MOST = 3
_SIMILAR_ELSEWHERE = 0.75
"""The least similarity of a name in another schema."""


def similar_relations(known: Collection[RelationName], name: RelationName) -> list[str]:
    """Returns the relations, as `schema.name`, that may be meant by a name which does not exist.

    Args:
        known: the relations of its database.
    """
    within = [each.identifier for each in known if each.schema == name.schema]
    abroad = {f"{each.schema}.{each.identifier}": each.identifier for each in known if each.schema != name.schema}
    same = sorted(full for full, identifier in abroad.items() if identifier == name.identifier)
    alike = near_names(name.identifier, abroad.values(), similar=_SIMILAR_ELSEWHERE)
    near = sorted(full for full, identifier in abroad.items() if identifier in alike)
    here = [f"{name.schema}.{each}" for each in near_names(name.identifier, within)]
    return list(dict.fromkeys([*same, *here, *near]))[:_MOST]


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


def not_a_table(name: RelationName) -> errors.RelationNotFoundError:
    return errors.RelationNotFoundError("it is a view, not a table", table=str(name), remedy="Name a table")


def not_a_view(name: RelationName) -> errors.RelationNotFoundError:
    return errors.RelationNotFoundError("it is a table, not a view", table=str(name), remedy="Use `drop table`")


def changed_meanwhile(name: RelationName) -> errors.ConcurrentModificationError:
    return errors.ConcurrentModificationError("another program has created, replaced or dropped it", table=str(name))


def nothing(name: RelationName, kind: str) -> errors.RelationNotFoundError:
    """Returns the error for a missing relation of that kind, such as `table or view`."""
    found = errors.FunctionNotFoundError if kind == "function" else errors.RelationNotFoundError
    return found(f"the {kind} does not exist", table=str(name))
