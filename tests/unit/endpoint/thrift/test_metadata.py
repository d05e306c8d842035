"""The metadata calls of HiveServer2's service, from the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive
from pyspark.sql import SparkSession
from TCLIService import ttypes

from dbt.adapters.silt.endpoint.thrift.server import ThriftServer
from tests.unit.endpoint.thrift.conftest import connect, rows


def call(connection: hive.Connection, name: str, **given: Any) -> list[dict[str, Any]]:
    """Makes a metadata call, and returns the rows of its answer by the names of the columns."""
    client = connection.client
    request = getattr(ttypes, f"T{name}Req")(sessionHandle=connection.sessionHandle, **given)
    response = getattr(client, name)(request)
    assert response.status.statusCode == ttypes.TStatusCode.SUCCESS_STATUS, response.status
    schema = client.GetResultSetMetadata(ttypes.TGetResultSetMetadataReq(response.operationHandle)).schema
    fetched = client.FetchResults(ttypes.TFetchResultsReq(response.operationHandle, 0, 1000)).results
    names = [each.columnName for each in schema.columns]
    found = [next(part.values for part in vars(each).values() if part is not None) for each in fetched.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*found, strict=True)]


@pytest.fixture
def connection(server: ThriftServer) -> Any:
    with connect(server) as opened:
        rows(opened, "create schema other")
        rows(opened, "create table orders (id bigint not null comment 'the key', price decimal(10, 2), at timestamp)")
        rows(opened, "create view recent as select id from orders")
        rows(opened, "create table other.items (id int)")
        rows(opened, "create function twice(x int) returns int return x * 2")
        yield opened


def test_schemas_match_a_pattern(connection: hive.Connection) -> None:
    assert [each["TABLE_SCHEM"] for each in call(connection, "GetSchemas")] == ["main", "other"]
    assert [each["TABLE_SCHEM"] for each in call(connection, "GetSchemas", schemaName="o%")] == ["other"]


def test_tables_and_views_match_patterns_and_types(connection: hive.Connection) -> None:
    def found(**given: Any) -> list[tuple[str, str, str]]:
        shown = call(connection, "GetTables", **given)
        return [(each["TABLE_SCHEM"], each["TABLE_NAME"], each["TABLE_TYPE"]) for each in shown]

    orders, recent, items = ("main", "orders", "TABLE"), ("main", "recent", "VIEW"), ("other", "items", "TABLE")
    assert found() == [orders, recent, items]
    assert found(schemaName="main", tableName="%") == [orders, recent]
    assert found(tableTypes=["VIEW"]) == [recent]
    assert found(tableName="ord_rs") == [orders]
    assert found(tableName=r"ord\_rs") == []


def test_columns_have_the_numbers_of_java_and_the_columns_of_views_come_from_spark(connection: hive.Connection) -> None:
    found = call(connection, "GetColumns", schemaName="main", tableName="orders")
    shown = [(each["COLUMN_NAME"], each["DATA_TYPE"], each["TYPE_NAME"], each["NULLABLE"]) for each in found]
    assert shown == [("id", -5, "BIGINT", 0), ("price", 3, "DECIMAL(10,2)", 1), ("at", 93, "TIMESTAMP", 1)]
    assert (found[1]["COLUMN_SIZE"], found[1]["DECIMAL_DIGITS"], found[0]["REMARKS"]) == (10, 2, "the key")
    [column] = call(connection, "GetColumns", tableName="recent")
    assert (column["COLUMN_NAME"], column["DATA_TYPE"]) == ("id", -5)


def test_functions_types_and_kinds_of_tables_are_listed(connection: hive.Connection) -> None:
    assert [each["FUNCTION_NAME"] for each in call(connection, "GetFunctions", functionName="%")] == ["twice"]
    assert [each["TABLE_TYPE"] for each in call(connection, "GetTableTypes")] == ["TABLE", "VIEW"]
    assert "DECIMAL" in [each["TYPE_NAME"] for each in call(connection, "GetTypeInfo")]
    assert call(connection, "GetCatalogs") == []


def test_the_databases_are_catalogs_if_there_are_several(
    server_of: Callable[..., ThriftServer], tmp_path: Path
) -> None:
    with connect(server_of(databases={"raw": str(tmp_path / "raw")})) as connection:
        rows(connection, "create schema raw.landing")
        assert [each["TABLE_CAT"] for each in call(connection, "GetCatalogs")] == ["raw", "silt"]
        [schema] = call(connection, "GetSchemas", catalogName="raw", schemaName="landing")
        assert schema == {"TABLE_SCHEM": "landing", "TABLE_CATALOG": "raw"}


def test_metadata_runs_no_job_of_spark(connection: hive.Connection, spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    for name in ("GetCatalogs", "GetSchemas", "GetTables", "GetColumns", "GetTypeInfo", "GetFunctions"):
        call(connection, name)
    assert len(tracker.getJobIdsForGroup(None)) == before
    rows(connection, "select max(price) from orders group by id")
    assert len(tracker.getJobIdsForGroup(None)) > before


def test_the_server_names_itself_as_spark_and_refuses_delegation_tokens(connection: hive.Connection) -> None:
    kinds, handle = ttypes.TGetInfoType, connection.sessionHandle
    info = connection.client.GetInfo(ttypes.TGetInfoReq(handle, kinds.CLI_DBMS_NAME))
    assert info.infoValue.stringValue == "Spark SQL"
    refused = connection.client.GetDelegationToken(ttypes.TGetDelegationTokenReq(handle, "ann", "ann"))
    assert refused.status.statusCode == ttypes.TStatusCode.ERROR_STATUS
