"""Judges the audits of a statement on the version that it is about to commit."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Final

from pyspark.sql import DataFrame

from dbt.adapters.silt.engine.audits import verdicts
from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult, Audits, OnFailure, Scope
from dbt.adapters.silt.engine.audits.row_tests import KeyTest, RowTest, expectation, key_test, row_test
from dbt.adapters.silt.engine.audits.verdicts import Verdict
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.commands.commit import discard_folder, discarded_on_error, future
from dbt.adapters.silt.engine.commands.spark import errors as spark_errors
from dbt.adapters.silt.engine.commands.spark.session_settings import quotes_for
from dbt.adapters.silt.engine.commands.target import Judged, Outcome
from dbt.adapters.silt.engine.commands.writing.files import Routed, Written
from dbt.adapters.silt.engine.kernel.errors import (
    DataRejectedError,
    InvalidArgumentError,
    InvalidSettingError,
    InvalidStatementError,
    SparkFailedError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.builds import AUDITED_INFO_KEY
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, Json, Metadata
from dbt.adapters.silt.engine.kernel.transaction.branch_log import branch_of, note_reads
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, ReadSet
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.query.quotes import as_read
from dbt.adapters.silt.engine.statements.resolve.expansion import full_name
from dbt.adapters.silt.engine.statements.resolve.namespace import WarehouseTable
from dbt.adapters.silt.engine.statements.resolve.resolve import Cut
from dbt.adapters.silt.engine.statements.steps.context import Context
from dbt.adapters.silt.engine.statements.steps.quarantine import Quarantine, without_repeated
from dbt.adapters.silt.engine.statements.steps.stored_failures import StoredFailures, check_place, parsed

SETTING: Final = "silt.audits"
"""The session's setting for the audits of its statements, in the form of `Audits.from_json`."""

PASSED_KEY: Final = "passedTests"
"""The field of `commitInfo` for the keys of the row tests that all rows of the version pass."""

_AUDITED: Final = (
    *(ast.Insert, ast.WriteRows, ast.CreateTable, ast.CreateTableLike, ast.Clone),
    *(ast.Delete, ast.Update, ast.Merge, ast.Truncate),
)


def audits_of(statement: ast.Statement, given: Audits | None, setting: str | None) -> Audits | None:
    """Returns the audits of a statement: the audits that its caller gives, or else the session's.

    Raises:
        InvalidSettingError: if the session's setting does not state audits.
        UnsupportedStatementError: if the statement cannot be audited, and its caller gives audits or it changes rows.
    """
    if given is None and not setting:
        return None
    if isinstance(statement, _AUDITED):
        audits = given or _of_setting(str(setting))
        if audits.on_failure is OnFailure.QUARANTINE and not _can_quarantine(statement):
            raise UnsupportedStatementError(
                f"rows of {statement.text.split()[0].upper()} cannot be quarantined: only rows of INSERT, MERGE "
                "and CREATE TABLE ... AS can be",
                table=".".join(statement.table),
                remedy="Let the audits refuse the statement, or write the rows by INSERT",
            )
        return audits
    if given is not None or statement.effect is ast.Effect.ROWS:
        raise UnsupportedStatementError(
            f"{' '.join(statement.text.split()[:2]).upper()} cannot be audited",
            remedy=f"Leave the audits out, or `reset {SETTING}`; INSERT, MERGE, UPDATE, DELETE and CREATE TABLE can be",
        )
    return None


def _can_quarantine(statement: ast.Statement) -> bool:
    if isinstance(statement, ast.CreateTable):
        return not statement.differences_by
    return not isinstance(statement, (ast.Update, ast.Clone))


def _of_setting(text: str) -> Audits:
    try:
        return Audits.from_json(_unquoted(text.strip()))
    except InvalidArgumentError as error:
        raise InvalidSettingError(f"`{SETTING}`: {error.problem}", remedy=error.action) from error


def _unquoted(text: str) -> str:
    """Returns the text of a string, as SET stores it: with its quotes, and inner quotes written twice or escaped."""
    quotes = text[:1]
    if len(text) < 2 or quotes not in ("'", '"') or not text.endswith(quotes):
        return text
    return text[1:-1].replace(f"\\{quotes}", quotes).replace(quotes * 2, quotes)


