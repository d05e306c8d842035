"""Reads the tables of a warehouse in parallel, and writes them into the page's data, with short field names.

A table that cannot be read has a problem instead of content, so that a damaged log does not hide other tables. Reading
logs on a local disk is work for Python, which runs a single thread at a time, so many tables are read by forks of the
process. Object stores are read by threads, which wait for them concurrently.

`static/data.js` reads the output.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import NotATableError, RelationNotFoundError, SchemaNotFoundError
from dbt.adapters.silt.engine.kernel.log.commit_file import counts_of
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.table.actions import Metadata
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from dbt.adapters.silt.engine.kernel.table.features import features_of
from dbt.adapters.silt.engine.kernel.table.keys import enforcement, table_keys
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.run_history import problem_of
from dbt.adapters.silt.report.encoding import Texts, present, row
from dbt.adapters.silt.report.log_reading import FileChange, History, Version
from dbt.adapters.silt.report.table_content import TableContent, content_of

_READERS: Final = 8
_WORTH_FORKS: Final = 64
"""The number of tables from which forks save more time than they cost."""

Keys = Mapping[str, Sequence[str]]
"""The columns that a project declares unique, by the full name of the table."""


_Read = Callable[[RelationName], "TableRead | None"]
_inherited: list[_Read] = []
"""The reader of tables, in a fork: a fork inherits it, because a catalog cannot be sent to another process."""


@dataclass(frozen=True)
class RunCommit:
    """The last commit of a run to a table.

    Attributes:
        ms: its time, in milliseconds since 1970-01-01 UTC.
        target: the profile's target, if it is recorded.
        client: the client of `silt endpoint` that made it, if one did.
    """

    ms: int
    target: str | None
    client: str | None = None


@dataclass(frozen=True)
class TableRead:
    """A table of the page.

    Attributes:
        json: the table's part of the page's data.
        runs: the last commit of each run to it.
        is_damaged: whether it could not be read.
    """

    name: str
    json: str
    runs: Mapping[str, RunCommit] = field(default_factory=dict)
    is_damaged: bool = False


def read_tables(catalog: Catalog, names: Sequence[RelationName], keys: Keys, is_local: bool) -> list[TableRead]:
    """Reads tables, in this order; omits a table that is dropped meanwhile.

    Args:
        is_local: whether all logs are on a local disk.
    """
    read = functools.partial(read_table, catalog, keys)
    if is_local and len(names) >= _WORTH_FORKS and _may_fork():
        found = _by_forks(read, names)
    elif is_local:
        found = [read(name) for name in names]
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(read, names))
    return [table for table in found if table is not None]


def read_table(catalog: Catalog, keys: Keys, name: RelationName) -> TableRead | None:
    """Reads a table, unless it is dropped meanwhile."""
    try:
        content = content_of(catalog.table(name), keys.get(str(name), ()))
        return TableRead(str(name), to_json(table_json(str(name), content)), _runs(content.history))
    except (RelationNotFoundError, SchemaNotFoundError):
        return None
    except Exception as error:
        gone = isinstance(error, NotATableError) and catalog.find(name) is None
        problem = str(problem_of(error, str(name)))
        return None if gone else TableRead(str(name), to_json({"n": str(name), "problem": problem}), is_damaged=True)


def to_json(value: Any) -> str:
    """Returns a value as JSON that is also text in HTML: no character in it begins markup or ends a line."""
    written = json.dumps(value, separators=(",", ":"), default=str)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _may_fork() -> bool:
    """Returns whether a fork is safe: locks held by other threads would remain locked in it forever."""
    return sys.platform == "linux" and threading.active_count() == 1 and (os.cpu_count() or 1) > 1


def _by_forks(read: _Read, names: Sequence[RelationName]) -> list[TableRead | None]:
    forks = min(os.cpu_count() or 1, _READERS)
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings(), ProcessPoolExecutor(forks, context, _inherited.append, (read,)) as pool:
        # Python warns because of the threads of PyArrow's allocator, which holds no lock while nothing is read.
        warnings.simplefilter("ignore", DeprecationWarning)
        return list(pool.map(_read_in_fork, names, chunksize=max(1, len(names) // (forks * 4))))


def _read_in_fork(name: RelationName) -> TableRead | None:
    return _inherited[0](name)


def _runs(history: History) -> dict[str, RunCommit]:
    found: dict[str, RunCommit] = {}
    for version in history.versions:
        facts = CommitFacts.of_info(version.info) or CommitFacts()
        run_id = facts.run_id or facts.invocation_id
        if run_id is not None and (run_id not in found or found[run_id].ms <= version.timestamp_ms):
            found[run_id] = RunCommit(version.timestamp_ms, facts.target, facts.client)
    return found


def table_json(name: str, content: TableContent) -> dict[str, Any]:
    """Returns the data of a table, and the strings to which numbers in its rows refer."""
    snapshot, texts = content.snapshot, Texts()
    layout = present(
        sizes=[[each.files, each.bytes] for each in content.sizes],
        partitions=[[list(each.values), each.files, each.bytes, each.rows] for each in content.partitions],
        overlaps=[[each.column, each.files, each.mean, each.most, each.ranges] for each in content.overlaps],
    )
    body = {
        "n": name,
        **present(
            v=snapshot.version,
            rows=content.rows,
            files=snapshot.num_files,
            bytes=snapshot.size_in_bytes,
            clustered=clustered_by(snapshot.schema, snapshot.domains),
            partitionCount=content.partition_count or None,
            small=[content.small.files, content.small.packed, content.small.bytes] if content.small.files else None,
            dead=_dead(content),
            doubt=snapshot.doubt,
            features=features_of(snapshot.protocol),
            leftOut=content.history.left_out or None,
            schemas=[_metadata(each, content.snapshot, texts) for each in _definitions(content)],
            commits=list(_commits(content, texts)),
        ),
        **layout,
    }
    return {**body, "texts": texts.all()}


def _dead(content: TableContent) -> list[int] | None:
    every, due = content.dead.all, content.dead.due
    return [every.files, every.bytes, due.files, due.bytes] if every.files else None


def _definitions(content: TableContent) -> list[Metadata]:
    """Returns the definitions of the table in its versions, oldest first; the last definition is current."""
    changed = [version.metadata for version in content.history.versions if version.metadata is not None]
    return [*changed[:-1], content.snapshot.metadata]


def _metadata(metadata: Metadata, snapshot: Snapshot, texts: Texts) -> dict[str, Any]:
    columns = [
        row(
            texts.number(name),
            texts.number(field.sql_type),
            None if field.nullable else 1,
            texts.number(field.comment),
            texts.number(field.generation_expression),
        )
        for name, field in _fields(StructType.from_json(metadata.schema_string))
    ]
    keys = {
        name: f"{key.sql} ({enforcement(key, snapshot.transactions, snapshot.version)})"
        for name, key in table_keys(metadata.configuration).items()
    }
    return present(
        columns=columns,
        properties=dict(sorted(metadata.configuration.items())),
        keys=keys,
        comment=metadata.description,
        partitioned=list(metadata.partition_columns),
    )


def _fields(schema: StructType, above: str = "") -> Iterator[tuple[str, StructField]]:
    for member in schema:
        yield above + member.name, member
        if isinstance(member.type, StructType):
            yield from _fields(member.type, f"{above}{member.name}.")


def _commits(content: TableContent, texts: Texts) -> Iterator[list[Any]]:
    """Yields the versions, oldest first."""
    definitions = _definition_numbers(content.history)
    sums = _sums(content)
    for version, definition, after in zip(content.history.versions, definitions, sums, strict=True):
        undone = content.undone.get(version.version)
        yield _commit(version, texts, [*after, definition, undone])


def _commit(version: Version, texts: Texts, more: Sequence[Any]) -> list[Any]:
    info, facts, counts = version.info, CommitFacts.of_info(version.info) or CommitFacts(), counts_of(version.info)
    change = version.change
    files = () if change is None else (change.added, change.removed, change.bytes_added, change.bytes_removed)
    return row(
        version.version,
        version.timestamp_ms,
        texts.number(info.operation),
        *counts.rows,
        *(files or [None] * 4),
        *more[:3],
        texts.number(facts.run_id or facts.invocation_id),
        texts.number(facts.node_id),
        texts.number(info.engine_info),
        *more[3:],
        *(_again(counts.attempts), _again(counts.statement_attempts)),
        texts.number(facts.batch_id),
        texts.number(info.user_metadata),
        texts.number(facts.rolled_back_run_id),
    )


def _again(attempts: int | None) -> int | None:
    """Returns the number of repeated attempts, if any."""
    return attempts - 1 if attempts is not None and attempts > 1 else None


def _definition_numbers(history: History) -> list[int | None]:
    """Returns the number of each version's definition; None before the first definition in the log."""
    changes = sum(version.metadata is not None for version in history.versions)
    number: int | None = None if changes else 0
    found: list[int | None] = []
    for version in history.versions:
        if version.metadata is not None:
            number = 0 if number is None else number + 1
        found.append(number)
    return found


def _sums(content: TableContent) -> list[tuple[int | None, int | None, int | None]]:
    """Returns rows, files and bytes of the table after each version, counted backwards from the newest."""
    snapshot = content.snapshot
    rows, files, size = content.rows, snapshot.num_files, snapshot.size_in_bytes
    now: tuple[int | None, int | None, int | None] = (rows, files, size)
    found = []
    for version in reversed(content.history.versions):
        found.append(now)
        now = _totals_before(now, version.change)
    return found[::-1]


def _totals_before(
    after: tuple[int | None, int | None, int | None], change: FileChange | None
) -> tuple[int | None, int | None, int | None]:
    if change is None:
        return None, None, None
    rows, files, size = after
    return (
        None if rows is None or change.rows is None else rows - change.rows,
        None if files is None else files - change.added + change.removed,
        None if size is None else size - change.bytes_added + change.bytes_removed,
    )
