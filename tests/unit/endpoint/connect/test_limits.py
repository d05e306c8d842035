"""The limits of a session of Spark Connect: the rows of its results, and the time of its statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from pyspark.sql.connect.proto import base_pb2 as pb

from dbt.adapters.silt.endpoint.connect.limits import rows_until
from tests.unit.endpoint.connect import programs
from tests.unit.endpoint.connect.programs import Program, versions

SLOW = "from range(1e7) a join range(1e6) b on a.id * b.id % 7 = 3"


@pytest.fixture(scope="module")
def client(folder: Path, cache: Path) -> Iterator[Program]:
    endpoint = programs.endpoint(folder, cache, {"most_streamed_rows": 1000})
    started = programs.client(endpoint, cache)
    with endpoint, started:
        yield started


@pytest.fixture(scope="module")
def hurried(folder: Path, cache: Path) -> Iterator[Program]:
    """A client of an endpoint of the same warehouse that allows a statement a second."""
    endpoint = programs.endpoint(folder, cache, {"most_seconds": 1})
    started = programs.client(endpoint, cache)
    with endpoint, started:
        yield started


def batch(**given: int) -> bytes:
    rows = pb.ExecutePlanResponse.ArrowBatch(data=b"\xff" * 300, **given)
    return pb.ExecutePlanResponse(session_id="s", response_id="r", arrow_batch=rows).SerializeToString()


def test_the_rows_of_an_answer_are_counted_from_the_first_row_of_the_result() -> None:
    assert rows_until(batch(row_count=70_000)) == 70_000
    assert rows_until(batch(row_count=5, start_offset=3_000_000_000)) == 3_000_000_005
    assert rows_until(batch()) == 0
    assert rows_until(pb.ExecutePlanResponse(operation_id="o").SerializeToString()) == 0
    assert rows_until(b"\x79" + bytes(8) + b"\x7d" + bytes(4) + batch(row_count=2)) == 2  # fields of a later version


@pytest.mark.parametrize("answer", [b"\x80", b"\x0b", b"\x08"])
def test_bytes_that_are_no_answer_are_refused(answer: bytes) -> None:
    with pytest.raises(DecodeError):
        rows_until(answer)


def test_a_result_with_more_rows_than_allowed_is_refused_and_the_session_goes_on(client: Program) -> None:
    assert client.run("spark.range(1000).toArrow().num_rows") == 1000
    for rows in ("spark.range(1001)", "spark.range(0, 1001, 1, 9)", "spark.sql('select * from range(5000)')"):
        assert "SILT_RESULT_TOO_LARGE" in client.run(f"failure({rows}.toArrow)")[3]
    assert client.run("spark.range(5000).count()") == 5000


def test_a_session_may_lower_its_limits(client: Program) -> None:
    client.run("apart = connected(); apart.conf.set('silt.max_rows', '5'); apart.sql('set silt.max_seconds = 1')")
    assert "more than 5 rows" in client.run("failure(apart.range(6).toArrow)")[3]
    told = client.run(f"failure(lambda: apart.sql('select count(*) {SLOW}').collect())")
    assert "more than 1 seconds" in told[3]
    assert client.run("[apart.range(5).toArrow().num_rows, spark.range(6).toArrow().num_rows]") == [5, 6]
    assert "allows at most 1,000" in client.run("failure(lambda: apart.conf.set('silt.max_rows', '1001'))")[3]
    client.run("apart.conf.unset('silt.max_rows')")
    assert client.run("apart.range(1000).toArrow().num_rows") == 1000


def test_a_statement_that_runs_for_too_long_is_stopped_and_commits_nothing(
    client: Program, hurried: Program, folder: Path
) -> None:
    client.run("spark.sql('create table main.slow (id bigint)')")
    insert = f"lambda: spark.sql('insert into main.slow select a.id {SLOW}')"
    for statement in (f"lambda: spark.sql('select count(*) {SLOW}').collect()", insert):
        told = hurried.run(f"failure({statement})")
        assert "SILT_STATEMENT_CANCELLED" in told[3] and "more than 1 seconds" in told[3]
    assert versions(folder, "slow") == 1
    assert client.run("spark.table('main.slow').count()") == 0
