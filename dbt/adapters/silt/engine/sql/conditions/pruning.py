"""Finds which conditions of a query rule out rows of which reference to a table.

Only what holds inside one SELECT is used: a row that fails the SELECT's own WHERE, or the ON of an inner join, has no
part in its result, whatever is around the SELECT. Nothing is used for a table on the side of an outer join that
may be filled with nulls, on the right of a semi or anti join, in parentheses, sampled, or given new column names, and
nothing at all for a SELECT with pipes or pivots, where WHERE is not what comes first.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions.predicates import (
    Relation,
    Resolve,
    conjunction,
    field_at,
    is_suffix,
    predicate,
)
from dbt.adapters.silt.engine.sql.query.scanned_text import ScannedText
from dbt.adapters.silt.engine.sql.query.scans import Reference
from dbt.adapters.silt.engine.sql.query.selects import Item, Join, Select, read_select
from dbt.adapters.silt.engine.sql.spans import Tokens


def pruning_predicates(
    query: ScannedText, relations: Mapping[Reference, Relation], time_zone: str
) -> Mapping[Reference, Expression]:
    """For references to tables, what a row must fulfil to have a part in the query's result.

    Args:
        query: a query, or an expression with subqueries.
        relations: the tables whose columns are known, by reference; a column without a qualifier is only taken for
            a table's where all relations of its SELECT are known and no other one has it.
        time_zone: the session's.

    Returns:
        No entry for a reference of which nothing is known.
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
            known = conjunction(predicate(each, relation.schema, resolve, time_zone) for each in conditions)
            if known != TRUE:
                found[item.reference] = known
    return found


def _conditions(select: Select, index: int) -> list[Tokens]:
    """The conditions that every row of the FROM list's item must fulfil to be seen."""
    item = select.items[index]
    ons = [
        other.on
        for other in select.items[index:]
        if other.on is not None and other.join is Join.INNER and other.group == item.group
    ]
    return ons if select.where is None else [select.where, *ons]


def _is_kept(select: Select, index: int) -> bool:
    """Whether a row of the item that fails a condition is gone from the result, rather than replaced by nulls."""
    item = select.items[index]
    later = select.items[index + 1 :]
    return (
        item.is_plain
        and item.join in (Join.INNER, Join.RIGHT)
        and not any(other.join in (Join.RIGHT, Join.FULL) for other in later)
    )


def _resolver(select: Select, index: int, relations: Mapping[Reference, Relation]) -> Resolve:
    """What a name in the SELECT's conditions is to the item: its own column, or nothing of which this is sure."""
    item, others = select.items[index], [*select.items[:index], *select.items[index + 1 :]]
    schema = relations[item.reference].schema if item.reference is not None else StructType()
    names = _qualifiers(item, relations)
    other_schemas = [_columns(other, relations) for other in others]
    other_names = [name for other in others for name in _qualifiers(other, relations)]

    def resolve(parts: Name) -> Name | None:
        for length in range(len(parts) - 1, 0, -1):
            if is_suffix(parts[:length], names) and field_at(schema, parts[length:]) is not None:
                return parts[length:]
        if select.has_lateral_view or field_at(schema, parts) is None:
            return None
        if any(other is None or other.field(parts[0]) is not None for other in other_schemas):
            return None
        is_qualified = any(is_suffix(parts[:length], other_names) for length in range(1, len(parts)))
        return None if is_qualified else parts

    return resolve


def _qualifiers(item: Item, relations: Mapping[Reference, Relation]) -> tuple[Name, ...]:
    reference = item.reference
    if reference is None:
        return ()
    if reference.alias is not None:
        return ((reference.alias,),)
    relation = relations.get(reference)
    return (reference.parts if relation is None or not relation.name else relation.name,)


def _columns(item: Item, relations: Mapping[Reference, Relation]) -> StructType | None:
    """The columns of a relation; None where they are not known."""
    if item.reference is None or not item.is_plain or item.reference not in relations:
        return None
    return relations[item.reference].schema
