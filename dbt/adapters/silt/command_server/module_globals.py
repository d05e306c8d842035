"""Restores the globals of modules, because the preparation of dbt's classes may fill dbt's caches."""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, NamedTuple

_PACKAGES: Final = ("dbt", "dbt_common", "dbt_semantic_interfaces")


class _Global(NamedTuple):
    """The value of a module's global, and its members if the value is a collection."""

    value: Any
    content: Any


@contextmanager
def restored() -> Iterator[None]:
    """Undoes changes of the globals of dbt's modules, and of collections in them, when the block ends."""
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
    """Returns the pairs of a mapping or the members of another collection; None for any other value."""
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
