"""Runs a statement that changes a table, in the steps that all such statements share.

Find the table, pass the statement to Spark if the table is not in a warehouse, refuse unsupported clauses, skip work
that the table already contains, resolve the statement's texts, run the command, report the outcome. A statement that
creates a table has a location instead of a table, and prepares and finishes it (`make_table`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.silt.engine.builds.build_facts import facts_of, portable
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.rows.file_rows import Rows
from dbt.adapters.silt.engine.commands.target import Outcome, Target, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log import commit_search
from dbt.adapters.silt.engine.kernel.log.builds import DEFINITIONS_KEY, FILES_KEY, Build
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Json
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE
from dbt.adapters.silt.engine.kernel.transaction.changes import merged_reads
from dbt.adapters.silt.engine.sql.ast import Insert, MakesTable, Merge, Name, OnObject, OnTable, Statement, WriteRows
from dbt.adapters.silt.engine.sql.conditions.predicates import to_predicate
from dbt.adapters.silt.engine.sql.mistakes import clause_remedy
from dbt.adapters.silt.engine.statements.resolve.changes_functions import check_consumer
from dbt.adapters.silt.engine.statements.resolve.expansion import SqlFragment
from dbt.adapters.silt.engine.statements.resolve.namespace import SparkRelation, WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved
from dbt.adapters.silt.engine.statements.steps.audits import judge_of
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, pass_with_query
from dbt.adapters.silt.engine.statements.steps.create_target import CreateTarget
from dbt.adapters.silt.engine.statements.transactions import work_ids

SOURCE_ALIAS = "__silt_source"
"""Qualifies the columns of a query that has no alias."""


def _refuse_nothing(table: str) -> None:
    """Refuses nothing."""


@dataclass(frozen=True)
class Verb:
    """The parts of the steps that depend on the kind of statement.

    Args:
        operation: the operation's name in an outcome; None if the statement is a dry run.
        refuse: raises an error for clauses unsupported in this kind of statement; gets the table's name.
        query: the query to resolve if the statement is passed to Spark.
    """

    operation: str | None
    refuse: Callable[[str], object] = _refuse_nothing
    query: str | None = None


@dataclass(frozen=True)
class Texts:
    """The texts of a statement that name tables.

    Args:
        query: the statement's query.
        expressions: the conditions and values of the statement, which are keys of `Change.expressions`.
        qualifiers: names that may qualify columns in the expressions -> the identifier that the command uses.
    """

    query: str | None = None
    expressions: Sequence[str] = ()
    qualifiers: Mapping[Name, str] = field(default_factory=dict)

    @property
    def fragments(self) -> list[SqlFragment]:
        queries = [] if self.query is None else [SqlFragment(self.query)]
        return queries + [SqlFragment(text, self.qualifiers) for text in self.expressions]


@dataclass(frozen=True)
class Change:
    """A table that a command is about to change, with the statement's texts, in the same cut.

    Args:
        table: the table as the statement names it.
        target: the table, pinned.
        resolved: the resolved texts; a query comes first.
        settings: settings of the commit, with the reads of the texts.
        expressions: each expression of the statement -> the expression with its tables pinned.
        qualifiers: as in `Texts`.
    """

    table: WarehouseTable
    target: Target
    resolved: Resolved
    settings: WriteSettings
    expressions: Mapping[str, str]
    qualifiers: Mapping[Name, str]


@dataclass(frozen=True)
class Maker:
    """Creates a table.

    Args:
        settings: settings of the commit.
        make: creates the table, whose folder exists.
    """

    settings: WriteSettings
    make: Callable[[DeltaLog], Outcome]


def change_table(
    context: Context,
    statement: OnTable | OnObject,
    verb: Verb,
    texts_of: Callable[[WarehouseTable], Texts],
    command: Callable[[Change], Outcome],
) -> Result:
    """Changes a table by a command that is based on a pinned version of it.

    Raises:
        RelationNotFoundError: if the name is in a warehouse and the relation does not exist.
        UnsupportedStatementError: if the relation is a view, or the statement has an unsupported clause.
        SiltError: as raised by the command.
    """

    def run(table: WarehouseTable) -> Result:
        change = _resolved(context, statement, table, texts_of(table))
        return Result(outcome=_concluded(change.settings, table.log, command(change)))

    return run_on_table(context, statement, verb, run)


def run_on_table(
    context: Context, statement: OnTable | OnObject, verb: Verb, body: Callable[[WarehouseTable], Result]
) -> Result:
    """Runs the shared steps around `body`, for a statement that need not read the table in a cut.

    Raises:
        As `change_table`.
    """
    table = table_to_change(context, statement.table)
    if table is None:
        return pass_with_query(context, statement, verb.query)
    refuse_unsupported(statement, table.log.name)
    verb.refuse(table.log.name)
    done = _already_applied(context, table.log, verb.operation)
    if done is not None:
        return Result(outcome=done)
    if verb.operation is not None:
        check_writable(table.log)
    return report(context, table.log, body(table))


def make_table(
    context: Context, statement: MakesTable, verb: Verb, target: CreateTarget, body: Callable[[CreateTarget], Maker]
) -> Result:
    """Creates or replaces a table.

    Args:
        body: resolves and checks the statement before the table's folder is created.

    Raises:
        ConcurrentCreateError: if another writer has created the table since the lookup.
        UnsupportedStatementError: if the statement has an unsupported clause.
        SiltError: as raised by `body` and by the maker that it returns.
    """
    refuse_unsupported(statement, target.label)
    verb.refuse(target.label)
    done = None if target.log is None else _already_applied(context, target.log, verb.operation)
    if target.log is not None and done is not None:
        target.finish(context, target.log)
        return Result(outcome=done)
    maker = body(target)
    log = target.prepare(context)
    check_writable(log)
    outcome = _concluded(maker.settings, log, maker.make(log))
    target.finish(context, log)
    return report(context, log, Result(outcome=outcome))


def table_to_change(context: Context, name: Name) -> WarehouseTable | None:
    """Returns the table of that name in a warehouse, or None if the name is Spark's.

    Raises:
        RelationNotFoundError: if the name is in a warehouse and the relation does not exist.
        UnsupportedStatementError: if the relation is a view.
    """
    meaning = context.namespace.meaning(name)
    if isinstance(meaning, WarehouseTable):
        return meaning
    if isinstance(meaning, SparkRelation):
        return None
    raise errors.UnsupportedStatementError("it is a view, not a table", table=".".join(name))


def check_writable(log: DeltaLog) -> None:
    """Checks that the table's folder is writable, before Spark does work that could not be committed.

    Raises:
        ReadOnlyStorageError: if the storage is read-only.
    """
    try:
        log.store.check_writable()
    except errors.ReadOnlyStorageError as error:
        raise errors.ReadOnlyStorageError(error.problem, table=log.name) from error


def refuse_unsupported(statement: Statement, table: str) -> None:
    """Raises UnsupportedStatementError if the statement has a clause that no command supports."""
    if statement.unsupported:
        raise errors.UnsupportedStatementError(
            f"not supported: {', '.join(statement.unsupported)}",
            table=table,
            remedy=clause_remedy(statement.unsupported[0]),
        )


def report(context: Context, log: DeltaLog, result: Result) -> Result:
    """Reports a write; earlier reads of the table in the same unit of work no longer count."""
    if result.outcome is not None:
        _forget_reads(context, log)
        if context.settings.txn is not None:
            work_ids.note_applied(log, context.settings.txn)
    return result


def is_applied(context: Context, statement: Statement) -> bool:
    """Returns whether the statement's table contains its work by now; False if that cannot be determined."""
    name = statement.changed_table
    if context.settings.txn is None or name is None:
        return False
    with contextlib.suppress(errors.SiltError):  # the caller needs the statement's error
        meaning = context.namespace.meaning(name)
        return isinstance(meaning, WarehouseTable) and meaning.log.snapshot().holds(context.settings.txn)
    return False


