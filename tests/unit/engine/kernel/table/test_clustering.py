"""The clustering columns in the domain `delta.clustering`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import CorruptLogError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.files.table_files import TableFiles
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, DomainMetadata, Metadata, Protocol
from dbt.adapters.silt.engine.kernel.table.active_files import files_table
from dbt.adapters.silt.engine.kernel.table.clustering import CLUSTERING_DOMAIN, clustering_columns, physical_path
from dbt.adapters.silt.engine.kernel.table.schema import (
    PHYSICAL_NAME,
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation
from dbt.adapters.silt.engine.kernel.transaction.validation import check_changes

LONG = PrimitiveType("long")
INNER = StructType((StructField("x", LONG, metadata={PHYSICAL_NAME: "col-x"}),))
SCHEMA = StructType(
    (
        StructField("a", LONG),
        StructField("s", INNER, metadata={PHYSICAL_NAME: "col-s"}),
        StructField("l", ArrayType(INNER)),
        StructField("m", MapType(INNER, INNER)),
    )
)


def domain(columns: Any, removed: bool = False) -> dict[str, DomainMetadata]:
    text = json.dumps({"clusteringColumns": columns, "domainName": CLUSTERING_DOMAIN})
    return {CLUSTERING_DOMAIN: DomainMetadata(CLUSTERING_DOMAIN, text, removed)}


def test_the_columns_are_paths_of_physical_names() -> None:
    assert clustering_columns(domain([["a"], ["col-s", "col-x"]])) == (("a",), ("col-s", "col-x"))
    assert clustering_columns(domain(["a", "col-s"])) == (("a",), ("col-s",))
    assert clustering_columns({}) == clustering_columns(domain([["a"]], removed=True)) == ()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"clusteringColumns":5}'])
def test_a_broken_domain_is_a_damaged_log(text: str) -> None:
    with pytest.raises(CorruptLogError):
        clustering_columns({CLUSTERING_DOMAIN: DomainMetadata(CLUSTERING_DOMAIN, text)})


@pytest.mark.parametrize(
    ("path", "physical"),
    [
        ("A", "a"),
        ("S.X", "col-s.col-x"),
        ("l.Element.x", "l.element.col-x"),
        ("m.key.x", "m.key.col-x"),
        ("m.value.x", "m.value.col-x"),
    ],
)
def test_a_users_path_is_converted_to_a_physical_path(path: str, physical: str) -> None:
    assert ".".join(physical_path(SCHEMA, tuple(path.split(".")))) == physical


@pytest.mark.parametrize(
    ("indexed", "columns", "is_written"),
    [
        ({}, [["a"], ["col-s", "col-x"]], True),
        ({"delta.dataSkippingNumIndexedCols": "1"}, [["a"]], True),
        ({"delta.dataSkippingNumIndexedCols": "1"}, [["col-s", "col-x"]], False),
        ({"delta.dataSkippingStatsColumns": "s"}, [["a"]], False),
    ],
)
def test_files_without_statistics_of_the_clustering_columns_are_not_added(
    indexed: dict[str, str], columns: list[list[str]], is_written: bool
) -> None:
    protocol = Protocol(1, 7, None, ("clustering", "domainMetadata"))
    metadata = Metadata("id", SCHEMA.to_json(), configuration=indexed)
    base = Snapshot("t", 0, 0, metadata, protocol, TableFiles(files_table([])), {}, domain(columns))
    changes = Changes(Operation("WRITE"), (AddFile("a", {}, 1, 0),))
    if is_written:
        check_changes(changes, base, "t")
        return
    with pytest.raises(UnsupportedFeatureError, match="clustered by"):
        check_changes(changes, base, "t")
