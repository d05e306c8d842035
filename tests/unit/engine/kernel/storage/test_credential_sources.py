"""The order of credential sources: settings, variables, a profile, the machine; the same for both clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.commands.spark.hadoop_storage import hadoop_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from dbt.adapters.silt.engine.kernel.storage.credential_sources import Kind, access
from dbt.adapters.silt.engine.kernel.storage.opening import options
from dbt.adapters.silt.engine.kernel.storage.settings import StorageSettings
from dbt.adapters.silt.engine.kernel.storage.urls import parse_url

S3, AZURE, GOOGLE = map(parse_url, ("s3://b/p", "abfss://c@acc.dfs.core.windows.net/p", "gs://b/p"))
KEYS = {"AWS_ACCESS_KEY_ID": "env-id", "AWS_SECRET_ACCESS_KEY": "env-secret"}
WEB = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn"}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The variables of a user with two AWS profiles, one of them without keys."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[work]\naws_access_key_id = work-id\naws_secret_access_key = work-secret\naws_session_token = work-token\n"
    )
    (tmp_path / ".aws" / "config").write_text("[profile work]\nregion = eu-west-1\n[profile sso]\nsso_session = x\n")
    return {"HOME": str(tmp_path)}


def test_keys_in_the_settings_take_precedence_over_the_environment(home: dict[str, str]) -> None:
    given = StorageSettings(access_key_id="id", secret_access_key="secret")
    found = access(S3, given, {**home, **KEYS, "AWS_PROFILE": "work", "AWS_REGION": "here"})
    assert (found.settings.access_key_id, found.settings.region, found.kind) == ("id", "here", Kind.GIVEN)


@pytest.mark.parametrize(
    ("environ", "key", "kind"),
    [
        ({**KEYS, **WEB, "AWS_PROFILE": "work"}, "env-id", Kind.GIVEN),
        ({**WEB, "AWS_PROFILE": "work"}, None, Kind.WEB_IDENTITY),
        ({"AWS_PROFILE": "work"}, "work-id", Kind.GIVEN),
        ({}, None, Kind.MACHINE),
    ],
)
def test_the_environment_is_searched_in_the_order_of_the_services_own_tools(
    home: dict[str, str], environ: dict[str, str], key: str | None, kind: Kind
) -> None:
    found = access(S3, StorageSettings(), {**home, **environ})
    assert (found.settings.access_key_id, found.kind) == (key, kind)


def test_a_profile_provides_its_keys_and_its_region_to_both_clients(home: dict[str, str]) -> None:
    found = access(S3, StorageSettings(profile="work"), home)
    assert found.settings.region == "eu-west-1"
    assert options(S3, found.settings)["session_token"] == "work-token"


@pytest.mark.parametrize(("profile", "said"), [("wrok", "is neither in"), ("sso", "has no keys: Spark cannot sign in")])
def test_a_profile_that_not_both_clients_can_use_is_an_error_that_names_it(
    home: dict[str, str], profile: str, said: str
) -> None:
    with pytest.raises(InvalidSettingError, match=f"the AWS profile {profile}.*{said}"):
        access(S3, StorageSettings(profile=profile), home)


def test_an_unreadable_file_of_profiles_is_named_without_its_contents(home: dict[str, str]) -> None:
    Path(home["HOME"], ".aws", "credentials").write_text("planted-secret\n")
    with pytest.raises(InvalidSettingError, match="credentials cannot be read") as refused:
        access(S3, StorageSettings(), home)
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    ("environ", "kind", "secret"),
    [
        ({"AZURE_STORAGE_ACCOUNT_KEY": "the-key", "AZURE_STORAGE_SAS_TOKEN": "sas"}, Kind.GIVEN, "the-key"),
        ({"AZURE_STORAGE_SAS_TOKEN": "sas"}, Kind.GIVEN, "sas"),
        (
            {"AZURE_CLIENT_ID": "a", "AZURE_TENANT_ID": "b", "AZURE_CLIENT_SECRET": "the-secret"},
            Kind.GIVEN,
            "the-secret",
        ),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/token", "AZURE_CLIENT_ID": "a"}, Kind.WEB_IDENTITY, None),
        ({}, Kind.MACHINE, None),
    ],
)
def test_azures_variables_are_passed_to_both_clients(
    environ: dict[str, str], kind: Kind, secret: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = access(AZURE, StorageSettings(), environ)
    assert found.kind is kind
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    if secret is not None:
        assert secret in options(AZURE, found.settings).values()
        assert secret in hadoop_settings(str(AZURE), StorageSettings()).values()


def test_google_uses_the_file_of_the_settings_or_of_the_variable() -> None:
    variable = {"GOOGLE_APPLICATION_CREDENTIALS": "/env.json"}
    assert (
        access(GOOGLE, StorageSettings(service_account="/own.json"), variable).settings.service_account == "/own.json"
    )
    assert access(GOOGLE, StorageSettings(), variable).settings.service_account == "/env.json"
    assert access(GOOGLE, StorageSettings(), {}).kind is Kind.MACHINE
