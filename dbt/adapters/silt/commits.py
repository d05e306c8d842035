"""What a commit leaves behind for dbt: the adapter response, commitInfo, a line in `silt_commits.jsonl` and the log.

dbt drops the adapter response of a node that fails after its commit, and of every microbatch model. The line in the
file, the line in the log and the commit's own commitInfo are where the facts stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.silt.engine.commands.target import Outcome
from dbt.adapters.silt.engine.kernel import memory
from dbt.adapters.silt.engine.kernel.actions import CommitInfo
from dbt.adapters.silt.engine.kernel.log import Commit, DeltaLog
from dbt.adapters.silt.units import Unit

COMMITS_FILE = "silt_commits.jsonl"
INFO_KEY = "dbt"


@dataclass
class SiltResponse(AdapterResponse):
    """What a statement did, as it stands in `run_results.json`.

    Attributes:
        run_id, app_id, txn_version: the unit of work, where the statement was one.
        table, table_version, operation: what was committed, where.
        attempts, statement_attempts: how often the commit, and the whole statement, was tried.
        skipped: whether an earlier commit had done this unit of work; `table_version` is then that commit's.
    """

    run_id: str | None = None
    app_id: str | None = None
    txn_version: int | None = None
    table: str | None = None
    table_version: int | None = None
    operation: str | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    files_skipped: int | None = None
    attempts: int | None = None
    statement_attempts: int | None = None
    skipped: bool | None = None

    @classmethod
    def of(cls, outcome: Outcome | None, unit: Unit | None) -> SiltResponse:
        """The response of a statement; `outcome` is None for one that changes no table."""
        if outcome is None:
            return cls("OK", code="OK")
        changes = (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted)
        known = [rows for rows in changes if rows is not None]
        return cls(
            _message=_skip_message(outcome, unit) if outcome.skipped else _message(outcome),
            code=outcome.operation,
            rows_affected=sum(known) if known else None,
            run_id=unit.run_id if unit else None,
            app_id=unit.app_id if unit else None,
            txn_version=unit.version if unit else None,
            table=outcome.table,
            table_version=outcome.version,
            operation=outcome.operation,
            rows_inserted=outcome.rows_inserted,
            rows_updated=outcome.rows_updated,
            rows_deleted=outcome.rows_deleted,
            files_added=outcome.files_added,
            files_removed=outcome.files_removed,
            files_skipped=outcome.files_skipped,
            attempts=outcome.attempts,
            statement_attempts=outcome.statement_attempts,
            skipped=outcome.skipped,
        )


@dataclass(frozen=True)
class Author:
    """Who commits: one node of one dbt command."""

    invocation_id: str
    target: str
    run_id: str | None
    node_id: str | None
    checksum: str | None = None
    query_comment: str | None = None

    def commit_info(self, unit: Unit | None) -> dict[str, Any]:
        """The fields that a commit's commitInfo gets."""
        facts = {
            "invocationId": self.invocation_id,
            "target": self.target,
            "runId": unit.run_id if unit else self.run_id,
            "nodeId": self.node_id,
            "appId": unit.app_id if unit else None,
            "nodeChecksum": unit.checksum if unit and unit.checksum else self.checksum,
            "queryComment": (self.query_comment or "").strip() or None,
        }
        return {INFO_KEY: {name: value for name, value in facts.items() if value is not None}}


class CommitJournal:
    """The file `target/silt_commits.jsonl`: a JSON object per commit, appended in one write each."""

    def __init__(self, target_path: Path) -> None:
        self._path = target_path / COMMITS_FILE

    def append(self, response: SiltResponse, author: Author) -> None:
        facts = response.to_dict(omit_none=True)
        facts.pop("_message", None)
        facts.pop("code", None)
        line = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "invocation_id": author.invocation_id,
            "node_id": author.node_id,
            **facts,
        }
        data = (json.dumps({name: value for name, value in line.items() if value is not None}) + "\n").encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, data)
        finally:
            os.close(file)


@dataclass(frozen=True)
class EarlierCommit:
    """The commit that did a unit of work before.

    Attributes:
        info: what this adapter noted in it.
        emptied_at: the version since that took all rows out of the table, if any.
    """

    version: int
    info: Mapping[str, Any]
    emptied_at: int | None = None


def find_unit(log: DeltaLog, app_id: str) -> EarlierCommit | None:
    """The newest commit that holds a unit of work; None if its commit file was cleaned up since."""
    found = memory.find(log, app_id)
    return None if found is None else EarlierCommit(found.commit.version, dbt_info(found.commit), found.emptied_at)


def find_run_id(logs: Iterable[DeltaLog], invocation_id: str) -> str | None:
    """The run id that a dbt command worked under, from the commits that it left in any of these tables."""
    for log in logs:
        for commit in log.newest_commits():
            info = dbt_info(commit)
            if info.get("invocationId") == invocation_id and info.get("runId"):
                return str(info["runId"])
    return None


def dbt_info(commit: Commit) -> Mapping[str, Any]:
    """The part of a commit's commitInfo that this adapter wrote; empty if another writer's commit."""
    for action in commit.actions:
        if isinstance(action, CommitInfo):
            info = action.extra.get(INFO_KEY)
            return info if isinstance(info, Mapping) else {}
    return {}


def _message(outcome: Outcome) -> str:
    """Such as "v12: 4,120 inserted, 310 updated in 3 files"."""
    rows = [
        f"{count:,} {verb}"
        for count, verb in (
            (outcome.rows_inserted, "inserted"),
            (outcome.rows_updated, "updated"),
            (outcome.rows_deleted, "deleted"),
        )
        if count
    ]
    files = f" in {outcome.files_added:,} file{'' if outcome.files_added == 1 else 's'}" if outcome.files_added else ""
    version = "" if outcome.version is None else f"v{outcome.version}: "
    counted = any(each is not None for each in (outcome.rows_inserted, outcome.rows_updated, outcome.rows_deleted))
    what = (", ".join(rows) or "no row changed") if counted else outcome.operation.lower()
    return f"{version}{what}{files}"


def _skip_message(outcome: Outcome, unit: Unit | None) -> str:
    run = f" by run {unit.run_id}" if unit else ""
    version = "" if outcome.version is None else f"@v{outcome.version}"
    since = (
        "" if outcome.emptied_at is None else f"; all rows were taken out of the table since, by v{outcome.emptied_at}"
    )
    return f"skipped: already applied{run} as {outcome.table}{version}{since}"
