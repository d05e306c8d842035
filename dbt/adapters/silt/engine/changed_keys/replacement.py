"""Replaces the rows of the keys that changed in the inputs of a query: INSERT ... REPLACE CHANGED KEYS.

The rows of a key depend only on the rows of its inputs with that key (decision 0089). So the query is evaluated over
the inputs restricted to the keys that changed since the table's last such commit. If that cannot be done, all rows are
replaced, and the outcome says why.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.builds.present import last_build
from dbt.adapters.silt.engine.builds.settings import differences
from dbt.adapters.silt.engine.changed_keys.keyed_query import OWNER, KeyedQuery, keyed_query
from dbt.adapters.silt.engine.commands.insert import insertion
from dbt.adapters.silt.engine.commands.insert import replace as replace_command
from dbt.adapters.silt.engine.commands.insert.placement import Placement
from dbt.adapters.silt.engine.commands.reading import change_feed
from dbt.adapters.silt.engine.commands.target import Outcome, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.log.builds import KEYS_INFO_KEY, BuildFacts
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.scan import skipping
from dbt.adapters.silt.engine.kernel.scan.change_feed import changes_after
from dbt.adapters.silt.engine.kernel.table.expressions import Expression, Or, renamed
from dbt.adapters.silt.engine.kernel.transaction.changes import ReadSet, merged_reads
from dbt.adapters.silt.engine.kernel.transaction.positions import (
    Position,
    app_id_of,
    has_positions,
    mark_of,
    recorded_mark,
    recorded_position,
)
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.conditions.condition_text import condition_text
from dbt.adapters.silt.engine.statements.resolve.expansion import Table
from dbt.adapters.silt.engine.statements.resolve.reads import Read, Resolved
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from dbt.adapters.silt.engine.statements.steps.context import Context
from dbt.adapters.silt.engine.statements.steps.on_table import Change

_ROWS: Final = "__silt_rows"
_KEYS: Final = "__silt_keys"


class _MustRebuild(Exception):
    """All rows must be replaced; the text says why."""


@dataclass(frozen=True)
class _Restriction:
    """Restricts each table of a query to the rows with a changed key, if the table has the key.

    Its tables are in the order of the inputs' numbers.

    Args:
        keys: the session view of the changed keys.
        predicate: a condition on the columns of the key that each changed key meets.
    """

    query: KeyedQuery
    views: SnapshotViews
    keys: str
    predicate: Expression
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self, _: Table, read: Read) -> str:
        number = next(self._numbers)
        if self.query.needs_all(number):
            return self.views.view(read.log, read.snapshot, read.files)
        keys = self.query.keys_of(number)
        predicate = _any(self._predicate(columns) for columns in keys)
        view = self.views.view(read.log, read.snapshot, skipping.prune(read.snapshot, predicate, read.files))
        # Spark skips row groups and pages by the condition, but not by the join.
        chosen = f"from {view} as {_ROWS} {self._with_keys(keys)} {condition_text(predicate, _ROWS)}"
        return f"(select {_ROWS}.* {chosen})"

    def _predicate(self, columns: tuple[str, ...]) -> Expression:
        return renamed(self.predicate, dict(zip((name.lower() for name in self.query.key), columns, strict=True)))

    def _with_keys(self, keys: Sequence[tuple[str, ...]]) -> str:
        """Returns the clauses that keep the rows with a changed key in any list of columns."""
        if len(keys) == 1:
            return f"{_semi_join(keys[0], self.query.key, self.keys)} where"
        found = (f"exists (select 1 from {self.keys} as {_KEYS} where {_equal(each, self.query.key)})" for each in keys)
        return f"where ({' or '.join(found)}) and"


def _any(parts: Iterable[Expression]) -> Expression:
    found = tuple(parts)
    return found[0] if len(found) == 1 else Or(found)


def _semi_join(columns: Iterable[str], key: Iterable[str], keys: str) -> str:
    """Returns the clause that keeps the rows of `_ROWS` with a changed key."""
    return f"left semi join {keys} as {_KEYS} on {_equal(columns, key)}"


def _equal(columns: Iterable[str], key: Iterable[str]) -> str:
    """Returns the condition that columns of `_ROWS` have the values of a changed key, null included."""
    equal = (f"{_ROWS}.{quote(column)} <=> {_KEYS}.{quote(name)}" for column, name in zip(columns, key, strict=True))
    return " and ".join(equal)


def replace_changed_keys(context: Context, statement: ast.Insert, change: Change, placement: Placement) -> Outcome:
    """Replaces the rows of the changed keys, or all rows.

    Raises:
        InvalidStatementError: if a column of the key is inserted into a column with another name.
        As `keyed_query`, `replace.replace_keys` and `insertion.overwrite`.
    """
    clause, target = statement.changed_keys, change.target
    assert clause is not None
    schema = target.snapshot.schema
    query = keyed_query(context, clause, change.resolved, schema)
    _check_placement(query, placement, schema.names)
    settings = settings_of(query, change.resolved, target.snapshot, str(change.table.name), change.settings)

    def evaluated(kept: DataFrame, predicate: Expression) -> DataFrame:
        return context.spark.sql(_restricted_sql(context, query, change.resolved, kept, predicate))

    guarded = replace(settings, reads=merged_reads(settings.reads, ReadSet(whole_table=True, transactions=True)))
    try:
        keys = _changed_keys(context, query, change)
        return replace_command.replace_keys(target, evaluated, placement, keys, guarded)
    except _MustRebuild as error:
        reason = str(error)
    except errors.DataFileMissingError as error:
        # If the file is one that the query needs, replacing all rows fails, too.
        reason = f"the changes are not known: {error.problem}"
    outcome = insertion.overwrite(target, query.frame, placement, settings.with_commit_info({"rebuilt": reason}))
    return replace(outcome, rebuilt=reason)


def settings_of(
    query: KeyedQuery,
    resolved: Resolved,
    base: Snapshot | None,
    consumer: str,
    settings: WriteSettings,
) -> WriteSettings:
    """Returns the settings of a commit, with the positions in the changes of the inputs and the facts of the query.

    Args:
        base: the table that is written, if it exists.
        consumer: its name.

    Raises:
        InvalidStatementError: if the query reads the table.
    """
    if any(each.log.name == consumer for each in query.inputs):
        raise errors.InvalidStatementError(
            "the query reads the table whose rows it determines",
            table=consumer,
            remedy="Write a plain SELECT from the inputs: the statement itself finds the rows to replace",
        )
    snapshots = {each.log: resolved.cut[each.log] for each in query.inputs if each.fixed is None}
    positions = tuple(_position(log, snapshot, base, consumer) for log, snapshot in snapshots.items())
    return replace(settings, positions=positions).with_commit_info(query.facts.commit_info(KEYS_INFO_KEY))


def _position(log: DeltaLog, snapshot: Snapshot, base: Snapshot | None, consumer: str) -> Position:
    recorded = None if base is None else recorded_position(base, snapshot.metadata.id)
    app_id = app_id_of(snapshot.metadata.id, log.name) if recorded is None else recorded.app_id
    version = None if recorded is None else recorded.version
    mark = None if recorded is None else recorded_mark(recorded)
    return Position(consumer, app_id, snapshot.version, version, mark_of(snapshot.content), mark)


def _check_placement(query: KeyedQuery, placement: Placement, names: Iterable[str]) -> None:
    if placement.by_name:
        return
    filled = [name.lower() for name in placement.columns or names]
    for name in query.key:
        at = query.frame.columns.index(name)
        if at >= len(filled) or filled[at] != name.lower():
            raise errors.InvalidStatementError(
                f"the column `{name}` of the key is inserted into a column with another name",
                remedy="Give the columns of the query the names of the table's columns, and write BY NAME",
            )


def _changed_keys(context: Context, query: KeyedQuery, change: Change) -> DataFrame:
    """Returns the keys that changed in some input since the table's last commit.

    Raises:
        _MustRebuild: if the rows of other keys may have changed, or the changes are not known.
    """
    if query.problem is not None:
        raise _MustRebuild(f"the query {query.problem}")
    recorded = _recorded(query, change)
    found = (
        keys
        for number, table in enumerate(query.inputs)
        for keys in _keys_in(context, query, change.resolved.cut[table.log], recorded, number)
    )
    return reduce(DataFrame.unionAll, found).distinct()


def _recorded(query: KeyedQuery, change: Change) -> BuildFacts:
    """Returns the facts that determined the rows of the table.

    Raises:
        _MustRebuild: if they are not the rows of this query at the recorded versions of its inputs.
    """
    target = change.target
    if not has_positions(target.snapshot):
        raise _MustRebuild("the table does not record which changes it contains")
    last = last_build(target.log, OWNER, KEYS_INFO_KEY)
    if last is None:
        raise _MustRebuild("the commit that recorded which changes the table contains is no longer in the log")
    if last.changed_since is not None:
        raise _MustRebuild(last.changed_since)
    before, now = last.facts, query.facts
    read = {each.log.name for each in query.inputs}
    if before.code != now.code:
        raise _MustRebuild("the query has changed")
    if not before.tables.keys() == now.tables.keys() == read:
        raise _MustRebuild(f"the query now reads {', '.join(sorted(read))}")
    if before.environment != now.environment:
        raise _MustRebuild(_changed_settings(before, now))
    for name, state in now.tables.items():
        if before.tables[name].table_id != state.table_id:
            raise _MustRebuild(f"{name} was dropped and created again")
        if before.tables[name].schema != state.schema:
            raise _MustRebuild(f"the columns of {name} have changed")
        position = recorded_position(target.snapshot, state.table_id)
        if position is None or position.version != before.tables[name].version:
            raise _MustRebuild(f"another statement has consumed changes of {name}")
    return before


def _changed_settings(before: BuildFacts, now: BuildFacts) -> str:
    """Names the settings that differ, in a clause."""
    if not before.settings:
        return "its rows were computed by an earlier version of dbt-silt, which did not record all settings"
    names = differences(before.settings, now.settings)
    named = [name if name.startswith("spark.") else f"the version of {name}" for name in names]
    return f"{' and '.join(named)} {'have' if len(named) > 1 else 'has'} changed since the last run"


def _keys_in(context: Context, query: KeyedQuery, end: Snapshot, recorded: BuildFacts, number: int) -> list[DataFrame]:
    """Returns the keys that changed in an input, for each list of its columns that holds the key."""
    log = query.inputs[number].log
    before = recorded.tables[log.name]
    if before.version > end.version:
        raise _MustRebuild(
            f"{log.name} was restored from a copy: v{before.version} was read, and its newest is v{end.version}"
        )
    try:
        changed = changes_after(log, before.version, end, lambda start: before.content in (None, start.content))
        rows = change_feed.read_changed(context.spark, log, changed)
        if query.needs_all(number) and rows.limit(1).count():
            raise _MustRebuild(f"{log.name} has changed, and the query needs all of its rows")
    except (errors.VersionNotFoundError, errors.UnsupportedStatementError) as error:
        raise _MustRebuild(f"the changes of {log.name} are not known: {error.problem}") from error
    return [_named(rows, columns, query.key) for columns in query.keys_of(number)]


def _named(rows: DataFrame, columns: Iterable[str], names: Iterable[str]) -> DataFrame:
    return rows.select(*(rows[quote(old)].alias(new) for old, new in zip(columns, names, strict=True)))


def _restricted_sql(
    context: Context, query: KeyedQuery, resolved: Resolved, keys: DataFrame, predicate: Expression
) -> str:
    views = context.resolver.snapshot_views
    view = views.of_frame("keys", keys)
    restricted = context.resolver.rendered_around(resolved, _Restriction(query, views, view, predicate))
    return f"select {_ROWS}.* from (\n{restricted}\n) as {_ROWS} {_semi_join(query.key, query.key, view)}"
