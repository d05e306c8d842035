"""The clauses of a MERGE over joined rows: which one a pair of rows takes, and the row that comes out of it.

The joined rows have the target's and the source's columns under their aliases, and the marks `IN_TARGET` and
`IN_SOURCE`, each true or null, that say which sides a row has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge.plan import Clause, Delete, Insert, Match, MergePlan, Update
from dbt.adapters.silt.engine.commands.writing import checks, generated
from dbt.adapters.silt.engine.commands.writing import set_clause as assignments
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.set_clause import Assignment, Name, Setting
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import DataType, StructField, StructType
from dbt.adapters.silt.engine.sql.query.qualify import Scope

IN_TARGET: Final = "__silt_in_target"
IN_SOURCE: Final = "__silt_in_source"
ACTION: Final = "__silt_action"
"""The number of the clause that a joined row takes, or one of the two below."""

COPY: Final = 0
"""A row of the target that stays as it is."""

IGNORE: Final = -1
"""A row of the source that no clause inserts."""


@dataclass(frozen=True)
class NumberedClause:
    """A clause ready to be run.

    Args:
        number: its `ACTION`.
        condition: its text, with names that cannot be ambiguous.
        assignments: what it sets; empty for DELETE.
    """

    number: int
    clause: Clause
    condition: str | None
    assignments: tuple[Assignment, ...] = ()

    @property
    def deletes(self) -> bool:
        return isinstance(self.clause.action, Delete)


@dataclass(frozen=True)
class Clauses:
    """The clauses of a MERGE, over tables of these schemas.

    Args:
        plan: the statement.
        all: in the order of the statement.
        old: the target's schema as it is in the files.
        new: the target's schema as it is to be.
        source: the source's schema.
    """

    plan: MergePlan
    all: tuple[NumberedClause, ...]
    old: StructType
    new: StructType
    source: StructType

    def numbers(self, match: Match, action: type) -> list[int]:
        """The numbers of the clauses of that kind."""
        return [c.number for c in self.all if c.clause.match is match and isinstance(c.clause.action, action)]

    @property
    def known_types(self) -> Mapping[str, DataType]:
        """The types of the source's columns, by how a star and `Scope.qualify` spell them."""
        return {_source_column(self.plan, member.name): member.type for member in self.source}

    @property
    def deletions(self) -> list[int]:
        return [clause.number for clause in self.all if clause.deletes]


def number_clauses(plan: MergePlan, old: StructType, new: StructType, source: StructType, table: str) -> Clauses:
    """Resolves the clauses' names and stars.

    Args:
        old: the target's schema as it is in the files.
        new: the target's schema as it is to be.
        source: the source's.

    Raises:
        ColumnNotFoundError: a column that is set is not in the target, a star finds none in the source, or an
            expression names a column of the side that its clause does not see.
        InvalidStatementError: a column is set twice.
    """
    numbered = []
    for number, clause in enumerate(plan.clauses, start=1):
        scope = _scope(plan, clause, old, source)
        condition = clause.condition
        if condition is not None and scope is not None:
            condition = scope.qualify(condition)
        pairs = _pairs(plan, clause, new, source, table)
        if scope is not None:
            pairs = [(name, scope.qualify(value)) for name, value in pairs]
        resolved = assignments.resolve(pairs, new, plan.target_alias, table)
        if isinstance(clause.action, Insert) and any(len(each.path) > 1 for each in resolved):
            raise InvalidStatementError("INSERT sets whole columns, not fields inside them", table=table)
        numbered.append(NumberedClause(number, clause, condition, resolved))
    return Clauses(plan, tuple(numbered), old, new, source)


def action(clauses: Clauses) -> Column:
    """`ACTION` of a joined row: the first clause about such rows whose condition is true."""
    texts = {match: _choice(clauses, match) for match in Match}
    return F.expr(
        f"case when {IN_TARGET} and {IN_SOURCE} then {texts[Match.MATCHED]}"
        f" when {IN_SOURCE} then {texts[Match.NOT_MATCHED]}"
        f" else {texts[Match.NOT_MATCHED_BY_SOURCE]} end"
    )


def new_rows(
    joined: DataFrame, clauses: Clauses, properties: TableProperties, table: str, carried: Sequence[str] = ()
) -> tuple[DataFrame, tuple[Check, ...]]:
    """The rows that the table is to have in place of the joined ones, and what the changed ones must keep.

    Args:
        joined: with `ACTION`; without the rows that are ignored.
        carried: columns of `joined` that are kept besides.

    Raises:
        TypeMismatchError: a value's type cannot be stored in its column.
    """
    flat = [each for clause in clauses.all for each in clause.assignments]
    made = iter(assignments.settings(joined, flat, table, clauses.known_types))
    per_clause = [(clause, [next(made) for _ in clause.assignments]) for clause in clauses.all]
    columns = [_column(member, clauses, per_clause) for member in clauses.new]
    lost, lost_checks = assignments.losses(
        [(f"{ACTION} = {clause.number}", setting) for clause, own in per_clause for setting in own], table
    )
    rules = checks.table_checks(clauses.new, properties, table)
    of_changed = tuple(replace(rule, violation=F.expr(f"{ACTION} > {COPY}") & rule.violation) for rule in rules)
    rows = joined.select(*columns, ACTION, IN_TARGET, *lost.values(), *carried)
    return generated.computed(rows, clauses.new, _computed(clauses)), (*lost_checks, *of_changed)


