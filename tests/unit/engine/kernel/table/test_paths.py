"""The names of log files, and the encoding of data files' paths."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.table.paths import (
    LogFileKind,
    LogFileName,
    checkpoint_path,
    checksum_path,
    commit_name,
    commit_path,
    decode_path,
    encode_path,
    is_absolute,
    log_path,
    parse_log_name,
)

V12 = "00000000000000000012"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        (f"{V12}.json", LogFileName(LogFileKind.COMMIT, 12)),
        (f"{V12}.crc", LogFileName(LogFileKind.CHECKSUM, 12)),
        (f"{V12}.checkpoint.parquet", LogFileName(LogFileKind.CLASSIC_CHECKPOINT, 12)),
        (
            f"{V12}.checkpoint.0000000002.0000000003.parquet",
            LogFileName(LogFileKind.MULTI_PART_CHECKPOINT, 12, part=2, parts=3),
        ),
        (f"{V12}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", LogFileName(LogFileKind.UUID_CHECKPOINT, 12)),
        (f"{V12}.checkpoint.80a083e8.parquet", LogFileName(LogFileKind.UUID_CHECKPOINT, 12)),
        (f"{V12}.00000000000000000020.compacted.json", LogFileName(LogFileKind.COMPACTION, 12, last_version=20)),
    ],
)
def test_the_kinds_of_log_files_are_recognised_by_name(name: str, parsed: LogFileName) -> None:
    assert parse_log_name(name) == parsed


@pytest.mark.parametrize(
    "name",
    [
        "",
        "_last_checkpoint",
        f".{V12}.json.crc",
        f".{V12}.json.0a.tmp",
        f"{V12}.json.tmp",
        f"{V12}.json\n",
        f"x{V12}.json",
        "12.json",
        f"0{V12}.json",
        f"{V12}.checkpoint.parquet.crc",
        f"{V12}.checkpoint.a.b.parquet",
        f"{V12}.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "\u0661" * 20 + ".json",
    ],
)
def test_all_other_names_are_ignored(name: str) -> None:
    assert parse_log_name(name) is None


@given(st.integers(0, (1 << 63) - 1))
def test_created_names_are_parsed_back(version: int) -> None:
    assert parse_log_name(commit_name(version)) == LogFileName(LogFileKind.COMMIT, version)
    for path, kind in (
        (commit_path(version), LogFileKind.COMMIT),
        (checkpoint_path(version), LogFileKind.CLASSIC_CHECKPOINT),
        (checksum_path(version), LogFileKind.CHECKSUM),
    ):
        parsed = parse_log_name(path.removeprefix("_delta_log/"))
        assert parsed is not None and parsed.version == version and parsed.kind is kind


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not text.startswith("file:")))
def test_an_encoded_path_decodes_to_the_original(path: str) -> None:
    assert decode_path(encode_path(path)) == path


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_encoded_path_has_no_character_that_a_uri_forbids(path: str) -> None:
    encoded = encode_path(path)
    assert not set(encoded) & set(' "#<>?[]\\^`{|}\x00\n\x7f\xa0\u2028')
    assert urllib.parse.unquote(encoded) == path


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("p=a b/x.parquet", "p=a%20b/x.parquet"),
        ("p=b%2Fc/x", "p=b%252Fc/x"),
        ("p=ü+&=;@!$'()*,~:/x", "p=ü+&=;@!$'()*,~:/x"),
        ("p=😊/x", "p=😊/x"),
    ],
)
def test_paths_are_encoded_as_delta_spark_encodes_them(name: str, spelled: str) -> None:
    assert encode_path(name) == spelled


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_path_in_this_engines_commits_is_ascii_and_means_the_same_path(path: str) -> None:
    assert log_path(path).isascii()
    assert urllib.parse.unquote(log_path(path)) == path
    assert log_path("k=é*日 /x") == "k=%C3%A9%2A%E6%97%A5%20/x"


@pytest.mark.parametrize("spelling", ["/data/a b", "/data/a%20b", "file:/data/a%20b", "file:///data/a%20b"])
def test_all_spellings_of_an_absolute_path_are_the_same_file(spelling: str) -> None:
    assert decode_path(spelling) == "/data/a b"
    assert is_absolute(spelling)


def test_a_plus_does_not_mean_a_space() -> None:
    assert decode_path("a+b") == "a+b"


@pytest.mark.parametrize("path", ["a/b", "p=a:b/c", "part-0.parquet", "p%3A=x/y"])
def test_relative_paths_are_recognised(path: str) -> None:
    assert not is_absolute(path)


def test_paths_of_object_stores_are_absolute() -> None:
    assert is_absolute("s3://bucket/key") and is_absolute("abfss://a@b/c")
