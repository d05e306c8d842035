"""Writes a dbt project's logs and artifacts without data files, and without Spark and dbt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
_ROWS = 1_000
_COLUMNS = ("id", "customer", "amount", "country", "at", "note")
_TYPES = ("long", "string", "decimal(12,2)", "string", "timestamp", "string")


@dataclass(frozen=True)
class Plan:
    """The content of the warehouse.

    Attributes:
        tables: the number of models, each with a table.
        commits: the number of commits of all tables.
    """

    tables: int
    commits: int

    @property
    def versions(self) -> int:
        """The number of versions of each table, each of which a separate run writes."""
        return self.commits // self.tables


def make(plan: Plan, folder: Path) -> None:
    """Writes the warehouse and the target folder of a project."""
    catalog = Catalog({"silt": LocalStore(folder / "warehouse")})
    catalog.create_schema("silt", "main")
    for number in range(plan.tables):
        log = folder / "warehouse" / "main" / _name(number) / "_delta_log"
        log.mkdir(parents=True)
        for version in range(plan.versions):
            lines = [json.dumps(action, separators=(",", ":")) for action in _commit(number, version)]
            (log / f"{version:020}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
            (log / f"{version:020}.crc").write_text(_checksum(version), encoding="utf-8")
    target = folder / "target"
    target.mkdir()
    (target / "manifest.json").write_text(json.dumps(_manifest(plan)), encoding="utf-8")
    (target / "run_results.json").write_text(json.dumps(_results(plan)), encoding="utf-8")
    (target / "silt_commits.jsonl").write_text("".join(_journal(plan)), encoding="utf-8")
    (target / "silt_runs.json").write_text(json.dumps({"runs": list(_runs(plan))}), encoding="utf-8")


def _name(number: int) -> str:
    return f"model_of_the_warehouse_{number:04}"


def _node(number: int) -> str:
    return f"model.shop.{_name(number)}"


def _time(number: int, version: int) -> int:
    return START_MS + version * DAY_MS + number * 400


def _run(version: int) -> str:
    return f"{version:08x}-7d0c-4e50-9e0d-53b8f61e9a1c"


def _commit(number: int, version: int) -> Iterator[dict[str, Any]]:
    yield {"commitInfo": _info(number, version)}
    if version == 0:
        yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        yield {"metaData": _metadata(number)}
    app_id = f"silt/shop/{_node(number)}/{_run(version)}/main"
    yield {"txn": {"appId": app_id, "version": 1, "lastUpdated": _time(number, version)}}
    yield {"add": _add(number, version)}
    if version and version % 2 == 0:
        removed = {"path": _path(number, version - 1), "deletionTimestamp": _time(number, version), "dataChange": True}
        yield {"remove": {**removed, "extendedFileMetadata": True, "partitionValues": {}, "size": 10_000}}


def _info(number: int, version: int) -> dict[str, Any]:
    metrics = {"numOutputRows": str(_ROWS), "numFiles": "1", "numOutputBytes": "10000"}
    facts = {
        "invocationId": _run(version),
        "target": "dev",
        "runId": _run(version),
        "nodeId": _node(number),
        "appId": f"silt/shop/{_node(number)}/{_run(version)}/main",
        "nodeChecksum": f"{number:064x}",
    }
    return {
        "timestamp": _time(number, version),
        "operation": "WRITE" if version else "CREATE TABLE AS SELECT",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "isolationLevel": "WriteSerializable",
        "isBlindAppend": True,
        "operationMetrics": metrics,
        "engineInfo": "dbt-silt/0.1.0",
        "commitAttempts": 1,
        "statementAttempts": 1,
        "dbt": facts,
    }


def _metadata(number: int) -> dict[str, Any]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {"comment": f"what {name} is"}}
        for name, kind in zip(_COLUMNS, _TYPES, strict=True)
    ]
    return {
        "id": f"{number:08x}-3c1d-4a4e-8f58-0f5e8a7b9c10",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.checkpointInterval": "100000"},
        "createdTime": START_MS,
    }


def _path(number: int, version: int) -> str:
    return f"part-00000-{number:08x}-{version:04x}-4e50-9e0d-53b8f61e9a1c-c000.snappy.parquet"


def _add(number: int, version: int) -> dict[str, Any]:
    low, high = version * _ROWS, (version + 1) * _ROWS - 1
    ends = [
        {"id": key, "customer": f"customer {key}", "amount": 1.25, "country": "NL", "at": "2024-01-01T00:00:00.000Z"}
        for key in (low, high)
    ]
    counts = dict.fromkeys(_COLUMNS, 0)
    stats = {"numRecords": _ROWS, "minValues": ends[0], "maxValues": ends[1], "nullCount": counts}
    body = {"path": _path(number, version), "partitionValues": {}, "size": 10_000}
    return {
        **body,
        "modificationTime": _time(number, version),
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
        "tags": {"SILT_STATISTICS": "own"},
    }


def _checksum(version: int) -> str:
    files = version + 1 - version // 2
    return json.dumps({"tableSizeBytes": files * 10_000, "numFiles": files, "numMetadata": 1, "numProtocol": 1})


def _manifest(plan: Plan) -> dict[str, Any]:
    nodes = {_node(number): _manifest_node(number) for number in range(plan.tables)}
    tests = {f"test.shop.unique_{_name(number)}_id": _manifest_test(number) for number in range(plan.tables)}
    children: dict[str, list[str]] = {name: [] for name in (*nodes, *tests)}
    for name, node in {**nodes, **tests}.items():
        for parent in node["depends_on"]["nodes"]:
            children[parent].append(name)
    metadata = {"project_name": "shop", "adapter_type": "silt", "generated_at": "2023-11-23T00:00:00Z"}
    return {"metadata": metadata, "nodes": {**nodes, **tests}, "sources": {}, "exposures": {}, "child_map": children}


def _manifest_node(number: int) -> dict[str, Any]:
    parents = {number // 2, number - 7} - {number}
    return {
        "unique_id": _node(number),
        "resource_type": "model",
        "name": _name(number),
        "database": "silt",
        "schema": "main",
        "alias": _name(number),
        "relation_name": f"`silt`.`main`.`{_name(number)}`",
        "original_file_path": f"models/area_{number % 9}/{_name(number)}.sql",
        "description": "what the model is",
        "config": {"materialized": "incremental", "enabled": True, "tags": []},
        "columns": {name: {"name": name, "description": f"what {name} is"} for name in _COLUMNS},
        "depends_on": {"macros": [], "nodes": [_node(parent) for parent in sorted(parents) if parent >= 0]},
        "raw_code": "select * from {{ ref('it') }}\n" * 60,
        "compiled_code": "select * from it\n" * 60,
    }


def _manifest_test(number: int) -> dict[str, Any]:
    return {
        "unique_id": f"test.shop.unique_{_name(number)}_id",
        "resource_type": "test",
        "name": f"unique_{_name(number)}_id",
        "column_name": "id",
        "attached_node": _node(number),
        "test_metadata": {"name": "unique", "kwargs": {"column_name": "id"}},
        "config": {"severity": "ERROR"},
        "depends_on": {"nodes": [_node(number)]},
    }


def _results(plan: Plan) -> dict[str, Any]:
    newest = plan.versions - 1
    results = [_result(number, newest) for number in range(plan.tables)]
    metadata = {"invocation_id": _run(newest), "generated_at": "2023-11-23T00:00:00Z"}
    return {"metadata": metadata, "results": results, "elapsed_time": plan.tables * 0.4, "args": {"which": "run"}}


def _result(number: int, version: int) -> dict[str, Any]:
    started, ended = (_iso(_time(number, version) - before) for before in (1500, 0))
    return {
        "unique_id": _node(number),
        "status": "success",
        "thread_id": f"Thread-{number % 4 + 1} (worker)",
        "execution_time": 1.5,
        "timing": [{"name": "execute", "started_at": started, "completed_at": ended}],
        "adapter_response": {"run_id": _run(version), "table_version": version, "rows_inserted": _ROWS, "attempts": 1},
        "message": f"v{version}: {_ROWS} inserted",
        "failures": None,
    }


def _journal(plan: Plan) -> Iterator[str]:
    for version in range(plan.versions):
        for number in range(plan.tables):
            entry = {
                "time": _iso(_time(number, version)),
                "table": f"silt.main.{_name(number)}",
                "invocation_id": _run(version),
                "run_id": _run(version),
                "node_id": _node(number),
                "table_version": version,
                "operation": "WRITE",
                "rows_inserted": _ROWS,
                "attempts": 1,
                "statement_attempts": 1,
            }
            yield json.dumps(entry) + "\n"


def _runs(plan: Plan) -> Iterator[dict[str, Any]]:
    for version in range(plan.versions):
        yield {
            "invocation_id": _run(version),
            "run_id": _run(version),
            "command": "dbt run",
            "directory": "/shop",
            "started_at": _iso(_time(0, version) - 2_000),
            "target": "dev",
            "finished": True,
            "ended_at": _iso(_time(plan.tables, version)),
        }


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(timespec="milliseconds")