def _computed(clauses: Clauses) -> Mapping[str, Column]:
    """The generated columns, each with the condition for the rows whose clause gives it no value."""
    found: dict[str, Column] = {}
    for member in generated.generated_columns(clauses.new):
        setting = (c for c in clauses.all if not any(each.column.name == member.name for each in c.assignments))
        numbers = [str(clause.number) for clause in setting if not clause.deletes]
        if numbers:
            found[member.name] = F.expr(f"{ACTION} in ({', '.join(numbers)})")
    return found


def _scope(plan: MergePlan, clause: Clause, old: StructType, source: StructType) -> Scope | None:
    """The one side that the clause sees; None where it sees both."""
    if clause.match is Match.NOT_MATCHED:
        return Scope(plan.source_alias, source.names, plan.target_alias, clause.match.value)
    if clause.match is Match.NOT_MATCHED_BY_SOURCE:
        return Scope(plan.target_alias, old.names, plan.source_alias, clause.match.value)
    return None


def _pairs(
    plan: MergePlan, clause: Clause, new: StructType, source: StructType, table: str
) -> Sequence[tuple[Name, str]]:
    """What the clause sets, a star written out."""
    given = clause.action
    if isinstance(given, Delete):
        return ()
    listed: Sequence[tuple[Name, str]] | None = given.assignments if isinstance(given, Update) else given.values
    if isinstance(given, Insert) and listed is not None:
        listed = _insert_columns(listed, new, table)
    if listed is not None:
        return listed
    missing = [member.name for member in new if member.name not in source and not member.generation_expression]
    if missing and not plan.schema_evolution:
        word = "INSERT *" if isinstance(given, Insert) else "UPDATE SET *"
        raise ColumnNotFoundError(
            f"{word} needs the source to have every column of the table; it lacks {', '.join(missing)}",
            remedy="Add them to the source, list the columns instead of *, or write MERGE WITH SCHEMA EVOLUTION",
            table=table,
        )
    return [((name,), _source_column(plan, source.require(name).name)) for name in new.names if name in source]


def _insert_columns(listed: Sequence[tuple[Name, str]], new: StructType, table: str) -> Sequence[tuple[Name, str]]:
    """The columns of an INSERT; by position where none is named."""
    if any(name for name, _ in listed):
        return listed
    if len(listed) != len(new):
        raise InvalidStatementError(
            f"INSERT has {len(listed)} values for the table's {len(new)} columns",
            remedy="Name the columns to insert into, or give a value for each",
            table=table,
        )
    return [((name,), value) for name, (_, value) in zip(new.names, listed, strict=True)]


def _source_column(plan: MergePlan, name: str) -> str:
    return f"{quote(plan.source_alias)}.{quote(name)}"


def _choice(clauses: Clauses, match: Match) -> str:
    """The SQL of the number that a row of that kind takes."""
    rest = IGNORE if match is Match.NOT_MATCHED else COPY
    own = [clause for clause in clauses.all if clause.clause.match is match]
    if not own:
        return str(rest)
    # The line break ends a comment at the condition's end.
    whens = [f"when ({clause.condition or 'true'}\n) then {clause.number}" for clause in own]
    return f"case {' '.join(whens)} else {rest} end"


def _column(
    member: StructField, clauses: Clauses, per_clause: Sequence[tuple[NumberedClause, Sequence[Setting]]]
) -> Column:
    """A column of the table for the joined rows, by the clause that each takes."""
    own = [
        (clause, [setting for setting in settings if setting.assignment.column.name == member.name])
        for clause, settings in per_clause
    ]
    # An INSERT gives every column a value, its default where it names none; an UPDATE those that it names.
    takes = [(clause, settings) for clause, settings in own if settings or isinstance(clause.clause.action, Insert)]
    null = f"cast(null as {member.type.sql_name})"
    unnamed = f"cast(({member.default}) as {member.type.sql_name})"
    before = clauses.old.field(member.name)
    old = null if before is None else f"{quote(clauses.plan.target_alias)}.{quote(before.name)}"
    texts = [assignments.as_text(settings) if settings else unnamed for _, settings in takes]
    if all(text is not None for text in texts) and (before is None or before.type == member.type):
        # One text is one call to Spark, where a column built by functions is one for each of them.
        whens = (f"when {clause.number} then {text}" for (clause, _), text in zip(takes, texts, strict=True))
        text = f"case {ACTION} {' '.join(whens)} else {old} end" if takes else old
        return F.expr(text).alias(member.name)
    kept = F.expr(old) if before is None else assignments.widened(F.expr(old), before.type, member.type)
    column = F.when(F.lit(False), kept)
    for clause, settings in takes:
        start = F.expr(unnamed) if isinstance(clause.clause.action, Insert) else kept
        column = column.when(F.expr(f"{ACTION} = {clause.number}"), assignments.with_assignments(start, settings))
    return column.otherwise(kept).alias(member.name)
