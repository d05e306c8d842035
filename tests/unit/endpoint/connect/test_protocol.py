"""The endpoint and clients that are unlike PySpark: without a token, with lost connections, with hostile plans."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.silt.kept_spark import listing
from tests import kept_sparks
from tests.unit.endpoint.connect import programs
from tests.unit.endpoint.connect.programs import TOKEN, Program, versions

_CALLS = """
stub = base_pb2_grpc.SparkConnectServiceStub(grpc.insecure_channel(f"localhost:{address}"))
user = pb.UserContext(user_id="ann")
trusted = [("authorization", f"Bearer {token}")]

def setting(session, metadata=(), **settings):
    pairs = [pb.KeyValue(key=key.replace("__", "."), value=value) for key, value in settings.items()]
    operation = pb.ConfigRequest.Operation(set=pb.ConfigRequest.Set(pairs=pairs))
    return stub.Config(pb.ConfigRequest(session_id=session, user_context=user, operation=operation), metadata=metadata)

def request(text, session, operation=None, reattachable=False):
    asked = pb.ExecutePlanRequest(session_id=session, user_context=user, operation_id=operation)
    asked.plan.command.sql_command.sql = text
    if reattachable:
        asked.request_options.add().reattach_options.reattachable = True
    return asked

def refusal(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise AssertionError("it was not refused")

def sent(text, session, metadata=(), **more):
    answers = list(stub.ExecutePlan(request(text, session, **more), metadata=metadata))
    return [each.WhichOneof("response_type") for each in answers]

def reattached(session, operation, last=None):
    asked = pb.ReattachExecuteRequest(session_id=session, user_context=user, operation_id=operation)
    asked.last_response_id = last or ""
    return list(stub.ReattachExecute(asked, metadata=trusted))
"""


@pytest.fixture(scope="module")
def caller(endpoint: Program, cache: Path) -> Iterator[Program]:
    """A client of the generated stubs, whose session has the table `main.t`."""
    with programs.client(endpoint, cache) as started:
        started.run(_CALLS)
        started.run("spark.sql('create table main.t (id bigint)')")
        yield started  # type: ignore[misc]


def test_a_call_without_the_token_or_with_another_is_refused_before_a_session_opens(
    caller: Program, endpoint: Program
) -> None:
    before = endpoint.run("len(door.sessions)")
    for metadata in ("()", "[('authorization', 'Bearer nonsense')]", "[('authorization', '')]"):
        code, text = caller.run(f"refusal(lambda: sent('select 1', str(uuid.uuid4()), {metadata}))")
        assert (code, "SILT_TOKEN" in text, TOKEN in text) == ("UNAUTHENTICATED", True, False)
    assert "SILT_TOKEN" in caller.run("failure(lambda: connected(token='nonsense'))[3]")
    assert endpoint.run("len(door.sessions)") == before


def test_the_token_may_be_a_setting_before_the_first_statement_in_any_order(caller: Program) -> None:
    caller.run("mine = str(uuid.uuid4()); setting(mine, spark__sql__shuffle__partitions='3')")
    assert caller.run("refusal(lambda: sent('select 1', mine))")[0] == "UNAUTHENTICATED"
    caller.run("setting(mine, silt__token=token)")
    assert caller.run("sent('select 1', mine)") == ["sql_command_result"]
    get = "pb.ConfigRequest.GetOption(keys=['spark.sql.shuffle.partitions', 'silt.token'])"
    operation = f"pb.ConfigRequest.Operation(get_option={get})"
    caller.run(f"asked = pb.ConfigRequest(session_id=mine, user_context=user, operation={operation})")
    assert caller.run("[each.value for each in stub.Config(asked).pairs]") == ["3", ""]
    assert caller.run("refusal(lambda: setting(str(uuid.uuid4()), silt__token='nonsense'))")[0] == "UNAUTHENTICATED"


def test_a_network_gets_tls_and_the_token_is_no_setting_there(
    caller: Program, endpoint: Program, tmp_path: Path
) -> None:
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost")
    names = ("-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "chain.pem")
    subprocess.run([*made, *names], cwd=tmp_path, check=True, capture_output=True)
    endpoint.run("from dbt.adapters.silt.endpoint.connect.service import tls_credentials")
    endpoint.run(f"tls = tls_credentials(Path({str(tmp_path)!r}, 'key.pem'), Path({str(tmp_path)!r}, 'chain.pem'))")
    endpoint.run("secure = serve(Door(door.sessions, door.token, is_local=False), '127.0.0.1', 0, tls)")
    port = endpoint.run("secure.port")
    caller.run(f"trust = grpc.ssl_channel_credentials(open({str(tmp_path / 'chain.pem')!r}, 'rb').read())")
    caller.run(
        f"plain, stub = stub, base_pb2_grpc.SparkConnectServiceStub(grpc.secure_channel('localhost:{port}', trust))"
    )
    try:
        assert caller.run("sent('select 1', str(uuid.uuid4()), trusted)") == ["sql_command_result"]
        refused = "refusal(lambda: setting(str(uuid.uuid4()), silt__token=token))"
        assert caller.run(refused)[0] == "UNAUTHENTICATED"
    finally:
        caller.run("stub = plain")
        endpoint.run("secure.stop()")


def test_settings_that_a_client_only_tries_are_refused_with_a_warning(caller: Program) -> None:
    """PySpark tries those of a builder, such as Hive's catalog, which dbt-spark requests."""
    pairs = "{'spark.sql.catalogImplementation': 'hive', 'spark.sql.shuffle.partitions': '5'}"
    caller.run(f"tried = [pb.KeyValue(key=key, value=value) for key, value in {pairs}.items()]")
    caller.run("operation = pb.ConfigRequest.Operation(set=pb.ConfigRequest.Set(pairs=tried, silent=True))")
    caller.run("asked = pb.ConfigRequest(session_id=spark.session_id, user_context=user, operation=operation)")
    [warning] = caller.run("list(stub.Config(asked, metadata=trusted).warnings)")
    assert "changes the setting `spark.sql.catalogImplementation`" in warning
    assert caller.run("spark.conf.get('spark.sql.shuffle.partitions')") == "5"


def test_a_setting_that_is_reset_has_its_default_again(caller: Program) -> None:
    caller.run("spark.conf.set('spark.sql.shuffle.partitions', '7'); spark.conf.unset('spark.sql.shuffle.partitions')")
    assert caller.run("spark.conf.get('spark.sql.shuffle.partitions')") != "7"


def test_bytes_that_are_no_message_are_refused_and_the_endpoint_lives(caller: Program) -> None:
    raw = "grpc.insecure_channel(f'localhost:{address}').unary_stream('/spark.connect.SparkConnectService/ExecutePlan')"
    for garbage in ("b'\\xff' * 50", "b''", "b'GET / HTTP/1.1'"):
        code, _ = caller.run(f"refusal(lambda: list({raw}({garbage}, metadata=trusted)))")
        assert code in ("INVALID_ARGUMENT", "INTERNAL")
    unknown = raw.replace("ExecutePlan", "Nonsense")
    assert caller.run(f"refusal(lambda: list({unknown}(b'', metadata=trusted)))")[0] == "UNIMPLEMENTED"
    assert caller.run("rows(spark.range(1))") == [[0]]


def test_a_statement_whose_answer_was_lost_is_not_applied_again(caller: Program, folder: Path) -> None:
    before = versions(folder, "t")
    caller.run("lost, work = str(uuid.uuid4()), str(uuid.uuid4())")
    asked = "request('insert into main.t values (1)', lost, work, True)"
    caller.run(f"call = stub.ExecutePlan({asked}, metadata=trusted); call.cancel()")
    caller.run(f"again = list(stub.ExecutePlan({asked}, metadata=trusted))")
    kinds = "[each.WhichOneof('response_type') for each in {}]"
    found = caller.run(kinds.format("again"))
    assert found[-2:] == ["sql_command_result", "result_complete"]
    assert caller.run(kinds.format("reattached(lost, work)")) == found
    assert caller.run(kinds.format("reattached(lost, work, again[-2].response_id)")) == ["result_complete"]
    assert versions(folder, "t") == before + 1
    caller.run(
        "stub.ReleaseExecute(pb.ReleaseExecuteRequest(session_id=lost, user_context=user, operation_id=work,"
        " release_all=pb.ReleaseExecuteRequest.ReleaseAll()), metadata=trusted)"
    )
    assert "OPERATION_ABANDONED" in caller.run(f"refusal(lambda: list(stub.ExecutePlan({asked}, metadata=trusted)))")[1]
    assert versions(folder, "t") == before + 1


def test_a_session_that_the_endpoint_has_closed_is_not_opened_again_for_a_client_that_used_it(caller: Program) -> None:
    caller.run("old = connected(); seen = old.client._server_session_id")
    caller.run("connected(session_id=old.session_id).stop()")
    caller.run("asked = request('insert into main.t values (5)', old.session_id)")
    caller.run("asked.client_observed_server_side_session_id = seen")
    assert "SESSION_CHANGED" in caller.run("refusal(lambda: list(stub.ExecutePlan(asked, metadata=trusted)))[1]")
    assert "SESSION_CHANGED" in caller.run("refusal(lambda: reattached(str(uuid.uuid4()), str(uuid.uuid4())))[1]")


def test_a_session_of_another_user_with_the_same_id_is_another_session(caller: Program) -> None:
    caller.run("same = str(uuid.uuid4())")
    caller.run("ann, eve = (connected(session_id=same, user_id=user_id) for user_id in ('ann', 'eve'))")
    caller.run("ann.range(3).createOrReplaceTempView('mine')")
    assert caller.run("failure(lambda: eve.table('mine').collect())[2]") == "42P01"
    assert caller.run("ann.table('mine').count()") == 3


def test_a_statement_that_is_sent_as_a_relation_runs_once(caller: Program, folder: Path) -> None:
    before = versions(folder, "t")
    caller.run(
        "sql = pb.Plan(root=relations_pb2.Relation(sql=relations_pb2.SQL(query='insert into main.t values (2)')))"
    )
    caller.run("asked = pb.ExecutePlanRequest(session_id=str(uuid.uuid4()), user_context=user, plan=sql)")
    caller.run("answers = list(stub.ExecutePlan(asked, metadata=trusted))")
    assert caller.run("[each.WhichOneof('response_type') for each in answers][-1]") == "arrow_batch"
    assert versions(folder, "t") == before + 1
    caller.run("looked = pb.AnalyzePlanRequest.Schema(plan=sql)")
    caller.run("asked = pb.AnalyzePlanRequest(session_id=asked.session_id, user_context=user, schema=looked)")
    assert caller.run("refusal(lambda: stub.AnalyzePlan(asked, metadata=trusted))")[0] == "INTERNAL"
    assert versions(folder, "t") == before + 1


def test_execute_immediate_that_is_sent_as_a_relation_runs_once(caller: Program, folder: Path) -> None:
    before = versions(folder, "t")
    change = "execute immediate 'insert into main.t values (' || 8 || ')'"
    caller.run("of_sql = lambda text: pb.Plan(root=relations_pb2.Relation(sql=relations_pb2.SQL(query=text)))")
    caller.run("asked = pb.ExecutePlanRequest(session_id=str(uuid.uuid4()), user_context=user)")
    caller.run(f"asked.plan.CopyFrom(of_sql({change!r})); list(stub.ExecutePlan(asked, metadata=trusted))")
    assert versions(folder, "t") == before + 1
    query = "execute immediate 'select id from main.t where id = 8'"
    caller.run(f"asked.plan.CopyFrom(of_sql({query!r}))")
    caller.run("answers = list(stub.ExecutePlan(asked, metadata=trusted))")
    assert caller.run("sum(each.arrow_batch.row_count for each in answers)") == 1


def test_the_numbers_of_changed_rows_are_observed_metrics(caller: Program) -> None:
    caller.run("asked = request('insert into main.t values (6), (7)', str(uuid.uuid4()))")
    caller.run("told = [each for sent in stub.ExecutePlan(asked, metadata=trusted) for each in sent.observed_metrics]")
    assert caller.run("[each.name for each in told]") == ["silt"]
    assert caller.run("dict(zip(told[0].keys, [each.long for each in told[0].values]))")["num_inserted_rows"] == 2


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        ("spark.sql('add jar \"/tmp/some.jar\"')", "SILT_STORED_CODE"),
        ("spark.sql('select * from parquet.`/etc`')", "SILT_EXTERNAL_PATH"),
        ("spark.read.parquet('/etc').collect()", "SILT_EXTERNAL_PATH"),
        ("spark.read.option('path', '/etc').format('csv').load().collect()", "SILT_EXTERNAL_PATH"),
        ("spark.range(1).write.parquet('/tmp/out')", "SILT_EXTERNAL_PATH"),
        ("spark.range(1).writeTo('main.t').using('jdbc').create()", "SILT_UNSUPPORTED_STATEMENT"),
        ("spark.read.format('jdbc').option('url', 'jdbc:x').load().collect()", "SILT_STORED_CODE"),
        ("spark.range(1).select(F.reflect(F.lit('java.lang.System'), F.lit('exit'))).collect()", "SILT_STORED_CODE"),
        ("spark.range(1).select(F.expr(\"java_method('java.lang.System', 'exit')\")).collect()", "SILT_STORED_CODE"),
        ("spark.table('parquet.`/etc`').collect()", "SILT_EXTERNAL_PATH"),
        ("spark.range(1).filter('id in (select 1 from csv.`/etc/passwd`)').collect()", "SILT_EXTERNAL_PATH"),
        (
            "spark.range(1).select(F.from_xml(F.lit('<a/>'), 'a int', {'rowValidationXSDPath': '/x'})).collect()",
            "SILT_STORED_CODE",
        ),
        ("spark.catalog.refreshByPath('/etc')", "SILT_EXTERNAL_PATH"),
        ("spark.catalog.createTable('main.x', path='/tmp/x', schema=spark.range(1).schema)", "SILT_EXTERNAL_PATH"),
        ("spark.sql(\"select transform(1) using 'cat' as x\").collect()", "SILT_STORED_CODE"),
        ("spark.udf.registerJavaFunction('f', 'java.lang.String')", "SILT_STORED_CODE"),
        ("spark.range(1).select(F.udf(lambda x: x, 'long')('id')).collect()", "SILT_UNSUPPORTED_STATEMENT"),
        ("spark.range(1).mapInPandas(lambda x: x, 'id long').collect()", "SILT_UNSUPPORTED_STATEMENT"),
        ("spark.conf.set('spark.sql.catalog.x', 'some.Class')", "SILT_STORED_CODE"),
    ],
)
def test_a_plan_that_runs_code_or_names_files_is_refused(caller: Program, plan: str, code: str) -> None:
    kind, _, _, text = caller.run(f"failure(lambda: {plan})")
    assert code in text
    assert kind != "UnknownException"


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        ("spark.readStream.table('main.t').isStreaming", 'Use `spark.readStream.format("silt")` in a program'),
        ("spark.readStream.format('silt').load('main.t').isStreaming", "Name the table: `spark.table`"),
        ("spark.read.format('silt').load('main.t').collect()", "Name the table: `spark.table`"),
        ("spark.range(1).write.format('silt').save('main.t')", "Name the table: `spark.table`, `saveAsTable`"),
        ("rate().toTable('main.t')", 'Use `writeStream.format("silt")` in a program'),
        ("rate().format('silt').start('main.t')", "Streams from and to tables run in a program"),
    ],
)
def test_what_a_session_cannot_do_is_refused_with_another_way(caller: Program, call: str, remedy: str) -> None:
    caller.run("rate = lambda: spark.readStream.format('rate').load().writeStream")
    text = caller.run(f"failure(lambda: {call})")[3]
    assert "SILT_UNSUPPORTED_STATEMENT" in text and remedy in text


