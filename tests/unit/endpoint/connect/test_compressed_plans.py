"""Plans that a client compresses are opened, checked and compressed again."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.connect.proto import base_pb2 as pb
from pyspark.sql.connect.proto import relations_pb2 as pr

from dbt.adapters.silt.endpoint.connect import plans
from dbt.adapters.silt.endpoint.connect.backend import Failed

pytestmark = pytest.mark.skipif(not hasattr(pb.Plan, "CompressedOperation"), reason="this PySpark compresses no plans")

QUERY = "select '" + "x" * 1_000_000 + "'"


def request(*contents: bytes) -> pb.ExecutePlanRequest:
    """Returns a request with a compressed plan, each content in a frame of its own."""
    asked = pb.ExecutePlanRequest(session_id="s")
    packed = asked.plan.compressed_operation
    packed.data = b"".join(pa.compress(each, "zstd", asbytes=True) for each in contents)
    packed.op_type, packed.compression_codec = packed.OP_TYPE_RELATION, pb.COMPRESSION_CODEC_ZSTD
    return asked


def query(text: str) -> bytes:
    return bytes(pr.Relation(sql=pr.SQL(query=text)).SerializeToString())


def test_a_compressed_plan_is_as_small_again_when_it_has_been_checked() -> None:
    asked = request(query(QUERY))
    opened = plans.opened(asked.plan)
    assert asked.plan.root.sql.query == QUERY
    asked.plan.root.sql.query = QUERY.replace("x", "y")
    plans.close(opened)
    assert asked.ByteSize() < 10_000
    assert plans.opened(asked.plan) and asked.plan.root.sql.query == QUERY.replace("x", "y")


def test_spark_gets_the_plan_that_was_checked_and_no_second_frame() -> None:
    asked = request(query("select 1"), query("select 2"))
    opened = plans.opened(asked.plan)
    checked = asked.plan.root.sql.query
    plans.close(opened)
    [frame] = [pa.BufferReader(asked.plan.compressed_operation.data)]
    with pa.CompressedInputStream(frame, "zstd") as stream:
        assert pr.Relation.FromString(stream.read()).sql.query == checked


@pytest.mark.parametrize(
    ("content", "why"),
    [(query(QUERY), "more than 1,000 bytes"), (b"\xff" * 50, "parse")],
)
def test_a_plan_that_is_too_long_or_damaged_is_refused(
    monkeypatch: pytest.MonkeyPatch, content: bytes, why: str
) -> None:
    monkeypatch.setattr(plans, "_MOST_BYTES", 1000)
    with pytest.raises(Failed, match=r"\[CONNECT_INVALID_PLAN.CANNOT_PARSE\].*" + why):
        plans.opened(request(content).plan)
    broken = request(content)
    broken.plan.compressed_operation.data = b"nonsense"
    with pytest.raises(Failed, match="CANNOT_PARSE"):
        plans.opened(broken.plan)
