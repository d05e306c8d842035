"""CLUSTER BY in SQL: the columns that a table is clustered by, from its creation to the end of the clustering."""

from __future__ import annotations

import json

import pytest

from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN, clustered_by
from tests.unit.engine.house import House

COLUMNS = (
    "id bigint, day date, place struct<city: string, `zip code`: int>, tags array<int>, flag boolean, bytes binary"
)


def domain(house: House, table: str = "t") -> object:
    """Returns the clustering columns as the log has them."""
    return json.loads(house.log(table).snapshot().domains[CLUSTERING_DOMAIN].configuration)


def newest(house: House) -> dict[str, object]:
    """Returns the parameters of the newest commit's operation."""
    return dict(next(iter(house.log("t").newest_commits())).info.operation_parameters)


def columns(house: House, table: str = "t") -> list[str]:
    snapshot = house.log(table).snapshot()
    return clustered_by(snapshot.schema, snapshot.domains)


@pytest.mark.connect
@pytest.mark.parametrize("query", ["", " as select 1L id, date'2026-01-01' day, named_struct('city', 'a') place"])
def test_a_created_table_has_the_domain_and_the_features_of_delta_spark(house: House, query: str) -> None:
    declared = "" if query else f"({COLUMNS}) "
    house.sql(f"create table t {declared}cluster by (DAY, place.`City`){query}")
    assert domain(house) == {"clusteringColumns": [["day"], ["place", "city"]], "domainName": CLUSTERING_DOMAIN}
    protocol = house.log("t").snapshot().protocol
    assert {"clustering", "domainMetadata"} <= set(protocol.writer_features or ())
    assert json.loads(str(newest(house)["clusterBy"])) == ["day", "place.city"]


def test_the_domain_has_physical_names_and_answers_have_the_names_of_users(house: House) -> None:
    mapped = "tblproperties ('delta.columnMapping.mode' = 'name')"
    house.sql(f"create table t ({COLUMNS}) cluster by (id, place.`zip code`) {mapped}")
    house.sql("alter table t rename column id to `a key`")
    found = domain(house)
    assert isinstance(found, dict) and all(
        part.startswith("col-") for path in found["clusteringColumns"] for part in path
    )
    assert columns(house) == ["`a key`", "place.`zip code`"]
    assert house.fetched("describe detail t")[0].clusteringColumns == ["`a key`", "place.`zip code`"]
    [(created,)] = house.rows("show create table t")
    assert isinstance(created, str) and "CLUSTER BY (`a key`, place.`zip code`)" in created
    house.sql("create table l like t")
    house.sql("create or replace table r (id int)")
    house.sql("drop table r")
    house.sql(created.replace("main.t", "main.r").replace("`t`", "`r`"))
    assert columns(house, "l") == columns(house, "r") == ["`a key`", "place.`zip code`"]


@pytest.mark.parametrize(
    ("clause", "error", "words"),
    [
        ("cluster by (nope)", errors.ColumnNotFoundError, "nope"),
        ("cluster by (place.nope)", errors.ColumnNotFoundError, "place.nope"),
        ("cluster by (id, ID)", errors.InvalidStatementError, "twice"),
        ("cluster by (a, b, c, d, e)", errors.InvalidStatementError, "lists 5 columns, and can list 4"),
        ("partitioned by (day) cluster by (id)", errors.InvalidStatementError, "clustered or partitioned"),
        ("cluster by (tags)", errors.UnsupportedStatementError, "minimum and maximum"),
        ("cluster by (place)", errors.UnsupportedStatementError, "minimum and maximum"),
        ("cluster by (flag)", errors.UnsupportedStatementError, "minimum and maximum"),
        ("cluster by (bytes)", errors.UnsupportedStatementError, "minimum and maximum"),
        (
            "cluster by (day) tblproperties ('delta.dataSkippingNumIndexedCols' = '1')",
            errors.UnsupportedStatementError,
            "no statistics",
        ),
        (
            "cluster by auto",
            errors.UnsupportedStatementError,
            "AUTO.*Name the columns that queries filter by",
        ),
    ],
)
def test_columns_that_no_file_can_be_clustered_by_are_refused_before_anything_is_written(
    house: House, clause: str, error: type[errors.SiltError], words: str
) -> None:
    with pytest.raises(error, match=words):
        house.sql(f"create table t ({COLUMNS}) {clause}")
    assert house.rows("show tables") == []
    if not clause.startswith("partitioned") and "tblproperties" not in clause:
        house.sql(f"create table t ({COLUMNS})")
        with pytest.raises(error, match=words):
            house.sql(f"alter table t {clause}")
        assert house.log("t").snapshot().version == 0


