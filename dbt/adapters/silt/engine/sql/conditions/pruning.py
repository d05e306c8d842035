"""Finds the conditions of a query that rule out rows of each reference to a table.

Only conditions inside the same SELECT are used: a row that fails the SELECT's own WHERE, or the ON of an inner join,
does not contribute to its result, whatever surrounds the SELECT. No condition is used for a table on the side of an
outer join that may be filled with nulls, on the right of a semi or anti join, in parentheses, sampled, or with renamed
columns, nor for a SELECT with pipes or pivots, in which WHERE does not come first.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions import predicates
from dbt.adapters.silt.engine.sql.query.references import ScannedText
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.selects import Item, Join, Select, read_select
from dbt.adapters.silt.engine.sql.spans import Tokens


def pruning_predicates(
    query: ScannedText, relations: Mapping[Reference, predicates.Relation], time_zone: str
) -> Mapping[Reference, Expression]:
    """Returns the conditions that a row of each reference to a table must fulfil to contribute to the query's result.

    Args:
        query: a query, or an expression with subqueries.
        relations: tables with known columns, by reference; an unqualified column is attributed to a table only if all
            relations of its SELECT are known and no other relation has it.
        time_zone: time zone of the session.

    Returns:
        No entry for a reference without a known condition.
    """
    found: dict[Reference, Expression] = {}
    for block in query.scan.blocks:
        select = read_select(query.tokens, block)
        if select is None:
            continue
        for index, item in enumerate(select.items):
            relation = None if item.reference is None else relations.get(item.reference)
            if item.reference is None or relation is None or not _is_kept(select, index):
                continue
            resolve = _resolver(select, index, relations)
            conditions = _conditions(select, index)
            known = predicates.conjunction(
                predicates.predicate(each, relation.schema, resolve, time_zone) for each in conditions
            )
            if known != TRUE:
                found[item.reference] = known
    return found


def _conditions(select: Select, index: int) -> list[Tokens]:
    """Returns the conditions that every visible row of the FROM list's item must fulfil."""
    item = select.items[index]
    ons = [
        other.on
        for other in select.items[index:]
        if other.on is not None and other.join is Join.INNER and other.group == item.group
    ]
    return ons if select.where is None else [select.where, *ons]


def _is_kept(select: Select, index: int) -> bool:
    """Returns whether a row of the item that fails a condition is removed from the result, not replaced by nulls."""
    item = select.items[index]
    later = select.items[index + 1 :]
    return (
        item.is_plain
        and item.join in (Join.INNER, Join.RIGHT)
        and not any(other.join in (Join.RIGHT, Join.FULL) for other in later)
    )


def _resolver(select: Select, index: int, relations: Mapping[Reference, predicates.Relation]) -> predicates.Resolve:
    """Returns a resolver of names in the SELECT's conditions to the item's columns, if unambiguous."""
    item, others = select.items[index], [*select.items[:index], *select.items[index + 1 :]]
    schema = relations[item.reference].schema if item.reference is not None else StructType()
    names = _qualifiers(item, relations)
    other_schemas = [_columns(other, relations) for other in others]
    other_names = [name for other in others for name in _qualifiers(other, relations)]

    def resolve(parts: Name) -> Name | None:
        for length in range(len(parts) - 1, 0, -1):
            if predicates.is_suffix(parts[:length], names) and predicates.field_at(schema, parts[length:]) is not None:
                return parts[length:]
        if select.has_lateral_view or predicates.field_at(schema, parts) is None:
            return None
        if any(other is None or other.field(parts[0]) is not None for other in other_schemas):
            return None
        is_qualified = any(predicates.is_suffix(parts[:length], other_names) for length in range(1, len(parts)))
        return None if is_qualified else parts

    return resolve


def _qualifiers(item: Item, relations: Mapping[Reference, predicates.Relation]) -> tuple[Name, ...]:
    reference = item.reference
    if reference is None:
        return ()
    if reference.alias is not None:
        return ((reference.alias,),)
    relation = relations.get(reference)
    return (reference.parts if relation is None or not relation.name else relation.name,)


def _columns(item: Item, relations: Mapping[Reference, predicates.Relation]) -> StructType | None:
    """Returns the columns of a relation, if they are known."""
    if item.reference is None or not item.is_plain or item.reference not in relations:
        return None
    return relations[item.reference].schema
