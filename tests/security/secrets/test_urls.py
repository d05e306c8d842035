"""Secrets in the URL of a warehouse are never shown, by no command and in no message."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.cli.main import main

URLS = (
    "s3://u:S3CRET@bkt/x",
    "s3://S3CRET@bkt",
    "s3a://bkt/x?sig=S3CRET",
    "abfss://c@acc.dfs.core.windows.net/x?sv=1&sig=S3CRET",
    "gs://bkt/a/b?token=S3CRET",
    "https://u:S3CRET@host/x",
)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("command", [["runs"], ["check"], ["report", "--output", "page.html"], ["sql", "select 1"]])
def test_no_command_shows_the_secret_of_a_warehouses_url(
    url: str, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--warehouse", url]) != 0
    said = capsys.readouterr()
    assert "S3CRET" not in said.out + said.err
    assert "***" in said.err


@pytest.mark.parametrize("url", URLS[:3])
def test_no_command_shows_the_secret_of_a_tables_url(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (url, f"delta.`{url}`"):
        assert main(["show", name]) != 0
        said = capsys.readouterr()
        assert "S3CRET" not in said.out + said.err
