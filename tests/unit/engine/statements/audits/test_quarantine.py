"""Quarantine: the good rows are committed, and the bad rows to the quarantine table, both or neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult, Audits, Limit, OnFailure, Severity
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.statements.steps.quarantine import Quarantine
from dbt.adapters.silt.engine.statements.transactions.session_transaction import SessionTransaction
from tests.unit.engine.house import House
from tests.unit.engine.place import data_files

POSITIVE = Audit("positive", "select id from main.t where v < 0")
KNOWN = Audit("known", "select id from main.t where v is null or v < -5")
UNIQUE = Audit("unique", "select id from main.t group by id having count(*) > 1")
AUDITS = Audits(
    (POSITIVE, KNOWN, UNIQUE),
    on_failure=OnFailure.QUARANTINE,
    max_quarantined=Limit(10),
    run_id="night",
    node="model.t",
)


@pytest.fixture
def t(house: House) -> House:
    house.sql("create table t (id bigint, v double)")
    house.sql("insert into t values (1, 1.0)")
    return house


def run(
    house: House, text: str, audits: Audits = AUDITS, txn: tuple[str, int] | None = None
) -> tuple[AuditResult, ...]:
    outcome = house.warehouse.execute(text, txn, audits=audits).outcome
    assert outcome is not None
    return outcome.audits


def bad_rows(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id, v, _silt_failed, _silt_run_id, _silt_node from t__quarantine")


def versions(house: House) -> dict[str, int]:
    names = [each for each in ("t", "t__quarantine") if house.rows(f"show tables in main like '{each}'")]
    return {each: house.log(each).snapshot().version for each in names}


def test_good_rows_are_committed_and_bad_rows_are_quarantined_with_the_audits_that_they_fail(t: House) -> None:
    results = run(t, "insert into t values (2, 2.0), (3, -1.0), (4, -9.0), (5, null)")
    assert results == (
        AuditResult("positive", "pass", quarantined=2),
        AuditResult("known", "pass", quarantined=2),
        AuditResult("unique", "pass"),
    )
    assert t.rows("select * from t") == [(1, 1.0), (2, 2.0)]
    assert bad_rows(t) == [
        (3, -1.0, ["positive"], "night", "model.t"),
        (4, -9.0, ["positive", "known"], "night", "model.t"),
        (5, None, ["known"], "night", "model.t"),
    ]
    assert t.rows("select count(*) from t__quarantine where _silt_at is null") == [(0,)]


def test_without_bad_rows_there_is_no_quarantine_table(t: House) -> None:
    run(t, "insert into t values (2, 2.0)")
    with pytest.raises(errors.RelationNotFoundError):
        t.sql("select * from t__quarantine")


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t by name select 3L as id, -1.0D as v union all select 4L, 4.0D",
        "insert overwrite t values (3, -1.0), (4, 4.0)",
        "insert into t replace where id > 0 values (3, -1.0), (4, 4.0)",
        "insert into t replace using (id) values (3, -1.0), (4, 4.0)",
        "create or replace table t as select * from values (3L, -1.0D), (4L, 4.0D) as t(id, v)",
    ],
)
def test_the_rows_of_each_insert_and_of_a_replaced_table_are_routed(t: House, statement: str) -> None:
    run(t, statement)
    assert (4, 4.0) in t.rows("select * from t")
    assert t.rows("select * from t where v < 0") == []
    assert [row[0] for row in bad_rows(t)] == [3]


def test_a_new_table_and_a_partitioned_table_are_written_without_their_bad_rows(house: House) -> None:
    rows = "select * from values (1L, 1.0D, 'a'), (2L, -2.0D, 'a'), (3L, 3.0D, 'b'), (4L, -4.0D, null) as t(id, v, p)"
    results = run(house, f"create table t partitioned by (p) as {rows}")
    assert results[0].quarantined == 2
    assert house.rows("select * from t") == [(1, 1.0, "a"), (3, 3.0, "b")]
    assert house.rows("select id, p from t__quarantine") == [(2, "a"), (4, None)]
    assert house.log("t").snapshot().version == 0


def test_rows_of_which_all_are_bad_leave_the_table_as_it_was(t: House) -> None:
    run(t, "insert into t values (3, -1.0)")
    assert t.rows("select * from t") == [(1, 1.0)]
    assert [row[0] for row in bad_rows(t)] == [3]


def test_a_write_of_rows_that_replaces_part_of_a_file_quarantines_only_new_rows(t: House) -> None:
    t.sql("create or replace table t as select * from values (1L, 1.0D), (2L, 2.0D) as t(id, v)")
    run(t, "insert into t replace using (id) values (1, -1.0), (3, 3.0)")
    assert t.rows("select * from t") == [(2, 2.0), (3, 3.0)]
    assert [row[:2] for row in bad_rows(t)] == [(1, -1.0)]


def test_more_bad_rows_than_the_limit_refuse_the_statement(t: House) -> None:
    before = versions(t)
    with pytest.raises(errors.AuditFailedError) as caught:
        run(t, "insert into t select id, -1.0D from range(50)", replace(AUDITS, max_quarantined=Limit(10, True)))
    assert "50 of 50 rows fail audits, and at most 10 % may be quarantined" in str(caught.value)
    assert caught.value.results[0] == AuditResult("positive", "fail", 50, "Got 50 results, configured to fail if != 0")
    assert versions(t) == before


def test_the_default_limit_is_one_percent(t: House) -> None:
    audits = Audits((POSITIVE,), on_failure=OnFailure.QUARANTINE)
    run(t, "insert into t select id, if(id = 7, -1.0D, 1.0D) from range(100)", audits)
    with pytest.raises(errors.AuditFailedError, match="2 of 100 rows fail audits, and at most 1 %"):
        run(t, "insert into t select id, if(id < 2, -1.0D, 1.0D) from range(100)", audits)


def test_an_audit_that_is_no_row_test_refuses(t: House) -> None:
    before = versions(t)
    few = Audit("few", "select 1 from (select count(*) as n from main.t) where n > 2")
    with pytest.raises(errors.AuditFailedError, match="`few`"):
        run(t, "insert into t values (2, 2.0), (4, 4.0), (3, -1.0)", replace(AUDITS, audits=(POSITIVE, few)))
    assert versions(t) == before


def test_all_new_rows_of_a_repeated_key_are_quarantined_and_the_table_keeps_its_row(t: House) -> None:
    text = "insert into t values (1, 9.0), (2, 2.0), (2, 2.5), (3, 3.0), (3, -3.0), (null, 4.0), (null, 5.0)"
    results = run(t, text)
    assert [(each.status, each.quarantined) for each in results] == [("pass", 1), ("pass", 0), ("pass", 5)]
    assert t.rows("select * from t") == [(1, 1.0), (3, 3.0)]
    assert [(row[0], row[1], row[2]) for row in bad_rows(t)] == [
        (1, 9.0, ["unique"]),
        (2, 2.0, ["unique"]),
        (2, 2.5, ["unique"]),
        (3, -3.0, ["positive"]),
        (None, 4.0, ["unique"]),
        (None, 5.0, ["unique"]),
    ]
    assert data_files(t.log("t")) == {each.path for each in t.log("t").snapshot().add_files()}


def test_the_rows_that_a_key_test_filters_out_stay(t: House) -> None:
    dbts = Audit(
        "u", "select v as f, count(*) as n\nfrom silt.main.t\nwhere v is not null\ngroup by v\nhaving count(*) > 1"
    )
    done = t.warehouse.execute(
        "insert into t values (2, null), (3, null), (4, 1.0), (5, double('nan')), (6, double('nan'))",
        audits=replace(AUDITS, audits=(dbts,)),
    ).outcome
    assert done is not None and (done.rows_inserted, done.quarantined) == (2, 3)
    assert [row[0] for row in t.rows("select * from t")] == [1, 2, 3]
    assert [row[0] for row in bad_rows(t)] == [4, 5, 6]
    metrics = next(iter(t.log("t").newest_commits())).info.operation_metrics
    assert metrics is not None and metrics["numOutputRows"] == "2"


def test_a_table_that_is_made_has_no_row_of_a_repeated_key(house: House) -> None:
    rows = "values (1L, 1.0D), (1L, 2.0D), (2L, 2.0D) as t(id, v)"
    made = house.warehouse.execute(f"create table t partitioned by (v) as select * from {rows}", audits=AUDITS).outcome
    assert made is not None and (made.rows_inserted, made.files_added) == (1, 1)
    assert house.rows("select * from t") == [(2, 2.0)]
    assert [row[0] for row in bad_rows(house)] == [1, 1]


def test_more_repeated_keys_than_the_limit_refuse_the_statement(t: House) -> None:
    before = versions(t)
    with pytest.raises(errors.AuditFailedError, match="2 of 3 rows fail audits, and at most 1 may be"):
        run(t, "insert into t values (2, 2.0), (2, 3.0), (4, 4.0)", replace(AUDITS, max_quarantined=Limit(1)))
    assert versions(t) == before
    assert data_files(t.log("t")) == {each.path for each in t.log("t").snapshot().add_files()}


def test_repeated_keys_among_rows_that_replace_part_of_a_file_refuse(t: House) -> None:
    t.sql("create or replace table t as select * from values (1L, 1.0D), (2L, 2.0D) as t(id, v)")
    before = versions(t)
    with pytest.raises(errors.AuditFailedError, match="`unique`"):
        run(t, "insert into t replace using (id) values (1, 3.0), (1, 4.0)")
    assert versions(t) == before


def test_two_writers_of_the_same_new_key_cannot_both_add_it(t: House, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, pending = SessionTransaction.commit, [1]

    def raced(self: SessionTransaction) -> dict[str, int]:
        if pending:
            pending.pop()
            t.another().sql("insert into t values (2, 9.0)")
        return commit(self)

    monkeypatch.setattr(SessionTransaction, "commit", raced)
    run(t, "insert into t values (2, 2.0), (3, 3.0)")
    assert t.rows("select * from t") == [(1, 1.0), (2, 9.0), (3, 3.0)]
    assert [row[:2] for row in bad_rows(t)] == [(2, 2.0)]


def test_a_warning_and_a_threshold_quarantine_no_row(t: House) -> None:
    audits = (replace(POSITIVE, severity=Severity.WARN), replace(KNOWN, error_if="> 5"))
    results = run(t, "insert into t values (3, -9.0)", replace(AUDITS, audits=audits))
    assert [each.status for each in results] == ["warn", "warn"]
    assert (3, -9.0) in t.rows("select * from t")


def test_a_warning_does_not_count_the_rows_that_another_audit_quarantines(t: House) -> None:
    audits = (POSITIVE, Audit("small", "select id from main.t where id > 2", severity=Severity.WARN))
    results = run(t, "insert into t values (2, 2.0), (3, -3.0)", replace(AUDITS, audits=audits))
    assert [(each.status, each.quarantined) for each in results] == [("pass", 1), ("pass", 0)]


def test_a_label_is_evaluated_once_for_each_row(t: House) -> None:
    audits = replace(AUDITS, audits=(Audit("chance", "select id from main.t where rand() < 0.5"),))
    (result,) = run(
        t, "insert into t select id, rand() from range(2, 1002, 1, 8)", replace(audits, max_quarantined=Limit(1000))
    )
    rows = t.rows("select id from t where id > 1 union all select id from t__quarantine")
    assert rows == sorted(((each,) for each in range(2, 1002)), key=repr)
    assert result.quarantined == len(bad_rows(t)) > 0


ROWS = "values (1, 1.0D), (2, -1.0D), (3, null), (4, double('nan')), (5, -0.0D)"
CONDITIONS = ["v < 0", "not (v >= 0)", "v is null", "v = double('nan')", "v <> v", "now() < now()"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_row_of_the_query_is_in_one_of_both_tables(t: House, condition: str) -> None:
    audits = replace(AUDITS, audits=(Audit("a", f"select id from main.t where {condition}"),))
    t.sql("create or replace table t (id bigint, v double)")
    run(t, f"insert into t {ROWS}", audits)
    bad = [row[0] for row in bad_rows(t)] if "t__quarantine" in versions(t) else []
    good = [row[0] for row in t.rows("select id from t")]
    assert sorted([*bad, *good], key=str) == [1, 2, 3, 4, 5]
    assert bad == [row[0] for row in t.rows(f"select id from {ROWS} as t(id, v) where {condition}")]


@pytest.mark.parametrize(
    "statement",
    [
        "update t set v = -1",
        "create or replace table t write differences by (id) as select 1L as id, -1.0D as v",
    ],
)
def test_the_rows_of_other_statements_cannot_be_quarantined(t: House, statement: str) -> None:
    with pytest.raises(errors.UnsupportedStatementError, match="cannot be quarantined"):
        run(t, statement)


def paths_of_all_versions(house: House) -> set[str]:
    log = house.log("t")
    versions = map(log.snapshot_at, range(log.snapshot().version + 1))
    vectors = (file for file in data_files(log) if file.endswith(".bin"))
    return {each.path for version in versions for each in version.add_files()} | {*vectors}


STAR = "when matched then update set * when not matched then insert *"
MERGED = "merge into t using (select * from values (1L, -1.0D), (2L, 2.0D), (3L, -3.0D) as s(id, v)) s on t.id = s.id"


@pytest.mark.parametrize(
    "clauses",
    [
        STAR,
        "when matched then update set t.v = s.v, id = s.`id` when not matched then insert (v, id) values (s.v, S.id)",
    ],
)
@pytest.mark.parametrize("properties", ["'a' = 'b'", "'delta.enableDeletionVectors' = 'true'"])
def test_a_merge_writes_the_good_rows_of_its_source_and_keeps_the_old_row_of_a_bad_update(
    t: House, clauses: str, properties: str
) -> None:
    t.sql(f"alter table t set tblproperties ({properties})")
    done = t.warehouse.execute(f"{MERGED} {clauses}", ("load", 1), audits=AUDITS).outcome
    assert done is not None and (done.rows_inserted, done.rows_updated, done.quarantined) == (1, 0, 2)
    assert t.warehouse.execute(f"{MERGED} {clauses}", ("load", 1), audits=AUDITS).outcome.skipped  # type: ignore[union-attr]
    assert t.rows("select * from t") == [(1, 1.0), (2, 2.0)]
    assert [(row[0], row[1], row[2]) for row in bad_rows(t)] == [(1, -1.0, ["positive"]), (3, -3.0, ["positive"])]
    assert t.log("t").snapshot().version == 3
    assert data_files(t.log("t")) <= paths_of_all_versions(t)


def test_a_merge_of_bad_rows_alone_only_fills_the_quarantine(t: House) -> None:
    run(t, f"merge into t using (select 1L as id, -1.0D as v) s on t.id = s.id {STAR}")
    assert t.rows("select * from t") == [(1, 1.0)]
    assert [row[0] for row in bad_rows(t)] == [1]


@pytest.mark.parametrize(
    ("source", "clauses", "said"),
    [
        ("select 1L as id", "when matched then update set v = -1", "columns and types of the source"),
        ("select 1 as id, -1.0D as v", STAR, "columns and types of the source"),
        ("select 1L as id, -1.0D as v", "when matched then update set *", "does not write every row"),
        (
            "select 1L as id, -1.0D as v",
            f"{STAR} when not matched by source then delete",
            "does not write every row",
        ),
        (
            "select 1L as id, -1.0D as v",
            "when matched and s.v > 0 then update set * when not matched then insert *",
            "each row of the source unchanged",
        ),
        (
            "select 1L as id, -1.0D as v",
            "when matched then update set v = s.v when not matched then insert *",
            "each row of the source unchanged",
        ),
        (
            "select 1L as id, -1.0D as v",
            "when matched then update set id = s.id, v = s.v + 1 when not matched then insert *",
            "each row of the source unchanged",
        ),
        (
            "select 1L as id, -1.0D as v",
            "when matched then update set id = s.id, v = t.v when not matched then insert *",
            "each row of the source unchanged",
        ),
    ],
)
def test_a_merge_that_makes_rows_of_its_own_is_refused(t: House, source: str, clauses: str, said: str) -> None:
    before = versions(t)
    with pytest.raises(errors.UnsupportedStatementError, match=said):
        run(t, f"merge into t using ({source}) s on t.id = s.id {clauses}")
    assert versions(t) == before


def test_a_merge_cannot_quarantine_by_an_audit_that_may_change_its_verdict(t: House) -> None:
    chance = replace(AUDITS, audits=(Audit("chance", "select id from main.t where rand() < 0.5"),))
    with pytest.raises(errors.UnsupportedStatementError, match="may have another verdict"):
        run(t, f"{MERGED} {STAR}", chance)


def test_deleting_statements_only_are_judged(t: House) -> None:
    assert [each.status for each in run(t, "delete from t where id = 1")] == ["pass"] * 3


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("create view t__quarantine as select 1 as id", "it is a view"),
        ("create table t__quarantine (id bigint)", "it is not a quarantine table"),
        (
            "create table t__quarantine (id bigint, v string, _silt_failed array<string>, _silt_run_id string, "
            "_silt_node string, _silt_at timestamp)",
            "its column `v` has the type string, and in the table double",
        ),
    ],
)
def test_a_relation_with_the_name_of_the_quarantine_is_an_error_before_anything_is_written(
    t: House, made: str, said: str
) -> None:
    t.sql(made)
    before = t.log("t").snapshot().version
    with pytest.raises(errors.RelationExistsError, match=said):
        run(t, "insert into t values (2, 2.0)")
    assert t.log("t").snapshot().version == before


def test_a_column_that_the_table_gets_is_added_to_the_quarantine(t: House) -> None:
    run(t, "insert into t values (2, -2.0)")
    t.sql("alter table t add column w int")
    run(t, "insert into t values (3, -3.0, 7)")
    assert t.rows("select id, w from t__quarantine") == [(2, None), (3, 7)]


def test_a_column_that_the_table_loses_is_null_in_later_rows_of_the_quarantine(t: House) -> None:
    run(t, "insert into t values (2, -2.0)")
    t.sql("create or replace table t as select 1 as id, 'a' as w")
    by_id = replace(AUDITS, audits=(Audit("few", "select id from main.t where id > 5"),))
    run(t, "insert into t values (6, 'b')", by_id)
    assert t.rows("select id, v, w from t__quarantine") == [(2, -2.0, None), (6, None, "b")]


class Killed(BaseException):
    """The end of the process."""


def killed_after_the_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the process when the rows are in the quarantine table, and not yet in the table."""
    add = Quarantine.add

    def added(self: Quarantine, *args: object) -> None:
        add(self, *args)  # type: ignore[arg-type]
        raise Killed

    monkeypatch.setattr(Quarantine, "add", added)


