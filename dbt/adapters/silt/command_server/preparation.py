"""Prepares a process for dbt's commands step by step, without running a command or reading a project.

It also checks whether the installed packages are unchanged since the process imported them.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pkgutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from dbt.adapters.silt.dbt_seams import prepared_classes

BEFORE_THE_FIRST: Final = ("dbt.cli.main", "dbt.adapters.silt.impl")
"""The modules that every command needs, and waits for."""

_WHOLE_PACKAGES: Final = ("dbt.task", "dbt.parser", "dbt.compilation", "dbt.graph", "dbt.adapters.silt")
"""Packages whose modules are all imported in advance, because commands need them and import some of them late."""
_NOT_NEEDED: Final = ("dbt.adapters.silt.cli", "dbt.adapters.silt.command_server", "dbt.adapters.silt.sqlglot_dialect")

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

_OF_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")


class _File(NamedTuple):
    """The state of a file, which differs from any other state of it in at least one member."""

    number: int
    size: int
    changed: int


_UNKNOWN = _File(0, 0, 0)
"""A state that no file has."""


class Packages(NamedTuple):
    """The imported modules, and the modules that could be imported.

    Attributes:
        modules: the state of each imported file.
        listings: the names in each folder on the module path.
    """

    modules: Mapping[str, _File | None]
    listings: Mapping[str, object]

    def are_unchanged(self) -> bool:
        """Returns whether a new process would import the same modules."""
        return all(_file(path) == file for path, file in self.modules.items()) and all(
            _listing(path) == names for path, names in self.listings.items()
        )


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


def on_path() -> Packages:
    """Returns the packages on the module path, with no module imported yet."""
    return Packages({}, {path: _listing(path) for path in sys.path})


def with_imported(before: Packages, since: int) -> Packages:
    """Returns the packages with the modules that this process has imported by now.

    Args:
        since: the start of this process, in nanoseconds since 1970. If a file was written later, the process may have
            imported an earlier state of it.
    """
    files = (getattr(module, "__file__", None) for module in tuple(sys.modules.values()))
    new = {path for path in files if isinstance(path, str)} - before.modules.keys()
    states = {path: _file(path) for path in new}
    now = time.time_ns()
    written = {path for path, state in states.items() if state is not None and since <= state.changed <= now}
    return before._replace(modules={**before.modules, **states, **dict.fromkeys(written, _UNKNOWN)})


def _file(path: str) -> _File | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _File(found.st_ino, found.st_size, found.st_mtime_ns)


def _listing(path: str) -> object:
    """Returns the names in a folder, with the times of the folders that describe packages; None if it is missing."""
    try:
        with os.scandir(path) as found:
            return frozenset(_described(each) for each in found if each.name != "__pycache__")
    except OSError:
        return None


def _described(entry: os.DirEntry[str]) -> tuple[str, int]:
    is_of_package = entry.name.endswith(_OF_PACKAGES)
    return entry.name, entry.stat().st_mtime_ns if is_of_package else 0
