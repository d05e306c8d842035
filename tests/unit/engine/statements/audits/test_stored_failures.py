"""Audits that store their failing rows: in a table of its own, although the commit is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, OnFailure, Scope, Severity
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House

POSITIVE = Audit("positive", "select * from main.t where v < 0", stored_in="checks.negative")
UNIQUE = Audit(
    "unique", "select id, count(*) as n from main.t group by id having count(*) > 1", stored_in="checks.twice"
)
BOTH = Audits((POSITIVE, UNIQUE))


@pytest.fixture
def t(house: House) -> House:
    house.sql("create table t (id bigint, v double)")
    house.sql("insert into t values (1, 1.0)")
    return house


def refused(house: House, statement: str, audits: Audits = BOTH) -> errors.AuditFailedError:
    """Runs a statement that audits refuse; checks that no rows are committed."""
    with pytest.raises(errors.AuditFailedError) as caught:
        house.warehouse.execute(statement, audits=audits)
    assert house.rows("select * from t") == [(1, 1.0)]
    return caught.value


@pytest.mark.parametrize(
    "statement",
    [
        "insert into t values (1, 2.0), (2, -1.0)",
        "insert overwrite t values (1, 2.0), (2, -1.0), (1, 3.0)",
        "merge into t using (select explode(array(2L, 1L)) as id) s on t.id = s.id and s.id > 1 "
        "when not matched then insert values (s.id, if(s.id = 2, -1.0, 1.0))",
        "create or replace table t as select * from values (1L, 2.0D), (1L, 3.0D), (2L, -1.0D) as s(id, v)",
    ],
)
def test_the_failing_rows_of_a_refused_statement_are_stored(t: House, statement: str) -> None:
    error = refused(t, statement)
    assert t.rows("select id, v from checks.negative") == [(2, -1.0)]
    assert t.rows("select * from checks.twice") == [(1, 2)]
    assert "its failing rows are in checks.negative" in str(error)
    assert {each.stored_in for each in error.results} == {"checks.negative", "checks.twice"}


def test_each_refusal_replaces_the_rows_and_a_view_of_that_name(t: House) -> None:
    t.sql("create schema checks")
    t.sql("create view checks.negative as select 1 as one")
    for value in (-1.0, -2.0):
        refused(t, f"insert into t values (2, {value})")
        assert t.rows("select v from checks.negative") == [(value,)]


def test_a_limit_also_limits_the_stored_rows(t: House) -> None:
    refused(t, "insert into t select id, -1.0 from range(5)", Audits((replace(POSITIVE, limit=2),)))
    assert t.rows("select count(*) from checks.negative") == [(2,)]


def test_rows_that_warn_are_stored_and_committed(t: House) -> None:
    warns = Audits((replace(POSITIVE, severity=Severity.WARN),))
    done = t.warehouse.execute("insert into t values (2, -1.0)", audits=warns).outcome
    assert done is not None and [each.stored_in for each in done.audits] == ["checks.negative"]
    assert t.rows("select count(*) from t") == [(2,)]
    assert t.rows("select id from checks.negative") == [(2,)]


def test_a_statement_that_writes_nothing_stores_the_failing_rows_of_the_table(t: House) -> None:
    t.sql("delete from t")
    t.sql("insert into t values (1, -1.0)")
    with pytest.raises(errors.AuditFailedError):
        t.warehouse.execute("delete from t where id = 9", audits=BOTH)
    assert t.rows("select id from checks.negative") == [(1,)]


def test_only_the_failing_new_rows_are_stored_if_only_changes_are_judged(t: House) -> None:
    t.sql("delete from t")
    t.sql("insert into t values (1, -1.0)")
    with pytest.raises(errors.AuditFailedError):
        t.warehouse.execute("insert into t values (2, -2.0)", audits=replace(BOTH, scope=Scope.CHANGES))
    assert t.rows("select id from checks.negative") == [(2,)]


def test_rows_beyond_the_limit_of_the_quarantine_are_stored(t: House) -> None:
    error = refused(t, "insert into t values (2, -1.0), (3, 1.0)", replace(BOTH, on_failure=OnFailure.QUARANTINE))
    assert "the rows that fail `positive` are in checks.negative" in str(error)
    assert t.rows("select id from checks.negative") == [(2,)]


def test_an_audit_that_is_met_stores_nothing(t: House) -> None:
    t.warehouse.execute("insert into t values (2, 1.0)", audits=BOTH)
    assert not t.warehouse.catalog.has_schema("silt", "checks")


def test_rows_that_cannot_be_stored_do_not_hide_the_verdict(t: House, caplog: pytest.LogCaptureFixture) -> None:
    twice = Audit("twice", "select id, id from main.t where v < 0", stored_in="checks.negative")
    assert "stored" not in str(refused(t, "insert into t values (2, -1.0)", Audits((twice,))))
    assert "not stored in checks.negative" in caplog.text


def test_the_audited_table_is_not_replaced_by_its_failing_rows(t: House) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="cannot replace the table"):
        t.warehouse.execute(
            "insert into t values (2, -1.0)", audits=Audits((replace(POSITIVE, stored_in="silt.main.T"),))
        )
    assert t.rows("select * from t") == [(1, 1.0)]
