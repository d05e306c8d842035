"""Audits of statements: judged on the version that the commit would make, before it is made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult, Audits, OnFailure, Scope, Severity
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.commands.target import Judged
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes
from dbt.adapters.silt.engine.statements.steps.audits import StatementJudge
from tests.unit.engine.house import House

POSITIVE = Audit("positive", "select id from main.t where v < 0")
UNIQUE = Audit("unique", "select id, count(*) as n from main.t where id is not null group by id having count(*) > 1")
BOTH = Audits((POSITIVE, UNIQUE))

BAD_ROWS = {
    "insert": "insert into t values (3, -1.0)",
    "insert by name": "insert into t by name select -1.0D as v, 3L as id",
    "overwrite": "insert overwrite t values (3, -1.0)",
    "replace where": "insert into t replace where id = 1 values (1, -1.0)",
    "replace using": "insert into t replace using (id) values (1, -1.0)",
    "update": "update t set v = -1 where id = 1",
    "merge": "merge into t using (select 1L as id) s on t.id = s.id when matched then update set v = -1",
    "insert-only": "merge into t using (select 3L id) s on t.id = s.id when not matched then insert values (3, -1)",
    "create or replace": "create or replace table t as select 3L as id, -1.0D as v",
    "differences": "create or replace table t write differences by (id) as select 1L as id, -1.0D as v",
}


@pytest.fixture
def t(house: House) -> House:
    house.sql("create table t (id bigint, v double)")
    house.sql("insert into t values (1, 1.0), (2, 2.0)")
    return house


def files_of(house: House) -> dict[str, bytes]:
    """Returns the content of all files of the table."""
    store = house.log("t").store
    return {each.path: store.read(each.path) for each in store.files_below("") if each.size}


def refused(house: House, statement: str, audits: Audits = BOTH) -> errors.AuditFailedError:
    """Runs a statement that audits refuse; checks that the table is as before, byte for byte."""
    before = files_of(house)
    with pytest.raises(errors.AuditFailedError) as caught:
        house.warehouse.execute(statement, audits=audits)
    assert files_of(house) == before
    return caught.value


@pytest.mark.parametrize("statement", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_statement_whose_rows_fail_an_audit_leaves_the_table_as_before(t: House, statement: str) -> None:
    error = refused(t, statement)
    assert error.problem == "the audit fails: `positive` (Got 1 result, configured to fail if != 0)"
    assert error.results == (
        AuditResult("positive", "fail", 1, "Got 1 result, configured to fail if != 0"),
        AuditResult("unique", "pass"),
    )


@pytest.mark.parametrize("statement", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_statement_whose_rows_pass_is_committed_with_the_results(t: House, statement: str) -> None:
    good = statement.replace("-1", "5")
    outcome = t.warehouse.execute(good, audits=BOTH).outcome
    assert outcome is not None and outcome.version == 2
    assert outcome.audits == (AuditResult("positive", "pass"), AuditResult("unique", "pass"))
    assert (5.0,) in t.rows("select v from t")


def test_with_deletion_vectors_the_deleted_rows_are_not_judged(t: House) -> None:
    t.sql("alter table t set tblproperties ('delta.enableDeletionVectors' = true)")
    t.sql("insert into t values (3, -1.0)")
    outcome = t.warehouse.execute("delete from t where id = 3", audits=BOTH).outcome
    assert outcome is not None and [each.status for each in outcome.audits] == ["pass", "pass"]
    assert refused(t, "update t set id = 1 where id = 2").results[1].failures == 1


def test_a_new_table_exists_only_if_its_rows_pass(house: House) -> None:
    creation = "create table t as select 1L as id, {}D as v"
    with pytest.raises(errors.AuditFailedError):
        house.warehouse.execute(creation.format("-1"), audits=BOTH)
    with pytest.raises(errors.RelationNotFoundError):
        house.sql("select * from t")
    assert house.warehouse.execute(creation.format("1"), audits=BOTH).outcome is not None
    assert house.rows("select * from t") == [(1, 1.0)]


def test_a_clone_is_judged(t: House) -> None:
    t.sql("create table source as select 1L as id, -1.0D as v")
    refused(t, "create or replace table t shallow clone source")


def test_a_failure_that_was_there_before_refuses_the_next_commit(t: House) -> None:
    t.sql("insert into t values (1, 3.0)")
    assert refused(t, "insert into t values (3, 1.0)").results[1].failures == 1
    refused(t, "delete from t where id = 7")


def test_only_the_new_rows_count_with_the_scope_of_changes(t: House) -> None:
    t.sql("insert into t values (1, -3.0)")
    changes = replace(BOTH, scope=Scope.CHANGES)
    outcome = t.warehouse.execute("insert into t values (1, 1.0)", audits=changes).outcome
    assert outcome is not None and [each.status for each in outcome.audits] == ["pass", "pass"]
    assert refused(t, "insert into t values (5, 1.0), (5, -1.0)", changes).results[1].failures == 1
    t.warehouse.execute("delete from t where id = 7", audits=changes)


def test_thresholds_severity_and_limit_mean_what_they_mean_in_dbt(t: House) -> None:
    audits = Audits(
        (
            replace(POSITIVE, error_if="> 2", warn_if="> 1"),
            replace(POSITIVE, name="warns", severity=Severity.WARN),
            replace(POSITIVE, name="limited", limit=1, error_if="> 1"),
            replace(POSITIVE, name="sum", query="select v from t where v < 0", fail_calc="-sum(v)", error_if="> 3.5"),
        )
    )
    outcome = t.warehouse.execute("insert into t values (3, -1.0), (4, -2.0)", audits=audits).outcome
    assert outcome is not None and outcome.audits == (
        AuditResult("positive", "warn", 2, "Got 2 results, configured to warn if > 1"),
        AuditResult("warns", "warn", 2, "Got 2 results, configured to warn if != 0"),
        AuditResult("limited", "warn", 1, "Got 1 result, configured to warn if != 0"),
        AuditResult("sum", "warn", 3, "Got 3 results, configured to warn if != 0"),
    )
    refused(t, "insert into t values (5, 1.0)", replace(audits, refuse_warnings=True))


def test_failures_are_reported_and_committed_if_audits_only_warn(t: House) -> None:
    audits = replace(BOTH, on_failure=OnFailure.WARN)
    outcome = t.warehouse.execute("insert into t values (1, -1.0)", audits=audits).outcome
    assert outcome is not None and [each.status for each in outcome.audits] == ["fail", "fail"]
    assert len(t.rows("select * from t")) == 3


def test_an_audit_sees_the_table_through_views_and_other_tables_as_they_are(t: House) -> None:
    t.sql("create table parents as select 1L as id")
    t.sql("create view of_t as select * from t")
    orphans = "select * from main.of_t as c where not exists (select 1 from main.parents p where p.id = c.id)"
    audits = Audits((Audit("orphans", orphans),), scope=Scope.STATE)
    assert refused(t, "insert into t values (3, 1.0)", audits).results[0].failures == 2


def test_audits_of_the_session_judge_every_statement_on_their_table(t: House) -> None:
    t.sql("create table other (id bigint, v double)")
    text = replace(BOTH, table="main.t").to_json()
    t.warehouse.spark.conf.set("silt.audits", text)
    with pytest.raises(errors.AuditFailedError):
        t.sql("insert into t values (3, -1.0)")
    with pytest.raises(errors.AuditFailedError):
        t.warehouse.write(t.warehouse.spark.sql("select 3L as id, -1.0D as v"), "t")
    t.sql("insert into other values (3, -1.0)")
    t.sql("optimize t")
    with pytest.raises(errors.UnsupportedStatementError, match="RESTORE TABLE cannot be audited"):
        t.sql("restore table t to version as of 0")
    t.sql("reset silt.audits")
    t.sql("insert into t values (3, -1.0)")


def test_a_setting_that_states_no_audits_is_named(t: House) -> None:
    t.warehouse.spark.conf.set("silt.audits", '{"audits": [], "scope": "stat"}')
    with pytest.raises(errors.InvalidSettingError, match=r"`silt.audits`: `scope` .*Did you mean `state`"):
        t.sql("insert into t values (3, 1.0)")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select nothing from main.t", "nothing"),
        ("select * from main.missing", "missing"),
        ("select * frm main.t", "Syntax error"),
        ("select * from main.t where assert_true(v > 100) is null", "assert_true|is not true"),
    ],
)
def test_an_audit_that_has_no_verdict_is_named_and_nothing_is_written(t: House, query: str, said: str) -> None:
    before = files_of(t)
    with pytest.raises(errors.InvalidStatementError, match=f"the audit `wrong` cannot be evaluated: .*({said})"):
        t.warehouse.execute("insert into t values (3, 1.0)", audits=Audits((UNIQUE, Audit("wrong", query))))
    assert files_of(t) == before


def test_a_fail_calc_that_is_no_whole_number_is_an_error(t: House) -> None:
    audits = Audits((replace(POSITIVE, fail_calc="sum(id)"),))
    with pytest.raises(errors.InvalidStatementError, match=r"sum\(id\) is null, which is not a whole number"):
        t.warehouse.execute("insert into t values (3, 1.0)", audits=audits)


@pytest.mark.parametrize(
    "statement", ["create view w as select 1 as id", "optimize t", "alter table t add column w int"]
)
def test_a_statement_that_changes_no_rows_cannot_be_audited(t: House, statement: str) -> None:
    with pytest.raises(errors.UnsupportedStatementError, match="cannot be audited"):
        t.warehouse.execute(statement, audits=BOTH)


@contextlib.contextmanager
def after_the_verdict(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> Iterator[None]:
    """Acts once, between the first verdict and its commit."""
    judge, pending = StatementJudge.judge, [act]

    def judged(
        self: StatementJudge, log: DeltaLog, base: Snapshot | None, changes: Changes, written: Sequence[object]
    ) -> Judged:
        result = judge(self, log, base, changes, written)
        if pending:
            pending.pop()()
        return result

    with monkeypatch.context() as patch:
        patch.setattr(StatementJudge, "judge", judged)
        yield


def test_rows_that_another_writer_adds_after_the_verdict_are_judged_too(
    t: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = t.another()
    with after_the_verdict(monkeypatch, lambda: other.sql("insert into t values (3, 1.0)")):
        with pytest.raises(errors.AuditFailedError) as caught:
            t.warehouse.execute("insert into t values (3, 2.0)", audits=BOTH)
    assert caught.value.results[1].failures == 1
    assert t.rows("select * from t where id = 3") == [(3, 1.0)]


def test_a_statement_that_passes_after_another_writers_commit_is_committed(
    t: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = t.another()
    with after_the_verdict(monkeypatch, lambda: other.sql("insert into t values (3, 1.0)")):
        outcome = t.warehouse.execute("insert into t values (4, 2.0)", audits=BOTH).outcome
    assert outcome is not None and (outcome.statement_attempts, outcome.version) == (2, 3)


def test_two_transactions_that_each_pass_do_not_both_commit(t: House) -> None:
    with pytest.raises(errors.ConcurrentModificationError), t.warehouse.transaction() as one:
        one.execute("insert into t values (3, 1.0)", audits=BOTH)
        with t.another().warehouse.transaction() as two:
            two.execute("insert into t values (3, 2.0)", audits=BOTH)
    assert t.rows("select * from t where id = 3") == [(3, 2.0)]


def test_a_statement_that_is_skipped_has_no_results(t: House) -> None:
    outcomes = [
        t.warehouse.execute("insert into t values (3, 1.0)", ("load", 1), audits=BOTH).outcome for _ in range(2)
    ]
    assert [(each.skipped, len(each.audits)) for each in outcomes if each is not None] == [(False, 2), (True, 0)]


def test_a_run_that_is_published_after_another_writers_append_is_refused(t: House) -> None:
    """The verdict is about all rows, so a row that another writer has added since is a conflict."""
    other = t.another().warehouse
    runs = other.catalog.run_branches("silt")
    run, branch = runs.open(BranchedRun("shop", "dev", "monday"))
    session = other.for_session(other.spark, branch=branch)
    session.execute("insert into t values (3, 1.0)", audits=Audits((UNIQUE,)))
    t.sql("insert into t values (3, 2.0)")
    with pytest.raises(errors.ConcurrentModificationError):
        runs.publish(run, branch)
    assert t.rows("select * from t where id = 3") == [(3, 2.0)]
