"""The state of a table in a form in which this engine and the naive reader can be compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from tests.corpus import naive_reader

_MAPPED = ("name", "id")


def possible(files: Mapping[str, bytes], version: int) -> list[object]:
    """Returns the states that the naive reader finds, one for each start from which it can read the log.

    Args:
        files: see `files_of`.
    """
    return [comparable(state) for state in naive_reader.states(files, version)]


def files_of(folder: Path) -> dict[str, bytes]:
    """Returns the files of a log's folder, and of its sidecars: path below the folder -> content."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted((*folder.glob("*"), *folder.glob("_sidecars/*")))
        if file.is_file() and not file.name.startswith(".")
    }


def of_snapshot(snapshot: Snapshot) -> object:
    """Returns the state that this engine reads: files, transactions, schema and partition columns."""
    files = {}
    for add in snapshot.add_files():
        vector = "" if add.deletion_vector is None else add.deletion_vector.unique_id
        files[(decode_path(add.path), vector)] = (dict(add.partition_values), add.size)
    transactions = {name: each.version for name, each in snapshot.transactions.items()}
    schema = _schema(snapshot.metadata.schema_string, snapshot.metadata.configuration)
    return files, transactions, snapshot.metadata.id, schema, list(snapshot.partition_columns)


def comparable(state: naive_reader.State) -> object:
    """Returns a state of the naive reader in the form of `of_snapshot`."""
    metadata = state.metadata
    text = metadata.get("schemaString") or '{"type":"struct","fields":[]}'
    schema = _schema(text, metadata.get("configuration"))
    return state.files, state.transactions, metadata.get("id"), schema, metadata["partitionColumns"]


def _schema(text: Any, configuration: Any) -> Any:
    """Returns the JSON of a schema, or its damaged text; without the remains of an earlier column mapping if mapping
    is off.
    """
    try:
        schema = json.loads(text)
    except (TypeError, ValueError):
        return text
    pairs = configuration.items() if isinstance(configuration, Mapping) else configuration
    is_mapped = (
        isinstance(pairs, Collection)
        and not isinstance(pairs, str)
        and any(("delta.columnMapping.mode", mode) in pairs for mode in _MAPPED)
    )
    return schema if is_mapped else _without_mapping(schema)


def _without_mapping(schema: Any) -> Any:
    """Returns a schema's JSON without the fields that matter only under column mapping."""
    if isinstance(schema, list):
        return [_without_mapping(each) for each in schema]
    if isinstance(schema, dict):
        return {k: _without_mapping(v) for k, v in schema.items() if not k.startswith("delta.columnMapping.")}
    return schema
