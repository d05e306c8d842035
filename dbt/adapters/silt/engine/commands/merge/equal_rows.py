"""Finds the rows that an update of a MERGE would set to the values that they have: SKIP EQUAL ROWS keeps these rows.

Values are equal if no query can tell them apart: null equals null, NaN equals NaN, 0.0 does not equal -0.0, and strings
are compared by their bytes. The order of a map's entries does not matter. Two variants are never equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge import clauses as merge_clauses
from dbt.adapters.silt.engine.commands.merge.clauses import ACTION, Clauses, SettingsByClause
from dbt.adapters.silt.engine.commands.writing import set_clause
from dbt.adapters.silt.engine.commands.writing.set_clause import CastAssignment
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table import collations
from dbt.adapters.silt.engine.kernel.table.schema import ArrayType, DataType, MapType, PrimitiveType, StructType
from dbt.adapters.silt.engine.sql.ast import RowVerb

EQUAL: Final = -2
"""The action for a row of the target that an update would set to the values that it has."""

_TEXTS: Final = ("string", "binary")
_FLOATS: Final = ("float", "double")
_VARIANT: Final = PrimitiveType("variant")


def with_action(joined: DataFrame, clauses: Clauses, per_clause: SettingsByClause) -> DataFrame:
    """Adds `ACTION` to joined rows; it is `EQUAL` for rows that an update need not write, if the statement skips them.

    Args:
        per_clause: the settings of all clauses.
    """
    taken = joined.withColumn(ACTION, merge_clauses.action(clauses))
    updates = [each for each in per_clause if each[0].clause.action.verb is RowVerb.UPDATE]
    if not clauses.plan.skips_equal_rows or not updates:
        return taken
    equal = F.lit(False)
    for clause, settings in updates:
        equal = F.when(F.col(ACTION) == clause.number, _sets_nothing(clauses, settings)).otherwise(equal)
    return taken.withColumn(ACTION, F.when(equal, F.lit(EQUAL)).otherwise(F.col(ACTION)))


def same(one: Column, other: Column, data_type: DataType) -> Column:
    """Returns whether two values of a type are equal; never null."""
    match data_type:
        case StructType():
            members = (same(one[each.name], other[each.name], each.type) for each in data_type)
            return reduce(Column.__and__, members, one.isNull() == other.isNull())
        case ArrayType():
            return _of_present(one, other, _same_elements(one, other, data_type.element_type))
        case MapType():
            entries = F.map_entries(one), F.map_entries(other)
            return _of_present(one, other, _same_entries(*entries, data_type))
        case PrimitiveType(name) if collations.without(name) in _TEXTS:
            # A collation would make different strings equal.
            return one.cast("binary").eqNullSafe(other.cast("binary"))
        case PrimitiveType(name) if name in _FLOATS:
            return one.eqNullSafe(other) & _sign_of_zero(one).eqNullSafe(_sign_of_zero(other))
    return one.isNull() & other.isNull() if data_type == _VARIANT else one.eqNullSafe(other)


def _sets_nothing(clauses: Clauses, settings: Sequence[CastAssignment]) -> Column:
    """Returns whether an update sets each of its columns to the value that the row has, and loses no value."""
    found = F.lit(True)
    for name, own in set_clause.by_column(settings).items():
        member, before = clauses.new.require(name), clauses.old.field(name)
        old = F.lit(None).cast(member.type.sql_name)
        if before is not None:
            column = F.expr(f"{quote(clauses.plan.target_alias)}.{quote(before.name)}")
            old = set_clause.widened(column, before.type, member.type)
        found = found & same(old, set_clause.with_assignments(old, own), member.type)
    lost = [each.lost for each in settings]
    return reduce(Column.__and__, (each.isNull() for each in lost if each is not None), found)


def _of_present(one: Column, other: Column, are_equal: Column) -> Column:
    """Returns whether both values are null, or both are present and `are_equal`."""
    return F.when(one.isNull() | other.isNull(), one.isNull() & other.isNull()).otherwise(are_equal)


def _same_elements(one: Column, other: Column, element: DataType) -> Column:
    pairs = F.zip_with(one, other, lambda left, right: same(left, right, element))
    return (F.size(one) == F.size(other)) & F.forall(pairs, lambda are_equal: are_equal)


def _same_entries(one: Column, other: Column, entries: MapType) -> Column:
    """Returns whether two arrays of entries, each with keys of its own, are equal apart from their order."""

    def is_same(left: Column, right: Column) -> Column:
        keys = same(left["key"], right["key"], entries.key_type)
        return keys & same(left["value"], right["value"], entries.value_type)

    def are_in(some: Column, all_entries: Column) -> Column:
        return F.forall(some, lambda left: F.exists(all_entries, lambda right: is_same(left, right)))

    return (F.size(one) == F.size(other)) & are_in(one, other) & are_in(other, one)


def _sign_of_zero(value: Column) -> Column:
    return F.when(value == 0, value.cast("string"))
