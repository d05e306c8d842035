"""Evaluates the clauses of a MERGE over joined rows: which clause a pair takes, and the resulting row.

The joined rows have the target's and the source's columns under their aliases, and the marks `IN_TARGET` and
`IN_SOURCE`, each true or null, which show the sides that a row has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt.adapters.silt.engine.commands.merge.plan import MergePlan
from dbt.adapters.silt.engine.commands.spark import frames
from dbt.adapters.silt.engine.commands.writing import checks, generated, row_ids, set_clause
from dbt.adapters.silt.engine.commands.writing import rules as table_rules
from dbt.adapters.silt.engine.commands.writing.checks import Check
from dbt.adapters.silt.engine.commands.writing.conversion import fitted, lacking
from dbt.adapters.silt.engine.commands.writing.set_clause import AssignedColumn, CastAssignment
from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, InvalidStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.table.identity import identities
from dbt.adapters.silt.engine.kernel.table.properties import TableProperties
from dbt.adapters.silt.engine.kernel.table.schema import CURRENT_DEFAULT, DataType, StructField, StructType
from dbt.adapters.silt.engine.kernel.table.text_lengths import declared_type, has_lengths
from dbt.adapters.silt.engine.sql.ast import Assignment, InsertValues, MatchKind, MergeClause, RowVerb, UpdateSet
from dbt.adapters.silt.engine.sql.query.column_names import Scope

IN_TARGET: Final = "__silt_in_target"
IN_SOURCE: Final = "__silt_in_source"
ACTION: Final = "__silt_action"
"""The number of the clause that a joined row takes, or `COPY` or `IGNORE`."""

COPY: Final = 0
"""The action for a row of the target that remains unchanged."""

IGNORE: Final = -1
"""A row of the source that no clause inserts."""


@dataclass(frozen=True)
class NumberedClause:
    """A WHEN clause whose names are resolved and whose values are converted.

    Args:
        number: its `ACTION`.
        condition: its SQL, with unambiguous names.
        assignments: its assignments; empty for DELETE.
    """

    number: int
    clause: MergeClause
    condition: str | None
    assignments: tuple[AssignedColumn, ...] = ()

    @property
    def deletes(self) -> bool:
        return self.clause.action.verb is RowVerb.DELETE


@dataclass(frozen=True)
class Clauses:
    """The clauses of a MERGE, and the schemas of its tables.

    Args:
        plan: the statement.
        all: the clauses, in the order of the statement.
        old: the target's current schema.
        new: the target's new schema.
        source: the source's schema.
    """

    plan: MergePlan
    all: tuple[NumberedClause, ...]
    old: StructType
    new: StructType
    source: StructType

    def numbers(self, kind: MatchKind, verb: RowVerb) -> list[int]:
        """Returns the numbers of the clauses with that kind and that action."""
        return [c.number for c in self.all if c.clause.kind is kind and c.clause.action.verb is verb]

    @property
    def known_types(self) -> Mapping[str, DataType]:
        """The types of the source's columns, by the names that a star and `Scope.qualify` write."""
        return {_source_column(self.plan, member.name): member.type for member in self.source}

    @property
    def deletions(self) -> list[int]:
        return [clause.number for clause in self.all if clause.deletes]


def number_clauses(plan: MergePlan, old: StructType, new: StructType, source: StructType, table: str) -> Clauses:
    """Resolves the clauses' names and stars.

    Args:
        old: the target's current schema.
        new: the target's new schema.
        source: the source's schema.

    Raises:
        ColumnNotFoundError: if a column that is set is not in the target, the source lacks a column of a star, or an
            expression names a column of the side that its clause does not see.
        InvalidStatementError: if a column is set twice, or an identity column is set that cannot be.
    """
    numbered = []
    for number, clause in enumerate(plan.clauses, start=1):
        scope = _scope(plan, clause, old, source)
        condition = clause.condition
        if condition is not None and scope is not None:
            condition = scope.qualify(condition)
        given = _assignments(plan, clause, new, source, table)
        if scope is not None:
            given = [Assignment(each.column, scope.qualify(each.value)) for each in given]
        inserts = clause.action.verb is RowVerb.INSERT
        resolved = set_clause.resolve(given, new, plan.target_alias, table, inserts)
        if inserts and any(len(each.path) > 1 for each in resolved):
            raise InvalidStatementError("INSERT sets whole columns, not fields inside them", table=table)
        numbered.append(NumberedClause(number, clause, condition, resolved))
    return Clauses(plan, tuple(numbered), old, new, source)


