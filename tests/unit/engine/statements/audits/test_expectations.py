"""CONSTRAINT ... EXPECT (...) ON VIOLATION: a CHECK of the table, whose broken rows may be left out."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House

POSITIVE = "constraint positive expect (v > 0) on violation drop row"


@pytest.fixture
def t(house: House) -> House:
    house.sql(f"create table t (id bigint, v double, {POSITIVE})")
    return house


def bad_rows(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id, _silt_failed from t__quarantine")


def test_rows_that_break_the_rule_are_quarantined_without_a_limit_and_a_null_breaks_it(t: House) -> None:
    done = t.warehouse.execute("insert into t values (1, 1.0), (2, -2.0), (3, null), (4, -4.0)", ("load", 1)).outcome
    assert done is not None and (done.rows_inserted, done.quarantined, done.version) == (1, 3, 1)
    assert t.warehouse.execute("insert into t values (1, 1.0)", ("load", 1)).outcome.skipped  # type: ignore[union-attr]
    assert t.rows("select * from t") == [(1, 1.0)]
    assert bad_rows(t) == [(2, ["positive"]), (3, ["positive"]), (4, ["positive"])]


def test_audits_judge_the_rows_that_are_left(t: House) -> None:
    audits = Audits((Audit("few", "select id from main.t where id > 5"),))
    with pytest.raises(errors.AuditFailedError, match="`few`"):
        t.warehouse.execute("insert into t values (2, -2.0), (6, 1.0)", audits=audits)
    t.warehouse.execute("insert into t values (7, -2.0), (5, 1.0)", audits=audits)
    assert t.rows("select * from t") == [(5, 1.0)]
    assert bad_rows(t) == [(7, ["positive"])]


@pytest.mark.parametrize(
    "statement",
    [
        "insert overwrite t values (3, -1.0), (4, 4.0)",
        "insert into t replace using (id) values (3, -1.0), (4, 4.0)",
        "merge into t using (select * from values (3L, -1.0D), (4L, 4.0D) as s(id, v)) s on t.id = s.id "
        "when matched then update set * when not matched then insert *",
    ],
)
def test_each_statement_that_writes_rows_of_a_query_leaves_the_rows_out(t: House, statement: str) -> None:
    t.sql(statement)
    assert t.rows("select * from t") == [(4, 4.0)]
    assert bad_rows(t) == [(3, ["positive"])]


@pytest.mark.parametrize(
    "statement",
    [
        "update t set v = -1",
        "merge into t using (select 1L as id) s on t.id = s.id when matched then update set v = -1",
    ],
)
def test_a_statement_that_changes_rows_in_place_is_refused(t: House, statement: str) -> None:
    t.sql("insert into t values (1, 1.0)")
    with pytest.raises(errors.CheckViolationError, match="positive"):
        t.sql(statement)
    assert t.rows("select * from t") == [(1, 1.0)]


def test_statements_that_write_no_rows_of_a_query_run_as_on_any_table(t: House) -> None:
    t.sql("insert into t values (1, 1.0), (2, -2.0)")
    t.sql("optimize t")
    t.sql("alter table t set tblproperties ('a' = 'b')")
    t.sql("comment on table t is 'readings'")
    t.sql("alter table t add column w int")
    t.sql("delete from t where id = 1")
    t.sql("restore table t to version as of 1")
    assert t.rows("select id from t") == [(1,)]


def test_a_table_that_replaces_it_has_no_such_rule(t: House) -> None:
    t.sql("create or replace table t as select 1L as id, -1.0D as v")
    assert t.rows("select * from t") == [(1, -1.0)]


def test_another_engine_sees_a_check_constraint_which_it_must_enforce(t: House) -> None:
    configuration = t.log("t").snapshot().metadata.configuration
    assert configuration["delta.constraints.positive"] == "v > 0"
    assert configuration["silt.expect.positive"] == "drop row"


def test_the_rule_is_shown_and_can_be_dropped_and_added(t: House) -> None:
    text = "CONSTRAINT `positive` EXPECT (v > 0) ON VIOLATION DROP ROW"
    assert text in str(t.rows("show create table t")[0][0])
    t.sql("alter table t drop constraint positive")
    t.sql("insert into t values (1, -1.0)")
    with pytest.raises(errors.CheckViolationError):
        t.sql(f"alter table t add {POSITIVE}")
    t.sql("delete from t")
    t.sql(f"alter table t add {POSITIVE}")
    t.sql("insert into t values (2, -2.0), (3, 3.0)")
    assert t.rows("select * from t") == [(3, 3.0)]


def test_fail_update_is_a_check_constraint(house: House) -> None:
    house.sql("create table t (id bigint, constraint c expect (id > 0) on violation fail update)")
    with pytest.raises(errors.CheckViolationError, match="`c`"):
        house.sql("insert into t values (-1)")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("create table t (id bigint, constraint c expect (id > 0))", errors.UnsupportedStatementError),
        ("create table t (id bigint, constraint c expect (id > 0) on violation ignore)", errors.StatementSyntaxError),
        ("create table t (id bigint) tblproperties ('silt.expect.c' = 'drop row')", errors.InvalidPropertyError),
    ],
)
def test_a_wrong_rule_is_an_error(house: House, text: str, error: type[errors.SiltError]) -> None:
    with pytest.raises(error):
        house.sql(text)