class TwoTablesError(Exception):
    """A statement must run in a transaction, because it may write the quarantine table too."""


def judge_of(
    context: Context, cut: Cut, name: RelationName | None, expected: Mapping[str, str]
) -> StatementJudge | None:
    """Returns the judge of a statement on a table; None without audits and expectations of that table.

    Args:
        cut: the newest snapshots of the tables that the statement reads.
        name: the table's name; None if it is named by its path.
        expected: the rules of the table that leave rows of the statement out: conditions by name.

    Raises:
        TwoTablesError: if the table leaves rows out, and no transaction is open.
    """
    judge = _judge_of_audits(context, cut, name)
    if not expected or name is None:
        return judge
    if not context.transaction.is_open:
        raise TwoTablesError
    table, zone = full_name(name), context.resolver.time_zone
    found = (expectation(each, condition, table, zone) for each, condition in expected.items())
    judge = judge or StatementJudge(context, Audits(()), cut, name)
    judge.expected = tuple(each for each in found if each is not None)
    return judge


def _judge_of_audits(context: Context, cut: Cut, name: RelationName | None) -> StatementJudge | None:
    audits = context.settings.audits
    if audits is None or not audits.audits:
        return None
    if audits.table is not None and context.namespace.name_in_warehouse(parsed(audits.table)) != name:
        return None
    for each in audits.audits:
        check_place(context, each.stored_in, name)
    spark = context.spark
    as_stated = (replace(each, query=as_read(each.query, quotes_for(spark, each.query))) for each in audits.audits)
    audits = replace(audits, audits=tuple(as_stated))
    if audits.on_failure is OnFailure.QUARANTINE:
        if name is None:
            raise UnsupportedStatementError(
                "the rows of a table that is named by its path cannot be quarantined", remedy="Name the table"
            )
        entry = context.catalog.find(name)
        if entry is not None and entry.kind is RelationKind.TABLE:
            Quarantine(context, name).check(context.catalog.table(name).snapshot().schema)
    return StatementJudge(replace(context, resolver=replace(context.resolver, read_history=None)), audits, cut, name)


