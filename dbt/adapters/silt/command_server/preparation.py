"""Prepares a process for dbt's commands step by step, without running a command or reading a project."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager, suppress
from itertools import islice
from types import ModuleType
from typing import Any, Final, NamedTuple

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

_DICTIONARIES: Final = "mashumaro.mixins.dict"
_SCHEMAS_OF: Final = (
    "dbt.contracts.project",
    "dbt.contracts.selection",
    "dbt.adapters.silt.credentials",
    "dbt.artifacts.resources.v1",
    "dbt.contracts.graph",
)
_MOST_SCHEMAS: Final = 100
"""dbt keeps the last 128 schemas."""
_AT_ONCE: Final = 40
"""The number of classes in a step."""
_PACKAGES: Final = ("dbt", "dbt_common", "dbt_semantic_interfaces")


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
    for prepare, classes in ((_generate_code, _dataclasses()), (_make_schema, _with_schemas())):
        for position in range(0, len(classes), _AT_ONCE):
            with restored():
                for each in classes[position : position + _AT_ONCE]:
                    prepare(each)
            yield prepare.__name__
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


def _dataclasses() -> list[Any]:
    """Returns the dataclasses of dbt that generate their code for dictionaries when it is first called."""
    module = _import(_DICTIONARIES)
    return [] if module is None else list(dict.fromkeys(_subclasses(module.DataClassDictMixin)))


def _subclasses(above: Any) -> Iterator[Any]:
    for each in above.__subclasses__():
        yield each
        yield from _subclasses(each)


def _generate_code(of: Any) -> None:
    """Calls methods with wrong arguments: the calls fail, but generate the code."""
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
    """Ends the threads that libraries such as OpenBLAS start when they are loaded and stop before a fork."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


class _Global(NamedTuple):
    """The value of a module's global, and its members if the value is a collection."""

    value: Any
    content: Any


@contextmanager
def restored() -> Iterator[None]:
    """Undoes changes of the globals of dbt's modules, and of collections in them, when the block ends.

    The preparation of dbt's classes may fill dbt's caches.
    """
    before = {name: _globals(module) for name, module in _dbt_modules()}
    try:
        yield
    finally:
        for name, module in _dbt_modules():
            if name in before:
                _restore(module, before[name])


def _dbt_modules() -> list[tuple[str, ModuleType]]:
    return [(name, each) for name, each in tuple(sys.modules.items()) if name.partition(".")[0] in _PACKAGES]


def _globals(module: ModuleType) -> dict[str, _Global]:
    found = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    return {name: _Global(value, _content(value)) for name, value in found.items()}


def _content(value: Any) -> tuple[Any, ...] | None:
    """Returns the pairs of a mapping or the members of another collection, if the value is either."""
    if isinstance(value, MutableMapping):
        return tuple(value.items())
    return tuple(value) if isinstance(value, (MutableSequence, MutableSet)) else None


def _restore(module: ModuleType, before: dict[str, _Global]) -> None:
    for name, each in before.items():
        if vars(module).get(name) is not each.value:
            setattr(module, name, each.value)
        if each.content is not None and not _is_same(_content(each.value), each.content):
            _refill(each.value, each.content)


def _is_same(now: Any, before: Any) -> bool:
    """Returns whether two contents hold the same objects; `==` of arbitrary objects may not be meaningful."""
    if isinstance(now, tuple) and isinstance(before, tuple) and len(now) == len(before):
        return all(_is_same(*pair) for pair in zip(now, before, strict=True))
    return now is before


def _refill(collection: Any, content: tuple[Any, ...]) -> None:
    collection.clear()
    if isinstance(collection, MutableSequence):
        collection.extend(content)
    elif isinstance(collection, MutableMapping):
        collection.update(content)
    else:
        for each in content:
            collection.add(each)
