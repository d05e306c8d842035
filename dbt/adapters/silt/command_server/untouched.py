"""Puts the globals of modules back as they were: what prepares dbt's classes may fill caches of dbt's on its way."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, NamedTuple

_PACKAGES: Final = ("dbt", "dbt_common", "dbt_semantic_interfaces")


class _Global(NamedTuple):
    """What a module's name is bound to, and what that holds where it is a collection."""

    value: Any
    content: Any


@contextmanager
def untouched() -> Iterator[None]:
    """Undoes what happens within to the globals of dbt's modules, and to the collections that they are bound to."""
    before = {name: _globals(module) for name, module in _modules()}
    try:
        yield
    finally:
        for name, module in _modules():
            if name in before:
                _restore(module, before[name])


def _modules() -> list[tuple[str, ModuleType]]:
    return [(name, each) for name, each in tuple(sys.modules.items()) if name.partition(".")[0] in _PACKAGES]


def _globals(module: ModuleType) -> dict[str, _Global]:
    found = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    return {name: _Global(value, _content(value)) for name, value in found.items()}


def _content(value: Any) -> tuple[Any, ...] | None:
    """What a collection holds: pairs of a mapping, else members; None of anything else."""
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
    """Whether two contents are of the same objects: to compare them may not mean anything."""
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