@dataclass
class StatementJudge:
    """Judges the audits of a statement.

    Args:
        context: the context of the statement.
        audits, cut, name: see `judge_of`.

    Attributes:
        expected: the tests of the table's own rules that leave rows out.
    """

    context: Context
    audits: Audits
    cut: Cut
    name: RelationName | None
    expected: tuple[RowTest, ...] = field(default=(), init=False)
    _results: tuple[AuditResult, ...] | None = field(default=None, init=False)
    _quarantined: int = field(default=0, init=False)
    _rewritten: tuple[Written, Written] | None = field(default=None, init=False)

    @cached_property
    def _row_tests(self) -> Mapping[Audit, RowTest]:
        found = {
            each: row_test(each, full_name(self.name), self.context.resolver.time_zone)
            for each in self.audits.audits
            if self.name is not None
        }
        return {
            each: replace(test, routes=self._routes(each))
            for each, test in found.items()
            if test is not None and self._is_of_table(test)
        }

    def _routes(self, audit: Audit) -> bool:
        is_quarantine = self.audits.on_failure is OnFailure.QUARANTINE
        return is_quarantine and verdicts.is_refused_by_a_row(audit, self.audits.refuse_warnings)

    def _is_of_table(self, test: RowTest) -> bool:
        """Returns whether a name in a query, whose last parts are the table's, means the table."""
        namespace = self.context.namespace
        return namespace.name_in_warehouse(test.table) == self.name and not namespace.is_temporary(test.table)

    @property
    def tests(self) -> Sequence[RowTest]:
        """The tests of each row; see `Judge`."""
        return (*{each.key: each for each in self._row_tests.values()}.values(), *self.expected)

    def judge(self, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object]) -> Judged:
        """Judges the version that the changes would make of the base; see `Judge`.

        Rows that the write has routed are not in that version, and are added to the quarantine table; so are the new
        rows of keys that would occur twice.
        """
        judged = self._judged(log, base, changes, written)
        before = self._with_repeated_keys(changes, written)
        if before is None:
            return self._accepted(log, base, changes, written, judged)
        repeated = [each for each in self._key_tests if self._refuses(each)]
        state = self._state(log, base, changes)
        new = without_repeated(self._with_table(log), log, before, state, repeated, self.cut)
        with discarded_on_error(log, (new,)):
            changes = _instead(changes, before, new)
            after = [new if each is before else each for each in written]
            judged = replace(self._judged(log, base, changes, after), instead=(changes, new))
            judged = self._accepted(log, base, changes, after, judged)
        self._rewritten = before, new
        discard_folder(log, before.folder)
        return judged

    def _accepted(
        self, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object], judged: Judged
    ) -> Judged:
        """Returns the judged commit after the routed rows are in the quarantine table.

        Raises:
            AuditFailedError: if an audit refuses the commit.
        """
        own = [each for each in written if isinstance(each, Written) and each.routed]
        if not own or self.name is None:
            self._check(log, self._state(log, base, changes))
            return judged
        made = future(log, base, changes)
        quarantine = Quarantine(self.context, self.name)
        quarantine.check(made.schema)
        routed = [each for one in own for each in one.routed]
        all_rows = replace(changes, adds=(*changes.adds, *(add for each in routed for add in each.adds)))
        self._check_limit(log, own, self._state(log, base, all_rows))
        self._check(log, self._state(log, base, changes))
        names = {key: audit.name for audit, key in self._routing.items()}
        quarantine.add(log, made, routed, names | {each.key: each.name for each in self.expected})
        self._quarantined = sum(each.rows for each in routed)
        self._results = tuple(self._with_quarantined(each, routed) for each in self._results or ())
        return judged

    def _check(self, log: DeltaLog, made: Snapshot) -> None:
        """Stores the failing rows of a version for the audits that want it, then checks the results.

        Raises:
            AuditFailedError: if an audit refuses the commit.
        """
        stores = StoredFailures(self._with_table(log), self.cut)
        judged = zip(self.audits.audits, self._results or (), strict=False)
        self._results = tuple(stores.stored(log, made, *each) for each in judged)
        verdicts.check(self.audits, self._results, log.name)

    def _check_limit(self, log: DeltaLog, written: Sequence[Written], all_rows: Snapshot) -> None:
        """Checks that no more rows were routed than may be quarantined.

        Args:
            all_rows: the version that the statement would make with the routed rows.

        Raises:
            AuditFailedError: if more were.
        """
        unlimited = {each.key for each in self.expected}
        routed = [each for one in written for each in one.routed if not unlimited.issuperset(each.failed)]
        bad, rows = sum(each.rows for each in routed), sum(each.routable for each in written)
        if self.audits.max_quarantined.allows(bad, rows):
            return
        counts = {audit: _rows_of(key, routed) for audit, key in self._routing.items()}
        found = {audit: verdicts.result_of(audit, self._verdict_of(audit, count)) for audit, count in counts.items()}
        stores = StoredFailures(self._with_table(log), self.cut)
        results = [stores.stored(log, all_rows, audit, result) for audit, result in found.items()]
        raise verdicts.too_many(self.audits, (bad, rows), log.name, results)

    @property
    def _routing(self) -> Mapping[Audit, str]:
        """The audits whose failing rows can be quarantined, each with the key of its test."""
        of_rows = {audit: test.key for audit, test in self._row_tests.items() if test.routes}
        return of_rows | {audit: test.key for test, audit in self._key_tests.items()}

    def _with_quarantined(self, result: AuditResult, routed: Sequence[Routed]) -> AuditResult:
        of_audit = {key for audit, key in self._routing.items() if audit.name == result.name}
        return replace(result, quarantined=sum(_rows_of(key, routed) for key in of_audit))

    @cached_property
    def _key_tests(self) -> Mapping[KeyTest, Audit]:
        """The tests that no key occurs twice whose failing rows can be quarantined, each with its audit."""
        if self.name is None:
            return {}
        name, zone = full_name(self.name), self.context.resolver.time_zone
        found = ((key_test(each, name, zone), each) for each in self.audits.audits if self._routes(each))
        return {test: each for test, each in found if test is not None and self._is_of_table(test.counted)}

    def _refuses(self, test: KeyTest) -> bool:
        results = [each for each in self._results or () if each.name == test.name]
        return any(verdicts.refusing(self.audits, results))

    def _with_repeated_keys(self, changes: Changes, written: Sequence[object]) -> Written | None:
        """Returns the new rows if some of them repeat a key, and their files have no other rows."""
        if changes.change_files or not any(map(self._refuses, self._key_tests)):
            return None
        made = [each for each in written if isinstance(each, Written)]
        return made[0] if len(made) == 1 and made[0].is_new and made[0].adds else None

    def concluded(self, log: DeltaLog, outcome: Outcome) -> Outcome:
        """Returns the outcome with the results; see `Judge`."""
        if self._results is None:
            now = log.snapshot()
            if self.audits.scope is Scope.CHANGES:
                now = replace(now, active=TableFiles(active_files.FILES.empty_table()))
            note_reads(log, self._judged_state(log, now, {}).reads)
            self._check(log, now)
        if self._rewritten is not None and outcome.rows_inserted is not None:
            before, new = self._rewritten
            rows = outcome.rows_inserted + new.rows - before.rows
            added = outcome.files_added + len(new.adds) - len(before.adds)
            outcome = replace(outcome, rows_inserted=rows, files_added=added)
        return replace(outcome, audits=self._results or (), quarantined=self._quarantined)

    def _state(self, log: DeltaLog, base: Snapshot | None, changes: Changes) -> Snapshot:
        """Returns the rows to judge, as a version."""
        made = future(log, base, changes)
        if self.audits.scope is Scope.STATE:
            return made
        return replace(made, active=TableFiles(active_files.files_table(_new_files(changes))))

    def _judged(self, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object]) -> Judged:
        counts = self._counted(log, base, changes, written)
        return self._judged_state(log, self._state(log, base, changes), counts)

    def _judged_state(self, log: DeltaLog, made: Snapshot, counts: Mapping[Audit, int]) -> Judged:
        """Judges all audits; `counts` are the failing rows of the audits that the write itself has evaluated."""
        asked = [each for each in self.audits.audits if each not in counts]
        found = dict(zip(asked, self._verdicts(log, made, asked), strict=True))
        found |= {each: self._verdict_of(each, count) for each, count in counts.items()}
        self._results = tuple(verdicts.result_of(each, found[each]) for each in self.audits.audits)
        if self.audits.scope is Scope.CHANGES:
            return Judged()
        info: dict[str, Json] = {AUDITED_INFO_KEY: True} if asked else {}
        passed: list[Json] = [test.key for each, test in self._row_tests.items() if found[each].failures == "0"]
        if passed and (branch_of(log) is None or self.context.transaction.is_of_statement):
            info[PASSED_KEY] = passed
        return Judged(ReadSet(whole_table=bool(asked)), info)

    def _verdicts(self, log: DeltaLog, made: Snapshot, audits: Sequence[Audit]) -> list[Verdict]:
        """Returns the verdicts of audits, which take one job if all of them can be evaluated."""
        context, queries = self._with_table(log), []
        for each in audits:
            with _naming(each, log):
                (sql,) = context.resolver.of_future([verdicts.verdict_sql(each)], log, made, self.cut)
                queries.append(context.spark.sql(sql))
        try:
            return _rows(queries)
        except (DataRejectedError, InvalidStatementError, SparkFailedError):
            for each, query in zip(audits, queries, strict=True):
                with _naming(each, log):
                    _rows([query])
            raise

    def _with_table(self, log: DeltaLog) -> Context:
        """Returns a context in which the table has its name, even if the statement creates it."""
        namespace = replace(self.context.namespace, made=WarehouseTable(log, self.name))
        resolver = replace(self.context.resolver, namespace=namespace)
        return replace(self.context, namespace=namespace, resolver=resolver)

    def _verdict_of(self, audit: Audit, count: int) -> Verdict:
        found = verdicts.verdict_of(audit, count)
        return found if isinstance(found, Verdict) else _rows([self.context.spark.sql(found)])[0]

    def _counted(
        self, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object]
    ) -> dict[Audit, int]:
        """Returns the failing rows of the audits for which the rows that were counted during the write decide."""
        made = [each for each in written if isinstance(each, Written) and each.adds]
        if {add.path for add in _new_files(changes)} != {add.path for each in made for add in each.adds}:
            return {}
        decided = self._decided_by_new_rows(log, base, changes) if self._row_tests else ()
        usable = {
            audit: test.key
            for audit, test in self._row_tests.items()
            if test.key in decided and all(test.key in each.tested for each in made)
        }
        return {audit: sum(each.tested[key] for each in made) for audit, key in usable.items()}

    def _decided_by_new_rows(self, log: DeltaLog, base: Snapshot | None, changes: Changes) -> Collection[str]:
        """Returns the keys of the row tests whose verdict does not depend on rows that the version had before.

        A test that routes rows, and may have another verdict on the same row each time, has decided with the route.
        """
        if self.audits.scope is Scope.CHANGES or base is None or _replaces_all(base, changes):
            return {test.key for test in self.tests}
        once = {test.key for test in self.tests if test.routes and not test.is_repeatable}
        repeatable = {test.key for test in self.tests if test.is_repeatable}
        if not repeatable or _changes_columns(base, changes):
            return once
        return once | (repeatable & passed_at(log, base))


