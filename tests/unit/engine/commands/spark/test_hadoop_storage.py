"""Hadoop's settings of object stores: limited to one bucket or account, and redacted by their names."""

from __future__ import annotations

import re

import pytest

from dbt.adapters.silt.engine.commands.spark.hadoop_storage import REDACTED, all_settings, hadoop_settings, services
from dbt.adapters.silt.engine.kernel.storage.settings import SECRETS, StorageSettings, storages
from dbt.adapters.silt.engine.kernel.storage.urls import Service

ABFSS = "abfss://c@acc.dfs.core.windows.net/p"


def test_settings_of_s3_apply_to_their_bucket_only() -> None:
    settings = StorageSettings(endpoint="http://127.0.0.1:9", access_key_id="i", secret_access_key="s", timeout=3)
    found = hadoop_settings("s3://house/p", settings)
    assert found.pop("fs.s3.impl") == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert all(name.startswith("fs.s3a.bucket.house.") for name in found)
    own = {name.removeprefix("fs.s3a.bucket.house."): value for name, value in found.items()}
    assert own["endpoint"] == "http://127.0.0.1:9"
    assert (own["access.key"], own["secret.key"]) == ("i", "s")
    assert own["aws.credentials.provider"].endswith(".SimpleAWSCredentialsProvider")
    assert (own["path.style.access"], own["connection.ssl.enabled"]) == ("true", "false")
    assert own["connection.timeout"] == "3000"


def test_temporary_keys_and_unsigned_requests_have_their_own_credential_providers() -> None:
    keys = StorageSettings(access_key_id="i", secret_access_key="s", session_token="t")
    provider = "fs.s3a.bucket.b.aws.credentials.provider"
    assert hadoop_settings("s3a://b", keys)[provider].endswith("TemporaryAWSCredentialsProvider")
    unsigned = hadoop_settings("s3a://b", StorageSettings(anonymous=True))
    assert unsigned[provider].endswith("AnonymousAWSCredentialsProvider")


@pytest.mark.parametrize(
    "case",
    [
        ("s3://b/p", StorageSettings(access_key_id="planted", secret_access_key="planted", session_token="planted")),
        (ABFSS, StorageSettings(account_key="planted")),
        (ABFSS, StorageSettings(account_key="planted", endpoint="http://127.0.0.1:9")),
        (ABFSS, StorageSettings(sas_token="planted")),
        (ABFSS, StorageSettings(client_secret="planted", client_id="i", tenant_id="t")),
    ],
    ids=lambda case: "-".join(sorted(case[1].shown())) if isinstance(case, tuple) else None,
)
def test_every_setting_with_a_secret_is_redacted_by_its_name(case: tuple[str, StorageSettings]) -> None:
    found = hadoop_settings(*case) | all_settings({}, storages({}, case[1]))
    secret = [name for name, value in found.items() if "planted" in value]
    assert secret
    assert all(re.search(REDACTED, name) for name in secret)
    assert not {name for name in found if "planted" not in found[name] and name.endswith("endpoint")} & set(secret)


KEYS = StorageSettings(endpoint="http://127.0.0.1:9", access_key_id="i", secret_access_key="s")


def test_other_buckets_of_a_service_have_the_settings_of_the_profile() -> None:
    places = {"local": "/house", "one": "s3://b/p"}
    found = all_settings(places, storages(places, KEYS))
    assert found["fs.s3a.access.key"] == found["fs.s3a.bucket.b.access.key"] == "i"
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9"
    alone = all_settings({"local": "/house"}, storages({}, StorageSettings(account_key="k")))
    assert alone["fs.azure.account.key"] == "k" and alone["fs.azure.account.auth.type"] == "SharedKey"
    assert services({"local": "/house"}, storages({}, StorageSettings(account_key="k"))) == [Service.AZURE]
    assert all_settings({"local": "/house"}, storages({}, StorageSettings())) == {}


def test_a_database_with_its_own_settings_inherits_none_of_its_service() -> None:
    places = {"one": "s3://b/p", "two": ABFSS}
    found = all_settings(places, storages(places, KEYS, {"one": StorageSettings(region="eu-west-1")}))
    assert {name for name in found if name.startswith("fs.s3a.") and ".bucket.b." not in name} == set()


def test_every_secret_setting_is_covered_by_the_redaction_test() -> None:
    assert SECRETS == {
        *("access_key_id", "secret_access_key", "session_token", "account_key", "sas_token", "client_secret"),
    }
