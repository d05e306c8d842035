"""Prepares dbt's dataclasses and macros in advance: dbt generates code and JSON schemas at the first use.

The preparation may fill dbt's caches; `restored` undoes these changes. dbt keeps the template of each macro by the
macro's text, so a macro that is replaced or edited has another template.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

_DICTIONARIES: Final = "mashumaro.mixins.dict"
SCHEMAS_OF: Final = (
    "dbt.contracts.project",
    "dbt.contracts.selection",
    "dbt.adapters.silt.credentials",
    "dbt.artifacts.resources.v1",
    "dbt.contracts.graph",
)
MOST_SCHEMAS: Final = 100
"""dbt keeps the last 128 schemas."""
_AT_ONCE: Final = 40
"""The number of classes in a step."""
_PACKAGES: Final = ("dbt", "dbt_common", "dbt_semantic_interfaces")
_MACROS_OF: Final = ("dbt.include.global_project", "dbt.include.spark")
_BLOCKS: Final = frozenset(("macro", "materialization", "test", "data_test"))


def prepare() -> Iterator[str]:
    """Prepares the macros, and the classes of the imported modules; yields the name of each step when it is done."""
    for file in macro_files():
        compile_macros(file)
        yield compile_macros.__name__
    for step, classes in ((generate_code, lazy_classes()), (make_schema, with_schemas())):
        for position in range(0, len(classes), _AT_ONCE):
            with restored():
                for each in classes[position : position + _AT_ONCE]:
                    step(each)
            yield step.__name__


def macro_files() -> list[Path]:
    """Returns the files with the macros of dbt and of this adapter, which every project has."""
    try:
        folders = [importlib.import_module(name).PACKAGE_PATH for name in _MACROS_OF]
        own = Path(importlib.import_module("dbt.adapters.silt.impl").Plugin.include_path).parent
    except Exception:
        return []  # a command that needs the module reports the error
    return sorted(file for each in (*map(Path, folders), own / "macros") for file in each.rglob("*.sql"))


def compile_macros(file: Path) -> None:
    """Compiles the macros of a file, as dbt does at the first call."""
    with suppress(Exception):
        jinja = importlib.import_module("dbt_common.clients.jinja")
        text = file.read_text(encoding="utf-8").strip()
        for block in jinja.extract_toplevel_blocks(text, allowed_blocks=_BLOCKS, collect_raw_data=False):
            jinja.template_cache.get_node_template(SimpleNamespace(macro_sql=block.full_block))


def lazy_classes() -> list[Any]:
    """Returns the dataclasses of dbt that generate their code for dictionaries when it is first called."""
    try:
        above = importlib.import_module(_DICTIONARIES).DataClassDictMixin
    except Exception:
        return []  # a command that needs the module reports the error
    return list(dict.fromkeys(_subclasses(above)))


def _subclasses(above: Any) -> Iterator[Any]:
    for each in above.__subclasses__():
        yield each
        yield from _subclasses(each)


def generate_code(of: Any) -> None:
    """Calls methods with wrong arguments: the calls fail, but generate the code."""
    for name, argument in (("from_dict", None), ("from_msgpack", b"")):
        with suppress(Exception):
            getattr(of, name)(argument)
    for name in ("to_dict", "to_msgpack"):
        with suppress(Exception):
            getattr(of, name)(object.__new__(of))


def make_schema(of: Any) -> None:
    """Makes the class's JSON schema, which dbt keeps."""
    with suppress(Exception):
        of.json_schema()


def with_schemas() -> list[Any]:
    """Returns the dataclasses whose JSON schemas a command needs, at most as many as dbt keeps."""
    found = (each for module in SCHEMAS_OF for each in lazy_classes() if each.__module__.startswith(module))
    return list(islice((each for each in found if hasattr(each, "json_schema")), MOST_SCHEMAS))


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
