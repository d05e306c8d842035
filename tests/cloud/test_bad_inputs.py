"""Errors for a profile that does not match the service; and a bucket that keeps versions of its objects."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.errors import ReadOnlyStorageError, StorageError
from dbt.adapters.silt.engine.kernel.storage.settings import Storages, StorageSettings
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.cloud import faults as of
from tests.cloud.faults import Faults
from tests.cloud.proxy import behind_proxy
from tests.cloud.servers import ObjectServer, running_s3


@pytest.fixture(autouse=True)
def of_s3(server: ObjectServer) -> None:
    if server.name != "s3":
        pytest.skip("the settings are of an S3")


def make_schema(url: str, settings: StorageSettings) -> None:
    """Creates a schema, as the first command of a project does."""
    open_databases({"silt": url}, Storages(settings)).catalog.open_schema("silt", "main")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"access_key_id": "nobody"}, "does not know the access key.*Correct `access_key_id`"),
        ({"secret_access_key": "wrong"}, "does not accept the signature.*Correct `secret_access_key`"),
        ({"region": "eu-west-3"}, "in another region.*Set `region`"),
    ],
    ids=["key", "secret", "region"],
)
def test_a_wrong_storage_setting_is_refused_with_the_setting_to_correct(
    server: ObjectServer, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(StorageError, match=said):
        make_schema(f"{server.base}/bad inputs", replace(server.settings, **wrong))


def test_a_missing_bucket_is_named_in_the_error(server: ObjectServer) -> None:
    with pytest.raises(StorageError, match=r"s3://nowhere.*the bucket does not exist.*create the bucket"):
        make_schema("s3://nowhere/house", server.settings)


def test_missing_write_permissions_are_named_in_the_error(server: ObjectServer) -> None:
    faults = Faults()
    with behind_proxy(server, faults) as behind:
        faults.refuse(of.change, of.DENIED)
        with pytest.raises(ReadOnlyStorageError, match=r"lack a permission.*to list, read, write and delete"):
            make_schema(f"{server.base}/denied", behind.settings)


def test_an_endpoint_that_does_not_answer_is_named_in_the_error(server: ObjectServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sleeper:
        endpoint = f"http://127.0.0.1:{sleeper.getsockname()[1]}"
        with pytest.raises(StorageError, match=f"{endpoint} does not answer.*Check `endpoint`"):
            make_schema(f"{server.base}/hangs", replace(server.settings, endpoint=endpoint, timeout=1))


@pytest.fixture
def versioned(tmp_path: Path) -> Iterator[ObjectServer]:
    """A separate server, whose bucket keeps overwritten and deleted objects."""
    (tmp_path / "versions").mkdir()
    with running_s3(tmp_path, "--versioning-dir", str(tmp_path / "versions")) as server:
        s3 = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id=server.settings.access_key_id,
            aws_secret_access_key=server.settings.secret_access_key,
        )
        s3.create_bucket(Bucket="versioned")
        s3.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
        assert s3.get_bucket_versioning(Bucket="versioned")["Status"] == "Enabled"
        yield server


def test_a_bucket_that_keeps_versions_shows_what_is_there_now(versioned: ObjectServer, spark: SparkSession) -> None:
    house = Warehouse(spark.newSession(), "s3://versioned/a house é", storage=versioned.settings)
    for statement in (
        "create table t as select id from range(0, 20, 1, 2)",
        "delete from t where id = 3",
        "create or replace view v as select sum(id) as a from t",
        "drop table t",
        "create table t as select id from range(0, 30, 1, 2)",
        "insert into t values (100)",
        "create or replace table t as select id + 1 as id from t",
        "alter table t rename to u",
        "create table t as select id from u where id > 90",
        "drop table u",
    ):
        house.sql(statement)
    assert [tuple(row) for row in house.sql("select * from v").collect()] == [(101,)]
    assert [each.name for each in house.catalog.all_relations("silt")] == [
        RelationName("silt", "main", "t"),
        RelationName("silt", "main", "v"),
    ]
