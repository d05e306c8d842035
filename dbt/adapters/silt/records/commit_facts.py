"""Reads and writes the facts of a dbt command in commitInfo, and finds commits by them.

The facts are in the commit itself, under a single key, so they survive any later failure of the process: the log is the
truth about a run, and every other record can be derived from it. Nothing here needs dbt or Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.kernel.log import commit_search
    from dbt.adapters.silt.engine.kernel.log.history import Commit
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.engine.kernel.table.actions import CommitInfo, Json
else:
    commit_search = lazy_module("dbt.adapters.silt.engine.kernel.log.commit_search")

INFO_KEY: Final = "dbt"
"""The field of `commitInfo` for the facts."""


@dataclass(frozen=True)
class CommitFacts:
    """The origin of a commit: a node of a dbt command, in a logical run.

    Attributes:
        invocation_id: dbt's id of the command.
        target: the profile's target.
        run_id: the logical run.
        node_id: dbt's unique id of the node, if a node made the commit.
        batch_id: id of a microbatch.
        app_id: the unit of work of the commit, if it is part of a unit.
        node_checksum: checksum of the node's raw code, or of a seed's file.
        query_comment: the comment that dbt adds to the statement.
        rolled_back_run_id: the logical run that the commit undoes; the commit itself then belongs to no run.
        code_hash: hash of the node's compiled code and its configs.
        client: the user and the program that sent the statement to `silt endpoint`, as the program names them.
    """

    invocation_id: str | None = None
    target: str | None = None
    run_id: str | None = None
    node_id: str | None = None
    batch_id: str | None = None
    app_id: str | None = None
    node_checksum: str | None = None
    query_comment: str | None = None
    rolled_back_run_id: str | None = None
    code_hash: str | None = None
    client: str | None = None

    @classmethod
    def of(cls, commit: Commit) -> CommitFacts | None:
        """Returns the facts in a commit, if it is a commit of a dbt command."""
        return cls.of_info(commit.info)

    @classmethod
    def of_info(cls, info: CommitInfo) -> CommitFacts | None:
        """Returns the facts in a commitInfo, or None for another writer's. Only strings are read."""
        written = info.extra.get(INFO_KEY)
        if not isinstance(written, Mapping):
            return None
        found = {name: written.get(key) for name, key in _KEYS.items()}
        return cls(**{name: value for name, value in found.items() if isinstance(value, str)})

    def commit_info(self) -> dict[str, Json]:
        """Returns the fields for a commit's commitInfo; omits unknown facts."""
        known = {key: getattr(self, name) for name, key in _KEYS.items()}
        return {INFO_KEY: {key: value for key, value in known.items() if value is not None}}


@dataclass(frozen=True)
class EarlierCommit:
    """An earlier commit of a unit of work.

    Attributes:
        facts: facts of the dbt command that wrote it; empty for another writer.
        emptied_at: the later version that deleted all rows of the table, if any.
    """

    commit: Commit
    facts: CommitFacts
    emptied_at: int | None = None

    @property
    def version(self) -> int:
        """The table version of the commit."""
        return self.commit.version


def find_unit(log: DeltaLog, app_id: str) -> EarlierCommit | None:
    """Finds the newest commit of a unit of work, unless its commit file has been cleaned up."""
    found = commit_search.find_commit(log, app_id)
    if found is None:
        return None
    return EarlierCommit(found.commit, CommitFacts.of(found.commit) or CommitFacts(), found.emptied_at)


def find_run_id(logs: Iterable[DeltaLog], invocation_id: str, since: datetime) -> str | None:
    """Finds the run id of a dbt command in its commits to these tables.

    Args:
        logs: the logs of tables, which are read in turn until such a commit is found.
        invocation_id: dbt's id of the command.
        since: a time before its first commit.
    """
    earliest = int(since.timestamp() * 1000)
    for log in logs:
        for commit in log.newest_commits():
            facts, committed_ms = CommitFacts.of(commit), commit.info.timestamp
            if facts is not None and facts.invocation_id == invocation_id and facts.run_id:
                return facts.run_id
            if committed_ms is not None and committed_ms < earliest:
                break
    return None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_KEYS: Final = {field.name: _camel(field.name) for field in fields(CommitFacts)}
