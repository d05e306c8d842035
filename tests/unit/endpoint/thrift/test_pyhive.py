"""PyHive and SQLAlchemy use the Thrift door as they use HiveServer2."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyhive import exc, hive
from sqlalchemy import create_engine, inspect, text
from TCLIService import ttypes
from thrift.transport.TTransport import TTransportException

from dbt.adapters.silt.endpoint.core.house import Limits
from dbt.adapters.silt.endpoint.thrift.server import ThriftServer
from tests.unit.endpoint.thrift.conftest import TOKEN, connect, rows


@pytest.fixture
def connection(server: ThriftServer) -> Iterator[hive.Connection]:
    with connect(server) as opened:
        yield opened


EVERY_TYPE = """
select true as a, cast(1 as tinyint) as b, cast(2 as smallint) as c, 3 as d, 4L as e, cast(1.5 as float) as f,
  2.5D as g, cast(1.10 as decimal(10, 2)) as h, 'text' as i, date'2024-02-29' as j,
  timestamp'2024-02-29 12:34:56.120' as k, timestamp_ntz'2024-02-29 00:00:00' as l, X'00FF' as m,
  array(1, null) as n, map('k', 1.5) as o, named_struct('x', 'y', 'z', date'2024-01-01') as p, null as q,
  interval '1 02:03:04' day to second as r, interval '1-2' year to month as s