def action(clauses: Clauses) -> Column:
    """Returns the `ACTION` of a joined row: the first clause of the row's kind whose condition is true."""
    texts = {kind: _choice(clauses, kind) for kind in MatchKind}
    return F.expr(
        f"case when {IN_TARGET} and {IN_SOURCE} then {texts[MatchKind.MATCHED]}"
        f" when {IN_SOURCE} then {texts[MatchKind.NOT_MATCHED]}"
        f" else {texts[MatchKind.NOT_MATCHED_BY_SOURCE]} end"
    )


def new_rows(
    joined: DataFrame,
    clauses: Clauses,
    properties: TableProperties,
    table: str,
    carried: Sequence[str] = (),
    per_clause: SettingsByClause | None = None,
) -> tuple[DataFrame, tuple[Check, ...]]:
    """Returns the table's new rows for the joined rows, and the checks of the changed rows.

    Args:
        joined: the joined rows with `ACTION`, without the ignored rows.
        carried: additional columns of `joined` to keep.
        per_clause: the settings of all clauses, if they are known.

    Raises:
        TypeMismatchError: if a value's type cannot be stored in its column.
    """
    per_clause = settings_by_clause(joined, clauses, table) if per_clause is None else per_clause
    by_column = [(clause, set_clause.by_column(own)) for clause, own in per_clause]
    columns = {member.name: _column(member, clauses, by_column, table) for member in clauses.new}
    lost, lost_checks = set_clause.losses(
        [(f"{ACTION} = {clause.number}", setting) for clause, own in per_clause for setting in own], table
    )
    rules = checks.table_checks(clauses.new, properties, table)
    of_changed = tuple(replace(rule, violation=F.expr(f"{ACTION} > {COPY}") & rule.violation) for rule in rules)
    ids = row_ids.after(joined, properties, F.expr(f"{ACTION} <> {COPY}"))
    kept = (ACTION, IN_TARGET, *carried)
    rows = frames.select(joined, {**columns, **dict(zip(kept, kept, strict=True)), **lost, **ids})
    return generated.computed(rows, clauses.new, _computed(clauses), table), (*lost_checks, *of_changed)


SettingsByClause: TypeAlias = Sequence[tuple[NumberedClause, Sequence[CastAssignment]]]
"""The clauses, each with its assignments and their conversions."""


def settings_by_clause(joined: DataFrame, clauses: Clauses, table: str) -> SettingsByClause:
    """Returns the settings of all clauses; Spark analyses the values once.

    Raises:
        The errors of `set_clause.settings`.
    """
    flat = [each for clause in clauses.all for each in clause.assignments]
    found = iter(set_clause.settings(joined, flat, table, clauses.known_types, clauses.plan.schema_evolution))
    return [(clause, list(islice(found, len(clause.assignments)))) for clause in clauses.all]


def unnumbered(clauses: Clauses) -> Mapping[str, Column | None]:
    """Returns the identity columns, each with the condition for the rows that a clause inserts without a number."""
    found: dict[str, Column | None] = {}
    for name in identities(clauses.new):
        inserts = (c for c in clauses.all if c.clause.action.verb is RowVerb.INSERT)
        numbers = [str(c.number) for c in inserts if not any(each.column.name == name for each in c.assignments)]
        if numbers:
            found[name] = F.expr(f"{ACTION} in ({', '.join(numbers)})")
    return found


def _computed(clauses: Clauses) -> Mapping[str, Column]:
    """Returns the generated columns, each with the condition for the rows whose clause does not set it."""
    found: dict[str, Column] = {}
    for member in generated.generated_columns(clauses.new):
        setting = (c for c in clauses.all if not any(each.column.name == member.name for each in c.assignments))
        numbers = [str(clause.number) for clause in setting if not clause.deletes]
        if numbers:
            found[member.name] = F.expr(f"{ACTION} in ({', '.join(numbers)})")
    return found


def _scope(plan: MergePlan, clause: MergeClause, old: StructType, source: StructType) -> Scope | None:
    """Returns the single side that the clause can refer to, or None if it can refer to both sides."""
    if clause.kind is MatchKind.NOT_MATCHED:
        return Scope(plan.source_alias, source.names, plan.target_alias, clause.kind.sql)
    if clause.kind is MatchKind.NOT_MATCHED_BY_SOURCE:
        return Scope(plan.target_alias, old.names, plan.source_alias, clause.kind.sql)
    return None


