"""Sessions of clients: each has its own state, is limited, cancelled and expires, and applies a statement once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.endpoint.core.answers import Column, problem_of
from dbt.adapters.silt.endpoint.core.house import Limits
from dbt.adapters.silt.endpoint.core.operations import Operation, State
from dbt.adapters.silt.endpoint.core.session import Session
from dbt.adapters.silt.endpoint.core.sessions import Sessions
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.endpoint.conftest import ANN

CREATE = "create table numbers (id bigint not null, price decimal(12, 2))"


def rows(session: Session, text: str) -> list[dict[str, Any]]:
    return session.run(text).rows.to_pylist()


def test_a_query_has_the_types_of_spark_and_its_rows(session: Session) -> None:
    session.run(CREATE)
    answer = session.run("insert into numbers values (1, 2.50), (2, null)")
    assert (answer.rows_affected, answer.outcome and answer.outcome.version) == (2, 1)
    found = session.run("select id, price, array(id) as ids from numbers order by id")
    assert found.columns == (Column("id", "bigint"), Column("price", "decimal(12,2)"), Column("ids", "array<bigint>"))
    assert found.rows.to_pylist()[0] == {"id": 1, "price": Decimal("2.50"), "ids": [1]}


def test_execute_immediate_and_variables_work_in_a_session(session: Session) -> None:
    session.run(CREATE)
    session.run("declare change string default 'insert into numbers values (1, 2.50)'")
    assert session.run("execute immediate change").rows_affected == 1
    session.run("set var change = 'select id from numbers'")
    assert rows(session, "execute immediate change") == [{"id": 1}]
    session.run("drop temporary variable change")
    with pytest.raises(errors.StatementSyntaxError):
        session.run("execute immediate")


def test_columns_of_the_same_name_keep_their_name(session: Session) -> None:
    assert [column.name for column in session.run("select 1 as a, 2 as a").columns] == ["a", "a"]


def test_each_session_has_its_own_views_schema_and_settings(sessions: Sessions) -> None:
    one, two = sessions.open(ANN), sessions.open(ANN, {"silt.run_id": "R"})
    one.run("create schema other")
    one.run("use other")
    one.run("create temporary view v as select 1 as x")
    two.run("create temporary view v as select 2 as x")
    assert (one.current[1], two.current[1]) == ("other", "main")
    assert [rows(each, "select x from v") for each in (one, two)] == [[{"x": 1}], [{"x": 2}]]
    assert rows(two, "set silt.run_id")[0]["value"] == "R"
    assert "undefined" in rows(one, "set silt.run_id")[0]["value"]


def test_use_default_keeps_the_current_schema_unless_the_warehouse_has_that_schema(session: Session) -> None:
    session.run("use `default`")
    assert session.current == ("silt", "main")
    session.run("create schema `default`")
    session.run("use default")
    assert session.current == ("silt", "default")


def test_a_transaction_is_visible_when_it_is_committed_and_ends_with_its_session(sessions: Sessions) -> None:
    one, two = sessions.open(ANN), sessions.open(ANN)
    one.run(CREATE)
    one.run("begin")
    one.run("insert into numbers values (1, 1)")
    assert rows(two, "select count(*) as n from numbers") == [{"n": 0}]
    one.run("commit")
    assert rows(two, "select count(*) as n from numbers") == [{"n": 1}]
    one.run("begin")
    one.run("delete from numbers")
    sessions.close(one.id)
    assert rows(two, "select count(*) as n from numbers") == [{"n": 1}]
    with pytest.raises(errors.InvalidStatementError, match="the session does not exist"):
        sessions.get(one.id)


def test_a_repeated_statement_of_a_run_is_applied_once_and_names_its_version(sessions: Sessions) -> None:
    sessions.open(ANN).run(CREATE)
    insert = "insert into numbers values (1, 1)"
    for _ in range(2):
        session = sessions.open(ANN, {"silt.run_id": "nightly/1"})
        answers = [session.run(insert) for _ in range(2)]  # two writes of one run
    assert [(each.outcome.version, each.outcome.skipped) for each in answers if each.outcome] == [(1, True), (2, True)]
    assert rows(session, "select count(*) as n from numbers") == [{"n": 2}]
    other = sessions.open(ANN, {"silt.run_id": "nightly/2"})
    assert other.run(insert).rows.to_pylist()[0]["skipped"] is False


def test_the_node_in_the_query_comment_of_dbt_is_part_of_the_unit_and_of_the_commit(sessions: Sessions) -> None:
    session = sessions.open(ANN, {"silt.run_id": "R"})
    session.run(CREATE)
    insert = "insert into numbers values (1, 1)"
    for node in ("model.shop.a", "model.shop.b"):
        again = sessions.open(ANN, {"silt.run_id": "R"})
        assert not rows(again, f'/* {{"app": "dbt", "node_id": "{node}"}} */\n{insert}')[0]["skipped"]
        assert rows(sessions.open(ANN, {"silt.run_id": "R"}), f'/* {{"node_id": "{node}"}} */ {insert}')[0]["skipped"]
    [log] = [session.catalog.table(name) for name in session.catalog.all_tables()]
    facts = [commit.info.extra for commit in log.newest_commits()]
    assert facts[0]["dbt"]["nodeId"] == "model.shop.b" and facts[0]["dbt"]["runId"] == "R"
    assert facts[0]["dbt"]["client"] == "ann (test)"


def test_a_statement_that_failed_is_the_same_unit_when_it_is_sent_again(sessions: Sessions) -> None:
    session = sessions.open(ANN, {"silt.run_id": "R"})
    insert = "insert into numbers values (1, 1)"
    with pytest.raises(errors.RelationNotFoundError):
        session.run(insert)
    session.run(CREATE)
    session.run(insert)
    assert rows(sessions.open(ANN, {"silt.run_id": "R"}), insert)[0]["skipped"]


def test_a_transaction_of_a_run_is_applied_once(sessions: Sessions) -> None:
    sessions.open(ANN).run(CREATE)
    for _ in range(2):
        session = sessions.open(ANN, {"silt.run_id": "R"})
        for text in ("begin", "insert into numbers values (1, 1)", "update numbers set price = price + 1", "commit"):
            session.run(text)
    assert rows(session, "select * from numbers") == [{"id": 1, "price": Decimal("2.00")}]


def test_a_session_whose_branch_does_not_exist_is_not_opened(sessions: Sessions) -> None:
    with pytest.raises(errors.RunNotFoundError):
        sessions.open(ANN, {"silt.branch": "no-such-run"})
    assert len(sessions) == 0


def test_a_result_with_more_rows_than_allowed_is_refused(sessions_of: Callable[..., Sessions]) -> None:
    session = sessions_of(Limits(most_rows=3)).open(ANN)
    assert session.run("select * from range(3)").rows.num_rows == 3
    with pytest.raises(errors.ResultTooLargeError, match="more than 3 rows"):
        session.run("select * from range(4)")


def test_a_session_may_lower_its_limits_and_never_raise_them(sessions_of: Callable[..., Sessions]) -> None:
    sessions = sessions_of(Limits(most_rows=8, most_streamed_rows=8, most_seconds=60))
    session = sessions.open(ANN, {"silt.max_rows": "3", "silt.max_seconds": "1.5"})
    other = sessions.open(ANN)
    with pytest.raises(errors.ResultTooLargeError, match="more than 3 rows"):
        session.run("select * from range(4)")
    for limit in ("silt.max_rows=9", "silt.max_seconds=61"):
        with pytest.raises(errors.InvalidSettingError, match="allows at most"):
            session.run(f"set {limit}")
    assert (session.limits.most_rows, session.limits.most_seconds) == (3, 1.5)
    session.run("reset silt.max_rows")
    assert (session.limits.most_rows, session.limits.most_streamed_rows, session.limits.most_seconds) == (8, 8, 1.5)
    session.run("reset")
    assert session.limits == other.limits == sessions.limits


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "inf", "nan"])
def test_a_limit_that_is_not_a_positive_number_is_refused(sessions: Sessions, value: str) -> None:
    with pytest.raises(errors.InvalidSettingError, match="must be a positive number"):
        sessions.open(ANN, {"silt.max_rows": value})


def test_a_statement_that_takes_longer_than_the_session_allows_is_stopped(sessions: Sessions) -> None:
    session = sessions.open(ANN, {"silt.max_seconds": "0.5"})
    operation = Operation(session, "select count(*) from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3")
    with pytest.raises(errors.StatementCancelledError, match=r"more than 0\.5 seconds"):
        operation.result()


def test_a_read_only_session_reads_and_makes_temporary_views(sessions_of: Callable[..., Sessions]) -> None:
    sessions_of().open(ANN).run(CREATE)
    session = sessions_of(Limits(is_read_only=True)).open(ANN)
    session.run("create temporary view v as select * from numbers")
    assert rows(session, "select * from v") == []
    refused = ("insert into numbers values (1, 1)", "drop table numbers", "create view w as select 1", "begin")
    for text in (*refused, "create schema s", "optimize numbers", "set silt.branch = x", "add jar '/tmp/x.jar'"):
        with pytest.raises(errors.ReadOnlyStorageError):
            session.run(text)


def test_a_statement_is_cancelled_while_it_runs_and_commits_nothing(session: Session, spark: SparkSession) -> None:
    session.run("create table big (id bigint)")
    slow = "insert into big select a.id from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3"
    operation = Operation(session, slow)
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        assert not operation.wait(0.05)
    operation.cancel()
    assert operation.state is State.CANCELLED
    with pytest.raises(errors.StatementCancelledError):
        operation.result()
    assert rows(session, "select count(*) as n from big") == [{"n": 0}]


def test_statements_of_a_session_run_in_turn_and_a_waiting_statement_can_be_cancelled(session: Session) -> None:
    with session.busy():
        done: list[State] = []

        def wait() -> None:
            operation = Operation(session, "select 1")
            operation.cancel()
            done.append(operation.state)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(1)
        assert not done
    thread.join()
    assert done == [State.CANCELLED]


def test_an_idle_session_expires(house_of: Callable[..., Any]) -> None:
    now = [0.0]
    sessions = Sessions(house_of(), Limits(idle_seconds=10), clock=lambda: now[0])
    old, kept = sessions.open(ANN), sessions.open(ANN)
    now[0] = 9.0
    assert sessions.get(kept.id) is kept
    now[0] = 12.0
    assert sessions.expire() == 1
    with pytest.raises(errors.InvalidStatementError, match="the session does not exist"):
        sessions.get(old.id)


def test_more_sessions_than_allowed_are_refused(sessions_of: Callable[..., Sessions]) -> None:
    sessions = sessions_of(Limits(most_sessions=1))
    sessions.open(ANN)
    with pytest.raises(errors.UnavailableError, match="1 sessions are open"):
        sessions.open(ANN)


@pytest.mark.parametrize(
    ("text", "code", "condition", "state"),
    [
        ("select * from missing", "SILT_RELATION_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
        ("select a from (select 1 as b)", "SILT_COLUMN_NOT_FOUND", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "42703"),
        ("use nowhere", "SILT_SCHEMA_NOT_FOUND", "SCHEMA_NOT_FOUND", "42704"),
        ("select 1 +", "SILT_SYNTAX", "PARSE_SYNTAX_ERROR", "42601"),
        (" ", "SILT_EMPTY_STATEMENT", "PARSE_EMPTY_STATEMENT", "42617"),
        ("-- nothing", "SILT_SYNTAX", "PARSE_SYNTAX_ERROR", "42601"),
        ("selec 1", "SILT_SYNTAX", "PARSE_SYNTAX_ERROR", "42601"),
        ("kill query 'x'", "SILT_SYNTAX", "PARSE_SYNTAX_ERROR", "42601"),
        ("select cast('x' as int)", "SILT_VALUE_NOT_CASTABLE", "CAST_INVALID_INPUT", "22018"),
    ],
)
def test_a_failure_has_code_condition_and_state(
    session: Session, text: str, code: str, condition: str, state: str
) -> None:
    operation = Operation(session, text)
    with pytest.raises(errors.SiltError) as raised:
        operation.result()
    problem = problem_of(raised.value, lambda: session.catalog)
    assert (problem.code, problem.condition, problem.state) == (code, condition, state)
    assert f"[{code}]" in problem.message


@pytest.mark.parametrize(
    ("text", "code", "condition", "state"),
    [
        ("insert into t values (null)", "SILT_NOT_NULL_VIOLATION", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502"),
        ("insert into t values (-1)", "SILT_CHECK_VIOLATION", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "23514"),
        (
            "merge into t using (values (1), (1)) as s (id) on t.id = s.id when matched then update set id = s.id",
            *("SILT_MULTIPLE_SOURCE_ROWS", "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "21000"),
        ),
    ],
)
def test_a_failure_that_delta_also_has_begins_with_deltas_condition(
    session: Session, text: str, code: str, condition: str, state: str
) -> None:
    for made in ("create table t (id int not null, constraint positive check (id > 0))", "insert into t values (1)"):
        Operation(session, made).result()
    with pytest.raises(errors.DataRejectedError) as raised:
        Operation(session, text).result()
    problem = problem_of(raised.value, lambda: session.catalog)
    assert (problem.code, problem.condition, problem.state) == (code, condition, state)
    assert problem.message.startswith(f"[{condition}] [{code}] ")


def test_programs_that_repeat_conflicts_of_delta_find_deltas_condition_in_the_message(session: Session) -> None:
    lost = errors.ConcurrentDeleteReadError("a file was removed", table="silt.main.t")
    problem = problem_of(lost, lambda: session.catalog)
    assert problem.message.startswith("[DELTA_CONCURRENT_DELETE_READ] [SILT_CONCURRENT_DELETE_READ] ")


@pytest.mark.parametrize("value", ["a;b", "a\nb", "'"])
def test_a_setting_that_is_not_one_plain_value_is_refused(sessions: Sessions, value: str) -> None:
    with pytest.raises(errors.InvalidSettingError):
        sessions.open(ANN, {"silt.run_id": value})