"""


def test_every_type_has_its_type_and_its_value(connection: hive.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(EVERY_TYPE)
        [row] = cursor.fetchall()
        types = [each[1].removesuffix("_TYPE").lower() for each in cursor.description]
    numbers = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"]
    others = ["string", "date", "timestamp", "timestamp", "binary", "array", "map", "struct", "null"]
    assert types == [*numbers, *others, "string", "string"]
    assert row[:8] == (True, 1, 2, 3, 4, 1.5, 2.5, Decimal("1.10"))
    moment = datetime.datetime(2024, 2, 29, 12, 34, 56, 120000)
    assert row[8:13] == ("text", "2024-02-29", moment, datetime.datetime(2024, 2, 29), b"\x00\xff")
    assert row[13:17] == ("[1,null]", '{"k":1.5}', '{"x":"y","z":2024-01-01}', None)
    assert row[17:] == ("1 02:03:04.000000000", "INTERVAL '1-2' YEAR TO MONTH")


def test_nulls_are_nulls_in_every_column(connection: hive.Connection) -> None:
    table = "select id, if(id % 3 = 0, null, id) as n, if(id % 2 = 0, null, cast(id as string)) as t from range(20)"
    found = rows(connection, f"{table} order by id")
    assert found == [(n, None if n % 3 == 0 else n, None if n % 2 == 0 else str(n)) for n in range(20)]


def test_rows_are_fetched_in_pages(connection: hive.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.arraysize = 1000
        cursor.execute("select id from range(2500)")
        assert len(cursor.fetchmany(10)) == 10
        assert sorted(cursor.fetchall())[-1] == (2499,)


def test_a_change_is_a_transaction_of_the_engine_and_tells_its_rows(connection: hive.Connection) -> None:
    rows(connection, "create table t (id bigint, name string)")
    [answer] = rows(connection, "insert into t values (1, 'a'), (2, null)")
    assert answer[:4] == ("WRITE", 1, 2, 2)
    rows(connection, "begin")
    rows(connection, "update t set name = 'b'")
    rows(connection, "delete from t where id = 1")
    rows(connection, "commit")
    assert rows(connection, "select * from t") == [(2, "b")]
    assert rows(connection, "describe history t")[0][0] == 2


def test_a_run_id_in_the_configuration_makes_a_repeated_statement_a_no_operation(server: ThriftServer) -> None:
    with connect(server) as connection:
        rows(connection, "create table t (id bigint)")
    for is_again in (False, True):
        with connect(server, configuration={"silt.run_id": "nightly-1"}) as connection:
            [answer] = rows(connection, "insert into t values (1)")
            assert (answer[1], answer[-1]) == (1, is_again)
    with connect(server) as connection:
        assert rows(connection, "select count(*) from t") == [(1,)]


def test_two_connections_have_views_of_the_same_name(server: ThriftServer) -> None:
    with connect(server) as one, connect(server) as two:
        rows(one, "create temporary view v as select 1 as x")
        rows(two, "create temporary view v as select 2 as x")
        assert (rows(one, "select * from v"), rows(two, "select * from v")) == ([(1,)], [(2,)])


def test_a_statement_is_cancelled(connection: hive.Connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from range(1e9) a join range(1e9) b on a.id * b.id % 7 = 3", async_=True)
        while cursor.poll().operationState == ttypes.TOperationState.PENDING_STATE:
            pass
        cursor.cancel()
        assert cursor.poll().operationState == ttypes.TOperationState.CANCELED_STATE
    assert rows(connection, "select 1") == [(1,)]


def test_an_error_has_its_code_and_state(connection: hive.Connection) -> None:
    with connection.cursor() as cursor, pytest.raises(exc.OperationalError) as raised:
        cursor.execute("select * from missing")
    status = raised.value.args[0].status
    assert status.errorMessage.startswith("[TABLE_OR_VIEW_NOT_FOUND] [SILT_RELATION_NOT_FOUND]")
    assert (status.sqlState, status.infoMessages) == ("42P01", ["TABLE_OR_VIEW_NOT_FOUND"])


def test_the_progress_of_a_running_statement_is_told_if_it_is_asked_for(connection: hive.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("select count(*) from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3", async_=True)
    asked = ttypes.TGetOperationStatusReq(cursor._operationHandle, getProgressUpdate=True)
    told = connection.client.GetOperationStatus(asked).progressUpdateResponse
    while not int(told.rows[0][0]):
        told = connection.client.GetOperationStatus(asked).progressUpdateResponse
    assert 0 <= told.progressedPercentage < 1 and told.headerNames[0] == "TASKS"
    assert cursor.poll(get_progress_update=False).progressUpdateResponse is None
    cursor.cancel()
    assert connection.client.GetOperationStatus(asked).progressUpdateResponse is None


def test_a_statement_that_runs_for_too_long_is_stopped(server_of: Callable[..., ThriftServer]) -> None:
    with connect(server_of(Limits(most_seconds=1))) as connection:
        with pytest.raises(exc.OperationalError, match=r"SILT_STATEMENT_CANCELLED.*more than 1 seconds"):
            rows(connection, "select count(*) from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3")
        assert rows(connection, "select 1") == [(1,)]


def test_a_result_larger_than_the_limit_is_refused(server_of: Callable[..., ThriftServer]) -> None:
    with connect(server_of(Limits(most_rows=5))) as connection:
        assert len(rows(connection, "select * from range(5)")) == 5
        with pytest.raises(exc.OperationalError, match="SILT_RESULT_TOO_LARGE"):
            rows(connection, "select * from range(6)")


def test_a_read_only_door_refuses_changes(server_of: Callable[..., ThriftServer]) -> None:
    with connect(server_of(Limits(is_read_only=True))) as connection:
        with pytest.raises(exc.OperationalError, match="SILT_READ_ONLY"):
            rows(connection, "create table t (id int)")
        assert rows(connection, "show tables") == []


@pytest.mark.parametrize("way", ["NOSASL", "http"])
def test_the_other_transports_serve_the_same(server: ThriftServer, way: str) -> None:
    given: dict[str, Any] = {"auth": "NOSASL", "password": None, "configuration": {"silt.token": TOKEN}}
    if way == "http":
        given = {"scheme": "http", "auth": "BASIC"}
    with connect(server, **given) as connection:
        rows(connection, "create table t (id bigint)")
        rows(connection, "insert into t values (1)")
        assert rows(connection, "select id from t") == [(1,)]


@pytest.mark.parametrize(
    "given",
    [
        {"password": "wrong"},
        {"auth": "NONE", "password": None},
        {"auth": "NOSASL", "password": None},
        {"auth": "NOSASL", "password": None, "configuration": {"silt.token": "wrong"}},
        {"scheme": "http", "auth": "BASIC", "password": "wrong"},
        {"scheme": "http", "auth": "NONE", "password": None},
    ],
)
def test_nobody_connects_without_the_token(server: ThriftServer, given: dict[str, Any]) -> None:
    with pytest.raises((TTransportException, EOFError, exc.OperationalError)):
        connect(server, **given)
    assert len(server.door.sessions) == 0


def test_a_session_lists_tables_as_hive_does_if_its_setting_says_so(server: ThriftServer) -> None:
    with connect(server) as connection:
        rows(connection, "create table `ünï t` (id int)")
        assert rows(connection, "show tables") == [("main", "ünï t", False)]
        rows(connection, "set silt.show_tables = 'hive'")
        rows(connection, "create view v as select 1 as id")
        assert rows(connection, "show tables like 'ü*'") == [("ünï t",)]
        assert rows(connection, "show views") == [("v",)]
        rows(connection, "set silt.show_tables = presto")
        with pytest.raises(exc.OperationalError, match=r"SILT_INVALID_SETTING.*Set it to `spark` or `hive`"):
            rows(connection, "show tables")
    url = f"hive://ann:{TOKEN}@127.0.0.1:{server.port}/main?auth=LDAP"
    engine = create_engine(url, connect_args={"configuration": {"silt.show_tables": "hive"}})
    assert inspect(engine).get_table_names(schema="main") == ["v", "ünï t"]
    engine.dispose()


def test_sqlalchemy_reflects_and_queries(server: ThriftServer) -> None:
    url = f"hive://ann:{TOKEN}@127.0.0.1:{server.port}/main?auth=LDAP"
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(text("create table orders (id bigint, price decimal(10, 2))"))
        connection.execute(text("insert into orders values (1, 2.50)"))
        assert connection.execute(text("select price from orders")).scalar() == Decimal("2.50")
    found = inspect(engine)
    assert "main" in found.get_schema_names()
    assert [each["name"] for each in found.get_columns("orders", schema="main")] == ["id", "price"]
    engine.dispose()
