"""Row tests, which the pass that writes the rows judges: without another job, and with the verdict of their query."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, AuditResult, Audits, OnFailure, Scope
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.statements.steps.audits import StatementJudge
from tests.unit.engine.house import House

POSITIVE = Audit("positive", "select id from main.t where v < 0")
AUDITS = Audits((POSITIVE,))


@pytest.fixture
def t(house: House) -> House:
    house.sql("create table t (id bigint, v double)")
    house.sql("insert into t values (0, 0.5)")
    return house


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the audits whose queries ran."""
    found: list[str] = []
    verdicts = StatementJudge._verdicts

    def noted(self: StatementJudge, log: object, made: object, audits: list[Audit]) -> object:
        found.extend(each.name for each in audits)
        return verdicts(self, log, made, audits)  # type: ignore[arg-type]

    monkeypatch.setattr(StatementJudge, "_verdicts", noted)
    return found


def run(house: House, text: str, audits: Audits = AUDITS) -> tuple[AuditResult, ...]:
    outcome = house.warehouse.execute(text, audits=audits).outcome
    assert outcome is not None
    return outcome.audits


def test_the_query_runs_once_over_rows_that_no_audit_has_judged_and_then_no_more(t: House, queries: list[str]) -> None:
    for statement in (
        "insert into t values (1, 1.0)",
        "insert into t values (2, 2.0)",
        "insert into t values (3, 3.0)",
        "update t set v = 5 where id = 1",
        "merge into t using (select 2L as id) s on t.id = s.id when matched then update set v = 7",
        "delete from t where id = 3",
    ):
        assert run(t, statement) == (AuditResult("positive", "pass"),)
    assert queries == ["positive"]
    with pytest.raises(errors.AuditFailedError, match="Got 2 results"):
        run(t, "insert into t values (4, -1.0), (5, -2.0), (6, 1.0)")
    with pytest.raises(errors.AuditFailedError, match="Got 1 result,"):
        run(t, "update t set v = -v where id = 1")
    assert queries == ["positive"]


def test_a_table_whose_rows_are_all_replaced_is_judged_by_its_new_rows(t: House, queries: list[str]) -> None:
    t.sql("insert into t values (1, -1.0)")
    run(t, "insert overwrite t values (2, 1.0)")
    run(t, "create or replace table t as select 1L as id, 2.0D as v")
    run(t, "truncate table t")
    with pytest.raises(errors.AuditFailedError):
        run(t, "create or replace table t as select 1L as id, -2.0D as v")
    assert queries == []


@pytest.mark.parametrize(
    "between",
    [
        "insert into t values (9, 9.0)",
        "alter table t add column w int",
        "restore table t to version as of 1",
        "delete from t where id = 1",
    ],
)
def test_a_commit_without_the_audit_lets_the_query_run_again(t: House, queries: list[str], between: str) -> None:
    run(t, "insert into t (id, v) values (1, 1.0)")
    t.sql(between)
    run(t, "insert into t (id, v) values (2, 1.0)")
    assert queries == ["positive", "positive"]


@pytest.mark.parametrize("between", ["optimize t", "comment on table t is 'x'"])
def test_a_commit_that_changes_no_rows_does_not_always(t: House, queries: list[str], between: str) -> None:
    run(t, "insert into t values (1, 1.0)")
    run(t, "insert into t values (2, 1.0)")
    t.sql(between)
    run(t, "insert into t values (3, 1.0)")
    assert len(queries) == (1 if between == "optimize t" else 2)


def test_a_changed_audit_looks_at_all_rows_once(t: House, queries: list[str]) -> None:
    run(t, "insert into t values (1, 1.0)")
    with pytest.raises(errors.AuditFailedError):
        run(t, "insert into t values (2, 9.0)", Audits((replace(POSITIVE, query="select id from main.t where v < 5"),)))
    assert queries == ["positive", "positive"]


def test_a_test_whose_verdict_may_change_looks_at_all_rows(t: House, queries: list[str]) -> None:
    audits = Audits((Audit("past", "select id from main.t where timestamp_seconds(id) > now()"),))
    for value in (1, 2):
        run(t, f"insert into t values ({value}, 1.0)", audits)
    assert queries == ["past", "past"]