def test_alter_changes_the_columns_and_ends_the_clustering_without_a_file(house: House) -> None:
    house.sql("create table t as select 1L id, 2L other")
    house.sql("alter table t cluster by (other)")
    assert columns(house) == ["other"]
    house.sql("alter table t cluster by (`OTHER`)")
    assert house.log("t").snapshot().version == 1
    house.sql("alter table t cluster by (id, other)")
    house.sql("alter table t cluster by none")
    assert columns(house) == []
    assert newest(house) == {"oldClusteringColumns": "id,other", "newClusteringColumns": ""}
    assert domain(house) == {"clusteringColumns": [], "domainName": CLUSTERING_DOMAIN}
    house.sql("create table p (id int, day date) partitioned by (day)")
    with pytest.raises(errors.InvalidStatementError, match="clustered or partitioned"):
        house.sql("alter table p cluster by (id)")


def test_columns_of_the_clustering_keep_their_statistics(house: House) -> None:
    house.sql("create table t (id bigint, other bigint) cluster by (other)")
    with pytest.raises(errors.UnsupportedFeatureError, match="clustered by other"):
        house.sql("alter table t set tblproperties ('delta.dataSkippingNumIndexedCols' = '1')")
    with pytest.raises(errors.InvalidStatementError, match="clustered by it"):
        house.sql("alter table t drop column other")


def test_replacing_a_table_replaces_its_clustering(house: House) -> None:
    house.sql("create table t cluster by (id) as select 1L id, 2L other")
    house.sql("create or replace table t cluster by (other) as select 1L id, 2L other")
    assert columns(house) == ["other"]
    house.sql("create or replace table t as select 1L id, 2L other")
    assert columns(house) == []
    house.sql("restore table t to version as of 1")
    assert columns(house) == ["other"]
    house.sql("create table c shallow clone t")
    assert columns(house, "c") == ["other"]


def test_the_rows_that_differ_are_written_into_a_clustered_table_unless_its_columns_change(house: House) -> None:
    create = "create or replace table t cluster by ({}) write differences by (id) as select id, {} as v from range(3)"
    for by, value, is_rebuilt in (("id", 1, None), ("id", 2, None), ("v", 3, "layout")):
        house.sql(create.format(by, value))
        assert columns(house) == [by]
        rebuilt = next(iter(house.log("t").newest_commits())).info.extra.get("rebuilt")
        assert (is_rebuilt or "") in str(rebuilt or "") and bool(rebuilt) is bool(is_rebuilt)


def test_a_write_of_rows_creates_a_clustered_table_and_must_agree_with_it(house: House) -> None:
    rows = house.warehouse.spark.range(3).selectExpr("id", "named_struct('x', id) as s")
    house.warehouse.write(rows, "t", cluster_by=["id", "s.x"])
    assert columns(house) == ["id", "s.x"]
    house.warehouse.write(rows, "t", mode="append", cluster_by=["ID", "s.x"])
    with pytest.raises(errors.InvalidArgumentError, match="clustered by id"):
        house.warehouse.write(rows, "t", mode="append", cluster_by="id")
    house.warehouse.write(rows.select("id"), "t", mode="overwrite", overwrite_schema=True)
    assert columns(house) == ["id"]
