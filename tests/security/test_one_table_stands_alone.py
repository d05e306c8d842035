"""A damaged table that another user wrote is shown as damaged, and neither stops nor delays the answers about other
tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.statements.resolve.information_schema import Asked, Listing
from tests.security.attacks import (
    DOORS,
    actions_of,
    changed,
    limited,
    log_folder,
    nested,
    put_commit,
    report,
    silt,
    with_two_tables,
)
from tests.unit.cli.house import House

Attack = Callable[[House], None]


def _in_log(name: str, content: str) -> Attack:
    return lambda house: (log_folder(house) / name).write_text(content) and None  # type: ignore[return-value]


def _pipe(name: str) -> Attack:
    def attack(house: House) -> None:
        (log_folder(house) / name).unlink(missing_ok=True)
        os.mkfifo(log_folder(house) / name)

    return attack


def _folder(name: str) -> Attack:
    def attack(house: House) -> None:
        (log_folder(house) / name).unlink(missing_ok=True)
        (log_folder(house) / name).mkdir()

    return attack


def _field(kind: str, version: int = 1, **fields: object) -> Attack:
    return lambda house: changed(house, version, kind, **fields)


def _schema(text: str) -> Attack:
    return _field("metaData", 0, schemaString=text)


def _parts(house: House) -> None:
    """Names a checkpoint with ten billion parts, of which only the first exists."""
    (log_folder(house) / f"{1:020d}.checkpoint.{1:010d}.{9_999_999_999:010d}.parquet").write_bytes(b"PAR1")


def _far_version(house: House) -> None:
    put_commit(house, 9_223_372_036_854_775_000, *actions_of(house, 1))


def _unreadable(house: House) -> None:
    put_commit(house, 2, {"add": {"path": "a\0b", "size": 3, "partitionValues": {}, "dataChange": True}})


ATTACKS: dict[str, Attack] = {
    "deep schemaString": _schema(nested()),
    "schema of deep arrays": _schema(
        '{"type":"struct","fields":[{"name":"a","nullable":true,"type":'
        + '{"type":"array","containsNull":true,"elementType":' * 900
        + '"long"'
        + "}" * 900
        + "}]}"
    ),
    "deep stats": _field("add", stats=nested()),
    "stats that are no object": _field("add", stats="[1, 2]"),
    "absurd stats": _field("add", stats='{"numRecords": 1e400, "minValues": {"id": 1e999999999}, "nullCount": 3}'),
    "negative number of rows": _field("add", stats='{"numRecords": -5}'),
    "deep commit": _in_log(f"{2:020d}.json", nested()),
    "deep unknown action": _in_log(f"{2:020d}.json", '{"other": ' + nested() + "}"),
    "deep hint": _in_log("_last_checkpoint", nested()),
    "absurd hint": _in_log("_last_checkpoint", '{"version": 99999999999999999999999999999}'),
    "deep checksum": _in_log(f"{1:020d}.crc", nested()),
    "deep drop marker": lambda house: (house.folder / "main/hostile/_drop.json").write_text(nested()) and None,  # type: ignore[dict-item]
    "path with a NUL": _unreadable,
    "path of half a character": _field("add", path="\ud800"),
    "property of half a character": _field("metaData", 0, configuration={"a": "\ud83d", "\ud83d": "b"}),
    "transaction of half a character": lambda house: put_commit(house, 2, {"txn": {"appId": "\ud83d", "version": 1}}),
    "pipe as commit": _pipe(f"{1:020d}.json"),
    "pipe as next commit": _pipe(f"{2:020d}.json"),
    "pipe as first commit": _pipe(f"{0:020d}.json"),
    "pipe as hint": _pipe("_last_checkpoint"),
    "pipe as checksum": _pipe(f"{1:020d}.crc"),
    "folder as commit": _folder(f"{1:020d}.json"),
    "folder as hint": _folder("_last_checkpoint"),
    "ten billion parts": _parts,
    "version far away": _far_version,
    "version beyond 64 bits": _in_log("99999999999999999999.json", "{}"),
    "no UTF-8": lambda house: (log_folder(house) / f"{2:020d}.json").write_bytes(b'{"add": "\xff"}') and None,  # type: ignore[dict-item]
    "absurd created time": _field("metaData", 0, createdTime=1 << 62),
    "absurd commit time": _field("commitInfo", timestamp=1 << 62, inCommitTimestamp=1 << 62),
    "absurd size": _field("add", size=(1 << 63) - 1),
    "negative size": _field("add", size=-1),
    "absurd modification time": _field("add", modificationTime=-(1 << 63)),
    "absurd properties": _field("metaData", 0, configuration={"delta.checkpointInterval": "-1"}),
    "absurd interval": _field(
        "metaData", 0, configuration={"delta.deletedFileRetentionDuration": "interval " + "9" * 4000 + " weeks"}
    ),
    "key that is none": _field("metaData", 0, configuration={"silt.constraints.pk": nested()}),
    "metrics of other kinds": _field("commitInfo", operationMetrics={"numOutputRows": {"a": 1}, "numFiles": "1e9"}),
    "facts of other kinds": _field("commitInfo", dbt={"runId": [1], "nodeId": {"a": 1}}, readVersions={"a": ["x"]}),
    "attempts beyond counting": _field("commitInfo", commitAttempts=1 << 80, statementAttempts=-5),
    "deep clustering": lambda house: put_commit(
        house, 2, {"domainMetadata": {"domain": "delta.clustering", "configuration": nested(), "removed": False}}
    ),
    "clustering by nothing": lambda house: put_commit(
        house,
        2,
        {"domainMetadata": {"domain": "delta.clustering", "configuration": '{"clusteringColumns": [[], [1], "x"]}'}},
    ),
    "restore of a far version": _field(
        "commitInfo", operation="RESTORE", engineInfo="dbt-silt/9", operationParameters={"version": -(1 << 70)}
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_every_command_answers_for_the_table_next_to_a_damaged_table(attack: Attack, tmp_path: Path) -> None:
    house = with_two_tables(tmp_path / "house")
    attack(house)
    page = tmp_path / "page.html"
    assert report(house, page).code in (0, 1)
    assert "main.good" in page.read_text(encoding="utf-8")
    for door in DOORS:
        said = silt(house, *door)
        assert said.code in (0, 1, 2), door
        assert "SILT_INTERNAL" not in said.all, f"{door}: {said.all}"
    assert "SILT_INTERNAL" not in page.read_text(encoding="utf-8")
    assert silt(house, "show", "main.good", "--rows").code == 0


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_information_schema_lists_the_table_next_to_a_damaged_table(
    attack: Attack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = with_two_tables(tmp_path / "house")
    attack(house)
    with limited():
        for relation in ("tables", "columns", "views", "schemata"):
            rows = Listing("silt", relation).rows(House(house.folder).catalog, Asked(), lambda name: None).to_pylist()
            found = {each.get("table_name") for each in rows}
            assert "good" in found or relation in ("views", "schemata")
            assert relation != "columns" or "hostile" in found or "silt.main.hostile" in caplog.text


@pytest.mark.parametrize("attack", ["deep schemaString", "pipe as commit", "deep commit", "folder as commit"])
def test_the_reason_is_shown_for_the_damaged_table(attack: str, tmp_path: Path) -> None:
    house = with_two_tables(tmp_path / "house")
    ATTACKS[attack](house)
    document = json.loads(silt(house, "check", "--json").out)
    problems = {table["table"]: table["problems"] for table in document["tables"]}
    assert problems["silt.main.good"] == []
    assert problems["silt.main.hostile"]
