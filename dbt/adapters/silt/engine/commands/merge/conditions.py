"""Rejects a MERGE with a condition that is not boolean."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge.clauses import NumberedClause
from dbt.adapters.silt.engine.commands.merge.join import Sides
from dbt.adapters.silt.engine.commands.writing import conditions


def checked(sides: Sides) -> Sides:
    """Returns the same MERGE with boolean conditions.

    Raises:
        InvalidStatementError: if the condition of ON or of a WHEN clause has another type.
    """
    table, empty = sides.target.name, replace(sides, chosen=sides.chosen.slice(0, 0))

    def pairs() -> DataFrame:
        return empty.target_rows().join(empty.source_rows(), F.lit(False))

    def of_clause(clause: NumberedClause) -> NumberedClause:
        if clause.condition is None:
            return clause
        what = f"the condition of {clause.clause.kind.sql}"
        return replace(clause, condition=conditions.checked(clause.condition, what, pairs, table))

    on = conditions.checked(sides.plan.condition, "the condition of ON", pairs, table)
    plan = sides.plan if on == sides.plan.condition else replace(sides.plan, as_run=on)
    numbered = tuple(map(of_clause, sides.clauses.all))
    return replace(sides, clauses=replace(sides.clauses, plan=plan, all=numbered))
