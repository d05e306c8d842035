"""Writes tables that consist only of logs, whose data files do not exist.

They are written with plain Python and pyarrow, so that no contestant reads its own output.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_PER_FILE = 1_000
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("customer", "string"), ("at", "timestamp"))
        ],
    }
)
_START_MS = 1_700_000_000_000
_TEXT_MAP = pa.map_(pa.string(), pa.string())
_TYPES = {
    "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _TEXT_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "add": pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", _TEXT_MAP),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("stats", pa.string()),
        ]
    ),
}


@dataclass(frozen=True)
class LogTable:
    """A table to create.

    Args:
        name: in reports.
        files: active files, each with the next `ROWS_PER_FILE` keys.
        in_checkpoint: the number of files in a checkpoint; each further file is a commit. 0 means no checkpoint.
    """

    name: str
    files: int
    in_checkpoint: int = 0

    @property
    def version(self) -> int:
        """The newest version: version 0 has a checkpoint or a file, and each further file is a commit."""
        return self.files - (self.in_checkpoint or 1)

    @property
    def key(self) -> int:
        """A key in one of the files."""
        return self.files // 3 * ROWS_PER_FILE + 7

    @property
    def file_of_key(self) -> str:
        """The name of the file that has `key`."""
        return path(self.key // ROWS_PER_FILE)


def make(table: LogTable, folder: Path) -> None:
    """Writes the table's log."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    first = list(_head()) if table.in_checkpoint else [*_head(), _add(0)]
    rest = range(table.in_checkpoint or 1, table.files)
    _write_commit(log, 0, first)
    if table.in_checkpoint:
        _write_checkpoint(log, table.in_checkpoint)
    for version, number in enumerate(rest, start=1):
        _write_commit(log, version, [_info(), _add(number)])


def path(number: int) -> str:
    """Returns the name of a file."""
    return f"part-{number:07}-4d3b8a52-7d0c-4e50-9e0d-53b8f61e9a1c-c000.snappy.parquet"


def stats(number: int) -> str:
    """Returns the statistics of a file."""
    low, high = number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE - 1
    return (
        f'{{"numRecords":{ROWS_PER_FILE},'
        f'"minValues":{{"id":{low},"customer":"customer {low:012}","at":"2024-01-01T00:00:00.000Z"}},'
        f'"maxValues":{{"id":{high},"customer":"customer {high:012}","at":"2024-12-31T00:00:00.000Z"}},'
        '"nullCount":{"id":0,"customer":0,"at":0}}'
    )


def _head() -> Iterator[dict[str, Any]]:
    yield _info()
    yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    yield {
        "metaData": {
            "id": "7f0a6b4e-3c1d-4a4e-8f58-0f5e8a7b9c10",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": SCHEMA,
            "partitionColumns": [],
            # No contestant should write a checkpoint while it is timed.
            "configuration": {"delta.checkpointInterval": "1000000"},
            "createdTime": _START_MS,
        }
    }


def _info() -> dict[str, Any]:
    return {"commitInfo": {"timestamp": _START_MS, "operation": "WRITE", "isBlindAppend": True}}


def _add(number: int) -> dict[str, Any]:
    body = {"path": path(number), "partitionValues": {}, "size": 10_000, "modificationTime": _START_MS}
    return {"add": {**body, "dataChange": True, "stats": stats(number)}}


def _write_commit(log: Path, version: int, actions: list[dict[str, Any]]) -> None:
    lines = (json.dumps(action, separators=(",", ":")) for action in actions)
    (log / f"{version:020}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_checkpoint(log: Path, files: int) -> None:
    """Writes a classic checkpoint of version 0, as if that commit had added the files."""
    actions = list(_head())[1:]
    head = [_rows(key, pa.array([body], _TYPES[key])) for action in actions for key, body in action.items()]
    rows = pa.concat_tables([*head, _rows("add", _adds(files))])
    pq.write_table(rows, log / f"{0:020}.checkpoint.parquet", compression="snappy")
    hint = {"version": 0, "size": files + len(actions)}
    (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")


def _rows(key: str, bodies: pa.Array) -> pa.Table:
    """Returns rows of one kind of action, with nulls in the columns of other kinds."""
    return pa.table({name: bodies if name == key else pa.nulls(len(bodies), kind) for name, kind in _TYPES.items()})


def _adds(files: int) -> pa.StructArray:
    kind = _TYPES["add"]
    columns = [
        pa.array(map(path, range(files)), pa.string()),
        pa.array([[]] * files, kind.field("partitionValues").type),
        pa.repeat(pa.scalar(10_000, pa.int64()), files),
        pa.repeat(pa.scalar(_START_MS, pa.int64()), files),
        pa.repeat(pa.scalar(False), files),
        pa.array(map(stats, range(files)), pa.string()),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(kind))