def test_a_stream_that_touches_no_table_runs(caller: Program) -> None:
    caller.run("made = spark.readStream.format('rate-micro-batch').option('rowsPerBatch', 3).load()")
    caller.run("query = made.writeStream.format('memory').queryName('seen').trigger(availableNow=True).start()")
    caller.run("query.stop()")
    assert caller.run("query.isActive") is False
    assert caller.run("[each.name for each in spark.streams.active]") == []


def test_files_that_a_client_uploads_are_refused_unless_they_are_rows(caller: Program, tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("x = 1")
    assert "SILT_UNSUPPORTED_STATEMENT" in caller.run(
        f"failure(lambda: spark.addArtifacts({str(file)!r}, pyfile=True))[3]"
    )
    large = "spark.createDataFrame([(i, 'x' * 1000) for i in range(20_000)], 'i int, x string')"
    assert caller.run(f"{large}.count()") == 20_000


def test_the_states_of_the_operations_of_a_session_are_told(caller: Program) -> None:
    caller.run("mine, work = str(uuid.uuid4()), str(uuid.uuid4())")
    caller.run("sent('select 1', mine, trusted, operation=work)")
    caller.run("asked = pb.GetStatusRequest(session_id=mine, user_context=user)")
    caller.run("asked.operation_status.operation_ids.append(work)")
    caller.run("states = stub.GetStatus(asked, metadata=trusted).operation_statuses")
    named = "pb.GetStatusResponse.OperationStatus.DESCRIPTOR.fields_by_name['state'].enum_type.values_by_number"
    assert "SUCCEEDED" in caller.run(f"{named}[states[0].state].name")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Program]:
    """A client of a read-only endpoint."""
    folder = tmp_path_factory.mktemp("read-only")
    with programs.endpoint(folder, cache, {"is_read_only": True}) as started, programs.client(started, cache) as client:  # type: ignore[arg-type]
        yield client  # type: ignore[misc]


