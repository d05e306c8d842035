"""Where the endpoint listens decides what clients may do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli import endpoint
from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.credentials import SiltCredentials
from dbt.adapters.silt.endpoint.process import is_loopback, limits_of, with_connect
from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError

OPTIONS: dict[str, Any] = {
    "host": "127.0.0.1",
    "tls_cert": None,
    "read_only": None,
    "max_rows": 10,
    "max_seconds": None,
    "idle": 2,
}


@pytest.mark.parametrize(
    ("given", "is_read_only"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "localhost"}, False),
        ({"read_only": True}, True),
        ({"host": "0.0.0.0", "tls_cert": "c.pem"}, True),
        ({"host": "db.example.org", "tls_cert": "c.pem"}, True),
        ({"host": "0.0.0.0", "tls_cert": "c.pem", "read_only": False}, False),
    ],
)
def test_an_endpoint_on_a_network_is_read_only_unless_it_is_opened(given: dict[str, Any], is_read_only: bool) -> None:
    limits = limits_of(OPTIONS | given)
    assert (limits.is_read_only, limits.most_rows, limits.idle_seconds) == (is_read_only, 10, 120)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "db.example.org", ""])
def test_other_machines_cannot_connect_without_tls(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(InvalidSettingError, match="--tls-cert"):
        limits_of(OPTIONS | {"host": host})


def test_spark_connect_is_served_by_a_kept_spark_or_the_server_of_the_profile() -> None:
    assert with_connect(SiltCredentials()).keep_alive == "1 minute"
    for given in (SiltCredentials(keep_alive="2 hours"), SiltCredentials(remote="sc://a:1")):
        assert with_connect(given) is given
    with pytest.raises(InvalidSettingError, match="`remote` in the profile"):
        with_connect(SiltCredentials(master="spark://a:7077"))


def test_the_command_becomes_the_process_and_no_secret_is_on_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "warehouse" / "main").mkdir(parents=True)
    monkeypatch.setenv("SILT_ENDPOINT_TOKEN", "a-token-of-enough-characters")
    started: list[list[str]] = []

    def become(program: str, line: list[str]) -> None:
        started.append(line)
        with os.fdopen(int(line[-1])) as pipe:
            request = json.load(pipe)
        assert request["options"] | {"port": 0, "max_rows": 5, "read_only": True} == request["options"]
        assert request["credentials"]["warehouse"] == str(tmp_path / "warehouse")

    monkeypatch.setattr(os, "execv", become)
    given = ("--warehouse", str(tmp_path / "warehouse"), "--port", "0", "--max-rows", "5", "--read-only")
    main(["endpoint", *given])
    [line] = started
    assert line[1:3] == ["-m", endpoint.MODULE] and "a-token-of-enough-characters" not in " ".join(line)


def test_a_key_without_a_certificate_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["endpoint", "--warehouse", str(tmp_path), "--tls-key", "k.pem"]) == 2
    assert "Add --tls-cert" in capsys.readouterr().err
