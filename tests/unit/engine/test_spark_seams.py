"""The private parts of PySpark and py4j are as `spark_seams` needs them: a new Spark fails here first.

They were read from PySpark 4.3.0.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext, java_gateway
from pyspark.errors import AnalysisException
from pyspark.serializers import write_int
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto.relations_pb2 import Relation
from pyspark.sql.connect.session import SparkSession as ConnectSession

from dbt.adapters.silt.engine import spark_seams

embedded = pytest.mark.skipif("config.getoption('--connect')", reason="is about the Spark of this process")


@embedded
def test_a_context_reaches_javas_classes_and_its_own_settings(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert spark_seams.java(context).java.lang.Math.max(1, 2) == 2
    assert spark_seams.scala_context(context).conf().get("spark.app.id") == context.applicationId
    assert spark_seams.hadoop_configuration(context).get("fs.file.impl.no such entry") is None


@embedded
def test_a_session_reaches_the_session_in_java(spark: SparkSession) -> None:
    assert spark_seams.java_session(spark).version() == spark.version


@embedded
def test_the_context_and_the_java_of_this_process_are_known(spark: SparkSession) -> None:
    assert spark_seams.active_context() is spark.sparkContext
    gateway = spark_seams.gateway()
    assert gateway is not None and gateway.proc.poll() is None


def test_a_forgotten_java_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_gateway", "_jvm"):
        monkeypatch.setattr(SparkContext, name, SimpleNamespace())
    spark_seams.forget_java()
    assert spark_seams.gateway() is None and SparkContext._jvm is None


def test_pyspark_starts_a_java_only_without_a_gateway() -> None:
    source = inspect.getsource(SparkContext._ensure_initialized)
    assert "gateway or launch_gateway" in source and "_gateway.jvm" in source


def test_the_scripts_take_arguments_of_the_process() -> None:
    assert list(inspect.signature(java_gateway.launch_gateway).parameters) == ["conf", "popen_kwargs"]


def test_java_answers_with_its_port_and_its_secret(tmp_path: Path) -> None:
    answer = io.BytesIO()
    for number in (25333, len(b"S3CRET")):
        write_int(number, answer)
    (tmp_path / "connection").write_bytes(answer.getvalue() + b"S3CRET")
    assert spark_seams.java_answer(tmp_path / "connection") == (25333, "S3CRET")


@pytest.mark.parametrize(
    "name", [spark_seams.ANSWER_VARIABLE, "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "os.environ"]
)
def test_pyspark_finds_a_java_by_these_variables_of_its_environment(name: str) -> None:
    """`tests/security/secrets/test_gateway_secret.py` connects to a Java without them in this process's environment."""
    assert name in inspect.getsource(java_gateway.launch_gateway)


def test_an_error_of_java_keeps_the_exception_that_it_was_made_from(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as failed:
        spark.sql("select no_such_column").collect()
    origin = spark_seams.java_error(failed.value)
    assert (origin is None) == isinstance(spark, ConnectSession)
    assert origin is None or "AnalysisException" in origin.getClass().getName()


def test_an_error_of_python_has_no_exception_of_java() -> None:
    assert spark_seams.java_error(ValueError("lost")) is None


class Session(ConnectSession):
    """A session without a server."""

    is_stopped = False

    def __init__(self) -> None:
        pass

    def __del__(self) -> None:
        pass


def test_a_connect_session_is_the_active_session_only_within_the_block() -> None:
    before, session = ConnectSession.getActiveSession(), Session()
    with spark_seams.active_session(session):
        assert ConnectSession.getActiveSession() is session
    assert ConnectSession.getActiveSession() is before


def test_a_channel_builder_opens_a_channel_with_credentials() -> None:
    parameters = list(inspect.signature(DefaultChannelBuilder._secure_channel).parameters)
    assert parameters[:3] == ["self", "target", "credentials"]


@pytest.fixture
def unconnected() -> Iterator[ConnectSession]:
    """A session of Spark Connect that has not called its server."""
    session = ConnectSession("sc://localhost:1/;user_id=ann;session_id=11111111-2222-3333-4444-555555555555;x-name=a")
    yield session
    session.client._channel.close()


def test_a_session_of_spark_connect_has_a_channel_metadata_and_ids(unconnected: ConnectSession) -> None:
    assert callable(spark_seams.connect_channel(unconnected).unary_stream)
    assert ("x-name", "a") in spark_seams.connect_metadata(unconnected)
    assert spark_seams.connect_ids(unconnected) == ("ann", "11111111-2222-3333-4444-555555555555")
    assert spark_seams.server_side_session(unconnected) == ""
    unconnected.client._server_session_id = "named-by-the-server"
    assert spark_seams.server_side_session(unconnected) == "named-by-the-server"


def test_a_dataframe_of_spark_connect_is_a_message_and_is_made_from_one(unconnected: ConnectSession) -> None:
    relation = spark_seams.relation_of(unconnected.range(7))
    assert relation.range.end == 7
    assert spark_seams.relation_of(spark_seams.frame_of(unconnected, relation)).range.end == 7


def test_messages_may_be_nested_deeply() -> None:
    spark_seams.read_deep_messages()
    relation = Relation()
    inner = relation
    for _ in range(300):
        inner = inner.limit.input
    inner.range.end = 7
    assert Relation.FromString(relation.SerializeToString()) == relation