def test_on_the_branch_of_a_run_a_rerun_replaces_the_rows_of_an_interrupted_attempt(
    t: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(t, "insert into t values (8, 8.0), (9, -9.0)")
    other = t.another().warehouse
    runs = other.catalog.run_branches("silt")
    opened, branch = runs.open(BranchedRun("shop", "dev", "monday"))
    session = other.for_session(other.spark, branch=branch)
    statement = "insert into t values (2, 2.0), (3, -1.0)"
    with monkeypatch.context() as patch, pytest.raises(Killed):
        killed_after_the_quarantine(patch)
        session.execute(statement, ("load", 1), audits=AUDITS)
    for _ in range(2):
        session.execute(statement, ("load", 1), audits=AUDITS)
    runs.publish(opened, branch)
    assert t.rows("select id from t") == [(1,), (2,), (8,)]
    assert [row[0] for row in bad_rows(t)] == [3, 9]


@pytest.mark.parametrize("at", ["quarantine", "publication"])
def test_after_a_crash_neither_table_has_changed_and_a_rerun_changes_both_once(
    t: House, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def die(*_: object) -> None:
        raise Killed

    before, statement = versions(t), "insert into t values (2, 2.0), (3, -1.0)"
    with monkeypatch.context() as patch:
        if at == "quarantine":
            killed_after_the_quarantine(patch)
        else:
            patch.setattr(SessionTransaction, "commit", die)
        with pytest.raises(Killed):
            run(t, statement, txn=("load", 1))
    assert versions(t) == before
    for _ in range(2):
        run(t.another(), statement, txn=("load", 1))
    assert t.rows("select * from t") == [(1, 1.0), (2, 2.0)]
    assert [row[0] for row in bad_rows(t)] == [3]


def test_the_statement_runs_again_after_another_writers_commit(t: House, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, pending = SessionTransaction.commit, [1]

    def raced(self: SessionTransaction) -> dict[str, int]:
        if pending:
            pending.pop()
            t.another().sql("insert into t values (9, 9.0)")
        return commit(self)

    monkeypatch.setattr(SessionTransaction, "commit", raced)
    outcome = t.warehouse.execute("insert into t values (2, 2.0), (3, -1.0)", audits=AUDITS).outcome
    assert outcome is not None and (outcome.statement_attempts, outcome.version) == (2, 3)
    assert t.rows("select * from t") == [(1, 1.0), (2, 2.0), (9, 9.0)]
    assert [row[0] for row in bad_rows(t)] == [3]


def test_in_a_transaction_of_the_session_both_tables_change_when_it_commits(t: House) -> None:
    with t.warehouse.transaction() as together:
        together.execute("insert into t values (2, 2.0), (3, -1.0)", audits=AUDITS)
        assert t.rows("select * from t") == [(1, 1.0)]
    assert t.rows("select * from t") == [(1, 1.0), (2, 2.0)]
    assert [row[0] for row in bad_rows(t)] == [3]
