"""Quarantined rows that pass audits by now move into the table: both tables change, or neither."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.released_rows import Released, release
from dbt.adapters.silt.engine.statements.transactions.session_transaction import SessionTransaction
from tests.unit.engine.house import House

POSITIVE = Audit("positive", "select id from silt.main.t where v < 0")
KNOWN = Audit("known", "select * from main.t where v is null")
UNIQUE = Audit("unique", "select id from main.t group by id having count(*) > 1")
AUDITS = Audits((POSITIVE, KNOWN), on_failure=OnFailure.QUARANTINE, max_quarantined=Limit(10), run_id="night")
NAME = RelationName("silt", "main", "t")


@pytest.fixture
def t(house: House) -> House:
    """A table with a row, and three quarantined rows."""
    house.sql(
        "create table t (id bigint, v double, w int default 7) "
        "tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    house.warehouse.execute("insert into t values (1, 1.0, 0), (2, -2.0, 0), (3, -3.0, 0), (4, null, 0)", audits=AUDITS)
    return house


def good(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id, v from t")


def bad(house: House) -> list[tuple[object, ...]]:
    return house.rows("select id, v, _silt_failed, _silt_run_id from t__quarantine")


def test_rows_that_pass_by_now_are_moved_and_the_others_stay_as_they_were(t: House) -> None:
    now = replace(AUDITS, audits=(replace(POSITIVE, query="select id from main.t where v < -2"), KNOWN))
    assert release(t.warehouse, NAME, now) == Released(1, 2, {"positive": 1, "known": 1})
    assert good(t) == [(1, 1.0), (2, -2.0)]
    assert bad(t) == [(3, -3.0, ["positive"], "night"), (4, None, ["known"], "night")]
    assert release(t.warehouse, NAME, now) == Released(0, 2, {"positive": 1, "known": 1})
    assert good(t) == [(1, 1.0), (2, -2.0)]


def test_a_condition_chooses_rows_by_all_columns_of_the_quarantine_table(t: House) -> None:
    none = replace(AUDITS, audits=())
    where = "array_contains(_silt_failed, 'positive') and _silt_run_id = 'night' and id > 2"
    assert release(t.warehouse, NAME, none, where) == Released(1, 0)
    assert good(t) == [(1, 1.0), (3, -3.0)]
    assert [row[0] for row in bad(t)] == [2, 4]


@pytest.mark.parametrize(
    "condition",
    ["rand() < 0.5", "_silt_at < now()", "id in (select id from t)", "no_such_function(id)"],
)
def test_a_condition_that_may_choose_other_rows_the_second_time_is_refused(t: House, condition: str) -> None:
    before = bad(t)
    with pytest.raises(errors.InvalidArgumentError, match="may choose other rows"):
        release(t.warehouse, NAME, AUDITS, condition)
    assert (good(t), bad(t)) == ([(1, 1.0)], before)


@pytest.mark.parametrize("condition", ["nothing = 1", "raise_error('no')", "id"])
def test_a_condition_that_fails_changes_nothing(t: House, condition: str) -> None:
    before = bad(t)
    with pytest.raises(errors.SiltError):
        release(t.warehouse, NAME, AUDITS, condition)
    assert (good(t), bad(t)) == ([(1, 1.0)], before)
    assert not t.warehouse.is_in_transaction


def test_an_audit_of_the_whole_table_refuses_all_rows(t: House) -> None:
    t.sql("insert into t values (2, 2.0, 0)")
    before = bad(t)
    with pytest.raises(errors.AuditFailedError, match="`unique`"):
        release(t.warehouse, NAME, replace(AUDITS, audits=(UNIQUE,)))
    assert bad(t) == before
    assert release(t.warehouse, NAME, replace(AUDITS, audits=(UNIQUE,)), "id > 2") == Released(2, 0)


def test_a_row_test_whose_value_may_change_refuses_instead_of_choosing_rows(t: House) -> None:
    before = bad(t)
    chance = Audit("chance", "select * from main.t where v is null or rand() > 2")
    with pytest.raises(errors.AuditFailedError, match="`chance`"):
        release(t.warehouse, NAME, replace(AUDITS, audits=(chance,)))
    assert bad(t) == before
    assert release(t.warehouse, NAME, replace(AUDITS, audits=(chance,)), "v is not null") == Released(2, 0)


def test_columns_that_were_added_or_dropped_meanwhile_are_no_obstacle(t: House) -> None:
    t.sql("alter table t set tblproperties ('delta.columnMapping.mode' = 'name')")
    t.sql("alter table t drop column w")
    t.sql("alter table t add column x int")
    assert release(t.warehouse, NAME, replace(AUDITS, audits=(KNOWN,))) == Released(2, 1, {"known": 1})
    assert t.rows("select * from t") == [(1, 1.0, None), (2, -2.0, None), (3, -3.0, None)]


def test_rows_that_break_a_rule_of_the_table_stay(house: House) -> None:
    house.sql("create table t (id bigint, v double, constraint positive expect (v > 0) on violation drop row)")
    house.sql("insert into t values (1, -1.0), (2, null)")
    house.sql("update t__quarantine set v = 2 where id = 2")
    assert release(house.warehouse, NAME, Audits(())) == Released(1, 1, {"positive": 1})
    assert good(house) == [(2, 2.0)]
    assert [row[0] for row in bad(house)] == [1]


class Killed(BaseException):
    """The end of the process."""


def test_after_a_crash_neither_table_has_changed_and_a_rerun_moves_the_rows_once(
    t: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> None:
        raise Killed

    before, passing = bad(t), replace(AUDITS, audits=())
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(SessionTransaction, "commit", die)
        release(t.warehouse, NAME, passing)
    assert (good(t), bad(t)) == ([(1, 1.0)], before)
    again = t.another()
    assert [release(again.warehouse, NAME, passing) for _ in range(2)] == [Released(3, 0), Released()]
    assert [row[0] for row in good(t)] == [1, 2, 3, 4]


def test_two_releases_at_once_move_each_row_once(t: House, monkeypatch: pytest.MonkeyPatch) -> None:
    passing, pending = replace(AUDITS, audits=()), [1]
    commit = SessionTransaction.commit

    def raced(self: SessionTransaction) -> dict[str, int]:
        if pending:
            pending.pop()
            release(t.another().warehouse, NAME, passing)
        return commit(self)

    monkeypatch.setattr(SessionTransaction, "commit", raced)
    with pytest.raises(errors.ConcurrentModificationError):
        release(t.warehouse, NAME, passing)
    assert [row[0] for row in good(t)] == [1, 2, 3, 4]
    assert bad(t) == []


def test_without_a_quarantine_table_it_is_an_error(house: House) -> None:
    house.sql("create table t (id bigint, v double)")
    with pytest.raises(errors.RelationNotFoundError):
        release(house.warehouse, NAME, AUDITS)


def test_a_test_of_a_column_that_the_quarantine_lacks_finds_nulls(t: House) -> None:
    t.sql("alter table t add column x int")
    known = Audit("x is known", "select id from main.t where x is null")
    assert release(t.warehouse, NAME, replace(AUDITS, audits=(known,))) == Released(0, 3, {"x is known": 3})
    absent = Audit("x is unknown", "select id from main.t where x is not null")
    assert release(t.warehouse, NAME, replace(AUDITS, audits=(absent,))) == Released(3, 0)
    assert t.rows("select id, x from t") == [(1, None), (2, None), (3, None), (4, None)]
