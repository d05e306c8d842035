"""What a MERGE is asked to do, as values.

Every text is Spark SQL whose tables are already pinned. A column is a name as its parts, without backquotes; it may
begin with the target's alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Column, Expression

Name: TypeAlias = tuple[str, ...]


class Match(Enum):
    """The pairs of rows that a clause is about."""

    MATCHED = "WHEN MATCHED"
    NOT_MATCHED = "WHEN NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True)
class Update:
    """UPDATE SET column = value, ...; None stands for the star: every column from the source's of the same name."""

    assignments: tuple[tuple[Name, str], ...] | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT (column, ...) VALUES (value, ...); None stands for the star, empty names for columns by position."""

    values: tuple[tuple[Name, str], ...] | None = None


@dataclass(frozen=True)
class Delete:
    """DELETE"""


Action: TypeAlias = Update | Insert | Delete


@dataclass(frozen=True)
class Clause:
    """WHEN ... [AND condition] THEN action."""

    match: Match
    action: Action
    condition: str | None = None


@dataclass(frozen=True)
class KeyEquality:
    """`target column = source expression`, one of the parts that ON puts together by AND.

    Args:
        column: the target's column.
        source: the text of an expression over the source alone.
        null_safe: whether the text says `<=>`.
    """

    column: Column
    source: str
    null_safe: bool = False


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
    """

    target_alias: str
    source_alias: str
    condition: str
    clauses: tuple[Clause, ...]
    schema_evolution: bool = False
    keys: tuple[KeyEquality, ...] = ()
    target_predicate: Expression = TRUE
    source_bytes: int | None = None
    keys_only: bool = False

    def of(self, match: Match) -> tuple[Clause, ...]:
        """The clauses about such pairs, in order."""
        return tuple(clause for clause in self.clauses if clause.match is match)

    @property
    def inserts_only(self) -> bool:
        return all(clause.match is Match.NOT_MATCHED for clause in self.clauses)

    @property
    def deletes_every_match(self) -> bool:
        """Whether all that happens to a matched row is that it is deleted: then it may match more than once."""
        matched = self.of(Match.MATCHED)
        return len(matched) == 1 and isinstance(matched[0].action, Delete) and matched[0].condition is None


def check(plan: MergePlan, table: str) -> None:
    """Passes where the clauses make sense together.

    Raises:
        InvalidStatementError: there is no clause, an action does not fit its clause, or a clause can never be reached.
    """
    if not plan.clauses:
        raise InvalidStatementError("MERGE needs at least one WHEN clause", table=table)
    for clause in plan.clauses:
        if isinstance(clause.action, Insert) is not (clause.match is Match.NOT_MATCHED):
            action = type(clause.action).__name__.upper()
            raise InvalidStatementError(f"{clause.match.value} cannot have the action {action}", table=table)
    for match in Match:
        if any(clause.condition is None for clause in plan.of(match)[:-1]):
            raise InvalidStatementError(
                f"a {match.value} clause without a condition stands before another one, which is never reached",
                remedy="Put the clause without a condition last",
                table=table,
            )


def operation_parameters(plan: MergePlan) -> dict[str, Json]:
    """The statement as `commitInfo.operationParameters` holds it, in the reference's spelling."""
    return {
        "predicate": json.dumps([plan.condition], ensure_ascii=False),
        "matchedPredicates": _described(plan.of(Match.MATCHED)),
        "notMatchedPredicates": _described(plan.of(Match.NOT_MATCHED)),
        "notMatchedBySourcePredicates": _described(plan.of(Match.NOT_MATCHED_BY_SOURCE)),
    }


def assigned_names(plan: MergePlan) -> Iterator[Name]:
    """The columns that clauses name to be set, as written."""
    for clause in plan.clauses:
        if isinstance(clause.action, Update):
            yield from (name for name, _ in clause.action.assignments or ())
        elif isinstance(clause.action, Insert):
            yield from (name for name, _ in clause.action.values or ())


def has_star(plan: MergePlan) -> bool:
    """Whether some clause sets every column."""
    return any(
        (isinstance(clause.action, Update) and clause.action.assignments is None)
        or (isinstance(clause.action, Insert) and clause.action.values is None)
        for clause in plan.clauses
    )


def _described(clauses: Sequence[Clause]) -> str:
    described = []
    for clause in clauses:
        predicate = {} if clause.condition is None else {"predicate": clause.condition}
        described.append({**predicate, "actionType": type(clause.action).__name__.lower()})
    return json.dumps(described, ensure_ascii=False, separators=(",", ":"))