def passed_at(log: DeltaLog, base: Snapshot) -> frozenset[str]:
    """Returns the keys of the row tests that all rows of a version pass, as far as its last commits record it.

    A commit that records a test adds rows that pass to a version whose rows passed: the commits between the two must
    have recorded it too, or have changed neither rows nor columns.
    """
    keys: frozenset[str] | None = None
    until = -1
    for commit in log.newest_commits():
        if commit.version > base.version:
            continue
        if keys is not None and commit.version <= until:
            return keys
        if not commit.changes_rows and not any(isinstance(each, Metadata) for each in commit.actions):
            continue
        recorded = commit.info.extra.get(PASSED_KEY)
        here = frozenset(map(str, recorded)) if isinstance(recorded, list) else frozenset()
        if keys is None and commit.info.read_version is not None:
            until = commit.info.read_version
        keys = here if keys is None else keys & here
        if not keys:
            return keys
    return keys if keys is not None and until < 0 else frozenset()


def _rows_of(key: str, routed: Sequence[Routed]) -> int:
    """Returns how many of the routed rows fail a test."""
    return sum(each.rows for each in routed if key in each.failed)


def _new_files(changes: Changes) -> list[AddFile]:
    """Returns the files that a commit adds, without files whose deletion vector it replaces."""
    before = {each.path for each in changes.removes}
    return [each for each in changes.adds if each.path not in before]


