"""MergePlan: a MERGE as values: clauses, keys and what ON demands.

Every text is Spark SQL whose tables are already pinned. A column is a name as its parts, without backquotes; it may
begin with the target's alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Column, Expression
from dbt.adapters.silt.engine.kernel.transaction.changes import as_json
from dbt.adapters.silt.engine.sql.ast import (
    InsertAll,
    InsertValues,
    MatchKind,
    MergeClause,
    Name,
    RowVerb,
    UpdateAll,
    UpdateSet,
)


@dataclass(frozen=True)
class KeyEquality:
    """`target column = source expression`, one of the parts that ON puts together by AND.

    Args:
        column: the target's column.
        source: the text of an expression over the source alone.
        null_safe: whether the text says `<=>`.
        start: where the source's text begins in ON.
    """

    column: Column
    source: str
    null_safe: bool = False
    start: int = 0


@dataclass(frozen=True)
class MergePlan:
    """A MERGE statement.

    Args:
        target_alias, source_alias: what the texts qualify columns by.
        condition: the text of ON.
        clauses: in the order of the statement; a pair takes the first that fits.
        schema_evolution: whether the source's new columns are added to the target.
        keys: those equalities of ON that must hold for a pair to match.
        target_predicate: what ON demands of the target's columns alone.
        source_bytes: at most so much data lies behind the source; None where that is not known.
        keys_only: whether ON demands nothing but the keys.
        as_run: ON in other words, where it cannot be run as it is: its texts are padded if they are compared with a
            `char`, and it has a type if it is NULL. Otherwise None.
    """

    target_alias: str
    source_alias: str
    condition: str
    clauses: tuple[MergeClause, ...]
    schema_evolution: bool = False
    keys: tuple[KeyEquality, ...] = ()
    target_predicate: Expression = TRUE
    source_bytes: int | None = None
    keys_only: bool = False
    as_run: str | None = None

    @property
    def pairing(self) -> str:
        """The text of the condition by which rows are paired."""
        return self.as_run or self.condition

    def of(self, kind: MatchKind) -> tuple[MergeClause, ...]:
        """The clauses about such pairs, in order."""
        return tuple(clause for clause in self.clauses if clause.kind is kind)

    @property
    def inserts_only(self) -> bool:
        return all(clause.kind is MatchKind.NOT_MATCHED for clause in self.clauses)

    @property
    def deletes_every_match(self) -> bool:
        """Whether all that happens to a matched row is that it is deleted: then it may match more than once."""
        matched = self.of(MatchKind.MATCHED)
        return len(matched) == 1 and matched[0].action.verb is RowVerb.DELETE and matched[0].condition is None


def check(plan: MergePlan, table: str) -> None:
    """Passes where the clauses make sense together.

    Raises:
        InvalidStatementError: there is no clause, an action does not fit its clause, or a clause can never be reached.
    """
    if not plan.clauses:
        raise InvalidStatementError("MERGE needs at least one WHEN clause", table=table)
    for clause in plan.clauses:
        verb = clause.action.verb
        if (verb is RowVerb.INSERT) is not (clause.kind is MatchKind.NOT_MATCHED):
            raise InvalidStatementError(f"{clause.kind.sql} cannot have the action {verb.value.upper()}", table=table)
    for kind in MatchKind:
        if any(clause.condition is None for clause in plan.of(kind)[:-1]):
            raise InvalidStatementError(
                f"a {kind.sql} clause without a condition stands before another one, which is never reached",
                remedy="Put the clause without a condition last",
                table=table,
            )


def operation_parameters(plan: MergePlan) -> dict[str, Json]:
    """The statement as `commitInfo.operationParameters` holds it, in delta-spark's spelling."""
    return {
        "predicate": json.dumps([plan.condition], ensure_ascii=False),
        "matchedPredicates": _described(plan.of(MatchKind.MATCHED)),
        "notMatchedPredicates": _described(plan.of(MatchKind.NOT_MATCHED)),
        "notMatchedBySourcePredicates": _described(plan.of(MatchKind.NOT_MATCHED_BY_SOURCE)),
    }


def assigned_names(plan: MergePlan) -> Iterator[Name]:
    """The columns that clauses name to be set, as written."""
    for clause in plan.clauses:
        if isinstance(clause.action, UpdateSet):
            yield from (each.column for each in clause.action.assignments)
        elif isinstance(clause.action, InsertValues):
            yield from clause.action.columns


def has_star(plan: MergePlan) -> bool:
    """Whether some clause sets every column."""
    return any(isinstance(clause.action, UpdateAll | InsertAll) for clause in plan.clauses)


def _described(clauses: Sequence[MergeClause]) -> str:
    described = []
    for clause in clauses:
        predicate = {} if clause.condition is None else {"predicate": clause.condition}
        described.append({**predicate, "actionType": clause.action.verb.value})
    return as_json(described)
