"""Renders commits as cells and as JSON, for the subcommands that list commits."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dbt.adapters.silt.cli.answers import count, iso
from dbt.adapters.silt.engine.kernel.log.commit_file import RowsChanged
from dbt.adapters.silt.records.run_history import LoggedCommit


def counts(rows: RowsChanged) -> list[str]:
    """Returns the cells of rows inserted, updated and deleted."""
    return [count(rows.inserted), count(rows.updated), count(rows.deleted)]


def commit_json(commit: LoggedCommit) -> dict[str, Any]:
    """Returns a commit as JSON."""
    facts = {} if commit.facts is None else asdict(commit.facts)
    return {
        "version": commit.version,
        "committed_at": iso(commit.timestamp_ms),
        "operation": commit.operation,
        **rows_json(commit.rows),
        "run_id": commit.run_id,
        "invocation_id": facts.get("invocation_id"),
        "target": facts.get("target"),
        "node_id": facts.get("node_id"),
        "batch_id": facts.get("batch_id"),
        "app_id": facts.get("app_id"),
        "user_metadata": commit.user_metadata,
        "engine": commit.engine,
    }


def rows_json(rows: RowsChanged) -> dict[str, int | None]:
    """Returns the rows changed as members of a JSON object."""
    return {"rows_inserted": rows.inserted, "rows_updated": rows.updated, "rows_deleted": rows.deleted}
