"""Makes a process ready for dbt's commands step by step, without running any: nothing of a project comes into it."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from dbt.adapters.silt.command_server.untouched import untouched

BEFORE_THE_FIRST: Final = ("dbt.cli.main", "dbt.adapters.silt.impl")
"""The modules without which no command begins: a command waits for them."""

_WHOLE_PACKAGES: Final = ("dbt.task", "dbt.parser", "dbt.compilation", "dbt.graph", "dbt.adapters.silt")
"""The packages all of whose modules commands need, which import some of them late."""
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
"""The modules that statements need, of which some are imported when they are first used."""

_DICTIONARIES: Final = "mashumaro.mixins.dict"
_SCHEMAS_OF: Final = (
    "dbt.contracts.project",
    "dbt.contracts.selection",
    "dbt.adapters.silt.credentials",
    "dbt.artifacts.resources.v1",
    "dbt.contracts.graph",
)
_MOST_SCHEMAS: Final = 100
"""dbt keeps the last 128."""
_AT_ONCE: Final = 40
"""Classes of one step."""


def steps() -> Iterator[str]:
    """Yields after each step what it was; between two of them a command can be answered.

    Raises:
        ImportError: dbt itself cannot be imported.
    """
    for name in BEFORE_THE_FIRST:
        importlib.import_module(name)
    yield "dbt"
    for name in (*_modules(), *_OF_STATEMENTS):
        _import(name)
        yield name
    for prepare, classes in ((_generate_code, _dataclasses()), (_make_schema, _with_schemas())):
        for position in range(0, len(classes), _AT_ONCE):
            with untouched():
                for each in classes[position : position + _AT_ONCE]:
                    prepare(each)
            yield prepare.__name__
    inspect.stack()  # dbt asks for one, and Python then looks at each module once
    _end_threads()
    # What a fork never frees it need not look at, and its pages stay shared.
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
    """The module; None where it is not installed, or cannot be imported: a command that needs it says so."""
    with suppress(Exception):
        return importlib.import_module(name)


def _dataclasses() -> list[Any]:
    """The classes whose code for reading and writing dictionaries is generated when it is first called."""
    module = _import(_DICTIONARIES)
    return [] if module is None else list(dict.fromkeys(_subclasses(module.DataClassDictMixin)))


def _subclasses(above: Any) -> Iterator[Any]:
    for each in above.__subclasses__():
        yield each
        yield from _subclasses(each)


def _generate_code(of: Any) -> None:
    """Has the code generated: by a call, whose argument is then none that it takes."""
    for name, argument in (("from_dict", None), ("from_msgpack", b"")):
        with suppress(Exception):
            getattr(of, name)(argument)
    for name in ("to_dict", "to_msgpack"):
        with suppress(Exception):
            getattr(of, name)(object.__new__(of))


def _make_schema(of: Any) -> None:
    with suppress(Exception):
        of.json_schema()


def _with_schemas() -> list[Any]:
    found = (each for module in _SCHEMAS_OF for each in _dataclasses() if each.__module__.startswith(module))
    return list(islice((each for each in found if hasattr(each, "json_schema")), _MOST_SCHEMAS))


def _end_threads() -> None:
    """Ends the threads that libraries start when they are loaded and end before a fork, such as those of OpenBLAS."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
