"""`silt history TABLE`: shows the versions of a table, the newest first; renders commits for the other subcommands."""

from __future__ import annotations

import itertools
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.cli.output.answers import UNKNOWN, UTC, Answer, Block, Rows, count, iso, utc
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.warehouses import Subparsers, subcommand, table_of, without_version
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.printable import short_id
from dbt.adapters.silt.engine.kernel.write_counts import WriteCounts
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.run_history import LoggedCommit, newest_commits

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.output import terminal
else:
    terminal = lazy_module("dbt.adapters.silt.cli.output.terminal")


def counts(written: WriteCounts) -> list[str]:
    """Returns the cells of rows inserted, updated and deleted."""
    return list(map(count, written.rows))


def commit_json(commit: LoggedCommit) -> dict[str, Any]:
    """Returns a commit as JSON."""
    facts = {} if commit.facts is None else asdict(commit.facts)
    return {
        "version": commit.version,
        "committed_at": iso(commit.timestamp_ms),
        "operation": commit.operation,
        **rows_json(commit.counts),
        "run_id": commit.run_id,
        "invocation_id": facts.get("invocation_id"),
        "target": facts.get("target"),
        "node_id": facts.get("node_id"),
        "batch_id": facts.get("batch_id"),
        "app_id": facts.get("app_id"),
        "client": facts.get("client"),
        "user_metadata": commit.user_metadata,
        "engine": commit.engine,
    }


def rows_json(written: WriteCounts) -> dict[str, int | None]:
    """Returns the rows changed as members of a JSON object."""
    return dict(zip(("rows_inserted", "rows_updated", "rows_deleted"), written.rows, strict=True))


_SHOWN_TOGETHER = 1_000
_COLUMNS = ("#version", f"committed {UTC}", "operation", "#inserted", "#updated", "#deleted", "run", "node", "engine")


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser: ArgumentParser = subcommand(
        subparsers, "history", "show the versions of a table", "Shows the commits that are still in the table's log."
    )
    parser.add_argument("table", metavar="TABLE", help="a name, such as main.orders, or the path of a table's folder")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="only the newest N versions")


def run(arguments: Namespace) -> int:
    """Prints the versions; to a person, each group of them as soon as it is read."""
    log = table_of(without_version(arguments.table), arguments)
    most = None if arguments.limit is None else max(arguments.limit, 0)
    commits = itertools.islice(newest_commits(log), most)
    if arguments.json:
        return show(answer(log, list(_counted(commits, log.name))), as_json=True)
    title = log.name
    while len(group := list(itertools.islice(commits, _SHOWN_TOGETHER))) == _SHOWN_TOGETHER:
        show(Answer({}, [_rows(group, title)]), as_json=False)
        title = ""
    blocks: list[Block] = [_rows(group, title)] if group or title else []
    future = log.in_future()
    return show(Answer({}, blocks if future is None else [*blocks, future.note]), as_json=False)


def _counted(commits: Iterator[LoggedCommit], table: str) -> Iterator[LoggedCommit]:
    """Yields the commits, and shows on a terminal how many were read."""
    with terminal.bars(sys.stderr) as bars:
        tell, total = bars.of_table(table), 0
        for commit in commits:
            total = total or commit.version + 1
            tell(1, total)
            yield commit


def answer(log: DeltaLog, commits: list[LoggedCommit]) -> Answer:
    """Renders the versions, in the order given."""
    document: dict[str, Any] = {
        "table": log.name,
        "location": log.store.root,
        "versions": [commit_json(commit) for commit in commits],
    }
    blocks: list[Block] = [_rows(commits, log.name)]
    future = log.in_future()
    if future is not None:
        document["note"] = future.note
        blocks.append(future.note)
    return Answer(document, blocks)


def _rows(commits: list[LoggedCommit], title: str = "") -> Rows:
    return Rows(_COLUMNS, [_row(commit) for commit in commits], title, "no versions")


def _row(commit: LoggedCommit) -> list[str]:
    facts = commit.facts
    return [
        str(commit.version),
        utc(commit.timestamp_ms),
        commit.operation or UNKNOWN,
        *counts(commit.counts),
        UNKNOWN if commit.run_id is None else short_id(commit.run_id),
        (facts and facts.node_id) or UNKNOWN,
        commit.engine or UNKNOWN,
    ]
