"""Clients get the same schema, rows, error class and SQLSTATE from the endpoint as from Spark's own Connect server.

The plain server is the Spark behind the endpoint, to which the client also connects without the endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.kept_spark import listing
from tests import kept_sparks
from tests.unit.endpoint.connect.programs import Program, versions

_BOTH = """
parts = {"token": other_token, "user_id": "plain"}
plain = SparkSession.builder.remote(
    f"sc://localhost:{other_port}/" + "".join(f";{key}={value}" for key, value in parts.items())
).create()

def got(call, session):
    try:
        frame = call(session)
        return {"schema": frame.schema.json(), "rows": repr(frame.collect())}
    except PySparkException as error:
        return {"class": type(error).__name__, "condition": error.getCondition(), "state": error.getSqlState()}

def both(call):
    return [got(call, session) for session in (spark, plain)]

for each in (spark, plain):
    each.sql("create or replace temporary view seen as select * from values (1, 'a'), (2, null) as t(id, name)")
"""

QUERIES = [
    "select 1 as a, 'x' as b, null as c",
    "select 1 as a, 2 as a",
    "select cast(1.5 as decimal(12, 2)) d, array(1, 2) a, map('k', 1) m, named_struct('x', 1, 'y', array('z')) s",
    "select timestamp'2024-01-01 00:00:00' t, date'2024-01-01' d, timestamp_ntz'2024-01-01 01:02:03.5' n, X'01ff' b",
    "select interval '1' day i, 1Y t, 2S s, 3L l, 1.5F f, double('nan') d, -0.0D z",
    "select parse_json('{\"a\": 1}') as v",
    "values (1, 'a'), (2, 'b')",
    "select * from range(3)",
    "select name, count(*) as n from seen group by name order by name nulls last",
    "with w as (select * from seen) select max(id) from w",
    "select * from seen where id > 99",
    "select * from seen order by id desc limit 1",
    "select id from seen lateral view explode(array(1, 2)) e as x order by id",
    "from seen |> where id = 1 |> select name",
    "describe query select 1 as a, 'x' as b",
    "set spark.sql.shuffle.partitions = 3",
    "execute immediate 'select name from seen where id = ' || 1",
    "select /* a comment */ 'it''s; --' as text -- the end",
]
FAILURES = [
    "",
    "  ",
    "-- nothing",
    ";",
    "select 1 +",
    "selec 1",
    "select * from nowhere",
    "select * from seen s join nowhere n on s.id = n.id",
    "select nothing from seen",
    "select sum(id), name from seen",
    "select 1 / 0",
    "select cast('x' as int)",
    "select nofunction(1)",
    "select abs('a', 'b')",
    "select element_at(array(1), 5)",
    "select array(1)[3]",
    "select raise_error('sorry')",
    "select assert_true(false)",
    "select * from seen union select 1",
    "select (select id from seen)",
    "select * from range(1) where id",
    "select :parameter",
    "select date'2024-13-01'",
    "select 2147483647 + 1",
    "select from_json('{', 'a int', map('mode', 'FAILFAST'))",
    "insert into nowhere values (1)",
    "drop view nowhere",
    "drop table nowhere",
    "describe nowhere",
    "create temporary view seen as select 1",
    "use nowhere",
    "set spark.sql.shuffle.partitions = x",
]
PLANS = [
    "session.table('nowhere')",
    "session.table('seen').select('nothing')",
    "session.table('seen').join(session.table('seen'), 'id').orderBy('id')",
    "session.table('seen').groupBy('name').agg(F.count('*').alias('n')).orderBy('n', 'name')",
    "session.range(3).select(F.col('id') / 0)",
    "session.range(3).withColumn('x', F.lit('a')).filter('x = ' + repr('a'))",
    "session.sql('select * from seen where id = :id', {'id': 2})",
    "session.sql('select * from {df} where id = 1', df=session.table('seen'))",
    "session.createDataFrame([(1, None), (2, 'b')], 'id long, name string').orderBy('id')",
    "session.table('seen').unionByName(session.range(1))",
]


@pytest.fixture(scope="module")
def compared(client: Program, cache: Path) -> Iterator[Program]:
    """The client, with `both`, which runs a call at the endpoint and at the server behind it."""
    client.run("spark.version")  # the client's session has started the Spark then
    record = next(iter(listing.running(kept_sparks.folder(cache)))).record
    client.run(f"other_token, other_port = {record.token!r}, {record.port}")
    client.run(_BOTH)
    yield client
    client.run("plain.stop()")


def both(compared: Program, call: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = compared.run(f"both(lambda session: {call})")
    return found


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_has_the_schema_and_the_rows_of_plain_connect(compared: Program, text: str) -> None:
    served, plain = both(compared, f"session.sql({text!r})")
    assert served == plain
    assert "rows" in served


@pytest.mark.parametrize("text", FAILURES)
def test_a_failure_has_the_class_the_condition_and_the_state_of_plain_connect(compared: Program, text: str) -> None:
    served, plain = both(compared, f"session.sql({text!r})")
    assert served == plain
    assert "state" in served


@pytest.mark.parametrize("call", PLANS)
def test_a_plan_has_the_result_of_plain_connect(compared: Program, call: str) -> None:
    served, plain = both(compared, call)
    assert served == plain


def test_a_message_that_is_too_large_for_plain_connect_is_too_large_here(compared: Program) -> None:
    compared.run(
        """
def sent(size, port, bearer):
    options = [("grpc.max_send_message_length", -1)]
    call = grpc.insecure_channel(f"localhost:{port}", options).unary_unary("/spark.connect.SparkConnectService/Config")
    try:
        call(bytes(size), metadata=[("authorization", f"Bearer {bearer}")])
    except grpc.RpcError as error:
        return error.code().name
"""
    )
    for size, code in ((2**27 - 200, "INVALID_ARGUMENT"), (2**27 + 1, "RESOURCE_EXHAUSTED")):
        assert compared.run(f"sent({size}, address, token)") == code
    assert compared.run(f"sent({2**27 + 1}, other_port, other_token)") == "RESOURCE_EXHAUSTED"


def test_the_comparison_finds_a_statement_without_a_result(compared: Program, endpoint: Program, folder: Path) -> None:
    """A client sends the text of such a statement again, which the numbers of commits show."""
    compared.run("spark.sql('create or replace table main.planted (id bigint)')")
    before = versions(folder, "planted")
    endpoint.run("from dbt.adapters.silt.endpoint.connect import statements")
    endpoint.run("kept = statements._RUN['sql_command']")
    endpoint.run("statements._RUN['sql_command'] = lambda *given: kept(*given)[:0]")
    try:
        served, plain = both(compared, "session.sql('set spark.sql.shuffle.partitions = 4')")
        compared.run("spark.sql('insert into main.planted values (1)').collect()")
    finally:
        endpoint.run("statements._RUN['sql_command'] = kept")
    assert versions(folder, "planted") == before + 2
    assert served != plain


def test_the_comparison_finds_a_session_that_sees_the_view_of_another(compared: Program, endpoint: Program) -> None:
    view = "session.table('of_another')"
    make = "other = connected(); other.range(1).createOrReplaceTempView('of_another')"
    compared.run(make)
    served, plain = both(compared, view)
    assert served == plain
    endpoint.run("kept = door.sessions.open; one = next(iter(door._known.values())).session")
    endpoint.run("door.sessions.open = lambda *given, **more: one")
    try:
        compared.run("leaky = connected(); leaky.range(1).createOrReplaceTempView('of_another')")
    finally:
        endpoint.run("door.sessions.open = kept")
    served, plain = both(compared, view)
    assert served != plain