@pytest.mark.parametrize(
    "write",
    [
        "spark.sql('create table main.t (id int)')",
        "spark.range(1).write.saveAsTable('main.t')",
        "spark.range(1).writeTo('main.t').create()",
        "spark.catalog.createDatabase('more')",
        "spark.sql('begin')",
    ],
)
def test_a_read_only_endpoint_refuses_every_way_to_write(reader: Program, write: str) -> None:
    assert reader.run(f"failure(lambda: {write})[2]") == "25006"


def test_a_read_only_endpoint_answers_queries_and_keeps_temporary_views(reader: Program) -> None:
    reader.run("spark.sql('create temporary view two as select 2 as id')")
    assert reader.run("rows(spark.table('two'))") == [[2]]


_ACCEPTS = "from dbt.adapters.silt.kept_spark import finding; finding.listens = lambda record: True"
"""Makes an endpoint see each Spark as it is while its process is being killed: it accepts connections."""


def test_a_client_learns_that_the_spark_behind_the_endpoint_has_ended_and_opens_a_new_session(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder, cache = tmp_path_factory.mktemp("ended"), tmp_path_factory.mktemp("ended-spark")
    try:
        with programs.endpoint(folder, cache) as endpoint, programs.client(endpoint, cache) as client:  # type: ignore[arg-type]
            client.run("spark.sql('create table main.t as select 1 as id')")
            endpoint.run(_ACCEPTS)
            [kept] = listing.running(kept_sparks.folder(cache))
            os.kill(kept.record.java, signal.SIGKILL)
            assert "SILT_SPARK_ENDED" in client.run("failure(lambda: spark.range(1).collect())[3]")
            client.run("again = connected()")
            assert client.run("rows(again.table('main.t'))") == [[1]]
    finally:
        kept_sparks.stop_all(cache)
