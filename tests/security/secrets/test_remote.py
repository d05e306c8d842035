"""The secrets in the address of a Spark Connect server are never shown, even if the address is malformed."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.engine.commands.spark import shown_settings
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError, SiltError
from dbt.adapters.silt.session.spark import SessionSettings, open_session

MISTYPED = (
    "sc:/host/;token=S3CRET",
    "sc:host/;token=S3CRET",
    "sc//host/;token=S3CRET",
    "sc://host;token=S3CRET",
    "sc://host:15002;token=S3CRET",
    "sc://host:15002token=S3CRET",
    "sc://host:S3CRET",
    "sc://host/token=S3CRET",
    "sc://host/S3CRET",
    "sc://host:15002/;token:S3CRET",
    "sc://host:15002/;S3CRET",
    "sc://host:15002/?token=S3CRET",
    "sc://host:15002/#S3CRET",
    "sc://user:S3CRET@host:15002",
    "sc:/user:S3CRET@host",
    "user:S3CRET@host",
    "sc://S3CRET@host/;token=S3CRET",
    "http://host/;token=S3CRET",
    "host:15002/;token=S3CRET",
    "host;token=S3CRET",
    ";token=S3CRET",
    "token=S3CRET",
    "sc://host:15002/;token= S3CRET",
    "sc://host:15002/;use_ssl=true;user_id=me token=S3CRET",
    "sc://host:999999/;token=S3CRET",
    "sc://[::1/;token=S3CRET",
    "S3CRET",
    "dapi.S3CRET.a-b_c",
    "S3CRET/",
)


@pytest.mark.parametrize("remote", MISTYPED)
def test_a_malformed_address_is_refused_without_its_secret(remote: str) -> None:
    with pytest.raises(InvalidSettingError, match="sc://host:port") as raised:
        open_session(SessionSettings(remote=remote))
    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize("remote", [*MISTYPED, "sc://127.0.0.1:1/;use_ssl=true;token=S3CRET;x-key=S3CRET"])
def test_dbt_debug_shows_no_secret_of_an_address(remote: str) -> None:
    credentials = SiltCredentials(database="silt", schema="main", warehouse="house", remote=remote)
    assert "S3CRET" not in str(dict(credentials.connection_info()))


def test_an_unreachable_server_is_named_without_its_token() -> None:
    with pytest.raises(SiltError, match=r"sc://127\.0\.0\.1:1/;token=") as raised:
        open_session(SessionSettings(remote="sc://127.0.0.1:1/;token=S3CRET"))
    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize(
    "remote",
    ["sc://host", "sc://host/", "sc://a-b.c_d:15002", "sc://[::1]:15002/;use_ssl=true", "sc://h:1/;a=b==;token=x;"],
)
def test_an_address_as_spark_writes_it_is_accepted(remote: str) -> None:
    assert shown_settings.is_remote(remote)


def test_another_programs_message_about_an_address_is_shown_without_its_secrets() -> None:
    said = shown_settings.without_secrets("no such token: S3CRET (;token=S3CRET)", "sc://host/;token=S3CRET")
    assert said == "no such token: *** (;token=***)"
