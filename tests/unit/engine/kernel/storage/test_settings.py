"""Settings of object stores: names, values that exclude one another, and hidden secrets."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.settings import SECRETS, StorageSettings, storage_settings, storages

KEYS = {"access_key_id": "the-id", "secret_access_key": "the-secret"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("acces_key", "access_key_id"), ("key_id", "access_key_id"), ("secret", "secret_access_key"), ("regio", "region")],
)
def test_an_unknown_setting_is_refused_with_a_similar_name(name: str, meant: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"`{name}` is not a setting of a storage. Did you mean `{meant}`"):
        storage_settings({name: "planted"})


@pytest.mark.parametrize(
    "given",
    [
        {"secret_access_key": "planted"},
        {"session_token": "planted", "region": "r"},
        {**KEYS, "profile": "planted"},
        {**KEYS, "anonymous": True, "region": "planted"},
        {"account_key": "planted", "sas_token": "planted"},
        {"client_secret": "planted"},
        {"endpoint": "planted.example.com"},
        {"timeout": "planted"},
        {"path_style": "planted"},
        {"access_key_id": ["planted"]},
    ],
)
def test_invalid_values_are_refused_and_never_repeated(given: dict[str, object]) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        storage_settings(given)
    assert "planted" not in str(refused.value)


def test_strings_of_a_profile_are_converted_to_their_types() -> None:
    made = storage_settings({**KEYS, "path_style": "false", "anonymous": False, "timeout": "30", "region": ""})
    assert made == StorageSettings(access_key_id="the-id", secret_access_key="the-secret", path_style=False, timeout=30)


def test_secrets_are_in_no_text_form_of_the_settings() -> None:
    secret = StorageSettings(**dict.fromkeys(SECRETS, "planted"), region="here")  # type: ignore[arg-type]
    assert "planted" not in f"{secret!r} {secret} {secret.shown()}"
    assert "region='here'" in repr(secret)


def test_a_bucket_has_the_settings_of_its_database_and_other_buckets_those_of_the_warehouse() -> None:
    usual, own = storage_settings(KEYS), StorageSettings(anonymous=True)
    locations = {"silt": "s3://house/a", "archive": "s3a://old/b", "local": "/data"}
    found = storages(locations, usual, {"archive": own})
    assert (found.of("s3://house"), found.of("s3://old/x"), found.of("gs://else/x")) == (usual, own, usual)


def test_conflicting_settings_of_a_bucket_and_settings_of_a_folder_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="the database raw and another database are in s3://house"):
        storages({"silt": "s3://house/a", "raw": "s3://house/b"}, None, {"raw": StorageSettings(anonymous=True)})
    with pytest.raises(InvalidSettingError, match="the database raw is in the folder /data, which needs no `storage`"):
        storages({"raw": "/data"}, None, {"raw": StorageSettings(anonymous=True)})