def _replaces_all(base: Snapshot, changes: Changes) -> bool:
    """Returns whether no row of the base remains."""
    before = set(base.files_without_statistics["path"].to_pylist())
    return before <= {each.path for each in changes.removes} and not before & {each.path for each in changes.adds}


def _instead(changes: Changes, before: Written, new: Written) -> Changes:
    """Returns the changes with other files of the same statement."""
    old = {each.path for each in before.adds}
    kept = tuple(each for each in changes.adds if each.path not in old)
    metrics = {name: str(value) for name, value in new.operation_metrics().items()}
    operation = replace(changes.operation, metrics={**changes.operation.metrics, **metrics})
    return replace(changes, adds=(*kept, *new.adds), operation=operation)


def _changes_columns(base: Snapshot, changes: Changes) -> bool:
    return changes.metadata is not None and changes.metadata.schema_string != base.metadata.schema_string


def _rows(queries: Sequence[DataFrame]) -> list[Verdict]:
    """Returns the row of each query, in one job at most."""
    if not queries:
        return []
    numbered = (query.selectExpr(f"{at} as at", "*") for at, query in enumerate(queries))
    with spark_errors.mapped():
        found = reduce(DataFrame.unionAll, numbered).collect()
    return [Verdict(*row[1:]) for row in sorted(found, key=lambda row: row["at"])]


@contextlib.contextmanager
def _naming(audit: Audit, log: DeltaLog) -> Iterator[None]:
    """Names the audit in the error of a query that cannot be evaluated."""
    try:
        with spark_errors.mapped():
            yield
    except (DataRejectedError, InvalidStatementError, SparkFailedError) as error:
        problem = error.problem if error.table in (None, log.name) else f"{error.table}: {error.problem}"
        raise verdicts.not_evaluated(audit.name, problem, log.name) from error
