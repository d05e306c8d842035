"""Prepares a process for dbt's commands step by step, without running a command or reading a project."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from dbt.adapters.silt.dbt_seams import prepared_classes

BEFORE_THE_FIRST: Final = ("dbt.cli.main", "dbt.adapters.silt.impl")
"""The modules that every command needs, and waits for."""

_WHOLE_PACKAGES: Final = ("dbt.task", "dbt.parser", "dbt.compilation", "dbt.graph", "dbt.adapters.silt")
"""Packages whose modules are all imported in advance, because commands need them and import some of them late."""
_NOT_NEEDED: Final = ("dbt.adapters.silt.cli", "dbt.adapters.silt.command_server", "dbt.adapters.silt.tools")

_OF_STATEMENTS: Final = (
    "agate",
    "numpy.random",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "py4j.java_gateway",
    "pyspark.sql",
    "pyspark.sql.functions",
    "pyspark.sql.pandas.conversion",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.functions.builtin",
    "pyspark.sql.connect.observation",
    "pyspark.sql.connect.readwriter",
    "pyspark.sql.connect.streaming",
    "grpc",
    "grpc_status.rpc_status",
    "rich.console",
    "jinja2.nativetypes",
    "dbt.adapters.__about__",
    "netrc",
    "pyspark.sql.classic.dataframe",
    "pyspark.sql.pandas.map_ops",
    "multiprocessing.dummy.connection",
    "multiprocessing.popen_spawn_posix",
    "multiprocessing.resource_tracker",
    "multiprocessing.synchronize",
)
"""Further modules that statements need, some of which are otherwise imported at their first use."""


def steps() -> Iterator[str]:
    """Yields the name of each step when it is done; between two steps the server can answer a command.

    Raises:
        ImportError: if dbt itself cannot be imported.
    """
    for name in BEFORE_THE_FIRST:
        importlib.import_module(name)
    yield "dbt"
    for name in (*_modules(), *_OF_STATEMENTS):
        _import(name)
        yield name
    yield from prepared_classes.prepare()
    inspect.stack()  # dbt reads a stack, and Python looks at each module at the first time
    _end_threads()
    # The collector of a fork need not visit frozen objects, and their pages remain shared.
    gc.collect()
    gc.freeze()
    yield "frozen"


def _modules() -> Iterator[str]:
    for package in _WHOLE_PACKAGES:
        yield package
        path = getattr(_import(package), "__path__", ())
        for found in pkgutil.walk_packages(path, f"{package}.", onerror=lambda _: None):
            if not found.name.startswith(_NOT_NEEDED) and not found.name.endswith("__main__"):
                yield found.name


def _import(name: str) -> Any:
    """Returns the module, or None if its import fails: a command that needs the module reports the error."""
    with suppress(Exception):
        return importlib.import_module(name)


def _end_threads() -> None:
    """Ends the threads that libraries such as OpenBLAS start when they are loaded and stop before a fork."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
