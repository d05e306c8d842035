"""Finds tables with published results in the folder ACCEPTANCE_DATA: golden tables, DAT and workloads of the kernel.

Each folder is found by its form, at any depth. The repositories' archives must be unpacked:

- golden tables (delta-io/delta-kernel-rs): `delta/`, and the newest rows as Parquet in `expected/`;
- DAT (delta-incubator/dat): `delta/`, and `expected/latest` and `expected/v3` with rows and metadata;
- workloads (delta-incubator/dat): `delta/`, the reads in `specs/*.json`, their rows in `expected/<name>/expected_data`;
- any other folder with a log is a table without published results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER

VARIABLE = "ACCEPTANCE_DATA"
FOLDER = Path(os.environ[VARIABLE]).absolute() if os.environ.get(VARIABLE) else None
needs_acceptance_data = pytest.mark.skipif(not FOLDER, reason=f"{VARIABLE} names no folder of acceptance data")
LARGEST = 8 << 20
"""The size of a log in bytes above which its versions are not compared one by one."""


@dataclass(frozen=True)
class Case:
    """A read with a published result.

    Args:
        name: path of the case below the folder, and the read's name.
        table: folder of the table.
        version: of the read; None for the newest.
        timestamp: of the read, in UTC; None to read by version.
        where: condition of the read, in SQL.
        columns: of the read; None for all.
        rows: folder with the expected rows as Parquet; None if they are not published.
        row_count: number of the rows, if it is published.
        facts: further expected facts of the snapshot: `version`, `properties`, `protocol`, `metadata`.
        error: code of the expected error of delta-spark; None if the read must succeed.
    """

    name: str
    table: Path
    version: int | None = None
    timestamp: str | None = None
    where: str | None = None
    columns: tuple[str, ...] | None = None
    rows: Path | None = None
    row_count: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


def tables(root: Path | None = FOLDER) -> Iterator[Path]:
    """Returns each folder with a log, in the order of the paths."""
    if root is not None:
        yield from sorted(log.parent for log in root.rglob(LOG_FOLDER) if log.is_dir())


def name_of(table: Path) -> str:
    """Returns the name by which a table is known in its repository."""
    return table.parent.name if table.name == "delta" else table.name


def is_large(table: Path) -> bool:
    """Returns whether the log is so large that only its newest version is compared."""
    return sum(file.stat().st_size for file in (table / LOG_FOLDER).iterdir()) > LARGEST


def cases(root: Path | None = FOLDER) -> Iterator[Case]:
    """Returns the published results of all tables."""
    for table in tables(root):
        folder = table.parent
        name = folder.relative_to(root or "").as_posix()
        if table.name != "delta":
            continue
        if (folder / "specs").is_dir():
            yield from _workloads(folder, name)
        elif (folder / "expected" / "latest").is_dir():
            yield from _of_dat(folder, name)
        elif (folder / "expected").is_dir():
            yield Case(name, table, rows=folder / "expected")


def _of_dat(folder: Path, name: str) -> Iterator[Case]:
    for expected in sorted((folder / "expected").iterdir()):
        stated = json.loads((expected / "table_version_metadata.json").read_text(encoding="utf-8"))
        version = None if expected.name == "latest" else int(expected.name.removeprefix("v"))
        protocol = {"minReaderVersion": stated["min_reader_version"], "minWriterVersion": stated["min_writer_version"]}
        facts = {"version": stated["version"], "properties": stated["properties"], "protocol": protocol}
        yield Case(f"{name}/{expected.name}", folder / "delta", version, rows=expected / "table_content", facts=facts)


def _workloads(folder: Path, name: str) -> Iterator[Case]:
    for file in sorted((folder / "specs").rglob("*.json")):
        spec = json.loads(file.read_text(encoding="utf-8"))
        if spec.get("type") not in ("read", "snapshot", "snapshotConstruction", "snapshot_construction"):
            continue
        read = file.parent.name if file.name == "spec.json" else file.stem
        rows = folder / "expected" / read / "expected_data"
        expected = spec.get("expected") or {}
        yield Case(
            f"{name}/{read}",
            folder / "delta",
            spec.get("version"),
            spec.get("timestamp"),
            spec.get("predicate"),
            tuple(spec["columns"]) if spec.get("columns") else None,
            rows if rows.is_dir() else None,
            expected.get("rowCount"),
            {key: expected[key] for key in ("protocol", "metadata") if key in expected},
            spec["error"]["errorCode"] if "error" in spec else None,
        )