def test_rows_of_another_writer_that_came_between_are_not_taken_as_judged(
    t: House, queries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second append does not conflict with the other writer's, and its record covers its own base only."""
    run(t, "insert into t values (1, 1.0)")
    other, judge = t.another(), StatementJudge.judge

    def judged(self: StatementJudge, *args: object) -> object:
        found = judge(self, *args)  # type: ignore[arg-type]
        monkeypatch.setattr(StatementJudge, "judge", judge)
        other.sql("insert into t values (2, -1.0)")
        return found

    monkeypatch.setattr(StatementJudge, "judge", judged)
    run(t, "insert into t values (3, 1.0)")
    assert queries == ["positive"]
    with pytest.raises(errors.AuditFailedError, match="Got 1 result,"):
        run(t, "insert into t values (4, 1.0)")


def test_with_the_scope_of_changes_no_row_test_needs_a_query(t: House, queries: list[str]) -> None:
    t.sql("insert into t values (1, -1.0)")
    audits = replace(AUDITS, scope=Scope.CHANGES)
    run(t, "insert into t values (2, 1.0)", audits)
    with pytest.raises(errors.AuditFailedError):
        run(t, "insert into t values (3, -1.0)", audits)
    assert queries == []


CONDITIONS = [
    "v < 0",
    "not (v >= 0)",
    "v is null",
    "v = double('nan')",
    "v <> 0",
    "coalesce(v, -1) < 0",
    "v between -1 and 1",
    "id in (1, null)",
    "s = ''",
    "s like '%a'",
    "t.s > 'a' or t.d = date'2026-01-01'",
    "p.a < 0 or p.a is null",
    "array_contains(l, 0)",
    "m['a'] is null",
    "true",
    "cast(null as boolean)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_count_of_the_write_is_the_count_of_the_query(house: House, condition: str) -> None:
    rows = (
        "select * from values "
        "(1L, 1.0D, 'a', date'2026-01-01', named_struct('a', 1), array(0), map('a', 1)), "
        "(null, double('nan'), '', null, null, array(), map()), "
        "(2L, -0.0D, 'ba', date'1500-01-01', named_struct('a', cast(null as int)), null, null), "
        "(3L, null, null, null, named_struct('a', -1), array(1, null), map('b', 2)), "
        "(1L, double('-infinity'), 'A', null, named_struct('a', 0), array(0, 0), map('a', cast(null as int))) "
        "as t(id, v, s, d, p, l, m)"
    )
    audit = Audit("a", f"select id from main.t as t where {condition}")
    audits = Audits((audit,), on_failure=OnFailure.WARN)
    (found,) = run(house, f"create or replace table t as {rows}", audits)
    assert found.failures == len(house.rows(audit.query))


def test_a_condition_that_cannot_be_evaluated_is_an_error_that_names_the_audit(t: House) -> None:
    audits = Audits((Audit("wrong", "select id from main.t where 1 / cast(id - 1 as int) > 0"),))
    with pytest.raises(errors.InvalidStatementError, match="the audit `wrong` cannot be evaluated"):
        run(t, "insert into t values (1, 1.0)", audits)
    assert t.rows("select * from t") == [(0, 0.5)]


def test_a_function_of_the_warehouse_in_a_condition_is_evaluated_by_the_query(t: House, queries: list[str]) -> None:
    t.sql("create function main.is_bad(x double) returns boolean return x < 0")
    audits = Audits((Audit("called", "select id from main.t where main.is_bad(v)"),))
    with pytest.raises(errors.AuditFailedError):
        run(t, "insert into t values (1, -1.0)", audits)
    assert queries == ["called"]


def test_a_char_column_is_compared_as_a_reader_sees_it(house: House) -> None:
    house.sql("create table t (id bigint, c char(3))")
    audits = Audits((Audit("padded", "select id from main.t where length(c) = 3"),))
    with pytest.raises(errors.AuditFailedError, match="Got 1 result,"):
        run(house, "insert into t values (1, 'a')", audits)


def test_an_unqualified_name_that_means_another_relation_is_not_a_row_test(t: House, queries: list[str]) -> None:
    t.sql("create temporary view t as select 1L as id, -1.0D as v")
    with pytest.raises(errors.AuditFailedError):
        run(t, "insert into main.t values (1, 1.0)", Audits((Audit("view", "select id from t where v < 0"),)))
    assert queries == ["view"]
