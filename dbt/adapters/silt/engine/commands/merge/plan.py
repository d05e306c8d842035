"""MergePlan: the clauses, keys and ON condition of a MERGE.

All SQL is Spark SQL whose tables are already pinned. A column is a tuple of name parts without backquotes; it may begin
with the target's alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Column, Expression
from dbt.adapters.silt.engine.kernel.transaction.changes import as_json
from dbt.adapters.silt.engine.sql import ast


@dataclass(frozen=True)
class KeyEquality:
    """`target column = source expression`, a conjunct of ON.

    Args:
        column: the target's column.
        source: the SQL of an expression over the source alone.
        null_safe: whether the operator is `<=>`.
        start: the position of the source's SQL in ON.
    """

    column: Column
    source: str
    null_safe: bool = False
    start: int = 0


@dataclass(frozen=True)
class MergePlan:
    """A MERGE statement.

    Args:
        target_alias, source_alias: the qualifiers of columns in the SQL.
        condition: the SQL of ON.
        clauses: in the order of the statement; a pair takes the first that fits.
        schema_evolution: whether the source's new columns are added to the target.
        skips_equal_rows: whether no row is written that an update would set to the values that it has.
        keys: the equalities of ON that must hold for a pair to match.
        target_predicate: the part of ON about the target's columns alone.
        source_bytes: the upper bound of the source's data in bytes; None if unknown.
        keys_only: whether ON consists of the keys alone.
        as_run: the rewritten ON if it cannot be run unchanged: strings compared with a `char` are padded, and NULL is
            given a type. Otherwise None.
    """

    target_alias: str
    source_alias: str
    condition: str
    clauses: tuple[ast.MergeClause, ...]
    schema_evolution: bool = False
    skips_equal_rows: bool = False
    keys: tuple[KeyEquality, ...] = ()
    target_predicate: Expression = TRUE
    source_bytes: int | None = None
    keys_only: bool = False
    as_run: str | None = None

    @property
    def pairing(self) -> str:
        """The SQL of the condition ON, which pairs rows."""
        return self.as_run or self.condition

    def of(self, kind: ast.MatchKind) -> tuple[ast.MergeClause, ...]:
        """Returns the clauses of that kind, in order."""
        return tuple(clause for clause in self.clauses if clause.kind is kind)

    @property
    def inserts_only(self) -> bool:
        return all(clause.kind is ast.MatchKind.NOT_MATCHED for clause in self.clauses)

    @property
    def deletes_every_match(self) -> bool:
        """Whether every matched row is simply deleted: it may then match more than once."""
        matched = self.of(ast.MatchKind.MATCHED)
        return len(matched) == 1 and matched[0].action.verb is ast.RowVerb.DELETE and matched[0].condition is None


def check(plan: MergePlan, table: str) -> None:
    """Checks that the clauses are consistent.

    Raises:
        InvalidStatementError: if clauses are missing, an action does not fit its clause, or a clause is unreachable.
    """
    if not plan.clauses:
        raise InvalidStatementError("MERGE needs at least one WHEN clause", table=table)
    for clause in plan.clauses:
        verb = clause.action.verb
        if (verb is ast.RowVerb.INSERT) is not (clause.kind is ast.MatchKind.NOT_MATCHED):
            raise InvalidStatementError(f"{clause.kind.sql} cannot have the action {verb.value.upper()}", table=table)
    for kind in ast.MatchKind:
        if any(clause.condition is None for clause in plan.of(kind)[:-1]):
            raise InvalidStatementError(
                f"a {kind.sql} clause without a condition precedes another clause, which would never be reached",
                remedy="Put the clause without a condition last",
                table=table,
            )


def operation_parameters(plan: MergePlan) -> dict[str, Json]:
    """Returns the statement's `commitInfo.operationParameters`, in delta-spark's spelling."""
    return {
        "predicate": json.dumps([plan.condition], ensure_ascii=False),
        "matchedPredicates": _described(plan.of(ast.MatchKind.MATCHED)),
        "notMatchedPredicates": _described(plan.of(ast.MatchKind.NOT_MATCHED)),
        "notMatchedBySourcePredicates": _described(plan.of(ast.MatchKind.NOT_MATCHED_BY_SOURCE)),
    }


def assigned_names(plan: MergePlan) -> Iterator[ast.Name]:
    """Yields the columns that clauses set by name, as written."""
    for clause in plan.clauses:
        if isinstance(clause.action, ast.UpdateSet):
            yield from (each.column for each in clause.action.assignments)
        elif isinstance(clause.action, ast.InsertValues):
            yield from clause.action.columns


def has_star(plan: MergePlan) -> bool:
    """Returns whether some clause sets every column."""
    return any(isinstance(clause.action, ast.UpdateAll | ast.InsertAll) for clause in plan.clauses)


def _described(clauses: Sequence[ast.MergeClause]) -> str:
    described = []
    for clause in clauses:
        predicate = {} if clause.condition is None else {"predicate": clause.condition}
        described.append({**predicate, "actionType": clause.action.verb.value})
    return as_json(described)
