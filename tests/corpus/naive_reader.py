"""A second reader of the log, for comparison: plain Python and plain pyarrow, no code of the project.

It is slow and simple: it replays every action of every file, oldest first, and starts once from each readable
checkpoint. Source: the Delta specification, section "Action Reconciliation".
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(r"^(\d{20})\.checkpoint(?:\.\d{10}\.\d{10}|\.[0-9A-Za-z-]{36})?\.(parquet|json)$")
# The compared part; the rest of a checkpoint may be damaged without notice.
_COMPARED = re.compile(r"^((protocol|metaData|txn|sidecar)\b|add\.(path|size|partitionValues|deletionVector)\b)")
_KNOWN = ("protocol", "metaData", "txn", "add", "remove")


@dataclass
class State:
    """The state of a table according to its log.

    Attributes:
        files: (path, id of the deletion vector) -> partition values and size.
    """

    protocol: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], tuple[dict[str, str | None], int]] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    def apply(self, wrapper: Mapping[str, Any]) -> None:
        """Applies a line of a commit, or a row of a checkpoint."""
        for key, body in wrapper.items():
            if body is None or key not in _KNOWN:
                continue
            if not isinstance(body, dict):
                raise TypeError(f"{key} is no object")
            if key == "protocol":
                self.protocol = body
            elif key == "metaData":
                self.metadata = body
            elif key == "txn":
                self.transactions[body["appId"]] = body["version"]
            elif key == "add":
                values = dict(body.get("partitionValues") or {})
                self.files[_key(body)] = (values, body["size"])
            elif key == "remove":
                self.files.pop(_key(body), None)


def states(files: Mapping[str, bytes], version: int) -> Iterator[State]:
    """Returns the possible states of a table at a version: one for each start from which its log can be read."""
    commits = {int(match[1]): name for name in files if (match := _COMMIT.match(name))}
    for beginning in [-1, *sorted(_checkpoints(files))]:
        if beginning > version:
            continue
        with contextlib.suppress(*_UNREADABLE):
            yield _replayed(files, commits, beginning, version)


_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException, RecursionError)


def _replayed(files: Mapping[str, bytes], commits: Mapping[int, str], beginning: int, version: int) -> State:
    state = State()
    if beginning >= 0:
        for row in _rows(files, beginning):
            state.apply(row)
    for number in range(beginning + 1, version + 1):
        for line in files[commits[number]].decode().split("\n"):
            if line.strip():
                state.apply(json.loads(line))
    state.metadata["partitionColumns"] = list(state.metadata.get("partitionColumns") or ())
    return state


def _checkpoints(files: Mapping[str, bytes]) -> set[int]:
    return {int(match[1]) for name in files if (match := _CHECKPOINT.match(name))}


def _rows(files: Mapping[str, bytes], version: int) -> Iterator[dict[str, Any]]:
    """Returns all rows of a version's checkpoint, of any kind and number of parts."""
    for name in files:
        match = _CHECKPOINT.match(name)
        if match is None or int(match[1]) != version:
            continue
        for row in _read(name, files[name]):
            sidecar = row.get("sidecar")
            yield from [row] if sidecar is None else _read(sidecar["path"], files["_sidecars/" + sidecar["path"]])


def _read(name: str, data: bytes) -> list[dict[str, Any]]:
    if name.endswith(".json"):
        return [json.loads(line) for line in data.decode().split("\n") if line.strip()]
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    leaves = [leaf.path for leaf in map(file.schema.column, range(len(file.schema))) if _COMPARED.match(leaf.path)]
    rows: list[dict[str, Any]] = file.read(columns=leaves).to_pylist()
    return [_without_nothing(row) for row in rows]


def _without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    """Removes structs of nulls: Arrow returns them for absent structs if only some of their fields were requested."""
    return {key: body for key, body in row.items() if body is not None and any(v is not None for v in body.values())}


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    vector = body.get("deletionVector")
    path = re.sub("^file:/+", "/", unquote(body["path"]))
    if vector is None:
        return path, ""
    at = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return path, f"{vector['storageType']}{vector['pathOrInlineDv']}{at}"
