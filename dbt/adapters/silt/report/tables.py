"""Reads the tables of a warehouse into the page's data, in parallel.

A table that cannot be read has a problem instead of content, so that a damaged log does not hide other tables. Reading
logs on a local disk is work for Python, which runs a single thread at a time, so many tables are read by forks of the
process. Object stores are read by threads, which wait for them concurrently.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.errors import NotATableError, RelationNotFoundError, SchemaNotFoundError
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.table_problems import problem_of
from dbt.adapters.silt.report.log_reading import History
from dbt.adapters.silt.report.table_content import content_of
from dbt.adapters.silt.report.table_json import table_json

_READERS: Final = 8
_WORTH_FORKS: Final = 64
"""The number of tables from which forks save more time than they cost."""

Keys = Mapping[str, Sequence[str]]
"""The columns that a project declares unique, by the full name of the table."""


_Read = Callable[[RelationName], "TableRead | None"]
_inherited: list[_Read] = []
"""The reader of tables, in a fork: a fork inherits it, because a catalog cannot be sent to another process."""


@dataclass(frozen=True)
class TableRead:
    """A table of the page.

    Attributes:
        json: the table's part of the page's data.
        runs: the time of each run's last commit to it, in milliseconds since 1970-01-01 UTC.
        is_damaged: whether it could not be read.
    """

    name: str
    json: str
    runs: Mapping[str, int] = field(default_factory=dict)
    is_damaged: bool = False


def read_tables(catalog: Catalog, keys: Keys, is_local: bool) -> list[TableRead]:
    """Reads every table, sorted by name; omits a table that is dropped meanwhile.

    Args:
        is_local: whether all logs are on a local disk.

    Raises:
        StorageError: if the storage cannot list the tables.
    """
    names = list(catalog.all_tables())
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


def _runs(history: History) -> dict[str, int]:
    found: dict[str, int] = {}
    for version in history.versions:
        facts = CommitFacts.of_info(version.info)
        run_id = None if facts is None else facts.run_id or facts.invocation_id
        if run_id is not None:
            found[run_id] = max(version.timestamp_ms, found.get(run_id, 0))
    return found