def _assignments(
    plan: MergePlan, clause: MergeClause, new: StructType, source: StructType, table: str
) -> Sequence[Assignment]:
    """Returns the assignments of the clause, with a star expanded."""
    action = clause.action
    if action.verb is RowVerb.DELETE:
        return ()
    if isinstance(action, UpdateSet):
        return action.assignments
    if isinstance(action, InsertValues):
        return _inserted(action, new, table)
    missing = [path for member in new for path in _lacking(member, source)]
    if missing and not plan.schema_evolution:
        word = "INSERT *" if action.verb is RowVerb.INSERT else "UPDATE SET *"
        raise ColumnNotFoundError(
            f"{word} needs the source to have every column of the table; it lacks {', '.join(missing)}",
            remedy="Add them to the source, list the columns instead of *, or write MERGE WITH SCHEMA EVOLUTION",
            table=table,
        )
    return [
        Assignment((name,), _source_column(plan, source.require(name).name)) for name in new.names if name in source
    ]


def _lacking(member: StructField, source: StructType) -> Sequence[str]:
    """Returns the column, or the fields inside it, that a star needs and the source lacks."""
    given = source.field(member.name)
    if given is None:
        return [] if member.is_computed else [member.name]
    return list(lacking(given.type, member.type, member.name))


def _inserted(action: InsertValues, new: StructType, table: str) -> Sequence[Assignment]:
    """Returns the assignments of an INSERT, by position if it names no columns."""
    columns = action.columns or tuple((name,) for name in new.names)
    if len(action.values) != len(columns):
        raise InvalidStatementError(
            f"INSERT has {len(action.values)} values for the table's {len(new)} columns",
            remedy="Name the columns to insert into, or give a value for each",
            table=table,
        )
    return [Assignment(column, value) for column, value in zip(columns, action.values, strict=True)]


def _source_column(plan: MergePlan, name: str) -> str:
    return f"{quote(plan.source_alias)}.{quote(name)}"


def _choice(clauses: Clauses, kind: MatchKind) -> str:
    """Returns the SQL of the clause number that a row of that kind takes."""
    rest = IGNORE if kind is MatchKind.NOT_MATCHED else COPY
    own = [clause for clause in clauses.all if clause.clause.kind is kind]
    if not own:
        return str(rest)
    # The line break ends a comment at the condition's end.
    whens = [f"when ({clause.condition or 'true'}\n) then {clause.number}" for clause in own]
    return f"case {' '.join(whens)} else {rest} end"


def _column(
    member: StructField,
    clauses: Clauses,
    by_column: Sequence[tuple[NumberedClause, Mapping[str, Sequence[CastAssignment]]]],
    table: str,
) -> str | Column:
    """Returns a column of the table for the joined rows, by each row's clause; as SQL if SQL can express it."""
    own = [(clause, settings.get(member.name.lower(), ())) for clause, settings in by_column]
    # An INSERT sets every column, to its default if it is not named; an UPDATE sets only the columns that it names.
    takes = [(clause, settings) for clause, settings in own if settings or clause.clause.action.verb is RowVerb.INSERT]
    null = f"cast(null as {member.type.sql_name})"
    unnamed = table_rules.typed_default(member, table)
    before = clauses.old.field(member.name)
    old = null if before is None else f"{quote(clauses.plan.target_alias)}.{quote(before.name)}"
    is_fitted = has_lengths(member) and CURRENT_DEFAULT in member.metadata
    default = None if is_fitted else unnamed
    texts = [set_clause.as_text(settings) if settings else default for _, settings in takes]
    if all(text is not None for text in texts) and (before is None or before.type == member.type):
        whens = (f"when {clause.number} then {text}" for (clause, _), text in zip(takes, texts, strict=True))
        return f"case {ACTION} {' '.join(whens)} else {old} end" if takes else old
    kept = F.expr(old) if before is None else set_clause.widened(F.expr(old), before.type, member.type)
    column = F.when(F.lit(False), kept)
    for clause, settings in takes:
        if clause.clause.action.verb is RowVerb.UPDATE:
            value = set_clause.with_assignments(kept, settings)
        else:
            value = settings[0].value if settings else fitted(F.expr(unnamed), declared_type(member))
        column = column.when(F.expr(f"{ACTION} = {clause.number}"), value)
    return column.otherwise(kept)
