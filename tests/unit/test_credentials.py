"""The profile: its defaults, and the errors about invalid fields."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.silt.credentials import SiltCredentials, isolation_level


def credentials_of(**fields: Any) -> SiltCredentials:
    """Creates credentials as dbt does from a profile, without its `type` and `threads`."""
    SiltCredentials.validate(fields)
    return SiltCredentials.from_dict(fields)


def test_a_profile_needs_no_field() -> None:
    credentials = credentials_of()
    assert credentials.type == "silt"
    assert (credentials.database, credentials.schema, credentials.warehouse) == ("silt", "main", "warehouse")
    assert (credentials.master, credentials.remote) == ("local[*]", None)


def test_every_documented_field_is_accepted() -> None:
    credentials = credentials_of(
        database="lake",
        schema="shop",
        warehouse="/data",
        remote="sc://host",
        databases={"raw": "/raw"},
        spark_conf={"spark.sql.shuffle.partitions": 8},
        run_id="R1",
        isolation_level="serializable",
        max_commit_attempts=3,
        statement_attempts=1,
        resume="2 hours",
        target_type="spark",
    )
    assert credentials.type == "silt", "dbt finds the adapter by this, whatever packages see"
    assert credentials.isolation_level == "Serializable"
    assert credentials.databases == {"raw": "/raw"}
    assert credentials.master is None


@pytest.mark.parametrize(
    ("written", "meant"), [("warehose", "warehouse"), ("thread", "threads"), ("runid", "run_id"), ("masters", "master")]
)
def test_an_unknown_field_is_refused_with_the_nearest_known_field(written: str, meant: str) -> None:
    with pytest.raises(ValidationError, match=f"`{written}` is not a field of a silt profile; did you mean `{meant}`"):
        credentials_of(**{written: "x"})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("user", "without a login"),
        ("token", "without a login"),
        ("dataset", "; the field is `schema`"),
        ("project", "; the field is `database`"),
        ("path", "; the field is `warehouse`"),
        ("driver_memory", "spark.driver.memory: 4g"),
        ("method", "Spark runs in dbt's process"),
        ("session_properties", "; the field is `spark_conf`"),
        ("attach", "; the field is `databases`"),
        ("retries", "dbt connects to no server here, so leave it out"),
    ],
)
def test_a_field_of_another_adapter_is_refused_with_the_field_of_a_silt_profile(written: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        credentials_of(**{written: "x"})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"publish": True}, "`publish` must be text, not true or false"),
        ({"databases": ["raw"]}, "`databases` must be a mapping, not a list"),
        ({"master": 4}, "`master` must be text, not a number"),
        ({"python_functions": "yes"}, "`python_functions` must be true or false, not text"),
        ({"max_commit_attempts": "many"}, "`max_commit_attempts` must be a whole number, not text"),
        ({"schema": None}, "`schema` must be text, not empty"),
        ({"spark_conf": "secret"}, "`spark_conf` must be a mapping, not text"),
        (
            {"spark_conf": {"spark": {"sql.ansi.enabled": "secret"}}},
            "`spark_conf` has a mapping below `spark`: write whole names, `spark.sql.ansi.enabled: value`",
        ),
        (
            {"spark_conf": {"spark.jars": ["secret"]}},
            "`spark.jars` in `spark_conf` must be a text or a number, not a list: join it by commas",
        ),
        ({"catalog": "main"}, "`catalog` must be hive, not `main`: the first part of a table's name is `database`"),
        (
            {"warehouse": " "},
            "the location of a warehouse is empty. Set `warehouse` to a folder or a URL, or leave it out.",
        ),
        (
            {"databases": {"raw": "s3:/secret/raw"}},
            "a location begins with `s3:/`. Write a URL with two slashes: s3://bucket/prefix.",
        ),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_field_and_without_the_value(
    fields: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        credentials_of(**fields)
    assert str(caught.value.message) == said


@pytest.mark.parametrize("written", ["memory", "driver_memory", "spark_memory"])
def test_a_field_for_memory_is_refused_with_the_setting_of_spark_for_it(written: str) -> None:
    with pytest.raises(ValidationError, match=r"with `spark_conf: {spark\.driver\.memory: 4g}`"):
        credentials_of(**{written: "4g"})


def test_an_unknown_field_without_a_similar_field_lists_all_fields() -> None:
    with pytest.raises(ValidationError, match=r"`zzz` is not a field .*; the fields are .*, warehouse"):
        credentials_of(zzz=1)


@pytest.mark.parametrize("name", ["..", "a/b", "a'b", "a`b", "", "x" * 300])
def test_a_schema_name_that_could_leave_the_warehouse_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="SILT_INVALID_NAME"):
        credentials_of(schema=name)


def test_databases_must_have_distinct_names() -> None:
    with pytest.raises(ValidationError, match="names `silt` again"):
        credentials_of(databases={"SILT": "/elsewhere"})
    with pytest.raises(ValidationError, match="names `raw` twice"):
        credentials_of(databases={"raw": "/one", "RAW": "/another"})


@pytest.mark.parametrize(
    "fields",
    [
        {"master": "local[2]", "remote": "sc://host"},
        {"isolation_level": "dirty"},
        {"max_commit_attempts": 0},
        {"statement_attempts": 0},
        {"publish_attempts": 0},
        {"resume": "soon"},
    ],
)
def test_invalid_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        credentials_of(**fields)


@pytest.mark.parametrize("given", [False, "off", "Off", "never"])
def test_resume_may_be_off_however_yaml_reads_it(given: Any) -> None:
    assert credentials_of(resume=given).resume == "off"


def test_a_new_run_id_does_not_change_the_values_that_dbt_hashes() -> None:
    first, second = credentials_of(run_id="R1"), credentials_of(run_id="R2")
    assert list(first.connection_info()) == list(second.connection_info())
    assert "run_id" not in dict(first.connection_info())


def test_dbt_debug_shows_the_location_of_the_warehouse() -> None:
    assert dict(credentials_of(warehouse="/data").connection_info())["warehouse"] == "/data"


def test_isolation_levels_are_spelled_as_in_the_delta_specification() -> None:
    assert isolation_level("snapshotisolation") == "SnapshotIsolation"


def test_dbt_debug_prints_the_set_fields_without_secrets() -> None:
    credentials = credentials_of(
        remote="sc://host:15002/;use_ssl=true;token=abc;user_id=me",
        spark_conf={"spark.hadoop.fs.azure.account.key.shop": "abc", "spark.sql.ansi.enabled": "true"},
    )
    printed = dict(credentials.connection_info())
    assert printed["remote"] == "sc://host:15002/;use_ssl=true;token=***;user_id=me"
    assert printed["spark_conf"] == {"spark.hadoop.fs.azure.account.key.shop": "***", "spark.sql.ansi.enabled": "true"}
    keys = {"access_key_id": "abc", "secret_access_key": "abc", "region": "here"}
    shown = {"access_key_id": "***", "secret_access_key": "***", "region": "here"}
    databases = {"raw": {"location": "s3://bucket/raw", "storage": {**keys, "timeout": 3}}, "old": "s3://old"}
    described = dict(credentials_of(databases=databases, storage=keys).connection_info())
    assert described["storage"] == {**shown, "timeout": 10}
    assert described["databases"] == {
        "raw": {"location": "s3://bucket/raw", "storage": {**shown, "timeout": 3}},
        "old": "s3://old",
    }
    assert not {"master", "databases", "resume", "storage"} & printed.keys()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"warehouse": "s3://me:abc@bucket/raw"}, r"`s3://\*\*\*@bucket/raw` does not name a bucket"),
        ({"warehouse": "hdfs://host/raw?abc"}, "a storage that is not supported: hdfs"),
        ({"warehouse": "az://container/raw"}, "abfss://container@account"),
        ({"storage": {"secret_acces_key": "abc"}}, "Did you mean `secret_access_key`"),
        ({"databases": {"raw": {"locaton": "s3://abc"}}}, "the database raw in `databases` has a field `locaton`"),
        ({"databases": {"raw": {"storage": {}}}}, "neither a string nor a `location`"),
        ({"databases": {"raw": {"location": "s3://b", "storage": "abc"}}}, "neither a string nor a `location`"),
    ],
)
def test_an_invalid_location_or_storage_setting_is_refused_without_showing_secrets(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said) as refused:
        credentials_of(**fields)
    assert "abc" not in str(refused.value)


KEY = {"spark.hadoop.fs.s3a.access.key": "abc"}


def test_storage_credentials_in_spark_conf_are_refused_if_a_database_is_in_that_storage() -> None:
    assert credentials_of(spark_conf=KEY).spark_conf == KEY
    assert credentials_of(spark_conf=KEY, warehouse="gs://bucket/raw").spark_conf == KEY
    with pytest.raises(ValidationError, match=r"`spark_conf` sets spark\.hadoop\.fs\.s3a\.access\.key.*`storage`"):
        credentials_of(spark_conf=KEY, databases={"raw": "s3://bucket/raw"})


@pytest.mark.parametrize("off", [None, False, "off", "never", ""])
def test_spark_ends_with_its_command_by_default(off: object) -> None:
    assert credentials_of(keep_alive=off).keep_alive_time is None
    assert credentials_of().keep_alive_time is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"keep_alive": "a while"}, "`keep_alive` must be a length of time such as"),
        ({"keep_alive": 15}, "`keep_alive` must be a length of time such as"),
        ({"keep_alive": "0 minutes"}, "at least 1 second"),
        ({"keep_alive": "1 hour", "remote": "sc://host"}, "must not be set together with `remote`"),
        ({"keep_alive": "1 hour", "master": "yarn"}, "not on `yarn`"),
        ({"keep_alive": "1 hour", "master": "local-cluster[2,1,1024]"}, "not on `local-cluster"),
        ({"keep_alive": "1 hour", "spark_conf": {"spark.connect.grpc.binding.port": 1}}, "which sets it itself"),
        ({"keep_alive": "1 hour", "spark_conf": {"spark.connect.authenticate.token": "x"}}, "which sets it itself"),
    ],
)
def test_an_invalid_keep_alive_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        credentials_of(**fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"catalog": "glue"}, "`catalog` must be hive, not `glue`"),
        ({"catalog": "hive", "remote": "sc://host"}, "cannot be combined with `remote`"),
        ({"catalog": "hive", "keep_alive": "1 hour"}, "cannot be combined with `keep_alive`"),
    ],
)
def test_a_catalog_that_tables_cannot_be_registered_in_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        credentials_of(**fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"duckdb_file": "s3://bucket/tables.duckdb"}, "`duckdb_file` must be the path of a file on this machine"),
        ({"duckdb_file": " "}, "`duckdb_file` must be the path of a file on this machine, not ' '"),
        (
            {"duckdb_file": "a.duckdb", "warehouse": "s3://bucket/prefix"},
            "`duckdb_file` is for a warehouse in a folder",
        ),
        ({"duckdb_file": 1}, "`duckdb_file` must be text"),
    ],
)
def test_a_file_of_duckdb_that_cannot_be_written_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        credentials_of(**fields)


def test_an_upkeep_has_a_budget() -> None:
    assert credentials_of(upkeep={"budget": "5 minutes"}).upkeep == {"budget": "5 minutes"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": "0 minutes"}, "the `budget` of `upkeep` must be above 0"),
        ({"budget": 5}, "`budget` must be a length of time"),
        ({"budget": "abc"}, "`budget` must be a length of time"),
        ({"budget": "-5 minutes"}, "`budget` must be a length of time"),
        ({"time": "5 minutes"}, "`upkeep` must be `{budget: 5 minutes}`"),
        ("5 minutes", "`upkeep` must be a mapping"),
    ],
)
def test_another_upkeep_is_refused(given: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        credentials_of(upkeep=given)


@pytest.mark.parametrize("off", [None, False, "off", ""])
def test_spark_runs_alone_by_default(off: object) -> None:
    assert SiltCredentials.from_dict({"accelerator": off}).accelerator is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"accelerator": "gluten"}, "`accelerator` must be comet, or off, not `gluten`"),
        ({"accelerator": True}, "`accelerator` must be comet, or off, not `True`"),
        ({"accelerator_jars": "/opt/jars"}, "`accelerator_jars` has no effect without `accelerator: comet`"),
    ],
)
def test_an_unknown_accelerator_is_refused(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(said)):
        SiltCredentials.from_dict(fields)


def test_spark_is_kept_for_the_time_in_the_profile() -> None:
    assert credentials_of(keep_alive="15 minutes").keep_alive_time == timedelta(minutes=15)
    assert credentials_of(keep_alive="1 day", master="local").keep_alive_time == timedelta(days=1)
