"""Errors for a service that refuses, hangs or loses an answer; a repetition applies the statement once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.commands.spark import errors
from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    NotWrittenError,
    SiltError,
    StorageError,
    StorageRefusedError,
)
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud import faults as of
from tests.cloud.faults import Faults, Which
from tests.cloud.proxy import behind_proxy
from tests.cloud.servers import ObjectServer

BUCKET = "faulty"
INSERT = "insert into t select id + 100 from range(0, 5, 1, 1)"
RUN_OUT = "the credentials have expired.*"
UNIT = ("silt/p/m/run/main", 1)


@dataclass(frozen=True)
class Disturbed:
    """A warehouse whose service can be disturbed."""

    warehouse: Warehouse
    faults: Faults

    def insert(self) -> None:
        self.warehouse.sql(INSERT, UNIT)

    def read(self) -> int:
        with errors.mapped():  # as the cursor of dbt does
            [(found,)] = self.warehouse.sql("select sum(id + 1) from t").collect()
        return int(found)

    def is_applied(self) -> int:
        """Returns the number of commits that hold the unit of work, and checks that the rows agree."""
        log = self.warehouse.catalog.table(RelationName("silt", "main", "t"))
        actions = [action for commit in log.commits() for action in commit.actions]
        times = sum(isinstance(each, SetTransaction) and each.app_id == UNIT[0] for each in actions)
        [(rows,)] = self.warehouse.sql("select count(id + 1) from t where id >= 100").collect()
        assert rows == 5 * times
        return times

    @contextmanager
    def failing(self, kind: type[SiltError], said: str) -> Iterator[None]:
        """Expects exactly this kind of error, and ends the faults afterwards."""
        with pytest.raises(kind, match=re.compile(said, re.DOTALL)) as raised:
            yield
        assert type(raised.value) is kind
        assert self.faults.met
        self.faults.release()


@pytest.fixture(scope="module")
def faults() -> Faults:
    return Faults()


@pytest.fixture(scope="module")
def warehouse(cloud: ObjectServer | None, spark: SparkSession, faults: Faults) -> Iterator[Warehouse]:
    assert cloud is not None
    if cloud.name != "s3":
        pytest.skip("the faults are of an S3")
    cloud.make_bucket(BUCKET)
    with behind_proxy(cloud, faults) as server:
        settings = replace(server.settings, timeout=1)
        yield Warehouse(spark.newSession(), f"s3://{BUCKET}/a house é", storage=settings)


@pytest.fixture
def disturbed(warehouse: Warehouse, faults: Faults) -> Iterator[Disturbed]:
    """The warehouse with a table of ten rows in three versions."""
    warehouse.sql("create or replace table t (id bigint)")
    warehouse.sql("insert into t select id from range(0, 10, 1, 2)")
    warehouse.sql("insert into t values (50)")
    yield Disturbed(warehouse, faults)
    faults.release()
    warehouse.sql("drop table if exists t")


@pytest.mark.parametrize(
    ("at", "kind"),
    [(of.every, StorageRefusedError), (of.upload, StorageRefusedError), (of.commit, NotWrittenError)],
    ids=["at the first request", "at Spark's upload", "at the commit"],
)
def test_expired_credentials_are_reported_and_a_rerun_with_new_credentials_applies_the_statement_once(
    disturbed: Disturbed, at: Which, kind: type[SiltError]
) -> None:
    disturbed.faults.expire_at(at)
    with disturbed.failing(kind, f"{RUN_OUT}Get new credentials.*a rerun with the same run id skips committed work"):
        disturbed.insert()
    assert disturbed.is_applied() == 0
    for _ in range(2):
        disturbed.insert()
    assert disturbed.is_applied() == 1


@pytest.mark.parametrize("by_spark", [True, False], ids=["by Spark", "by the log's client"])
def test_expired_credentials_are_reported_by_a_read(disturbed: Disturbed, by_spark: bool) -> None:
    disturbed.faults.expire_at(of.data_read if by_spark else of.every)
    with disturbed.failing(StorageRefusedError, RUN_OUT):
        disturbed.read()


def test_expired_credentials_are_named_in_the_error_of_a_commit_whose_answer_was_lost(disturbed: Disturbed) -> None:
    disturbed.faults.lose_answer_and_expire_at(of.commit)
    with disturbed.failing(CommitStateUnknownError, f"not known.*; then .*{RUN_OUT}Run it again with the same run id"):
        disturbed.insert()
    assert disturbed.is_applied() == 1
    disturbed.insert()
    assert disturbed.is_applied() == 1


def test_a_refused_head_request_is_repeated_as_a_request_that_returns_the_reason(disturbed: Disturbed) -> None:
    disturbed.faults.expire_at(of.look)
    with disturbed.failing(CommitStateUnknownError, RUN_OUT):
        disturbed.insert()
    disturbed.insert()
    assert disturbed.is_applied() == 1


@pytest.mark.parametrize("which", [of.commit, of.names], ids=["a commit", "a change of names"])
def test_a_write_whose_answer_is_lost_is_recognised_as_done(disturbed: Disturbed, which: Which) -> None:
    disturbed.faults.lose_answer_of(which)
    if which is of.names:
        disturbed.warehouse.sql("create table u as select 1 as a")
        assert disturbed.warehouse.sql("select * from u").count() == 1
        disturbed.warehouse.sql("drop table u")
    disturbed.insert()
    assert disturbed.faults.met == 1
    assert disturbed.is_applied() == 1


def test_a_creation_repeated_after_a_lost_answer_and_expired_credentials_creates_the_table_once(
    disturbed: Disturbed,
) -> None:
    make = "create table if not exists u as select 1 as a"
    disturbed.faults.lose_answer_and_expire_at(of.names)
    with disturbed.failing(StorageRefusedError, RUN_OUT):
        disturbed.warehouse.sql(make)
    disturbed.warehouse.sql(make)
    assert disturbed.warehouse.sql("select * from u").count() == 1
    disturbed.warehouse.sql("drop table u")


@pytest.mark.parametrize(
    ("which", "kind"),
    [(of.every, StorageError), (of.upload, StorageError), (of.commit, CommitStateUnknownError)],
    ids=["at the first request", "at Spark's upload", "at the commit"],
)
def test_a_hanging_service_is_reported_and_a_rerun_applies_the_statement_once(
    disturbed: Disturbed, which: Which, kind: type[SiltError]
) -> None:
    disturbed.faults.hang_at(which)
    with disturbed.failing(kind, "does not answer"):
        disturbed.insert()
    disturbed.insert()
    assert disturbed.is_applied() == 1


def test_a_service_that_hangs_during_a_read_of_spark_is_reported(disturbed: Disturbed) -> None:
    disturbed.faults.hang_at(of.data_read)
    with disturbed.failing(StorageError, "does not answer"):
        disturbed.read()


@pytest.mark.parametrize("which", [of.every, of.spark, of.commit, of.names, of.data_read])
def test_requests_are_repeated_if_the_service_asks_clients_to_slow_down(disturbed: Disturbed, which: Which) -> None:
    disturbed.faults.refuse(which, of.SLOW_DOWN, times=5)
    disturbed.insert()
    disturbed.warehouse.sql("create or replace table u as select sum(id) as a from t")
    assert disturbed.read() == sum(range(10)) + 50 + sum(range(100, 105)) + 16
    disturbed.warehouse.sql("drop table u")
    assert disturbed.faults.met == 5
    assert disturbed.is_applied() == 1


def test_a_user_without_write_permission_can_read_and_a_write_names_the_permission_to_grant(
    disturbed: Disturbed,
) -> None:
    disturbed.faults.refuse(of.change, of.DENIED)
    assert disturbed.read() == sum(range(10)) + 50 + 11
    with disturbed.failing(
        StorageRefusedError, "the credentials lack a permission.*Grant them permission to list, read"
    ):
        disturbed.insert()
    disturbed.insert()
    assert disturbed.is_applied() == 1
