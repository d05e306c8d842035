"""The phases of a statement: their names, and the functions whose time they are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ENGINE = "dbt.adapters.silt.engine"
REST = "the rest"

PHASES: dict[str, tuple[str, ...]] = {
    "parse the statement": ("warehouse:Warehouse.parsed",),
    "read settings of the session": (
        "warehouse:Warehouse._write_settings",
        "warehouse:Warehouse._context",
        "commands.spark.session_settings:quotes_for",
        "commands.spark.session_settings:check_session",
    ),
    "find the table by its name": ("statements.resolve.namespace:Namespace.meaning",),
    "pin the tables": ("kernel.scan.consistent_cut:consistent_cut", "kernel.log.log:DeltaLog.snapshot"),
    "resolve the texts": ("statements.resolve.resolve:Resolver.resolve",),
    "analyse the query": ("pyspark.sql.session:SparkSession.sql",),
    "plan the clauses, place the columns": (
        "statements.resolve.merge_keys:merge_keys",
        "commands.merge.clauses:number_clauses",
        "commands.merge.clauses:new_rows",
        "commands.merge.plan:check",
        "commands.insert.placement:place",
    ),
    "compute the source once": ("commands.merge.source:stabilise", "commands.merge.source:with_values"),
    "skip files": ("kernel.scan.skipping:prune", "kernel.scan.skipping:fully_matched"),
    "find touched files and rows": (
        "commands.merge.join:touched",
        "commands.merge.join:find",
        "commands.rows.file_rows:touched",
        "commands.rows.marking:positions",
        "commands.rows.marking:plan",
        "commands.rows.marking:changes",
    ),
    "join the sides": (
        "commands.merge.join:joined",
        "commands.merge.join:unmatched_source",
        "commands.merge.join:unmatched_target",
        "commands.merge.join:parts",
    ),
    "open the data files": ("commands.reading.scan:read", "commands.reading.scan:read_to_rewrite"),
    "prepare the write": ("commands.writing.files:write",),
    "Spark's write": ("pyspark.sql.readwriter:DataFrameWriter.parquet",),
    "list what was written, read footers": (
        "kernel.storage.store:Store.files_below",
        "kernel.files.statistics:from_footers",
    ),
    "make files durable": ("kernel.storage.local_store:LocalStore.make_durable",),
    "commit": ("kernel.transaction.commit:commit",),
    "checksum and checkpoint": ("kernel.log.log:DeltaLog.after_commit",),
    "rows that say what was done": ("statements.steps.context:Result.rows",),
}
"""The functions of each phase. A function's time excludes the time of functions inside it."""

Wrap = Callable[[str, Callable[..., Any]], Callable[..., Any]]


@contextmanager
def wrapped(wrap: Wrap) -> Iterator[None]:
    """Replaces the functions of all phases, in all modules that import them, by `wrap(phase, function)`.

    Raises:
        ImportError, AttributeError: if the engine no longer has a function; the phases must be updated.
    """
    undo: list[tuple[Any, str, Any]] = []
    try:
        for phase, names in PHASES.items():
            for name in names:
                owner, attribute = _owner(name)
                function = getattr(owner, attribute)
                made = wrap(phase, function)
                for holder, bound in _holders(owner, attribute, function):
                    undo.append((holder, bound, function))
                    setattr(holder, bound, made)
        yield
    finally:
        for holder, bound, function in reversed(undo):
            setattr(holder, bound, function)


def _owner(name: str) -> tuple[Any, str]:
    """Returns the module or class that has a function, and the function's name in it."""
    module, _, path = name.partition(":")
    owner: Any = importlib.import_module(module if module.startswith("pyspark.") else f"{ENGINE}.{module}")
    *classes, attribute = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    return owner, attribute


def _holders(owner: Any, attribute: str, function: Any) -> Iterator[tuple[Any, str]]:
    """Yields the places where a function is bound: its owner, and the modules of the engine that import it by name."""
    yield owner, attribute
    for name, module in list(sys.modules.items()):
        if module is not owner and name.startswith(ENGINE):
            for bound, value in list(vars(module).items()):
                if value is function:
                    yield module, bound
