"""`cloneSession`: the clone has the state of its session, and both then change alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark.sql.connect.proto.base_pb2 as pb
import pytest

from tests.unit.endpoint.connect.programs import Program, versions

pytestmark = pytest.mark.skipif(
    "CloneSession" not in pb.DESCRIPTOR.services_by_name["SparkConnectService"].methods_by_name,
    reason="this PySpark cannot clone sessions",
)

_REFUSAL = """
def refusal(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.details()
    raise AssertionError("it was not refused")
"""


@pytest.fixture
def cloner(client: Program) -> Iterator[Program]:
    """The client, with the table `main.t` of two rows, and `first`, a session."""
    client.run(_REFUSAL)
    client.run("first = connected()")
    client.run("first.sql('create or replace table main.t as select * from values (1), (2) as t(id)')")
    yield client
    client.run("first.stop()")


def test_a_clone_has_the_schema_the_views_and_the_settings_of_its_session_and_then_its_own(cloner: Program) -> None:
    cloner.run("first.sql('create schema if not exists other'); first.sql('use other')")
    cloner.run("first.sql('create temporary view ones as select id from main.t where id = 1')")
    cloner.run("first.table('main.t').createOrReplaceTempView('all_of')")
    cloner.run("first.conf.set('spark.sql.shuffle.partitions', '3')")
    cloner.run("second = first.cloneSession()")
    state = "[{0}.catalog.currentDatabase(), {0}.conf.get('spark.sql.shuffle.partitions'), "
    state += "rows({0}.table('ones')), {0}.table('all_of').count()]"
    assert cloner.run(state.format("second")) == ["other", "3", [[1]], 2]
    cloner.run("second.sql('use main'); second.conf.set('spark.sql.shuffle.partitions', '4')")
    cloner.run("second.sql('create or replace temporary view ones as select 9 as id')")
    cloner.run("first.catalog.dropTempView('all_of')")
    assert cloner.run("rows(second.table('ones')) + rows(second.table('all_of'))") == [[9], [1], [2]]
    assert cloner.run("[first.catalog.currentDatabase(), rows(first.table('ones'))]") == ["other", [[1]]]
    cloner.run("first.sql('drop schema other'); first.sql('use main'); kept = first.cloneSession(); kept.stop()")
    cloner.run("second.sql('insert into t values (3)'); second.stop()")
    assert cloner.run("first.table('t').count()") == 3


def test_a_clone_lives_longer_than_its_session(cloner: Program, endpoint: Program) -> None:
    cloner.run("short = connected(); short.sql('create temporary view v as select id from main.t')")
    cloner.run("short.table('v').count(); long = short.cloneSession(); short.stop()")
    before = endpoint.run("len(door.sessions)")
    assert cloner.run("rows(long.table('v'))") == [[1], [2]]
    cloner.run("long.stop()")
    assert endpoint.run("len(door.sessions)") == before - 1


def test_a_clone_is_of_the_run_of_its_session_and_counts_the_statements_before_it(
    cloner: Program, folder: Path
) -> None:
    insert = "sql('insert into main.t values (4)').first().skipped"
    cloner.run("first.conf.set('silt.run_id', 'cloned-1')")
    before = versions(folder, "t")
    assert cloner.run(f"[first.{insert}, first.cloneSession().{insert}]") == [False, False]
    assert cloner.run("first.conf.get('silt.run_id')") == "cloned-1"
    cloner.run("retry = connected(); retry.conf.set('silt.run_id', 'cloned-1')")
    assert cloner.run(f"[retry.{insert}, retry.cloneSession().{insert}]") == [True, True]
    assert versions(folder, "t") == before + 2


def test_the_run_of_a_session_and_its_clone_is_published_when_both_have_ended(cloner: Program) -> None:
    cloner.run("second = connected(); second.conf.set('silt.publish', 'after_run')")
    cloner.run("second.sql('insert into main.t values (5)')")
    cloner.run("third = second.cloneSession(); third.sql('insert into main.t values (6)'); second.stop()")
    assert cloner.run("[first.table('main.t').count(), third.table('main.t').count()]") == [2, 4]
    cloner.run("third.stop()")
    assert cloner.run("first.table('main.t').count()") == 4


def test_a_session_in_a_transaction_is_not_cloned(cloner: Program, endpoint: Program) -> None:
    before = endpoint.run("len(door.sessions)")
    cloner.run("first.sql('begin')")
    assert "a transaction is open" in cloner.run("refusal(lambda: first.cloneSession())")
    assert endpoint.run("len(door.sessions)") == before


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("'nonsense'", "TARGET_SESSION_ID_FORMAT"),
        ("first.session_id", "TARGET_SESSION_ID_ALREADY_EXISTS"),
    ],
)
def test_a_clone_with_an_id_that_cannot_be_is_refused_in_sparks_words(
    cloner: Program, name: str, condition: str
) -> None:
    text = cloner.run(f"refusal(lambda: first.cloneSession({name}))")
    assert text.startswith(f"[INVALID_CLONE_SESSION_REQUEST.{condition}] Invalid session clone request.")


def test_the_token_that_was_a_setting_is_known_in_the_clone(cloner: Program) -> None:
    cloner.run("stub = base_pb2_grpc.SparkConnectServiceStub(grpc.insecure_channel(f'localhost:{address}'))")
    cloner.run("mine, user = str(uuid.uuid4()), pb.UserContext(user_id='ann')")
    cloner.run("pairs = [pb.KeyValue(key='silt.token', value=token)]")
    cloner.run("operation = pb.ConfigRequest.Operation(set=pb.ConfigRequest.Set(pairs=pairs))")
    cloner.run("stub.Config(pb.ConfigRequest(session_id=mine, user_context=user, operation=operation))")
    ask = "pb.CloneSessionRequest(session_id={}, user_context=user)"
    cloner.run(f"made = stub.CloneSession({ask.format('mine')})")
    cloner.run(f"again = stub.CloneSession({ask.format('made.new_session_id')})")
    assert cloner.run("again.server_side_session_id == made.new_server_side_session_id") is True
    assert "SILT_TOKEN" in cloner.run(f"refusal(lambda: stub.CloneSession({ask.format('str(uuid.uuid4())')}))")
