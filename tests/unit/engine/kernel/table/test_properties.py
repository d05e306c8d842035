"""Table properties: values, defaults, and properties that a user may not set."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidPropertyError
from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel, TableProperties, checked


def test_the_defaults_are_those_of_the_specification() -> None:
    properties = TableProperties({})
    assert properties.checkpoint_interval == 10
    assert properties.isolation_level is IsolationLevel.SERIALIZABLE
    assert properties.data_skipping_num_indexed_cols == 32
    assert properties.data_skipping_stats_columns is None
    assert properties.deleted_file_retention_ms == 7 * 86_400_000
    assert properties.log_retention_ms == 30 * 86_400_000
    assert properties.set_transaction_retention_ms is None
    assert not properties.append_only
    assert properties.constraints == {}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 7 days", 604_800_000),
        ("INTERVAL 1 WEEK", 604_800_000),
        ("2 hours 30 minutes", 9_000_000),
        ("interval 1.5 seconds", 1_500),
        ("interval 90 days", 7_776_000_000),
        ("interval 0 seconds", 0),
        ("interval 10 milliseconds", 10),
    ],
)
def test_intervals_are_parsed(text: str, milliseconds: int) -> None:
    properties = TableProperties({"delta.setTransactionRetentionDuration": text})
    assert properties.set_transaction_retention_ms == milliseconds


@pytest.mark.parametrize("text", ["", "interval", "7", "interval 1 month", "interval 1 year", "days 7", "-1 days"])
def test_intervals_without_a_fixed_length_are_refused(text: str) -> None:
    with pytest.raises(InvalidPropertyError, match="deletedFileRetentionDuration"):
        _ = TableProperties({"delta.deletedFileRetentionDuration": text}).deleted_file_retention_ms


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.appendOnly", "yes"),
        ("delta.isolationLevel", "ReadCommitted"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.columnMapping.mode", "names"),
    ],
)
def test_an_invalid_value_of_a_property_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(InvalidPropertyError, match=key):
        checked({key: value})


def test_an_unknown_property_of_the_protocol_is_refused_and_the_users_own_properties_are_kept() -> None:
    assert checked({"owner": "me", "Silt.X": "1"}) == {"owner": "me", "Silt.X": "1"}
    with pytest.raises(InvalidPropertyError, match=r"delta\.appendOnyl"):
        checked({"delta.appendOnyl": "true"})


def test_keys_of_the_protocol_are_stored_in_its_spelling() -> None:
    given = {
        "DELTA.appendonly": "true",
        "delta.Constraints.Positive": "a > 0",
        "Delta.Feature.timestampNtz": "supported",
    }
    assert checked(given) == {
        "delta.appendOnly": "true",
        "delta.constraints.Positive": "a > 0",
        "delta.feature.timestampNtz": "supported",
    }


def test_constraints_are_found_by_their_prefix() -> None:
    configuration = {"delta.constraints.positive": "a > 0", "delta.appendOnly": "false"}
    assert TableProperties(configuration).constraints == {"positive": "a > 0"}


def test_names_of_statistics_columns_may_contain_commas_inside_backticks() -> None:
    properties = TableProperties({"delta.dataSkippingStatsColumns": "a, b.c ,`x,y`"})
    assert properties.data_skipping_stats_columns == ("a", "b.c", "`x,y`")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("delta.enableChangeDataFed", "delta.enableChangeDataFeed"),
        ("DELTA.enabledeletionvector", "delta.enableDeletionVectors"),
        ("delta.colmunMapping.mode", "delta.columnMapping.mode"),
        ("dleta.enableDeletionVectors", "delta.enableDeletionVectors"),
        ("enableChangeDataFeed", "delta.enableChangeDataFeed"),
        ("columnMapping.mode", "delta.columnMapping.mode"),
    ],
)
def test_a_misspelt_property_is_refused_with_a_similar_name(key: str, meant: str) -> None:
    with pytest.raises(InvalidPropertyError, match=f"property `{key}` does not exist. Did you mean `{meant}`"):
        checked({key: "true"})


@pytest.mark.parametrize("key", ["owner", "team.mode", "enableNothing", "my.enableDeletionVectors", ""])
def test_a_users_own_property_may_have_any_name(key: str) -> None:
    assert checked({key: "x"}) == {key: "x"}


def test_a_property_without_a_similar_name_is_refused_without_a_suggestion() -> None:
    with pytest.raises(InvalidPropertyError, match=r"`delta.qqqqqqqqqq` does not exist\. Correct the property"):
        checked({"delta.qqqqqqqqqq": "x"})