def _concluded(settings: WriteSettings, log: DeltaLog, outcome: Outcome) -> Outcome:
    """Returns the outcome of a command with the results of the statement's audits, if any."""
    return outcome if settings.judge is None else settings.judge.concluded(log, outcome)


def settings_with(
    context: Context, resolved: Resolved, name: RelationName | None, expected: Mapping[str, str] | None = None
) -> WriteSettings:
    """Returns the statement's settings, with the reads of its texts: of its table, and of all tables.

    Args:
        name: the table that the statement changes; None if it is named by its path.
        expected: the rules of the table that leave rows of the statement out, if any.
    """
    commit, build = context.settings.commit, context.settings.build
    inputs = resolved.inputs.commit_info()
    facts = {} if build is None else _facts(context, build, resolved, inputs)
    return replace(
        context.settings,
        positions=resolved.positions,
        judge=judge_of(context, resolved.cut, name, expected or {}),
        reads=merged_reads(context.settings.reads, resolved.target_reads),
        commit=replace(
            commit,
            read_versions=resolved.inputs.versions,
            commit_info={**commit.commit_info, **inputs, **facts},
        ),
    )


def _facts(context: Context, build: Build, resolved: Resolved, inputs: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the fields of `commitInfo` for the facts of a build; `inputs` has the fingerprints that it records."""
    if build.known is not None:
        return {**build.known.commit_info(), **build.known.inputs_info()}
    facts = facts_of(build, resolved, context.resolver.time_zone)
    definitions, files = inputs.get(DEFINITIONS_KEY, {}), inputs.get(FILES_KEY, {})
    facts = replace(facts, definitions=definitions, files=files, ends=build.ends or None)
    return replace(facts, portable=portable_of(context, build)).commit_info()


def portable_of(context: Context, build: Build) -> str | None:
    """Returns the hash by which the same build of another schema is recognised; None if there cannot be another."""
    if not build.portable:
        return None
    try:
        return portable(build, None if build.query is None else context.resolver.expanded(build.query))
    except errors.SiltError:
        return None  # the statement itself has been resolved


def _already_applied(context: Context, log: DeltaLog, operation: str | None) -> Outcome | None:
    """Returns the outcome of work that the table already contains, by its transaction version.

    Earlier reads of the table in the same unit of work then no longer count, as after its own write.
    """
    txn = context.settings.txn
    if txn is None or operation is None:
        return None
    snapshot = log.snapshot()
    if not snapshot.holds(txn):
        return None
    _forget_reads(context, log)
    found = commit_search.find_commit(log, txn[0])
    done = Outcome(operation, log.name, None, skipped=True, recorded=snapshot.transaction_version(txn[0]))
    if found is not None:
        done = replace(done, version=found.commit.version, emptied_at=found.emptied_at)
    if context.settings.log_skips:
        work_ids.log_skip(log, txn, done)
    return done


def _resolved(context: Context, statement: Statement, table: WarehouseTable, texts: Texts) -> Change:
    log = table.log
    resolved = context.resolver.resolve(texts.fragments, target=log)
    if resolved.target is None:
        raise errors.InternalError("the statement's table was not pinned", table=log.name)
    check_consumer(resolved.positions, table.name)
    pinned = resolved.texts if texts.query is None else resolved.texts[1:]
    expected = resolved.target.properties.expectations if isinstance(statement, (Insert, Merge, WriteRows)) else {}
    settings = settings_with(context, resolved, table.name, expected)
    tests = () if settings.judge is None else settings.judge.tests
    return Change(
        table,
        Target(log.name, log, resolved.target, tests),
        resolved,
        settings,
        dict(zip(texts.expressions, pinned, strict=True)),
        texts.qualifiers,
    )


def _forget_reads(context: Context, log: DeltaLog) -> None:
    if context.resolver.read_history is not None:
        context.resolver.read_history.forget(log)


def rows_of(
    context: Context, table: WarehouseTable, alias: str | None, condition: str | None, snapshot: Snapshot
) -> Rows:
    """Returns the rows that a pinned condition selects, or all rows if it is None."""
    name = table.qualifier(alias)
    if condition is None:
        return Rows(name, None, TRUE)
    return Rows(name, condition, to_predicate(condition, snapshot.schema, [(name,)], context.resolver.time_zone))
