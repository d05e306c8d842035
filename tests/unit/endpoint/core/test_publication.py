"""What a session writes with `silt.publish` becomes visible at one moment, at its end, and once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.endpoint.core.house import Limits
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.records.known_runs import known_runs, unpublished_runs
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import histories, runs
from tests.unit.endpoint.conftest import ANN

AFTER_RUN = {"silt.publish": "after_run", "silt.run_id": "night"}
INSERT = "insert into orders values (2)"


def rows(session: Session, text: str) -> list[tuple[Any, ...]]:
    return [tuple(each.values()) for each in session.run(text).rows.to_pylist()]


def runs_of(session: Session) -> RunBranches:
    return session.catalog.run_branches("silt")


@pytest.fixture
def shop(session: Session) -> Session:
    """A session that publishes at once, and sees what the others have published."""
    session.run("create table orders (id bigint)")
    session.run("insert into orders values (1)")
    return session


def test_everything_is_visible_at_one_moment_when_the_session_is_closed(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    apart.run(INSERT)
    apart.run("create table totals as select count(*) as n from orders")
    apart.run("create view few as select * from totals")
    assert rows(apart, "select n from few") == [(2,)]
    assert rows(shop, "select count(*) from orders") == [(1,)]
    with pytest.raises(errors.RelationNotFoundError):
        shop.run("select * from totals")
    sessions.close(apart.id)
    assert rows(shop, "select n from few") == [(2,)]
    assert rows(shop, "select count(*) from orders") == [(2,)]
    assert runs_of(shop).all() == []


def test_the_settings_may_come_in_any_order_and_before_other_settings(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, {"silt.publish": "after_run"})
    for text in ("use main", "set spark.sql.shuffle.partitions = 1", "set silt.run_id = late", INSERT):
        apart.run(text)
    assert [each.run_id for each in runs_of(shop).all()] == ["late"]


def test_a_lost_session_is_held_and_the_same_run_id_continues_it_once(sessions: Sessions, shop: Session) -> None:
    lost = sessions.open(ANN, AFTER_RUN)
    lost.run(INSERT)
    sessions.lose(lost.id, "the connection of its client was lost")
    assert rows(shop, "select count(*) from orders") == [(1,)]
    [held] = runs_of(shop).all()
    assert (held.run_id, held.held) == ("night", "the connection of its client was lost")
    for skipped in ([True, False], [True, True]):
        again = sessions.open(ANN, AFTER_RUN)
        found = [again.run(text).rows.to_pylist()[0]["skipped"] for text in (INSERT, "delete from orders where id = 1")]
        assert found == skipped
        sessions.close(again.id)
        assert rows(shop, "select id from orders") == [(2,)]


def test_a_lost_run_is_published_or_dropped_by_hand(sessions: Sessions, shop: Session) -> None:
    for is_published, count in ((False, 1), (True, 2)):
        lost = sessions.open(ANN, AFTER_RUN)
        lost.run(INSERT)
        with pytest.raises(errors.RunInProgressError, match="session of ann"):
            runs_of(shop).check_idle(runs_of(shop).find("night"))
        sessions.lose(lost.id, "it was idle")
        runs = runs_of(shop)
        run = runs.find("night")
        runs.check_idle(run)
        (runs.publish if is_published else runs.drop)(run, runs.existing(run))
        assert rows(shop, "select count(*) from orders") == [(count,)]


def test_a_change_that_failed_holds_the_run_until_it_succeeds(sessions: Sessions, shop: Session) -> None:
    for repeats in (False, True):
        apart = sessions.open(ANN, AFTER_RUN)
        with pytest.raises(errors.RelationNotFoundError):
            apart.run("insert into missing values (1)")
        apart.run(INSERT)
        if repeats:
            apart.run("create table missing (id bigint)")
            apart.run("insert into missing values (1)")
        sessions.close(apart.id)
        assert rows(shop, "select count(*) from orders") == [(2 if repeats else 1,)]
        held = [each.held for each in runs_of(shop).all()]
        assert held == ([] if repeats else ["a statement failed: insert into missing values (1)"])


def test_a_session_whose_last_statement_failed_is_held(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    apart.run(INSERT)
    with pytest.raises(errors.SiltError):
        apart.run("select assert_true(count(*) = 7) from orders")
    sessions.close(apart.id)
    assert [each.held for each in runs_of(shop).all()] == ["its last statement failed"]


def test_a_query_that_failed_and_was_followed_by_others_holds_nothing(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    with pytest.raises(errors.RelationNotFoundError):
        apart.run("describe missing")
    apart.run(INSERT)
    sessions.close(apart.id)
    assert rows(shop, "select count(*) from orders") == [(2,)]


def test_a_run_that_conflicts_is_dropped_and_its_session_is_told(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    apart.run("update orders set id = 5")
    shop.run("delete from orders where id = 1")
    with pytest.raises(errors.ConcurrentModificationError):
        sessions.close(apart.id)
    assert (rows(shop, "select * from orders"), runs_of(shop).all(), len(sessions)) == ([], [], 1)
    again = sessions.open(ANN, AFTER_RUN)
    again.run("insert into orders values (9)")
    sessions.close(again.id)
    assert rows(shop, "select * from orders") == [(9,)]


@pytest.mark.parametrize("text", ["reset silt.publish", "reset", "set silt.publish = at_once"])
def test_a_session_publishes_before_its_end_and_then_works_at_once(
    sessions: Sessions, shop: Session, text: str
) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    apart.run(INSERT)
    apart.run(text)
    assert rows(shop, "select count(*) from orders") == [(2,)]
    apart.run("insert into orders values (3)")
    assert rows(shop, "select count(*) from orders") == [(3,)]


def test_a_session_that_publishes_before_its_end_is_told_why_its_run_is_held(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    with pytest.raises(errors.RelationNotFoundError):
        apart.run("delete from missing")
    with pytest.raises(errors.InvalidStatementError, match="night is not published: a statement failed: delete from"):
        apart.run("reset silt.publish")
    assert rows(shop, "select count(*) from orders") == [(1,)]


def test_the_last_of_two_sessions_of_a_run_publishes_it(sessions: Sessions, shop: Session) -> None:
    one, two = sessions.open(ANN, AFTER_RUN), sessions.open(ANN, AFTER_RUN)
    one.run(INSERT)
    two.run("create table other as select 1 as id")
    sessions.close(one.id)
    assert rows(shop, "select count(*) from orders") == [(1,)]
    sessions.close(two.id)
    assert rows(shop, "select (select count(*) from orders), (select count(*) from other)") == [(2, 1)]


def test_a_run_on_request_waits_for_silt_publish(sessions: Sessions, shop: Session) -> None:
    for text in (INSERT, "insert into orders values (3)"):
        apart = sessions.open(ANN, {**AFTER_RUN, "silt.publish": "on_request"})
        apart.run(text)
        sessions.close(apart.id)
    assert rows(shop, "select count(*) from orders") == [(1,)]
    runs = runs_of(shop)
    run = runs.find("night")
    assert not runs.commands(run).standing()
    runs.publish(run, runs.existing(run))
    assert rows(shop, "select count(*) from orders") == [(3,)]


def test_a_session_without_a_run_id_gets_one(sessions: Sessions, shop: Session) -> None:
    apart = sessions.open(ANN, {"silt.publish": "after_run"})
    apart.run(INSERT)
    [run] = runs_of(shop).all()
    assert rows(apart, "set silt.run_id") == [("silt.run_id", run.run_id)]
    sessions.close(apart.id)
    assert rows(shop, "select count(*) from orders") == [(2,)]


@pytest.mark.parametrize("value", ["after_tests", "later", "''"])
def test_an_unknown_value_is_refused(session: Session, value: str) -> None:
    with pytest.raises(errors.InvalidSettingError, match=r"silt\.publish"):
        session.run(f"set silt.publish = {value}")


@pytest.mark.parametrize(
    "text", ["set silt.run_id = other", "reset silt.run_id", "begin", "commit", "set silt.branch = x"]
)
def test_a_session_cannot_leave_its_run(sessions: Sessions, shop: Session, text: str) -> None:
    apart = sessions.open(ANN, AFTER_RUN)
    apart.run(INSERT)
    with pytest.raises(errors.InvalidStatementError):
        apart.run(text)
    sessions.close(apart.id)
    assert [each.run_id for each in runs_of(shop).all()] == ["night"]


def test_a_session_in_a_transaction_or_on_a_branch_begins_no_run(sessions: Sessions, shop: Session) -> None:
    runs_of(shop).open(BranchedRun("shop", "dev", "monday"))
    for first in ("begin", "set silt.branch = monday"):
        apart = sessions.open(ANN)
        apart.run(first)
        apart.run("set silt.publish = after_run")
        with pytest.raises(errors.InvalidStatementError, match="cannot be part of another run"):
            apart.run(INSERT)
    assert [each.run_id for each in runs_of(shop).all()] == ["monday"]


def test_a_read_only_session_begins_no_run(sessions_of: Callable[..., Sessions]) -> None:
    with pytest.raises(errors.ReadOnlyStorageError):
        sessions_of(Limits(is_read_only=True)).open(ANN, AFTER_RUN)


def test_runs_name_the_client_whose_statements_they_are(sessions: Sessions, shop: Session) -> None:
    shop.run("set silt.run_id = day")
    shop.run(INSERT)
    frame = shop.warehouse.spark.sql("select 7L as id")
    shop.write(frame, "main.others", "append")
    apart = sessions.open(ANN, {**AFTER_RUN, "silt.publish": "on_request"})
    apart.run(INSERT)
    unpublished = unpublished_runs(runs_of(shop))
    found = known_runs(runs(histories(shop.catalog)), ProjectRecords.of(None), unpublished=unpublished)
    shown = {each.run_id: (each.name.rpartition(",")[0], each.clients, each.state) for each in found}
    whose = "session of ann (test), endpoint", ["ann (test)"]
    assert shown == {"night": (*whose, "running"), "day": (*whose, None)}
    [day] = [each for each in found if each.run_id == "day"]
    assert day.commits is not None and day.commits.tables == ["silt.main.orders", "silt.main.others"]
